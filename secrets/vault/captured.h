/* Secrets that came in replies: the vault keeps the newest value for each sandbox and name, and
 * writes the sandbox's placeholders in their place. */
#ifndef DURWARD_CAPTURED_H
#define DURWARD_CAPTURED_H

#include "buf.h"
#include "capture.h"
#include "err.h"

enum { CAPTURED_MAX = 4096 }; /* values kept; beyond, one of the policy's that has most goes */

/* body: of a reply. Every found value is replaced by its placeholder, wherever in the body it
 * stands. A field that names what holds an AWS key (AccessKeyId, SecretAccessKey, SessionToken) has
 * it as its value, packed (aws_sign.h), and each of the three becomes the placeholder. -1 with err:
 * it is not in that form, a field is neither text nor such a key, two values would have one name.
 */
int captured_rewrite(struct slice body, enum captured_form form, struct captured_field *fields,
                     size_t n, struct buf *out, struct err *err) WUNUSED;

/* owner: "POLICY|SANDBOX"; clients of a listener are no sandbox, "". */
struct captured;
struct captured *captured_new(void);
void captured_free(struct captured *c); /* NULL is fine */
int captured_put(struct captured *c, const char *owner, const char *secret,
                 struct secret *value) WUNUSED;
/* Borrowed; NULL when nothing was captured. */
struct secret *captured_get(struct captured *c, const char *owner, const char *secret);
/* The values of that name whose owner is of the policy, the last used first; how many. Borrowed. */
size_t captured_list(const struct captured *c, const char *policy, const char *secret,
                     struct secret *ret[CAPTURED_LIST_MAX]);
void captured_forget(struct captured *c, const char *sandbox); /* it is gone */

#endif
