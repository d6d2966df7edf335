/* What a request asks for: its path and query in parts, its JSON body read strictly. */
#ifndef DURWARD_API_ASKED_H
#define DURWARD_API_ASKED_H

#include <event2/http.h>
#include <jansson.h>

#include "err.h"
#include "strlist.h"

enum { ASKED_PATH_MAX = 512, ASKED_ARGS = 2, ASKED_PARAMS = 48 };

struct asked_param {
    char *name, *value; /* decoded; owned */
};

struct asked {
    char path[ASKED_PATH_MAX];
    char *args[ASKED_ARGS]; /* what stands for {} in the pattern; in `path` after asked_fits */
    struct asked_param params[ASKED_PARAMS];
    unsigned n_params;
};

/* -1 with err: the target is malformed. asked_done in any case. */
int asked_read(struct asked *q, const char *uri, struct err *err);
void asked_done(struct asked *q);
/* Does the path fit "/v1/sandboxes/{}/exec"? Fills args; {} is one segment of [a-z0-9-]{1,64}. */
bool asked_fits(struct asked *q, const char *pattern);
/* allowed: names separated by spaces. Only `label` may come twice. */
int asked_only(const struct asked *q, const char *allowed, struct err *err);
const char *asked_param(const struct asked *q, const char *name); /* NULL: absent */
/* Decimal within bounds; absent: fallback. */
int asked_number(const struct asked *q, const char *name, int64_t min, int64_t max,
                 int64_t fallback, int64_t *ret, struct err *err);
int asked_bool(const struct asked *q, const char *name, bool *ret, struct err *err);
/* An absolute path without NUL, at most 4095 bytes. */
int asked_path(const char *text, struct err *err);
/* "644" or "0644". */
int asked_mode(const char *text, unsigned *ret, struct err *err);

/* The body as an object with no other than these keys. NULL with err. */
json_t *asked_body(struct evhttp_request *req, const char *allowed, struct err *err);
int asked_keys(const json_t *o, const char *allowed, struct err *err);
/* Members of an object; absent ones leave *ret as it is. */
int asked_text(const json_t *o, const char *key, size_t max, const char **ret, struct err *err);
int asked_integer(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret,
                  struct err *err);
int asked_flag(const json_t *o, const char *key, bool *ret, struct err *err);
/* encoding: NULL or a key that says utf-8 or base64 of the text at `key`. *ret is malloc'd (NULL
 * when the key is absent). */
int asked_bytes(const json_t *o, const char *key, const char *encoding, char **ret, size_t *n,
                struct err *err);
/* An object of labels or variables, checked; borrowed. */
int asked_labels(const json_t *o, const char *key, json_t **ret, struct err *err);
int asked_env(const json_t *o, const char *key, json_t **ret, struct err *err);
bool asked_label_ok(const char *key, const char *value);
int asked_id(const char *text, struct err *err); /* [a-z0-9-]{1,64} */

/* These bytes as JSON text: as they are, NULL when they are no UTF-8 or largely control characters;
 * or in base64. */
json_t *asked_encode(struct slice s, bool base64);

#endif
