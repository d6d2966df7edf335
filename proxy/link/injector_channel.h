/* The injector channel between a gate and the injector of one policy: requests already parsed,
 * decided and taken apart into typed fields go out; reply heads and bodies come back. Bodies move
 * within credit: each side starts with INJECTOR_CHANNEL_FIRST bytes per exchange and direction and
 * gets more as its peer passes bytes on. A window grows to INJECTOR_CHANNEL_WINDOW while its bytes
 * are taken, those of all exchanges of a gate together by INJECTOR_CHANNEL_GROWTH at most in each
 * direction: many that stand still hold little (B30).
 *
 * W_INJECTOR_CHANNEL_REQUEST: exchange:u32 generation:u32 scheme:u8 host:str port:u32 method:str
 * path:bytes has_query:u8 query:bytes body:u8 length:u64 client:u8 secret:str entry:str token:str n
 * × mark:str, n × blank:str, n × (name, value). Bits of `client` are INJECTOR_CHANNEL_TRAILERS and,
 * in clear only, INJECTOR_CHANNEL_HTTP2. A body BODY_TUNNEL asks for a WebSocket; a reply with that
 * body (status 101) begins it, and the bodies of both directions are then its frames as RFC 6455
 * has them, the gate's masked. Either end reads them with its own tunnel (tunnel.h) and believes
 * nothing of the other's framing. The slot is not in the fields: `secret`
 * names the credential and the receiver's own decision says where it goes (but for AWS signatures,
 * whose field says what was signed, with a placeholder in it). secret "" asks for none
 * (client_credential: pass, or a captured secret whose placeholder the client did not send).
 * blanks: the sandbox's placeholders for what the rule captures of the reply, in its order.
 *
 * W_INJECTOR_CHANNEL_REPLY: exchange:u32 status:u32 body:u8 length:u64 n × (name, value). Its body
 * is as long as that says, or the channel ends (reply_length.h).
 *
 * W_INJECTOR_CHANNEL_FAIL: exchange:u32 status:u32 code:str id:str */
#ifndef DURWARD_INJECTOR_CHANNEL_H
#define DURWARD_INJECTOR_CHANNEL_H

#include "ipc.h"
#include "stream.h"
#include "authority.h"
#include "placeholder.h"
#include "policy.h"
#include "quota.h"
#include "trace.h"

struct event_base;
struct ipc;
struct injector_channel;

enum {
    INJECTOR_CHANNEL_WINDOW = 192 * 1024,
    INJECTOR_CHANNEL_FIRST = 64 * 1024, /* more than a search may hold back: SCRUB_LONGEST */
    INJECTOR_CHANNEL_GROWTH = 1024 * 1024,
    INJECTOR_CHANNEL_EXCHANGES_MAX = 8192,  /* of a gate, */
    INJECTOR_CHANNEL_EXCHANGES_EACH = 4096, /* of one sandbox; a listener's gate has several */
    INJECTOR_CHANNEL_BODY_MAX = 32 * 1024,
};

/* Of a request's client: it takes trailers; it speaks HTTP/2 by prior knowledge. */
enum { INJECTOR_CHANNEL_TRAILERS = 1, INJECTOR_CHANNEL_HTTP2 = 2 };

/* What the client wrote where its secret is to be: only for credentials of kind placeholder. The
 * receiver fills it in the rule's own places only, and as often as the rule says. */
enum { INJECTOR_CHANNEL_MARKS_MAX = 4, INJECTOR_CHANNEL_MARK_MIN = 24 };
struct injector_channel_marks {
    unsigned n;
    char text[INJECTOR_CHANNEL_MARKS_MAX][PLACEHOLDER_MAX];
};

/* The sandbox's placeholders for the captures of a rule, in their order. */
struct injector_channel_blanks {
    unsigned n;
    char text[CAPTURES_MAX][PLACEHOLDER_MAX];
};

struct injector_channel_request {
    struct authority authority;
    uint32_t generation;
    const char *secret;
    const char *entry;
    const char *token;
    const char *owner; /* whose part of the exchanges it takes; NULL: nobody's in particular */
    const struct injector_channel_marks *marks;   /* NULL: none */
    const struct injector_channel_blanks *blanks; /* NULL: none */
    const struct head *head;
    const struct trace *trace; /* NULL: it is not traced */
};

/* ---- the gate's side ---- */
struct injector_channel *injector_channel_new(struct event_base *base);
void injector_channel_free(struct injector_channel *h); /* exchanges under way fail */
void injector_channel_attach(struct injector_channel *h, int injector_fd,
                             uint32_t number); /* owned; replaces a dead channel */
/* Who is told of the number when that channel ends (peer_lost). */
void injector_channel_lost_to(struct injector_channel *h, struct ipc *parent);
bool injector_channel_ready(const struct injector_channel *h);
/* That owner has all its part of the exchanges. */
bool injector_channel_share_used(const struct injector_channel *h, const char *owner);
/* An upstream for one request; ops NULL when there is no channel or too many exchanges. */
struct upstream injector_channel_open(struct injector_channel *h, struct downstream downstream,
                                      const struct injector_channel_request *r);

/* ---- both sides: pieces of bodies, windows, and heads as message fields ---- */
/* A message of this type about that exchange, with nothing else in it. */
void injector_channel_send(struct ipc *ch, uint32_t exchange, uint16_t type);
/* No more than injector_channel_room has said; what went is taken off the credit. */
void injector_channel_send_body(struct ipc *ch, uint32_t exchange, uint32_t *credit,
                                struct slice bytes);
size_t injector_channel_room(const struct ipc *ch, uint32_t credit);
void injector_channel_send_credit(struct ipc *ch, uint32_t exchange, uint32_t bytes);
/* Adds what the far end grants. -1: bad, or more than a window. */
int injector_channel_take_credit(struct msg *m, uint32_t *credit);
/* Its bytes were taken: the window doubles, within INJECTOR_CHANNEL_WINDOW and what is left of
 * INJECTOR_CHANNEL_GROWTH, of which *grown says how much all windows of the channel have; -> how
 * many bytes more. */
uint32_t injector_channel_window_grow(uint32_t *window, uint32_t *grown);
/* A reply with these fields, or trailers, can be said in one message. */
bool injector_channel_fits(const struct head *h) WUNUSED;
void injector_channel_put_fields(struct msg *m, const struct head *h);
/* Appends to h, whose storage takes copies; names and values are checked again. -1: bad. */
int injector_channel_get_fields(struct msg *m, struct head *h);

#endif
