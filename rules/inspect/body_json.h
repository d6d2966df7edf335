/* A request's body as JSON, read so that no other reader can reasonably see something else in it:
 * UTF-8, no duplicate keys, no NUL, nothing behind the value, few enough values. */
#ifndef DURWARD_BODY_JSON_H
#define DURWARD_BODY_JSON_H

#include <jansson.h>

#include "slice.h"

enum { BODY_JSON_VALUES = 256 * 1024 }; /* each costs memory, whatever its length */

enum body_json { BODY_JSON_OK = 0, BODY_JSON_BAD, BODY_JSON_TOO_MANY };

/* *ret: the caller's, when it is BODY_JSON_OK. */
enum body_json body_json_read(struct slice text, json_t **ret);
/* The same name for a reader that folds case, as Unicode folds it to ASCII. */
bool body_json_same(const char *key, const char *name);
/* A key of the object is this name but for its case: other readers take it for the same. */
bool body_json_twisted(const json_t *object, const char *name);
/* Each key is one of the names, exactly. */
bool body_json_only(const json_t *object, const char *const *names, size_t n);

#endif
