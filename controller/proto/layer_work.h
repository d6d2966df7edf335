/* W_LAYER, controller → builder: something to be done with what sandboxes have written. It copies
 * files, never processes: of a sandbox that runs, what lies there just then.
 *
 * Fields of W_LAYER: req:u32, op:u8 (below), from:str, to:str. Ids and names as in sandbox_spec.h.
 * Of those that make a volume's files also: about:str (volume.h).
 * Of LAYER_EXPORT, LAYER_IMPORT and LAYER_VOLUME_EXPORT also: about:str (layer_archive.h), uid:u32,
 * gid:u32, fd (a stream). What the end of the requester's channel finds unfinished is not finished.
 * Answer W_LAYERED: req:u32, result:u8 (below), text:str (why it failed; of an import that is done
 * what the archive says that it is). */
#ifndef DURWARD_LAYER_WORK_H
#define DURWARD_LAYER_WORK_H

#include "ipc.h"
#include "layer_archive.h"

enum layer_op {
    LAYER_SNAPSHOT = 1,    /* of the sandbox `from` as the snapshot `to` */
    LAYER_RESTORE,         /* the snapshot `from` for the sandbox `to`, which is new */
    LAYER_FORK,            /* of the sandbox `from` for the sandbox `to`, which is new */
    LAYER_REMOVE,          /* what the sandbox `from` has; it must not run. Nothing is fine */
    LAYER_REMOVE_SNAPSHOT, /* `from`. Nothing is fine */
    LAYER_REPLACE,     /* the snapshot `from` in place of what the sandbox `to` has, at once or not
                          at all; it must not run */
    LAYER_EXPORT,      /* the snapshot `from` into a stream, as an archive */
    LAYER_IMPORT,      /* the snapshot `to`, which is new, from such a stream */
    LAYER_CONFIRM,     /* is what the sandbox `from` has there by a LAYER_REPLACE from the snapshot
                          `to`? LAYER_ABSENT: no. Nobody works at it any more when it is answered */
    LAYER_UNMARK,      /* what the sandbox `from` has from the snapshot `to` counts as there by no
                          LAYER_REPLACE any more, so that another one can be confirmed */
    LAYER_VOLUME_MAKE, /* the volume `to`, which is new and empty; from is its name too */
    LAYER_VOLUME_COPY, /* of the volume `from`, as it is, for the volume `to`, which is new */
    LAYER_VOLUME_REPLACE, /* the volume `from` in place of the volume `to`, at once or not at all;
                             it must not be mounted */
    LAYER_VOLUME_REMOVE,  /* `from`. Nothing is fine; LAYER_EXISTS: it is mounted, and stays */
    LAYER_VOLUME_EXPORT,  /* `from` into a stream, as an archive */
    LAYER_VOLUME_USED,    /* how many bytes of `from` are used: its text, in decimal */
    LAYER_SWEEP,          /* what processes left that were killed. The builder's own */
    LAYER_OPS
};

enum layer_result {
    LAYER_FAILED = 0,
    LAYER_DONE,
    LAYER_EXISTS, /* `to` is there already: nothing was done */
    LAYER_ABSENT, /* `from` is not there */
};

/* What exports and imports have besides. */
struct layer_stream {
    int fd;
    uid_t uid; /* of an import: whose the files are, but above an image */
    gid_t gid;
    char about[LAYER_ABOUT_MAX + 1]; /* of an import it is the answer */
};

static inline bool layer_streams(enum layer_op op)
{
    return op == LAYER_EXPORT || op == LAYER_IMPORT || op == LAYER_VOLUME_EXPORT;
}

/* Have they only `from`? */
static inline bool layer_removes(enum layer_op op)
{
    return op == LAYER_REMOVE || op == LAYER_REMOVE_SNAPSHOT || op == LAYER_VOLUME_REMOVE;
}

static inline bool layer_makes_volume(enum layer_op op)
{
    return op == LAYER_VOLUME_MAKE || op == LAYER_VOLUME_COPY || op == LAYER_VOLUME_REPLACE;
}

static inline bool layer_is_volume(enum layer_op op)
{
    return op >= LAYER_VOLUME_MAKE && op <= LAYER_VOLUME_USED;
}

/* The controller's side. stream: NULL but for exports, imports and what makes a volume (whose fd is
 * -1); its fd is taken over. */
int layer_ask(struct ipc *builder, uint32_t req, enum layer_op op, const char *from, const char *to,
              const struct layer_stream *stream) WUNUSED;
/* Pause a sandbox or let it go on: needs a control group with a freezer. Answered like W_LAYER. */
int layer_freeze(struct ipc *builder, uint32_t req, const char *sandbox, bool frozen) WUNUSED;
/* text: size bytes. -1: the message is bad. */
int layer_answer(struct msg *m, uint32_t *req, enum layer_result *result, char *text,
                 size_t size) WUNUSED;

/* The builder's side: does it, in this process, which is one of its own. archive: the program. */
enum layer_result layer_work(const char *state_dir, int archive, enum layer_op op, const char *from,
                             const char *to, struct layer_stream *stream, struct err *err);

/* The quick half of what removes, in the builder itself: it loses its
 * name, and LAYER_SWEEP removes what it was. LAYER_FAILED: do it by layer_work. */
enum layer_result layer_forget(const char *state_dir, enum layer_op op, const char *name);

#endif
