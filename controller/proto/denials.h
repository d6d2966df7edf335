/* What a sandbox was denied, and what failed for it, counted for the one-line summary of `run`. The
 * audit log is the record; this is a courtesy, so it is bounded: the first 64 distinct (code,
 * target) pairs by name, the rest together. Everything here comes from a process that reads the
 * sandbox's bytes. */
#ifndef DURWARD_DENIALS_H
#define DURWARD_DENIALS_H

#include "ipc_msg.h"

enum { DENIALS_MAX = 64, DENIAL_CODE_MAX = 32, DENIAL_TARGET_MAX = 120 };

struct denial {
    char code[DENIAL_CODE_MAX + 1];
    char target[DENIAL_TARGET_MAX + 1];
    uint32_t count; /* stays at its maximum once there */
    bool failed; /* it was let through, or would have been, and failed at its origin or with us */
};

/* Of calls to models that are over, as an injector says it. */
struct denial_calls {
    uint64_t n, tokens_in, tokens_out;
    uint64_t cost; /* millionths; what has no price costs nothing */
};

struct denials {
    size_t n;
    struct denial list[DENIALS_MAX + 1]; /* the last one is "other" */
    struct denial_calls calls;           /* beside all that: for the same summary */
};

/* The code is one of ours in form ([a-z0-9_]+) and something was counted. */
bool denials_valid(const char *code, uint32_t count);
/* Bytes of target outside printable ASCII become '?', what is too long is cut. -1 when it is
 * not valid. */
int denials_add(struct denials *d, const char *code, const char *target, uint32_t count) WUNUSED;
/* The same of what failed. */
int denials_fail(struct denials *d, const char *code, const char *target, uint32_t count) WUNUSED;
/* One more call, or several; sums stay at their maximum once there. */
void denials_call(struct denials *d, const struct denial_calls *calls);
/* n × (code:str, target:str, count:u32, failed:u8), calls:u64, tokens_in:u64, tokens_out:u64,
 * cost:u64, as W_RUN_EXIT has it. */
void denials_put(const struct denials *d, struct msg *m);
int denials_get(struct denials *d, struct msg *m) WUNUSED;

#endif
