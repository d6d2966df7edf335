/* A tunnel rule: the ClientHello is read for its name alone, then the connection goes on as it
 * came, both ways, to what the dialer connects to (attack C26: never where a credential is). */
#include "session_internal.h"

#include "dial_client.h"
#include "hello.h"
#include "policy.h"

#include <event2/event.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct raw {
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    uint64_t counter;
    struct journal_wait *wait;
    struct dial_wait *dial;
    struct io *up;
    char address[64], detail[200];
    struct timespec begun;
    uint64_t n_up, n_down;
    bool admitted, client_ended, origin_ended;
};

/* ---- whose is it? ---- */

enum look { LOOK_OTHER = 0, LOOK_MORE, LOOK_TUNNEL };

struct look_at {
    struct session *session;
    struct authority authority;
    bool seen, agreed;
};

static int on_hello(SSL *ssl, int *alert, void *arg UNUSED)
{
    struct look_at *l = SSL_get_app_data(ssl);
    unsigned char why;
    const char *code, *detail;
    l->seen = true;
    l->agreed = session_hello_authority(l->session, ssl, &l->authority, &why, &code, &detail) == 0;
    *alert = SSL_AD_INTERNAL_ERROR; /* goes nowhere */
    return SSL_CLIENT_HELLO_ERROR;
}

void session_raw_setup(SSL_CTX *ctx)
{
    SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
}

/* OpenSSL reads a copy of what has come, once it is whole (asked for each byte it would be the
 * gate's work that a sandbox spends); nothing that it would answer is sent. What it cannot read is
 * no tunnel. */
static enum look look(struct session *s, struct authority *a)
{
    struct look_at l = {.session = s};
    struct buf *in = io_in(s->io);
    if (buf_len(in) < s->hello_needs && buf_room(in) > 0)
        return LOOK_MORE;
    s->hello_needs = hello_needs(buf_slice(in));
    if (s->hello_needs > buf_len(in) && buf_room(in) > 0)
        return LOOK_MORE;
    SSL *ssl = SSL_new(s->gate->look_tls);
    BIO *from = BIO_new_mem_buf(buf_data(in), (int)buf_len(in)), *to = BIO_new(BIO_s_mem());
    if (ssl == NULL || from == NULL || to == NULL) {
        SSL_free(ssl);
        BIO_free(from);
        BIO_free(to);
        return LOOK_OTHER;
    }
    BIO_set_mem_eof_return(from, -1);
    SSL_set_bio(ssl, from, to);
    SSL_set_app_data(ssl, &l);
    SSL_set_accept_state(ssl);
    (void)SSL_do_handshake(ssl);
    SSL_free(ssl);
    ERR_clear_error();
    *a = l.authority;
    return l.agreed && policy_tunnel(s->who.route->policy, a) ? LOOK_TUNNEL : LOOK_OTHER;
}

/* ---- records ---- */

static void put_common(const struct session *s, struct record *r)
{
    char text[HOST_TEXT_MAX + 16];
    record_put_str(r, RF_SCHEME, scheme_name(SCHEME_HTTPS));
    record_put_str(r, RF_AUTHORITY, authority_text(&s->authority, text, sizeof text));
    record_put_str(r, RF_RULE, s->raw->rule->text);
    record_put_str(r, RF_ENTRY, s->entry_name);
    if (s->gate->mode == GATE_TOKEN && s->who.sandbox[0])
        record_put_str(r, RF_SANDBOX, s->who.sandbox);
}

static void end_record(struct session *s, enum record_kind kind, const char *code)
{
    struct raw *raw = s->raw;
    struct timespec now;
    struct record r;
    if (!raw->admitted)
        return;
    raw->admitted = false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record_init(&r, kind, raw->counter);
    record_put_str(&r, RF_CODE, code);
    record_put_u64(&r, RF_UP, raw->n_up);
    record_put_u64(&r, RF_DOWN, raw->n_down);
    record_put_u64(&r, RF_MS,
                   (uint64_t)((now.tv_sec - raw->begun.tv_sec) * 1000 +
                              (now.tv_nsec - raw->begun.tv_nsec) / 1000000));
    record_put_str(&r, RF_ADDRESS, raw->address);
    record_put_str(&r, RF_DETAIL, raw->detail);
    journal_note(s->gate->journal, &r);
}

void session_raw_free(struct session *s, const char *code)
{
    struct raw *raw = s->raw;
    if (raw == NULL)
        return;
    end_record(s, RECORD_ABORTED, code);
    journal_cancel(raw->wait, code);
    dial_client_cancel(raw->dial);
    io_close(raw->up);
    policy_free(raw->policy);
    free(raw);
    s->raw = NULL;
}

/* ---- bytes ---- */

static void over(struct session *s, enum record_kind kind, const char *code)
{
    end_record(s, kind, code);
    if (kind == RECORD_COMPLETED) {
        io_close_flushed(s->raw->up);
        s->raw->up = NULL;
    } else {
        io_break(s->io);
    }
    session_close(s, code);
}

