/* One secret of the vault: its value, how long it may be kept, the fetch that is under way and
 * those who wait for it. Fetches go through the parent; the owner passes the messages on. */
#ifndef DURWARD_VAULT_ENTRY_H
#define DURWARD_VAULT_ENTRY_H

#include "config.h"
#include "err.h"
#include "secret.h"

struct event_base;
struct vault_entry;
struct vault_wait;

enum {
    VAULT_FETCH_SECONDS = 30,     /* from asking the parent to the command's exit */
    VAULT_BACKOFF_MS = 1000,      /* after a failure it is answered without asking again */
    VAULT_FILE_MS = 1000,         /* a file is read again at most so often */
    VAULT_ENV_TTL = 3600,         /* seconds an injector may keep what cannot change */
    VAULT_PAIR_SECONDS = 1,       /* a pair that signs is put together again so often */
    VAULT_BACKOFF_MAX_MS = 60000, /* of endpoints: doubled with each failure up to here */
    VAULT_KEEP_MS = 1000,         /* what is kept alive is first got so long after the start */
    VAULT_WHY_MAX = 768,
};

/* value is NULL when it failed: why says so. It is the callback's to ref. ttl: seconds. */
typedef void (*vault_fn)(void *arg, struct secret *value, unsigned ttl, const char *why);

struct vault_hooks {
    struct event_base *base;
    int env_fd; /* the block of environment secrets */
    void *arg;
    /* ask the parent, under a number of its own; the answer comes by vault_entry_opened with it */
    uint32_t (*open)(void *arg, const char *name);
    /* make it of other secrets; vault_entry_minted has the result, at once or later */
    void (*mint)(void *arg, struct vault_entry *e);
    void (*unmint)(void *arg,
                   struct vault_entry *e); /* no result is wanted; may be none under way */
    /* a fetch gave another value than the one before */
    void (*changed)(void *arg, const struct vault_entry *e);
    /* it cannot be read (why), or can be again (NULL): once for each */
    void (*state)(void *arg, const struct vault_entry *e, const char *why);
};

/* lines: its value may have several. hooks must outlive the entry. NULL when memory is out. */
struct vault_entry *vault_entry_new(const struct vault_hooks *hooks, const char *name,
                                    enum store_kind store, unsigned ttl, bool lines);
/* MINT: renew it although nobody asks: it could not be had again once it has ended. */
void vault_entry_keep(struct vault_entry *e);
/* Drops the waits without a call. */
void vault_entry_free(struct vault_entry *e);
const char *vault_entry_name(const struct vault_entry *e);
bool vault_entry_lines(const struct vault_entry *e);
struct secret *vault_entry_value(const struct vault_entry *e); /* borrowed; NULL: none */
/* Calls fn at once (and returns NULL) or later. */
struct vault_wait *vault_entry_get(struct vault_entry *e, vault_fn fn, void *arg);
void vault_entry_cancel(struct vault_wait *w); /* fn will not run; NULL is fine */

/* The parent's answers: true when they were for this entry's fetch. fd is owned from here on when
 * true; -1 with a text when the store could not be opened. */
bool vault_entry_opened(struct vault_entry *e, uint32_t req, int fd, const char *why);
/* What the mint hook was for: value is taken over, or NULL with why. A value is got anew when four
 * fifths of its seconds are over; until it ends the old one is given, whatever becomes of that. */
void vault_entry_minted(struct vault_entry *e, struct secret *value, unsigned seconds,
                        const char *why);
/* What it is read from, or made of, has changed: the next requester gets a new value. */
void vault_entry_changed(struct vault_entry *e);
/* MINT: its value is refused where it is sent, so whoever asks from here on waits for another,
 * which is being made. Where none could be had they get the old one. False: none is made now. */
bool vault_entry_renew(struct vault_entry *e) WUNUSED;
/* What it is made of has changed: after a failure it is tried again without waiting. */
void vault_entry_retry(struct vault_entry *e);
bool vault_entry_exited(struct vault_entry *e, uint32_t req, int status);

#endif
