/* A hash table of directories by device and inode. A change so recent that a later one could bear
 * the same time does not count as read. */
#include "mask_seen.h"

#include <stdlib.h>

enum { FIRST_SIZE = 1024, NEVER = -1, TICK_NS = 20000000 };

static struct seen_directory *find(const struct seen *seen, uint64_t dev, uint64_t ino)
{
    size_t i = (size_t)((ino ^ dev << 40) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    for (;; i++) {
        struct seen_directory *d = &seen->at[i & (seen->size - 1)];
        if (d->ino == 0 || (d->ino == ino && d->dev == dev))
            return d;
    }
}

static int grow(struct seen *seen)
{
    struct seen more = {.size = seen->size ? seen->size * 2 : FIRST_SIZE, .n = seen->n};
    more.at = calloc(more.size, sizeof *more.at);
    if (more.at == NULL)
        return -1;
    for (size_t i = 0; i < seen->size; i++)
        if (seen->at[i].ino != 0)
            *find(&more, seen->at[i].dev, seen->at[i].ino) = seen->at[i];
    free(seen->at);
    *seen = more;
    return 0;
}

/* The clock of file systems ticks every few milliseconds. */
static bool just_now(const struct timespec *t, const struct timespec *now)
{
    int64_t s = (int64_t)now->tv_sec - t->tv_sec;
    return s < 0 || (s <= 1 && s * 1000000000 + now->tv_nsec - t->tv_nsec < TICK_NS);
}

int seen_note(struct seen *seen, const struct stat *st, const struct timespec *now)
{
    if (seen->n * 2 >= seen->size && grow(seen) < 0)
        return -1;
    struct seen_directory *d = find(seen, st->st_dev, st->st_ino);
    if (d->ino != 0 && d->ns == st->st_ctim.tv_nsec && d->s == st->st_ctim.tv_sec)
        return 1;
    seen->n += d->ino == 0;
    *d = (struct seen_directory){st->st_dev, st->st_ino, st->st_ctim.tv_sec, st->st_ctim.tv_nsec};
    if (just_now(&st->st_ctim, now))
        d->ns = NEVER;
    return 0;
}

void seen_free(struct seen *seen)
{
    free(seen->at);
    *seen = (struct seen){.at = NULL};
}
