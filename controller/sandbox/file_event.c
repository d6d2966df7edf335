/* Reads entries of watched directories: a kind that is known, and a name below the directory. */
#include "file_event.h"

#include <stddef.h>
#include <string.h>

const char *file_event_name(enum inside_event kind)
{
    switch (kind) {
    case INSIDE_CREATED:
        return "created";
    case INSIDE_MODIFIED:
        return "modified";
    case INSIDE_ATTRIBUTES:
        return "attributes";
    case INSIDE_DELETED:
        return "deleted";
    case INSIDE_READY:
    case INSIDE_MISSED_EVENTS:
    case INSIDE_MISSED_FOLDERS:
        break;
    }
    return NULL;
}

/* "a/b": with no component that leads elsewhere. */
static bool is_below(const char *path)
{
    if (strlen(path) >= INSIDE_PATH)
        return false;
    for (const char *at = path;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n;
        if (*at == '\0')
            return true;
    }
}

int file_event_read(const char *entry, struct file_event *ret)
{
    static const char kinds[] = {INSIDE_READY,         INSIDE_CREATED,    INSIDE_MODIFIED,
                                 INSIDE_DELETED,       INSIDE_ATTRIBUTES, INSIDE_MISSED_EVENTS,
                                 INSIDE_MISSED_FOLDERS};
    if (strlen(entry) < 4 || memchr(kinds, entry[0], sizeof kinds) == NULL || entry[1] != ' ' ||
        (entry[2] != '0' && entry[2] != '1') || entry[3] != ' ')
        return -1;
    *ret = (struct file_event){(enum inside_event)entry[0], entry[2] == '1', entry + 4};
    if (file_event_name(ret->kind) == NULL)
        return ret->path[0] ? -1 : 0;
    return is_below(ret->path) ? 0 : -1;
}
