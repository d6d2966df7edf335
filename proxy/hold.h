/* Requests that an `ask` rule holds until somebody decides: the injector's end of its channel to
 * the controller, which tells people and brings their answers.
 *
 * The answer comes on that channel and on no other, for the number that this process chose for the
 * very request it holds in memory: nothing that a gate says can stand for it. Without a controller
 * a request waits for the next one, and is denied when its time is over.
 *
 * W_HOLD: req:u32 seconds:u32 (left), then sandbox:str method:str scheme:str authority:str path:str
 * query:str (names and lengths) rule:str credential:str type:str length:u64 (HOLD_UNKNOWN: not
 * known) cut:u8 (the path is longer). */
#ifndef DURWARD_HOLD_H
#define DURWARD_HOLD_H

#include "slice.h"

struct event_base;
struct hold;
struct holds;

enum { HOLDS_MAX = 256, HOLD_PATH_MAX = 4096, HOLD_TEXT_MAX = 512, HOLD_WHO_MAX = 160 };
#define HOLD_UNKNOWN UINT64_MAX

enum hold_end { HOLD_DENIED = 0, HOLD_ALLOWED, HOLD_FULL, HOLD_TIMEOUT };

/* What is shown of it. Texts are cut and cleaned by the controller, who shows them. */
struct hold_summary {
    const char *sandbox, *scheme, *authority, *rule, *credential;
    struct slice method, path, query, type;
    uint64_t length; /* of the body; HOLD_UNKNOWN */
};

/* Once; the hold is gone when it runs. who: "uid 1000 (API)"; "" where nobody did. */
typedef void (*hold_fn)(void *arg, enum hold_end end, const char *who);

struct holds *holds_new(struct event_base *base, unsigned seconds);
void holds_free(struct holds *h); /* no fn runs */
/* A channel to the controller; replaces one that died: what is held is told again. Owns fd. */
void holds_attach(struct holds *h, int fd);
/* fn does not run before this returns. NULL: out of memory, or too many. */
struct hold *hold_new(struct holds *h, const struct hold_summary *s, hold_fn fn, void *arg);
void hold_cancel(struct hold *k); /* fn does not run; NULL is fine */
/* This sandbox is to end: what it got back says why. */
void holds_kill(struct holds *h, const char *sandbox, const char *why);

#endif
