/* Where the values of a JSON text begin and end, without libraries: for process 1 of a sandbox. */
#ifndef DURWARD_JSON_WALK_H
#define DURWARD_JSON_WALK_H

#include <stdbool.h>

#include "slice.h"

enum { JSON_DEPTH_MAX = 64 };

struct json_walk {
    const char *p, *end;
};

void json_blanks(struct json_walk *w);
/* Past this character, if it is what comes. */
bool json_next_is(struct json_walk *w, char c);
/* Past a value, which ret then is, as it is written; false: there is none. Brackets match. */
bool json_value(struct json_walk *w, struct slice *ret);
/* Past a member: its key with its quotes, its value. */
bool json_member(struct json_walk *w, struct slice *key, struct slice *value);
/* The value of an object's member, whose name has its quotes; n 0: there is none. */
struct slice json_find(struct slice object, const char *name);

#endif
