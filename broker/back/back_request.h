/* What a request of a front's goes through in every back, whatever its protocol: it is decided,
 * where its rule asks somebody approves it, budgets give leave, it is recorded; its bytes are
 * counted, and at its end it is recorded again. */
#ifndef DURWARD_BACK_REQUEST_H
#define DURWARD_BACK_REQUEST_H

#include "back.h"
#include "held.h"
#include "quota.h"

#include <time.h>

struct back_request;
struct budget_client;
struct pending_approval;
struct record;

struct back_request_ops {
    /* Fields of the request's own, for its first record and for that of a refusal. */
    void (*put)(void *arg, struct record *r);
    void (*put_end)(void *arg, struct record *r); /* and for its last */
    /* What somebody is shown who is asked: a verb (constant), and on what. -1: no room. */
    int (*show)(void *arg, const char **verb, struct buf *path);
    void (*decide)(void *arg, const struct policy *p, struct decision *ret);
    /* It may go on (code NULL), and is on record; or it may not: its front is told, and it ends.
     * The request may be freed in it. */
    void (*admitted)(void *arg, const char *code, const char *text);
    int (*up)(void *arg, struct slice bytes); /* as broker_stream_ops.packet; it may be freed */
    void (*more)(void *arg);                  /* after no room down there is some again */
    void (*spent)(void *arg);                 /* a budget has no more bytes for it: it ends */
};

struct back_request {
    struct back *back;
    const struct back_request_ops *ops;
    void *arg;
    struct authority at;
    char sandbox[65];
    struct broker_stream *stream; /* its owner's, who frees it */
    struct policy *policy;        /* whose rule it is; a reference */
    const struct rule *rule;
    uint64_t counter; /* of its records */
    bool admitted;
    struct timespec begun;
    char approval[PENDING_APPROVAL_WHO_MAX + 16]; /* "approved by ..."; "": nobody was asked */
    struct pending_approval *approving;
    struct budget_client *budget;
    struct quota_part lease, place;
    struct journal_wait *wait;
    struct buf held;              /* of a packet, until budgets leave room for it */
    bool waiting, paused, closed; /* it is not admitted; its owner reads no packets; it may not */
    uint64_t n_up, n_down;
};

/* A place for it, and its stream, of which no packet is read before it is admitted; what init does,
 * too. Takes asked->fd. -1: its sandbox has as many as it may have, or memory is out. */
int back_request_begin(struct back_request *r, struct back *b, const struct back_asked *asked,
                       const struct broker_stream_ops *stream_ops,
                       const struct back_request_ops *ops, void *arg);
/* One that has its stream, and no place of this kind. */
void back_request_init(struct back_request *r, struct back *b, const struct back_asked *asked,
                       struct broker_stream *stream, const struct back_request_ops *ops, void *arg);
/* What waits is given up. The record of its end is written before. */
void back_request_free(struct back_request *r, const char *code);
/* By the back's policy: NULL, or the code of a refusal, which is on record then. */
const char *back_request_decide(struct back_request *r);
/* A request that was decided, or is under way, is refused after all: on record as denied. */
void back_request_deny(struct back_request *r, const char *code, const char *detail);
/* By another policy: may it go on? */
bool back_request_goes_on(const struct back_request *r);
/* From the decision to the record. It ends in ops->admitted, perhaps at once. */
void back_request_admit(struct back_request *r);
/* Its number, for the dialer. */
void back_request_id(const struct back_request *r, char *id, size_t size);
/* Fields of a record that every request of its own has: whose it is, where, by which rule. */
void back_request_put(const struct back_request *r, struct record *to);
/* Once it is over; nothing is written of what was not admitted. */
void back_request_end(struct back_request *r, enum record_kind kind, const char *code,
                      const char *address, const char *detail);

/* BROKER_DATA of the front's: ops->up has what budgets leave, the rest waits while the stream is
 * paused. Returns what ops->up returned. */
int back_request_up(struct back_request *r, struct slice bytes);
/* In place of broker_stream_pause. */
void back_request_pause(struct back_request *r, bool paused);
/* How many of n bytes may come from the server now; 0: none until ops->more. */
size_t back_request_down_room(struct back_request *r, size_t n);
void back_request_down(struct back_request *r, size_t n); /* they came */

#endif
