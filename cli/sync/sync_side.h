/* What one side has at a path. */
#ifndef DURWARD_SYNC_SIDE_H
#define DURWARD_SYNC_SIDE_H

#include "buf.h"
#include "err.h"
#include "sync_table.h"

enum sync_kind {
    SYNC_KIND_NONE,
    SYNC_KIND_FILE,
    SYNC_KIND_FOLDER,
    SYNC_KIND_OTHER, /* a link, a device, what may not be read */
};

/* What came of something that was asked. */
enum sync_end {
    SYNC_DONE = 0,
    SYNC_MOVING,  /* it is being changed: ask again soon */
    SYNC_BLOCKED, /* something else is in its place, no room, no permission: see err */
    SYNC_GONE,    /* the side is not there: see err */
};

struct sync_side {
    enum sync_kind kind;
    bool exec;
    bool still; /* it changed long enough ago that its version says all */
    uint64_t size;
    char version[FILE_VERSION_TEXT]; /* "" where it is not still */
    bool loaded;
    struct buf data; /* once it is loaded */
    unsigned char hash[SYNC_HASH];
};

/* One entry of a folder that is walked. */
typedef void (*sync_walk_fn)(void *arg, const char *path, const struct sync_side *what);
/* Is this folder, or file, to be looked at? */
typedef bool (*sync_enter_fn)(void *arg, const char *path, bool folder);
/* This folder could not be read whole, for this reason: nothing is known of what lies in it. */
typedef void (*sync_unknown_fn)(void *arg, const char *path, const char *why);

struct sync_walk {
    sync_enter_fn enter;
    sync_walk_fn entry;
    sync_unknown_fn unknown;
    void *arg;
};

#endif
