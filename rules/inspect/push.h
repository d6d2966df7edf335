/* What a git push asks for: the commands before the pack (gitprotocol-pack(5), "Reference Update
 * Request"). Read from the front of a receive-pack body; the pack is not looked at here. */
#ifndef DURWARD_PUSH_H
#define DURWARD_PUSH_H

#include "buf.h"
#include "slice.h"

enum {
    PUSH_COMMANDS = 100,
    PUSH_HEAD_MAX = 48 * 1024, /* bytes of commands, and of push options behind them */
    PUSH_REASON_MAX = 100
};

struct push_command {
    struct slice old_id, new_id; /* hexadecimal, 40 or 64, equal lengths in one push */
    struct slice ref;
};

struct push {
    struct push_command commands[PUSH_COMMANDS];
    size_t n; /* 0: a probe, or nothing to do */
    bool report, side_band;
    size_t end; /* where the pack begins */
};

/* 1: all of it is there. 0: more is needed. -1: malformed, or more than the bounds. Slices point
 * into body. */
int push_read(struct slice body, struct push *ret);
bool push_id_is_zero(struct slice id);
/* refs/heads/x against "refs/heads/x*" (a star is any run without "/") and "refs/tags/" and two
 * stars (any rest). A name with bytes that no reference has never matches. */
bool push_ref_matches(const char *pattern, struct slice ref);
/* The answer of a receive-pack that refuses every command with this reason. -1: too long. */
int push_answer(const struct push *p, const char *reason, struct buf *out) WUNUSED;

#endif
