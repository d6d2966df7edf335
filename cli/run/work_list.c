/* Keeps what was copied into a sandbox, and tells whether a file has changed since. */
#include "work_list.h"

#include <stdlib.h>
#include <string.h>

struct work_entry *work_list_add(struct work_list *l, const char *name)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 8;
        struct work_entry *v = reallocarray(l->v, room, sizeof *v);
        if (v == NULL)
            return NULL;
        l->v = v;
        l->room = room;
    }
    char *own = strdup(name);
    if (own == NULL)
        return NULL;
    l->v[l->n] = (struct work_entry){.name = own};
    return &l->v[l->n++];
}

static int by_name(const void *a, const void *b)
{
    const struct work_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void work_list_sort(struct work_list *l)
{
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, by_name);
}

struct work_entry *work_list_find(const struct work_list *l, const char *name)
{
    for (size_t low = 0, high = l->n; low < high;) {
        size_t at = low + (high - low) / 2;
        int d = strcmp(name, l->v[at].name);
        if (d == 0)
            return &l->v[at];
        if (d < 0)
            high = at;
        else
            low = at + 1;
    }
    return NULL;
}

void work_list_free(struct work_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        work_list_free(&l->v[i].below);
        free(l->v[i].name);
    }
    free(l->v);
    *l = (struct work_list){0};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

bool work_same_copy(const struct stat *then, const struct stat *now)
{
    return same_file(then, now) && same_time(&then->st_ctim, &now->st_ctim);
}

bool work_same_host(const struct stat *then, const struct stat *now, bool moved)
{
    return same_file(then, now) && same_time(&then->st_mtim, &now->st_mtim) &&
           (moved || same_time(&then->st_ctim, &now->st_ctim));
}
