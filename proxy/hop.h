/* The hop between a gate and the injector of one policy: requests already parsed, decided and taken
 * apart into typed fields go out; reply heads and bodies come back. Bodies move within credit:
 * each side starts with HOP_FIRST bytes per exchange and direction and gets more as its peer passes
 * bytes on. A window grows to HOP_WINDOW while its bytes are taken, those of all exchanges of a
 * gate together by HOP_GROWTH at most in each direction: many that stand still hold little (B30).
 *
 * W_HOP_REQUEST: exchange:u32 generation:u32 scheme:u8 host:str port:u32 method:str path:bytes
 *   has_query:u8 query:bytes body:u8 length:u64 te_trailers:u8 secret:str entry:str token:str
 *   n × mark:str, n × blank:str, n × (name, value)
 *   body BODY_TUNNEL asks for a WebSocket; a reply with that body (status 101) begins it, and the
 *   bodies of both directions are then its frames as RFC 6455 has them, the gate's masked. Either
 *   end reads them with its own tunnel (tunnel.h) and believes nothing of the other's framing.
 *   The slot is not in the fields: `secret` names the credential and the receiver's own decision
 *   says where it goes (but for AWS signatures, whose field says what was signed, with a
 *   placeholder in it). secret "" asks for none (client_credential: pass, or a captured secret
 * whose placeholder the client did not send). blanks: the sandbox's placeholders for what the rule
 *   captures of the reply, in its order.
 *
 * W_HOP_REPLY: exchange:u32 status:u32 body:u8 length:u64 n × (name, value)
 *
 * W_HOP_FAIL: exchange:u32 status:u32 code:str id:str */
#ifndef DURWARD_HOP_H
#define DURWARD_HOP_H

#include "ipc.h"
#include "stream.h"
#include "authority.h"
#include "placeholder.h"
#include "policy.h"

struct event_base;
struct ipc;
struct hop;

enum {
    HOP_WINDOW = 192 * 1024,
    HOP_FIRST = 64 * 1024, /* more than a search may hold back: SCRUB_LONGEST */
    HOP_GROWTH = 1024 * 1024,
    HOP_EXCHANGES_MAX = 4096,
    HOP_BODY_MAX = 32 * 1024,
};

/* What the client wrote where its secret is to be: only for credentials of kind placeholder. The
 * receiver fills it in the rule's own places only, and as often as the rule says. */
enum { HOP_MARKS_MAX = 4, HOP_MARK_MIN = 24 };
struct hop_marks {
    unsigned n;
    char text[HOP_MARKS_MAX][PLACEHOLDER_MAX];
};

/* The sandbox's placeholders for the captures of a rule, in their order. */
struct hop_blanks {
    unsigned n;
    char text[CAPTURES_MAX][PLACEHOLDER_MAX];
};

struct hop_request {
    struct authority authority;
    uint32_t generation;
    const char *secret;
    const char *entry;
    const char *token;
    const struct hop_marks *marks;   /* NULL: none */
    const struct hop_blanks *blanks; /* NULL: none */
    const struct head *head;
};

/* ---- the gate's side ---- */
struct hop *hop_new(struct event_base *base);
void hop_free(struct hop *h); /* exchanges under way fail */
void hop_attach(struct hop *h, int injector_fd,
                uint32_t number); /* owned; replaces a dead channel */
/* Who is told of the number when that channel ends (peer_lost). */
void hop_lost_to(struct hop *h, struct ipc *parent);
bool hop_ready(const struct hop *h);
/* A back for one request; ops NULL when there is no channel or too many exchanges. */
struct back hop_open(struct hop *h, struct front front, const struct hop_request *r);

/* ---- both sides: windows, and heads as message fields ---- */
/* Its bytes were taken: the window doubles, within HOP_WINDOW and what is left of HOP_GROWTH, of
 * which *grown says how much all windows of the channel have; -> how many bytes more. */
uint32_t hop_window_grow(uint32_t *window, uint32_t *grown);
void hop_put_fields(struct msg *m, const struct head *h);
/* Appends to h, whose storage takes copies; names and values are checked again. -1: bad. */
int hop_get_fields(struct msg *m, struct head *h);

#endif
