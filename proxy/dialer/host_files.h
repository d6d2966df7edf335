/* The files of this host that say how names are resolved, and nothing beside them in /etc: what the
 * dialer may still open once it is confined. A rule of Landlock is for the file that it was made
 * for, so that one that takes its name is not readable; whoever needs it has to start again. */
#ifndef DURWARD_HOST_FILES_H
#define DURWARD_HOST_FILES_H

#include <stdbool.h>
#include <sys/types.h>

struct landlock_place;

enum { HOST_FILES_MAX = 6 };

struct host_files {
    struct {
        dev_t dev;
        ino_t ino; /* 0: there was none */
    } seen[HOST_FILES_MAX];
};

/* Looks at them, and opens those that are there: at most HOST_FILES_MAX places, whose descriptors
 * are the caller's. Returns how many. */
size_t host_files_open(struct host_files *f, struct landlock_place *places);
/* Another file has one of the names, or a name is gone, or new. */
bool host_files_replaced(const struct host_files *f);

#endif
