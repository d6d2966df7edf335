/* A snapshot as a tar archive (pax), to be carried to another daemon:
 *
 *   durward-snapshot.json   first: format, name, sandbox, policy, image, created (one line)
 *   root/..., usr/...       the layer as overlayfs keeps it; a directory comes behind what it holds
 *   durward-end             last and empty: without it the archive is cut
 *
 * Whiteouts are character devices 0:0; of attributes there are the user's own and overlayfs's
 * marks; hard links lead to what came before them in the same part; holes stay holes. Sockets,
 * devices, owners, set-id bits and capabilities are left out. */
#ifndef DURWARD_LAYER_ARCHIVE_H
#define DURWARD_LAYER_ARCHIVE_H

#include <stdint.h>

#include "err.h"

#define LAYER_FIRST "durward-snapshot.json"

enum {
    LAYER_ABOUT_MAX = 511, /* bytes of the JSON in messages */
    LAYER_FORMAT = 1,      /* of the archive */
    LAYER_ENTRIES_MAX = 10 << 20,
    LAYER_BLOCK = 512 /* tar's */
};

/* The archive's first member, without libarchive: about is the JSON. */
int layer_write_about(int fd, const char *about, struct err *err);
/* about gets LAYER_ABOUT_MAX + 1 bytes. */
int layer_read_about(int fd, char *about, struct err *err);

/* The rest, which the program `archive` does. parts: root's and usr's directories. */
int layer_pack(int fd, const int parts[2], struct err *err);
/* Below empty directories. bytes: of files, holes counted. */
int layer_lay_out(int fd, const int parts[2], uint64_t bytes, struct err *err);

#endif
