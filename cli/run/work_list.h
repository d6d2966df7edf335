/* What was copied into a sandbox, as it was then: a tree of directories, each sorted by name. */
#ifndef DURWARD_WORK_LIST_H
#define DURWARD_WORK_LIST_H

#include <sys/stat.h>

#include "compiler.h"

struct work_list {
    struct work_entry *v; /* owned; sorted once work_list_sort was called */
    size_t n, room;
};

struct work_entry {
    char *name; /* owned */
    /* A directory's mode alone is looked at again. */
    struct stat host, copy;
    struct work_list below;
    bool seen; /* it was met in the copy afterwards */
};

/* The new entry, valid until the next one is added; NULL when memory is out. */
struct work_entry *work_list_add(struct work_list *l, const char *name);
void work_list_sort(struct work_list *l);
struct work_entry *work_list_find(const struct work_list *l, const char *name);
void work_list_free(struct work_list *l);

/* Is it the file that it was, and untouched? Of a copy, which its owner may set any time on but the
 * last change's. */
bool work_same_copy(const struct stat *then, const struct stat *now);
/* The same of a file of the host's. moved: its name was changed since, which counts as a change of
 * the inode. */
bool work_same_host(const struct stat *then, const struct stat *now, bool moved);

#endif
