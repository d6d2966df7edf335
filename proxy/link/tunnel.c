/* Passes the frames of both directions: reads, filters, writes anew, and ends both sides with a
 * close frame and its code when either breaks a rule. */
#include "tunnel.h"

#include "assertion.h"
#include "buf.h"
#include "relay.h"
#include "websocket.h"

#include <event2/event.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

/* What a call may put out beyond its input and what a filter held: headers of new fragments, and
 * two close frames. */
enum { HEADERS = 256 };

/* Bytes that came with the end of a message that waits. */
enum { KEPT_MAX = 1 << 20 };

struct way {
    struct websocket_reader reader;
    struct tunnel_filter filter;  /* piece NULL: none */
    bool strict;                  /* where it goes takes no more than its room */
    bool begun;                   /* a fragment of the present message is out */
    bool closed;                  /* a close frame is out */
    enum websocket_opcode opcode; /* of the present message; */
    bool single;                  /* it came as one frame, */
    uint64_t total;               /* of so many bytes */
    uint64_t owed, at;            /* of such a frame's payload, once its header is out */
    unsigned char mask[4];        /* and its key */
    bool waits;                   /* the filter has no answer yet about the message */
    struct buf kept;              /* what came behind it */
    uint64_t messages;
};

struct tunnel {
    struct relay *relay;
    struct tunnel_owner owner;
    struct way up, down;
    struct event *soon;
    const char *fault; /* why it is over */
    unsigned close;    /* of the first close frame; 0: none yet */
};

static void on_soon(evutil_socket_t fd, short what, void *arg);

struct tunnel *tunnel_new(struct event_base *base, struct relay *relay, struct tunnel_owner owner,
                          enum tunnel_strict strict, const struct tunnel_filter *up,
                          const struct tunnel_filter *down)
{
    struct tunnel *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->relay = relay;
    t->owner = owner;
    t->up.strict = strict == TUNNEL_STRICT_UP;
    t->down.strict = strict == TUNNEL_STRICT_DOWN;
    websocket_reader_init(&t->up.reader, true);
    websocket_reader_init(&t->down.reader, false);
    if (up)
        t->up.filter = *up;
    if (down)
        t->down.filter = *down;
    buf_init_wiped(&t->up.kept, KEPT_MAX);
    t->soon = event_new(base, -1, 0, on_soon, t);
    if (t->soon == NULL) {
        free(t);
        return NULL;
    }
    return t;
}

void tunnel_free(struct tunnel *t)
{
    if (t == NULL)
        return;
    event_free(t->soon);
    buf_free(&t->up.kept);
    explicit_bzero(t, sizeof *t);
    free(t);
}

/* ---- writing ---- */

static void put(struct tunnel *t, const struct way *w, char *frame, size_t n)
{
    struct relay *r = t->relay;
    if (w == &t->up)
        r->upstream.ops->data(r->upstream.self, frame, n);
    else
        r->downstream.ops->data(r->downstream.self, frame, n);
}

/* One frame of at most WEBSOCKET_PIECE_MAX bytes of payload. */
static int send_frame(struct tunnel *t, const struct way *w, enum websocket_opcode opcode, bool fin,
                      struct slice p)
{
    char frame[WEBSOCKET_HEADER_MAX + WEBSOCKET_PIECE_MAX];
    unsigned char mask[4], *key = NULL;
    if (w == &t->up) {
        if (RAND_bytes(mask, sizeof mask) != 1)
            return -1;
        key = mask;
    }
    size_t n = websocket_header((unsigned char *)frame, opcode, fin, p.n, key);
    if (p.n)
        memcpy(frame + n, p.p, p.n);
    if (key)
        websocket_mask(frame + n, p.n, key, 0);
    put(t, w, frame, n + p.n);
    return 0;
}

/* The header, if any, and more of the payload of the frame that it begins. */
static void send_payload(struct tunnel *t, struct way *w, struct slice header, struct slice p)
{
    char part[WEBSOCKET_HEADER_MAX + WEBSOCKET_PIECE_MAX];
    ASSERT(p.n <= w->owed && header.n <= WEBSOCKET_HEADER_MAX);
    memcpy(part, header.p, header.n);
    while (header.n + p.n > 0) {
        char *to = part + header.n;
        size_t n = p.n < WEBSOCKET_PIECE_MAX ? p.n : WEBSOCKET_PIECE_MAX;
        memcpy(to, p.p, n);
        if (w == &t->up)
            websocket_mask(to, n, w->mask, w->at);
        put(t, w, part, header.n + n);
        w->at += n;
        w->owed -= n;
        p = (struct slice){p.p + n, p.n - n};
        header.n = 0;
    }
    if (w->filter.piece)
        explicit_bzero(part, sizeof part);
}

/* Some of a message that came as one frame: it leaves as one. Servers are about that take each
 * frame for a message, whatever RFC 6455 5.4 says: Kubernetes' is one. No filter makes a message
 * longer or shorter. */
