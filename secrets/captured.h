/* Secrets that came in replies: the vault keeps the newest value for each sandbox and name, and
 * writes the sandbox's placeholders in their place. */
#ifndef DURWARD_CAPTURED_H
#define DURWARD_CAPTURED_H

#include "buf.h"
#include "err.h"
#include "secret.h"

enum {
    CAPTURED_MAX = 4096,          /* values kept; the one unused longest goes first */
    CAPTURED_VALUE_MAX = 16384,   /* bytes */
    CAPTURED_VALUE_MIN = 8,       /* what is shorter is no secret and stays */
    CAPTURED_REPLY_MAX = 65536,   /* of a reply that is looked into */
    CAPTURED_WRITTEN_MAX = 80000, /* of the same with placeholders, which may be longer */
    CAPTURED_FIELDS_MAX = 8,
    CAPTURED_PARTS = 3, /* of an AWS key: its id, secret and token */
    CAPTURED_VALUES_MAX = CAPTURED_FIELDS_MAX * CAPTURED_PARTS,
    CAPTURED_DEPTH_MAX = 32, /* of elements */
};

/* What is looked for, and what is found. */
struct captured_field {
    const char *path;        /* rules/policy.h: struct capture */
    const char *placeholder; /* of this sandbox for the secret */
    const char *secret;
    struct secret *value; /* found, or NULL; the caller unrefs */
};

/* What a reply is written in, as its Content-Type says. */
enum captured_form { CAPTURED_JSON = 0, CAPTURED_FORM, CAPTURED_XML };

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
void captured_forget(struct captured *c, const char *sandbox); /* it is gone */

#endif
