/* Images: root file systems that were imported, one directory each below the state directory
 * (layer.h). `durward image` works on them by itself, without a daemon; the builder reads them.
 *
 * What is imported is read by a process of its own, inside a user namespace, as the owner of the
 * image's files (idmap.h), which is nobody else outside. */
#ifndef DURWARD_IMAGE_H
#define DURWARD_IMAGE_H

#include "archive_call.h"

enum { IMAGE_SOURCE_MAX = 512, IMAGE_ID_SIZE = 33 };

struct image {
    char name[65];
    char id[IMAGE_ID_SIZE]; /* of this import */
    char source[IMAGE_SOURCE_MAX];
    char kind[16];   /* "files" or "layers" */
    int64_t created; /* seconds since 1970 */
    uint64_t bytes, entries;
    uint64_t special, set_id; /* left out: unpack.h */
};

struct image_import {
    const char *name;
    const char *source; /* a directory or a file; "-" is standard input */
    uint64_t max_bytes, max_entries;
    int archive; /* the program that reads it (archive_call.h), as program_open has it */
    /* every tenth of a second or so */
    void (*progress)(void *arg, const struct unpack_count *done);
    void *arg;
};

/* 0 and *ret filled; -1 and nothing left behind. An image of this name must not exist. */
int image_import(const char *state_dir, const struct image_import *how, struct image *ret,
                 struct err *err);
/* Calls fn for each, by name. -1 when the directory cannot be read or fn says so. */
int image_list(const char *state_dir, int (*fn)(void *arg, const struct image *i), void *arg,
               struct err *err);
/* Refused while a sandbox uses it, also one that is stopped. */
int image_remove(const char *state_dir, const char *name, struct err *err);
/* While the descriptor is open the image cannot be removed. -1: there is none. */
int image_hold(const char *state_dir, const char *name, struct err *err);

#endif