static int send_single(struct tunnel *t, struct way *w, bool last, struct slice p)
{
    char bytes[WEBSOCKET_HEADER_MAX];
    struct slice header = {bytes, 0};
    const unsigned char *key = w == &t->up ? w->mask : NULL;
    if (!w->begun) {
        if (p.n == 0 && (w->total > 0 || !last))
            return 0; /* all of it is held yet */
        if (key && RAND_bytes(w->mask, sizeof w->mask) != 1)
            return -1;
        w->owed = w->total;
        w->at = 0;
        header.n = websocket_header((unsigned char *)bytes, w->opcode, true, w->owed, key);
    }
    send_payload(t, w, header, p);
    w->begun = w->owed > 0;
    return 0;
}

/* Some of the present message; last: with it the message ends. */
static int send_piece(struct tunnel *t, struct way *w, bool last, struct slice p)
{
    if (w->single)
        return send_single(t, w, last, p);
    do {
        struct slice part = {p.p, p.n < WEBSOCKET_PIECE_MAX ? p.n : WEBSOCKET_PIECE_MAX};
        bool fin = last && part.n == p.n;
        if (part.n == 0 && !fin)
            return 0; /* an empty fragment says nothing */
        enum websocket_opcode opcode = w->begun ? WEBSOCKET_CONTINUATION : w->opcode;
        if (send_frame(t, w, opcode, fin, part) < 0)
            return -1;
        w->begun = !fin;
        p.p += part.n;
        p.n -= part.n;
    } while (p.n > 0);
    return 0;
}

/* Faults by name and by the close code that both sides are told: a name may come over an injector
 * channel. */
static const struct {
    const char *code;
    unsigned close;
    bool told; /* the close frame has the name, too: it was the client's message */
} faults[] = {
    {"websocket_protocol", WEBSOCKET_PROTOCOL, false},
    {"websocket_text", WEBSOCKET_NOT_UTF8, false},
    {"secret_blocked", WEBSOCKET_POLICY, false},
    {"cross_sandbox", WEBSOCKET_POLICY, false},
    {"memory", WEBSOCKET_INTERNAL, false},
    {"llm", WEBSOCKET_POLICY, true},
    {"server_tool", WEBSOCKET_POLICY, true},
    {"body_ambiguous", WEBSOCKET_POLICY, true},
    {"budget", WEBSOCKET_POLICY, true},
    {"too_large_to_inspect", WEBSOCKET_TOO_LARGE, true},
    {"share_used", WEBSOCKET_POLICY, true},
    {"overload", WEBSOCKET_POLICY, true},
    {"policy_changed", WEBSOCKET_POLICY, true},
};

static size_t fault_of(const char *code)
{
    size_t i = 0;
    while (i < ARRAY_LEN(faults) && (code == NULL || strcmp(faults[i].code, code) != 0))
        i++;
    return i;
}

static unsigned close_of(const char *code)
{
    size_t i = fault_of(code);
    return i < ARRAY_LEN(faults) ? faults[i].close : 0;
}

static void send_close(struct tunnel *t, struct way *w, unsigned code)
{
    char payload[2 + 32];
    size_t n = websocket_close(payload, code), i = fault_of(t->fault);
    if (i < ARRAY_LEN(faults) && faults[i].told && w == &t->down) {
        size_t more = strlen(faults[i].code);
        memcpy(payload + n, faults[i].code, more);
        n += more;
    }
    if (w->owed > 0)
        return; /* within a frame it would be taken for payload: the connection ends without one */
    if (!w->closed)
        (void)send_frame(t, w, WEBSOCKET_CLOSE, true, (struct slice){payload, n});
    w->closed = true;
}

/* ---- ending ---- */

/* Both sides end, but not from within this call: it came from one of them. */
static void stop(struct tunnel *t, const char *code)
{
    if (t->fault)
        return;
    t->fault = code;
    event_active(t->soon, EV_TIMEOUT, 0);
}

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct tunnel *t = arg;
    unsigned close = close_of(t->fault);
    if (t->close == 0)
        t->close = close;
    send_close(t, &t->down, close);
    if (!t->up.strict) /* over an injector channel the owner's cancel says it: tunnel_cancelled */
        send_close(t, &t->up, close);
    t->owner.over(t->owner.owner, t->fault);
}

void tunnel_cancelled(struct tunnel *t, const char *code)
{
    unsigned close = t ? close_of(code) : 0;
    if (close == 0)
        return; /* the client is just gone: the origin sees the same */
    if (t->close == 0)
        t->close = close;
    send_close(t, &t->up, close);
}

/* ---- one direction ---- */

/* What the filter held of a message that may go. */
static const char *pass_rest(struct tunnel *t, struct way *w)
{
    struct slice rest = {"", 0};
    const char *bad = w->filter.rest(w->filter.self, &rest);
    return bad == NULL && send_piece(t, w, true, rest) < 0 ? "memory" : bad;
}

static const char *pass_piece(struct tunnel *t, struct way *w, const struct websocket_part *part)
{
    const struct tunnel_filter *f = &w->filter;
    struct slice in = {part->p, part->n};
    const char *bad = f->piece ? f->piece(f->self, in, &in) : NULL;
    bool more = f->piece && part->last && (f->whole || f->held(f->self) > 0);
    if (bad)
        return bad;
    w->opcode = part->opcode;
    w->single = part->single;
    w->total = part->total;
    if (send_piece(t, w, part->last && !more, in) < 0)
        return "memory";
    if (more && f->whole)
        bad = f->whole(f->self, &w->waits);
    return bad || !more || w->waits ? bad : pass_rest(t, w);
}

