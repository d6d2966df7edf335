/* A WebSocket between a downstream and an upstream: what each sends is read as frames, checked, and
 * framed anew for the other (attack C20). It stands in exchange (in the gate) and again in
 * injection (in the injector), so neither end of an injector channel has to believe the other's
 * framing. Both have the client's side before them and the origin's behind: frames that come up are
 * masked and go on masked with keys of our own, frames that come down are not.
 *
 * A fault ends both sides: a close frame to each, then the owner is told, from the event loop. */
#ifndef DURWARD_TUNNEL_H
#define DURWARD_TUNNEL_H

#include "record.h"

struct event_base;
struct relay;
struct tunnel;

/* Something that looks through the messages of one direction and may hold some of them back. Each
 * function gives NULL, or why the tunnel must end: constant text for the record. */
struct tunnel_filter {
    /* Some of a message. out: what may pass, valid until the next call. */
    const char *(*piece)(void *self, struct slice in, struct slice *out);
    /* The message is whole: what was held. */
    const char *(*rest)(void *self, struct slice *out);
    /* The payload of a control frame; may be changed in place. */
    const char *(*control)(void *self, char *p, size_t n);
    size_t (*held)(const void *self);
    void *self;
    /* NULL; or asked about each message once it is whole, before its rest. *wait, upwards alone: no
     * answer yet, and nothing more is taken before tunnel_go_on. */
    const char *(*whole)(void *self, bool *wait);
};

struct tunnel_owner {
    /* The tunnel is over for this reason; the close frames are out. */
    void (*over)(void *owner, const char *code);
    void *owner;
};

/* Which side counts bytes against a window and takes not one more than its room: an injector
 * channel. The others' buffers hold twice what they call full, and say so only once they are over
 * it; there the few bytes of new headers go on top. */
enum tunnel_strict { TUNNEL_STRICT_NONE = 0, TUNNEL_STRICT_UP, TUNNEL_STRICT_DOWN };

/* The owner's relay must be open. up, down: filters or NULL; copied. NULL: memory is out. */
struct tunnel *tunnel_new(struct event_base *base, struct relay *relay, struct tunnel_owner owner,
                          enum tunnel_strict strict, const struct tunnel_filter *up,
                          const struct tunnel_filter *down);
void tunnel_free(struct tunnel *t); /* NULL is fine */

void tunnel_up(struct tunnel *t, const void *p, size_t n);
void tunnel_down(struct tunnel *t, const void *p, size_t n);
size_t tunnel_up_room(const struct tunnel *t);
size_t tunnel_down_room(const struct tunnel *t);

/* What the filter waited for is there: its message goes on. From the event loop. */
void tunnel_go_on(struct tunnel *t);
/* It must end for this reason: as if a filter had said it. */
void tunnel_end(struct tunnel *t, const char *code);

/* Before the owner cancels its upstream: where `code` is a fault that a tunnel before this one
 * found, the origin is told. t may be NULL. */
void tunnel_cancelled(struct tunnel *t, const char *code);

/* The client has got a close frame: ending its side now is no cut. */
bool tunnel_down_closed(const struct tunnel *t);
/* How it ends in the records: what the owner would write otherwise is in *kind and *code. A close
 * frame either way makes it completed; without one it is aborted. t may be NULL: no tunnel. */
void tunnel_verdict(const struct tunnel *t, enum record_kind *kind, const char **code);
/* Messages each way and the close code, where they are known. t may be NULL. */
void tunnel_record(const struct tunnel *t, struct record *r);

#endif
