/* What exchange (in the gate) and injection (in the injector) have in common: each is the upstream
 * of one side and the downstream of the other, and most of what comes goes straight on. A relay
 * stands first in its owner, so that these functions serve as the owner's stream operations. */
#ifndef DURWARD_RELAY_H
#define DURWARD_RELAY_H

#include "body_capture.h"
#include "journal.h"
#include "quota.h"
#include "stream.h"
#include "trace.h"
#include "tunnel.h"

#include <time.h>

struct event;
struct budget_client;

struct relay {
    /* Whose records these are, where the channel to the logger does not say it; NULL: it does. Kept
     * by the owner of the relay. */
    const char *sandbox, *policy;
    struct downstream downstream;
    struct upstream upstream; /* ops NULL until it is open */
    unsigned status;          /* of the reply, 0 before it */
    uint64_t up, down;
    bool request_ended;
    struct timespec begun;
    struct trace trace;
    bool upgrade;          /* asked for: nothing goes up until the origin has agreed */
    struct tunnel *tunnel; /* NULL: it has not */
    struct budget_client *budget_client; /* NULL: no budget */
    struct quota_part lease;             /* of those of all sandboxes */
    size_t capture_max;                  /* bytes of each body for the log; 0: none are kept */
    struct body_capture *capture;
    size_t capture_lost; /* pieces of bodies that are not on record */
    const char *found;   /* by detectors in the request's body, kept by the owner; NULL: nothing */
    struct event *tick;
    struct journal *journal; /* where it was admitted */
    uint64_t counter;
};

void relay_init(struct relay *r, struct downstream downstream);
/* The way to the origin is there: what waits goes on. */
void relay_open(struct relay *r, struct upstream upstream);
uint64_t relay_begun(const struct relay *r); /* us, monotonic */
uint64_t relay_ms(const struct relay *r);    /* since relay_init */
/* It is admitted under this counter: from here on the journal hears every so many seconds how far
 * it has come. Without memory it just does not. */
void relay_admitted(struct relay *r, struct event_base *base, unsigned seconds, struct journal *j,
                    uint64_t counter);
/* It goes to its origin once more, under another counter: relay_admitted is to follow. */
void relay_again(struct relay *r);
/* A record of how far it has come. */
void relay_record(const struct relay *r, struct record *to, enum record_kind kind, uint64_t counter,
                  const char *code);
/* The origin has agreed to the upgrade: tunnel_new, and the record of it. -1: memory is out. */
int relay_open_tunnel(struct relay *r, struct event_base *base, struct tunnel_owner owner,
                      enum tunnel_strict strict, const struct tunnel_filter *up,
                      const struct tunnel_filter *down) WUNUSED;
/* Bytes for the log, where they are wanted; messages of a tunnel are not. */
void relay_capture(struct relay *r, enum body_side s, const void *p, size_t n);
/* What was kept goes on record, before the end, which then says what could not. */
void relay_record_bodies(struct relay *r, struct journal *j, uint64_t counter,
                         body_capture_fn unfit, void *arg);
/* After the end record: no more ticks, no tunnel. */
void relay_done(struct relay *r);

/* As an upstream: towards the origin. */
void relay_up_bytes(void *self, const void *p, size_t n);
void relay_up_end(void *self);
size_t relay_up_room(void *self);
void relay_resume(void *self);
/* As a downstream: towards the client. */
void relay_down_bytes(void *self, const void *p, size_t n);
size_t relay_down_room(void *self);
void relay_wanted(void *self);

#endif