static const char *pass_control(struct tunnel *t, struct way *w, const struct websocket_part *part)
{
    const struct tunnel_filter *f = &w->filter;
    const char *bad = f->piece ? f->control(f->self, part->p, part->n) : NULL;
    if (bad)
        return bad;
    if (send_frame(t, w, part->opcode, true, (struct slice){part->p, part->n}) < 0)
        return "memory";
    if (part->opcode == WEBSOCKET_CLOSE) {
        w->closed = true;
        if (t->close == 0)
            t->close = part->code;
    }
    return NULL;
}

/* Bytes of one direction. counted: where the payload of frames is added up. */
static void pass(struct tunnel *t, struct way *w, struct slice in, uint64_t *counted)
{
    char scratch[WEBSOCKET_PIECE_MAX];
    struct websocket_part part;
    while (t->fault == NULL && !w->waits) {
        const char *bad = NULL;
        enum websocket_event e = websocket_read(&w->reader, &in, scratch, &part);
        if (e == WEBSOCKET_MORE)
            break;
        if (e == WEBSOCKET_VIOLATION) {
            bad = w->reader.code == WEBSOCKET_NOT_UTF8 ? "websocket_text" : "websocket_protocol";
        } else {
            bool control = e == WEBSOCKET_CONTROL;
            bad = control ? pass_control(t, w, &part) : pass_piece(t, w, &part);
            *counted += part.n;
            w->messages += !control && part.last;
        }
        if (bad)
            stop(t, bad);
    }
    if (w->waits && in.n > 0 && buf_append_slice(&w->kept, in) < 0)
        stop(t, "memory");
    if (w->filter.piece)
        explicit_bzero(scratch, sizeof scratch);
}

/* Both have said close: nothing more comes from the client, and the origin ends the connection. */
static void end_when_closed(struct tunnel *t)
{
    if (t->up.closed && t->down.closed && t->fault == NULL)
        relay_up_end(t->relay);
}

void tunnel_up(struct tunnel *t, const void *p, size_t n)
{
    pass(t, &t->up, (struct slice){p, n}, &t->relay->up);
    end_when_closed(t);
}

void tunnel_down(struct tunnel *t, const void *p, size_t n)
{
    pass(t, &t->down, (struct slice){p, n}, &t->relay->down);
    end_when_closed(t);
}

void tunnel_go_on(struct tunnel *t)
{
    struct way *w = &t->up;
    struct buf kept = w->kept;
    if (!w->waits || t->fault)
        return;
    w->waits = false;
    buf_init_wiped(&w->kept, KEPT_MAX);
    const char *bad = pass_rest(t, w);
    if (bad)
        stop(t, bad);
    else
        tunnel_up(t, buf_data(&kept), buf_len(&kept));
    buf_free(&kept);
    if (!w->waits && t->fault == NULL)
        relay_wanted(t->relay);
}

void tunnel_end(struct tunnel *t, const char *code)
{
    stop(t, code);
}

static size_t room(const struct tunnel *t, const struct way *w, size_t there)
{
    size_t kept = 0;
    if (w->waits)
        return 0;
    if (w->strict)
        kept = HEADERS + (w->filter.piece ? w->filter.held(w->filter.self) : 0);
    return t->fault || there <= kept ? 0 : there - kept;
}

size_t tunnel_up_room(const struct tunnel *t)
{
    const struct upstream *b = &t->relay->upstream;
    return room(t, &t->up, b->ops->room(b->self));
}

size_t tunnel_down_room(const struct tunnel *t)
{
    const struct downstream *f = &t->relay->downstream;
    return room(t, &t->down, f->ops->room(f->self));
}

/* ---- what became of it ---- */

bool tunnel_down_closed(const struct tunnel *t)
{
    return t->down.closed;
}

void tunnel_verdict(const struct tunnel *t, enum record_kind *kind, const char **code)
{
    if (t == NULL)
        return;
    if (t->fault) {
        *kind = RECORD_ABORTED;
        *code = t->fault;
    } else if (t->close && *kind == RECORD_ABORTED) {
        /* after a close frame, how the connections end is no matter; another reason is one */
        if (strcmp(*code, "client_gone") == 0 || strncmp(*code, "upstream_", 9) == 0) {
            *kind = RECORD_COMPLETED;
            *code = "ok";
        }
    } else if (t->close == 0 && *kind == RECORD_COMPLETED) {
        *kind = RECORD_ABORTED;
        *code = "upstream_closed";
    }
}

void tunnel_record(const struct tunnel *t, struct record *r)
{
    if (t == NULL)
        return;
    record_put_u64(r, RF_MESSAGES_UP, t->up.messages);
    record_put_u64(r, RF_MESSAGES_DOWN, t->down.messages);
    if (t->close)
        record_put_u64(r, RF_CLOSE, t->close);
}
