/* The beginning of a request's body and of its reply's, for the audit log, where the rule has
 * `capture_body`. Kept by whoever records the request: the gate, or for rules with a credential the
 * injector, which takes the request's as it came from the sandbox (nothing of ours is in it yet)
 * and the reply's after the secret was taken out. So no secret is ever in it.
 *
 * At most CAPTURE_BODY_MAX bytes each way, in memory until the request's end. */
#ifndef DURWARD_BODY_CAPTURE_H
#define DURWARD_BODY_CAPTURE_H

#include "journal.h"

enum body_side { BODY_REQUEST = 0, BODY_REPLY, BODY_SIDES };

struct body_capture;

/* max: bytes of each side, not 0. NULL when memory is out. */
struct body_capture *body_capture_new(size_t max);
void body_capture_free(struct body_capture *c); /* wipes; NULL is fine */
void body_capture_take(struct body_capture *c, enum body_side s, const void *p, size_t n);
/* Is there something that may not be recorded? Then a word stands in its place. */
typedef bool (*body_capture_fn)(void *arg, struct slice text);
/* Records of kind `body` under this counter; unfit may be NULL. -> how many could not be written:
 * the request's own records are what must not be lost. */
size_t body_capture_record(const struct body_capture *c, struct journal *j, uint64_t counter,
                           body_capture_fn unfit, void *arg);

#endif
