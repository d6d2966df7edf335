/* Files that durward-kubernetes reads and writes. */
#ifndef DURWARD_KUBE_FILE_H
#define DURWARD_KUBE_FILE_H

#include "buf.h"
#include "err.h"

/* The whole text; *b is the caller's in any case. */
int kube_file_read(const char *path, struct buf *b, struct err *err);
int kube_file_read_up_to(const char *path, size_t max, struct buf *b, struct err *err);
/* Whole or not at all. 1. */
int kube_file_replace(const char *path, struct slice text, unsigned mode, struct err *err);
/* Whole or not at all; nothing where it has this text already. 1: it was written. */
int kube_file_write(const char *path, struct slice text, struct err *err);

#endif
