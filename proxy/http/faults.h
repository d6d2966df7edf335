/* What a sandbox has used up of its allowance, over all its connections: requests that end by its
 * own fault, however that was found. Time gives it back, and requests that were answered. At the
 * first bound its connections are read more slowly, at the second the one at fault ends. */
#ifndef DURWARD_FAULTS_H
#define DURWARD_FAULTS_H

#include "compiler.h"

#include <sys/queue.h>
#include <sys/socket.h>

enum {
    FAULTS_FAULT = 5,      /* what a request at fault costs, and an answered one gives back */
    FAULTS_CANCEL = 1,     /* what one costs that its client cancels, unless it is at fault: */
    FAULTS_EARLY_MS = 100, /* without a reply, and younger than that */
    FAULTS_SECOND = 100,   /* what comes back each second */
    FAULTS_SLOW = 500,     /* beyond, nothing is read */
    FAULTS_MAX = 1000,     /* beyond, no connection that adds to it is kept */
    FAULTS_PAUSE_MS = 100,
    FAULTS_PAUSES = 10, /* that a connection at fault is waited for */
    FAULTS_OWNERS = 4096,
    FAULTS_KEY = 72,
};

struct faults {
    char key[FAULTS_KEY];
    unsigned used, refs;
    uint64_t at; /* ms: what came back until then is off `used` */
    LIST_ENTRY(faults) link;
};

struct faults_book {
    LIST_HEAD(, faults) owners;
    size_t n;
};

/* The key of whoever is known by an address alone: IPv4 whole, IPv6 by its /64, which one host may
 * have all to itself. "" for another family. */
void faults_key_of(char key[FAULTS_KEY], const struct sockaddr *from);
/* The one of this key (cut to its size). Beyond FAULTS_OWNERS of them newcomers share one of their
 * own. Held until faults_leave. NULL: out of memory. now: ms, monotonic. */
struct faults *faults_join(struct faults_book *b, const char *key, uint64_t now);
void faults_leave(struct faults *p); /* NULL is fine */
bool faults_are_of(const struct faults *p, const char *key);
void faults_book_free(struct faults_book *b);

/* True: beyond FAULTS_MAX. */
bool faults_take(struct faults *p, unsigned n, uint64_t now);
void faults_give(struct faults *p, unsigned n);
bool faults_slow(struct faults *p, uint64_t now);
/* Nothing of it is used up. */
bool faults_fresh(struct faults *p, uint64_t now);
uint64_t faults_now(void);

#endif
