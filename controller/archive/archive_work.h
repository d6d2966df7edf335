/* What the program `archive` does with an image; snapshots: layer_archive.h. */
#ifndef DURWARD_ARCHIVE_WORK_H
#define DURWARD_ARCHIVE_WORK_H

#include "archive_call.h"

/* ARCHIVE_UNPACK, which it reports on; budget: bytes and entries. How the program ends. */
int archive_unpack_image(const uint64_t budget[2]);
/* ARCHIVE_PACK. 0 or -1. */
int archive_pack_directory(int dir, int to);

#endif
