/* What a child of durward-init tells of a directory that is watched (inside.h), as it comes from
 * inside: an adversary's words. */
#ifndef DURWARD_FILE_EVENT_H
#define DURWARD_FILE_EVENT_H

#include "inside.h"

enum { FILE_EVENT_MAX = INSIDE_PATH + 8 }; /* bytes of an entry, with its end */

struct file_event {
    enum inside_event kind;
    bool directory;
    const char *path; /* below the directory, in the entry; "" where the kind has none */
};

/* An entry, without its end. -1: it is none, or its name could lead elsewhere. */
int file_event_read(const char *entry, struct file_event *ret);
/* As the API calls it; NULL of INSIDE_READY and of INSIDE_MISSED_*. */
const char *file_event_name(enum inside_event kind);

#endif
