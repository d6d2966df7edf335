/* What a note of a fleet is made of (fleet/notes.h): letters that mean nothing to anything that it
 * comes through, and lengths. */
#ifndef DURWARD_NOTE_H
#define DURWARD_NOTE_H

#include "slice.h"

enum {
    NOTES_OPEN_MAX = 64, /* puts and questions that are not answered yet; more fail at once */
    NOTES_AT_ONCE = 16,  /* of an answer */
    NOTE_KIND_MAX = 16,
    NOTE_ID_MAX = 64,
    NOTE_BODY_MAX = 20480,
    NOTE_SECONDS_MAX = 400 * 86400, /* it is kept at most so long */
};

/* What became of W_NOTE_PUT: NOTE_FAILED, it is to be put again. */
enum { NOTE_OTHER = 0, NOTE_MINE, NOTE_FAILED };

bool note_kind_ok(const char *kind);
bool note_id_ok(const char *id);
bool note_body_ok(struct slice body);
/* What a host says of itself again and again: a later one takes the place of the one before, and
 * nobody is woken by it. */
bool note_replaces(const char *kind);

#endif
