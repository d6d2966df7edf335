/* Keeps a directory of the host's and one of a sandbox the same: looks at paths that are due, and
 * carries what sync_decide.h says. */
#ifndef DURWARD_SYNC_ENGINE_H
#define DURWARD_SYNC_ENGINE_H

#include "out.h"
#include "sync_decide.h"
#include "sync_here.h"
#include "sync_ignore.h"
#include "sync_inside.h"

enum {
    SYNC_MAX_SIZE = 64 << 20, /* the API's bound of a file */
    SYNC_MAX_FILES = 100000,
    SYNC_DEBOUNCE_MS = 60,
    SYNC_MANY = 10, /* so many files do not vanish at once but by mistake */
};

#define SYNC_MAX_TOTAL (UINT64_C(4) << 30)

enum sync_word {
    SYNC_SAID_NOTHING,
    SYNC_SAID_SENT,
    SYNC_SAID_RECEIVED,
    SYNC_SAID_DELETED_INSIDE,
    SYNC_SAID_DELETED_HERE,
    SYNC_SAID_CONFLICT,
    SYNC_SAID_LEFT_OUT,
    SYNC_SAID_FAILED,
};

struct sync_wishes {
    enum sync_direction direction;
    bool git, once, dry, json, allow_empty;
    size_t max_size, max_files;
    uint64_t max_total;
    struct strlist patterns; /* of --ignore */
};

struct sync {
    const struct sync_wishes *wishes;
    struct sync_here here;
    struct sync_inside inside;
    struct sync_table *table;
    struct sync_ignore ignore;
    struct strlist scans;   /* folders that are to be walked, each ended by its slash; "/" of all */
    int64_t scan_due;       /* ms; 0: none */
    int64_t next_due;       /* of items; INT64_MAX: none */
    uint64_t total;         /* bytes of all common versions, and of kept conflicts */
    struct strlist unknown; /* folders that the present walk could not read, as in scans */
    size_t seen_here, seen_inside;
    unsigned count[SYNC_SAID_FAILED + 1];
    int signals; /* signalfd; -1: none */
    bool stopped;
    bool gone; /* the sandbox does not answer: nothing is asked until it does */
    bool full_said, git_said, ready_said;
    bool broken; /* it cannot go on: err says why */
    struct err err;
    struct out_progress progress;
};

/* Sets what is ignored, from the wishes and the file. */
int sync_read_ignored(struct sync *e);
/* Something happened to this path at one side, or to all below a folder. */
void sync_touch(struct sync *e, const char *path, bool folder);
void sync_touch_all(struct sync *e);
/* Walks what is to be walked. */
void sync_walk_due(struct sync *e);
/* The same, then looks at what is due. */
void sync_work(struct sync *e);
/* Somebody wants it to end. */
bool sync_is_stopped(struct sync *e);
/* When there is more to do: ms to wait, -1: nothing. */
int sync_wait_ms(const struct sync *e);
bool sync_is_idle(const struct sync *e);
/* A line of what happened; more: keys and texts of JSON, ended by NULL. */
void sync_say(struct sync *e, enum sync_word word, struct sync_item *item, const char *path,
              const char *key, const char *text);
/* Another line, of no path. */
void sync_say_state(const struct sync *e, const char *type, const char *text);
int64_t sync_now_ms(void);
void sync_done(struct sync *e);

/* sync_carry.c: looks at one path that is due. */
void sync_examine(struct sync *e, struct sync_item *item);
void sync_due(struct sync *e, struct sync_item *item, int ms);
/* May this be carried at all? Says why not, once. */
bool sync_wanted(struct sync *e, const char *path, bool folder);
enum sync_direction sync_direction_of(const struct sync *e, const char *path);

#endif
