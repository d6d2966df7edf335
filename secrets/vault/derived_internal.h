/* The kinds of secrets that are made, and what derived.c, derived_store.c and
 * derived_sign.c share. */
#ifndef DURWARD_DERIVED_INTERNAL_H
#define DURWARD_DERIVED_INTERNAL_H

#include "derived.h"

#include "scram_keys.h"
#include "ssh_certificates.h"

#include <jansson.h>

struct derived {
    enum derived_kind kind;
    struct derived_spec spec;
    const char *inputs[DERIVED_INPUTS_MAX]; /* names; in the spec */
    size_t n;
    int refresh;
    struct scram_keys *scram;              /* of a login that proves its password; else NULL */
    struct ssh_certificates *certificates; /* of a CA of SSH; else NULL */
    char *renew; /* the URL by which a login is renewed; NULL: it cannot be */
};

enum { DERIVED_LIFE = 300 /* seconds, when an endpoint does not say */ };

const char *derived_text(const struct derived *m, enum spec_field field); /* "" when it is absent */
int derived_field(struct token_request *r, const char *name, const char *value);
/* A text that a header can hold; NULL: it is none. */
struct secret *derived_token(const json_t *v);
/* A life without its last part, for clocks and for what is under way; at most a day. */
unsigned derived_life(int64_t seconds);
/* Sign a POST whose body is written (secrets/proto/aws_sign.h). target: x-amz-target, or NULL. */
int derived_sign_post(const struct derived *m, const struct secret *pair, const char *service,
                      const char *type, const char *target, time_t now, struct token_request *r,
                      struct err *err);

/* NAME=VALUE of a form, behind an & where there is something. Nothing where the value is empty. */
int derived_form(struct buf *out, const char *name, struct slice value);
/* Seconds from now to the time that a service says; -1: it says none. */
int64_t derived_until(const json_t *v, time_t now);

/* derived_ambient.c: what the machine is, and what it is told to show others. */
bool derived_is_ambient(const struct derived *m);
int derived_ambient_ask(const struct derived *m, struct secret *const *in, struct token_request *r,
                        struct err *err);
/* v: the answer as JSON; NULL: it is none. */
int derived_ambient_take(const struct derived *m, const json_t *v, struct slice text, time_t now,
                         struct derived_answer *ret);

/* derived_store.c */
int derived_store_ask(const struct derived *m, struct secret *const *in, const struct secret *old,
                      time_t now, struct token_request *r, struct err *err);
int derived_store_take(const struct derived *m, const json_t *v, struct derived_answer *ret);
/* What this status may mean there; NULL: nothing is known. */
const char *derived_store_hint(const struct derived *m, unsigned status);
/* The store answered, but the value is not in it. */
void derived_store_absent(const struct derived *m, struct err *err);

#endif
