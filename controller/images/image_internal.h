/* Shared by image.c (the store) and image_work.c (what happens inside the namespace). */
#ifndef DURWARD_IMAGE_INTERNAL_H
#define DURWARD_IMAGE_INTERNAL_H

#include "image.h"

/* Unpack stream (-1: nothing but removing is wanted) into dir/root by way of dir/new; the child
 * writes archive_reports to report. dir is ours. The pid, or -1. */
pid_t image_unpack(int dir, int stream, const struct image_import *how, int report,
                   struct err *err);
/* Remove all that dir holds, whoever in the namespace owns it. */
int image_clear(int dir, struct err *err);
/* A process that writes the tree of a directory as a tar archive to `to`. */
pid_t image_pack(int program, int dir, int to, struct err *err);

#endif
