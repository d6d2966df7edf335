/* The maker as its backends see it. */
#ifndef DURWARD_MAKER_INTERNAL_H
#define DURWARD_MAKER_INTERNAL_H

#include "netns.h"
#include "plan.h"
#include "stage.h"

/* Where the maker's descriptors lie, close-on-exec; nothing else but stdin, stdout (both /dev/null)
 * and stderr is open. */
enum maker_fd {
    MAKER_INIT = 3, /* durward-init's end of its socket */
    MAKER_FILTER,   /* the seccomp program, rewound */
    MAKER_INFO,     /* takes {"child-pid": N} */
    MAKER_ERRORS,   /* takes what is wrong */
    MAKER_CHANNEL,  /* the builder */
    MAKER_PROGRAM,  /* durward-init's bytes */
    MAKER_OWNERS,   /* a user namespace (stage_parts), if there is one */
    MAKER_FDS,
};

enum { MAKER_NOTES_MAX = 8000 }; /* what a controller takes of W_BUILT's text */

struct making {
    struct stage_parts parts; /* init is MAKER_PROGRAM */
    const struct plan *plan;
    pid_t builder;
};

/* W_LISTENERS: duplicates of the descriptors. */
int maker_offer(const struct plan *plan, const struct netns_listeners *l, struct err *err);
/* W_BUILT: the notes, or the reason why not. */
int maker_built(const struct plan *plan, bool ok, const char *text, struct err *err);
/* Waits for W_LISTENERS_OK. */
int maker_await_consent(struct err *err);
/* What is to be said about a network without nf_tables. */
int maker_note_network(const struct netns_listeners *l, struct buf *notes, struct err *err);

#endif
