/* What a sandbox wrote itself to files that have a credential's name: a copy of their bytes, by the
 * file's identity (device, inode, time of birth). A file that holds anything else than the copy was
 * written by somebody else too; its copy is given up, and its name and content say what it is.
 *
 * Bounded: a file larger than OWN_BYTES_MAX, and what comes after OWN_FILES_MAX of them, is not
 * kept; it can be written, but not read. All functions are for several threads. */
#ifndef DURWARD_VIEW_OWN_H
#define DURWARD_VIEW_OWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { OWN_FILES_MAX = 256, OWN_BYTES_MAX = 128 * 1024 };

enum own_state {
    OWN_NOT,     /* not ours to say */
    OWN_HELD,    /* written by the sandbox, and nobody else as far as we know */
    OWN_SPOILED, /* never to be shown */
};

struct own {
    uint64_t dev, ino;
    int64_t born_s;
    uint32_t born_ns;
    enum own_state state; /* OWN_NOT: an empty slot */
    unsigned char *bytes;
    size_t n;
};

struct owns {
    pthread_mutex_t lock;
    struct own at[OWN_FILES_MAX];
    size_t n; /* slots ever used */
};

void own_init(struct owns *o);
/* A file that the sandbox has just made (held, with the bytes that can be read from `from`, -1:
 * none), or one that must not be shown (spoiled). -1: no room, or it has no identity. */
int own_add(struct owns *o, int fd, int from, enum own_state state);
enum own_state own_state(struct owns *o, int fd);
/* Compares the file, readable at fd, with the copy, which is given up when they differ. */
enum own_state own_compare(struct owns *o, int fd);
ssize_t own_read(struct owns *o, int fd, void *to, size_t n, off_t at); /* -1: not held */
/* pwrite and ftruncate of any file, whose copy, if there is one, follows. */
ssize_t own_write(struct owns *o, int fd, const void *from, size_t n, off_t at);
int own_cut(struct owns *o, int fd, off_t n);
void own_drop(struct owns *o, int fd);

#endif