static void carry(struct session *s, struct io *from, struct io *to, uint64_t *count)
{
    struct buf *in = io_in(from);
    size_t n = buf_len(in), room = io_out_room(to);
    n = n < room ? n : room;
    if (n == 0 || io_write(to, buf_data(in), n) < 0)
        return;
    buf_drain(in, n);
    *count += n;
    io_consumed(from);
    io_deadline(s->io, s->gate->limits.tunnel_seconds);
}

/* Each end is passed on when all before it has been. */
static void turn(struct session *s)
{
    struct raw *raw = s->raw;
    carry(s, s->io, raw->up, &raw->n_up);
    carry(s, raw->up, s->io, &raw->n_down);
    bool up_done = raw->client_ended && buf_len(io_in(s->io)) == 0;
    bool down_done = raw->origin_ended && buf_len(io_in(raw->up)) == 0;
    if (up_done && down_done) {
        over(s, RECORD_COMPLETED, "ok");
        return;
    }
    if (up_done)
        io_end(raw->up);
    if (down_done)
        io_end(s->io);
}

static void on_origin(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct session *s = arg;
    if (ev == IO_ERROR || ev == IO_TIMEOUT) {
        over(s, RECORD_ABORTED, "upstream_closed");
        return;
    }
    s->raw->origin_ended = s->raw->origin_ended || ev == IO_EOF;
    turn(s);
}

static void on_client(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct session *s = arg;
    if (ev == IO_ERROR || ev == IO_TIMEOUT) {
        over(s, RECORD_ABORTED, ev == IO_TIMEOUT ? "timeout" : "client_gone");
        return;
    }
    s->raw->client_ended = s->raw->client_ended || ev == IO_EOF;
    if (s->raw->up)
        turn(s);
}

static void on_dialled(void *arg, int fd, const char *address, const char *code, const char *detail)
{
    struct session *s = arg;
    struct raw *raw = s->raw;
    char target[HOST_TEXT_MAX + 16];
    raw->dial = NULL;
    if (fd >= 0) {
        snprintf(raw->address, sizeof raw->address, "%s", address);
        raw->up = io_new(s->gate->base, fd, STREAM_IN_MAX, STREAM_OUT_MAX, false);
        code = "memory";
    }
    if (raw->up == NULL) {
        snprintf(raw->detail, sizeof raw->detail, "%s", detail ? detail : "");
        gate_denied(s->gate, code, authority_text(&s->authority, target, sizeof target), 1);
        over(s, RECORD_ABORTED, code);
        return;
    }
    io_closed_with(s->io, raw->up); /* its session's place is free when both are closed */
    io_callback(raw->up, on_origin, s);
    io_deadline(s->io, s->gate->limits.tunnel_seconds);
    turn(s);
}

static void on_recorded(void *arg, bool ok)
{
    struct session *s = arg;
    struct raw *raw = s->raw;
    char id[48];
    raw->wait = NULL;
    if (!ok) {
        session_close(s, "audit_unwritable");
        return;
    }
    raw->admitted = true;
    journal_id(s->gate->journal, raw->counter, id, sizeof id);
    raw->dial = dial_client_get(s->who.route->dial, slice_str(s->who.sandbox), &s->authority, id,
                                s->who.token, on_dialled, s);
    if (raw->dial == NULL)
        over(s, RECORD_ABORTED, "memory");
}

static void start(struct session *s, const struct authority *a)
{
    struct record r;
    struct raw *raw = calloc(1, sizeof *raw);
    if (raw == NULL) {
        session_note_denied(s, "memory", NULL);
        session_close(s, "out of memory");
        return;
    }
    s->raw = raw;
    s->authority = *a;
    raw->policy = policy_ref(s->who.route->policy);
    raw->rule = policy_tunnel(raw->policy, a);
    raw->counter = journal_next(s->gate->journal);
    clock_gettime(CLOCK_MONOTONIC, &raw->begun);
    session_set_state(s, SESSION_RAW);
    io_callback(s->io, on_client, s);
    io_deadline(s->io, 0);
    record_init(&r, RECORD_ADMITTED, raw->counter);
    put_common(s, &r);
    record_put_str(&r, RF_CODE, "ok");
    record_put_str(&r, RF_DETAIL, "tunnel");
    struct journal_wait *w = journal_append(s->gate->journal, &r, on_recorded, s);
    if (w)
        raw->wait = w;
}

static void on_more(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    if (ev == IO_READABLE) {
        io_callback(io, NULL, NULL);
        session_inner(s);
    } else if (ev != IO_DRAINED && ev != IO_CONNECTED) {
        session_note_tls_refused(s, "closed within its first message");
        session_close(s, "closed in a ClientHello");
    }
}

bool session_try_raw(struct session *s)
{
    struct authority a;
    if (!s->who.route || !policy_has_tunnels(s->who.route->policy))
        return false;
    switch (look(s, &a)) {
    case LOOK_OTHER:
        return false;
    case LOOK_MORE:
        io_callback(s->io, on_more, s);
        return true;
    case LOOK_TUNNEL:
        start(s, &a);
        return true;
    }
    return false;
}
