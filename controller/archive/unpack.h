/* Lays the members of a tar archive (plain, or packed with gzip, bzip2, xz or zstd) out below a
 * directory. libarchive reads; what is written is decided here:
 *
 * - directories, regular files, symbolic links, and hard links to regular files of the same tree
 *   are made; everything else (devices, pipes, sockets) is left out and counted
 * - all belongs to the caller; set-uid and set-gid bits, extended attributes and file capabilities
 *   are left out (set-id files are counted)
 * - no component of a path is followed if it is a link (tree.h)
 * - bytes and entries have a budget; beyond it there is an error and nothing more is written */
#ifndef DURWARD_UNPACK_H
#define DURWARD_UNPACK_H

#include "archive_call.h"

struct unpack {
    int root;              /* the caller's */
    uint64_t bytes_left;   /* budget */
    uint64_t entries_left; /* budget */
    struct unpack_count done;
    void (*progress)(void *arg, const struct unpack_count *done); /* NULL: none */
    void *arg;
};

int unpack_stream(struct unpack *u, int fd, struct err *err);
/* One layer of an OCI image above those that lie there already: its whiteouts first, then the rest,
 * so that the order of members does not matter. fd can be rewound. */
int unpack_layer(struct unpack *u, int fd, struct err *err);

#endif
