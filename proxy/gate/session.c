/* A session's life, and its first steps: by where it was going and by its first byte it is sent on
 * to TLS, SOCKS, a proxy's request or HTTP, in session_*.c. */
#include "session_internal.h"

#include "gate_names.h"
#include "guide.h"
#include "http2_peek.h"
#include "inbound.h"
#include "meter.h"
#include "policy.h"
#include "revoked.h"
#include "socks5.h"
#include "ssh_refusal.h"
#include "synthetic.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* From the last session's end to the gate's: its last bytes are still on their way to the socket.
 */
enum { DRAIN_FLUSH_MS = 200 };

void session_set_state(struct session *s, enum session_state st)
{
    if (s->state != SESSION_DEAD)
        s->state = st;
}

void session_close(struct session *s, const char *why UNUSED)
{
    if (s->state == SESSION_DEAD)
        return;
    session_set_state(s, SESSION_DEAD);
    mint_client_cancel(s->mint);
    session_raw_free(s, "client_gone");
    http1_server_free(s->server);
    http2_server_free(s->server2);
    faults_leave(s->shared);
    s->shared = NULL;
    if (s->io && io_ssl(s->io))
        SSL_set_app_data(io_ssl(s->io), NULL);
    struct gate *g = s->gate;
    LIST_REMOVE(s, link);
    meter_down(METER_SESSIONS_OPEN);
    io_owner(s->io, slice_str(s->who.sandbox));
    io_when_closed(s->io, s->closed, s->closed_arg);
    io_close_lingering(s->io);
    free(s->inbound);
    free(s);
    if (g->draining && LIST_EMPTY(&g->sessions)) {
        struct timeval flush = {.tv_usec = DRAIN_FLUSH_MS * 1000};
        event_base_loopexit(g->base, &flush);
    }
}

/* A refusal where no exchange can be answered: one denied record. */
static void note_denied(const struct session *s, const char *code, const char *target,
                        const char *detail)
{
    struct gate *g = s->gate;
    struct record r;
    if (s->inbound) {
        exchange_inbound_count(g, s->inbound, code);
        return;
    }
    gate_denied(g, code, target, 1);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_CODE, code);
    record_put_str(&r, RF_TARGET, target);
    record_put_str(&r, RF_ENTRY, s->entry_name);
    record_put_str(&r, RF_DETAIL, detail);
    if (g->mode == GATE_TOKEN)
        record_put_str(&r, RF_SANDBOX, s->who.sandbox);
    journal_note(g->journal, &r);
}

void session_note_denied(struct session *s, const char *code, const char *detail)
{
    char target[HOST_TEXT_MAX + 64];
    const struct authority *a = s->authority.host[0] ? &s->authority : &s->outer;
    if (a->host[0])
        authority_text_port(a, target, sizeof target);
    else
        snprintf(target, sizeof target, "-");
    note_denied(s, code, target, detail);
}

void session_drain_all(struct gate *g)
{
    struct session *s, *next;
    for (s = LIST_FIRST(&g->sessions); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->state == SESSION_HTTP && s->server && !http1_server_idle(s->server))
            http1_server_close_after(s->server);
        else if (s->state == SESSION_HTTP && s->server2)
            http2_server_drain(s->server2);
        else
            session_close(s, "drained");
    }
}

void session_drop_revoked(struct gate *g)
{
    struct session *s, *next;
    for (s = LIST_FIRST(&g->sessions); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->who.token[0] && revoked_why(g->revoked, s->who.sandbox, s->who.expires))
            session_close(s, "its token is revoked");
    }
}

bool session_host_allowed(const struct session *s, const struct authority *a)
{
    return s->who.route && policy_host(s->who.route->policy, a) != 0;
}

/* Its requests may be of one sandbox and then of another. */
static bool of_several(const struct session *s)
{
    return s->gate->mode == GATE_TOKEN || s->entry == ENTRY_FORWARDED;
}

/* The sandbox, or whoever is at that address. */
static const char *faults_key(const struct session *s, char key[FAULTS_KEY])
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    bool named = of_several(s) && s->who.sandbox[0];
    /* who is outside uses up nothing of the sandbox's own */
    snprintf(key, FAULTS_KEY, "%s", s->inbound ? s->entry_name : named ? s->who.sandbox : "");
    if (s->gate->mode != GATE_LOCAL && !named &&
        getpeername(io_fd(s->io), (struct sockaddr *)&peer, &len) == 0)
        faults_key_of(key, (struct sockaddr *)&peer);
    return key;
}

struct faults *session_faults(struct session *s)
{
    char key[FAULTS_KEY];
    if (s->shared && !of_several(s))
        return s->shared;
    faults_key(s, key);
    if (s->shared && faults_are_of(s->shared, key))
        return s->shared;
    faults_leave(s->shared);
    s->shared = faults_join(&s->gate->faults, key, faults_now());
    return s->shared;
}

static void start_http2(struct session *s)
{
    const struct http2_server_ops *ops = s->inbound       ? &session_inbound_http2_ops
                                         : s->knows_http2 ? &session_clear_http2_ops
                                                          : &session_http2_ops;
    if (session_faults(s))
        s->server2 = http2_server_new(s->gate->base, s->io, &s->gate->limits, s->shared, ops, s);
    if (s->server2 == NULL)
        session_close(s, "out of memory");
    else
        http2_server_start(s->server2);
}

void session_start_http(struct session *s)
{
    session_set_state(s, SESSION_HTTP);
    if (s->knows_http2 || session_chose_http2(s)) {
        start_http2(s);
        return;
    }
    s->server = http1_server_new(s->gate->base, s->io, &s->gate->limits, &session_http1_ops, s);
    if (s->server == NULL) {
        session_close(s, "out of memory");
        return;
    }
    if (buf_len(io_in(s->io)) > 0)
        http1_server_start(s->server);
}

/* Nothing has come yet, or what may be the beginning of HTTP/2, whose first bytes are always the
 * same. */
static void on_beginning(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    bool begun = buf_len(io_in(io)) > 0;
    switch (ev) {
    case IO_READABLE:
        io_callback(io, NULL, NULL);
        session_inner(s);
        return;
    case IO_TIMEOUT:
        session_note_denied(s, "timeout", begun ? "HTTP/2's preface" : "no first byte");
        session_close(s, "time-out");
        return;
    case IO_EOF:
    case IO_ERROR:
        session_close(s, begun ? "closed within HTTP/2's preface" : "closed before the first byte");
        return;
    case IO_CONNECTED:
    case IO_DRAINED:
        return;
    }
}

enum { TLS_HANDSHAKE_RECORD = 0x16 };

void session_inner(struct session *s)
{
    if (buf_len(io_in(s->io)) == 0)
        return;
    if (buf_data(io_in(s->io))[0] == TLS_HANDSHAKE_RECORD) {
        if (s->refusing || !session_try_raw(s))
            session_start_tls(s);
        return;
    }
    int preface = http2_peek_preface(buf_slice(io_in(s->io)));
    if (preface == 0) {
        io_callback(s->io, on_beginning, s);
        return;
    }
    s->knows_http2 = preface > 0;
    s->authority = s->outer;
    s->authority.scheme = SCHEME_HTTP;
    session_start_http(s);
}

static bool is_loopback(const struct sockaddr_storage *ss)
{
    const struct sockaddr_in *a = (const struct sockaddr_in *)ss;
    const struct sockaddr_in6 *b = (const struct sockaddr_in6 *)ss;
    if (ss->ss_family == AF_INET)
        return ntohl(a->sin_addr.s_addr) >> 24 == 127 || a->sin_addr.s_addr == 0;
    return IN6_IS_ADDR_LOOPBACK(&b->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&b->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&b->sin6_addr) && b->sin6_addr.s6_addr[12] == 127);
}

static uint16_t port_of(const struct sockaddr_storage *ss)
{
    return ss->ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)ss)->sin_port)
                                    : ntohs(((const struct sockaddr_in6 *)ss)->sin6_port);
}

/* Can any rule be about this port? If none, there is no first byte to wait for. */
static bool port_named(const struct session *s, uint16_t port)
{
    uint16_t named[256];
    if (port == 80 || port == 443)
        return true;
    size_t n = policy_ports(s->who.route->policy, named, ARRAY_LEN(named));
    if (n > ARRAY_LEN(named))
        return true;
    for (size_t i = 0; i < n; i++)
        if (named[i] == port)
            return true;
    return false;
}

int session_destination(struct session *s)
{
    const struct sockaddr *sa = (const struct sockaddr *)&s->destination;
    uint16_t port = port_of(&s->destination);
    if (authority_from_sockaddr(&s->outer, SCHEME_HTTPS, sa) < 0)
        return -1;
    if (is_loopback(&s->destination)) {
        session_note_denied(s, "loopback", NULL);
        return -1;
    }
    if (synthetic_contains(sa)) {
        s->refusing = synthetic_index(sa) == NAMES_REFUSED && (port == 80 || port == 443);
        if (s->refusing)
            return 0;
        const char *host = gate_names_host(s->gate->names, sa);
        if (host == NULL) {
            session_note_denied(s, "unknown_name", NULL);
            return -1;
        }
        if (authority_host(&s->outer, slice_str(host)) < 0)
            return -1;
        s->outer.port = port;
        s->outer_binds_name = true;
        if (strcmp(host, NAMES_SELF_HOST) == 0) {
            s->explicit_inner = port == NAMES_PROXY_PORT;
            if (s->explicit_inner)
                return 0;
            if (port == 80) /* its other name */
                return authority_host(&s->outer, SLICE(GUIDE_HOST));
            session_note_denied(s, "no_rule", NULL);
            return -1;
        }
    }
    if (!port_named(s, port)) {
        session_note_denied(s, "no_rule", NULL);
        return -1;
    }
    struct authority plain = s->outer;
    plain.scheme = SCHEME_HTTP;
    bool could = session_host_allowed(s, &s->outer) || session_host_allowed(s, &plain);
    /* a real address may yet turn out to carry a name in its ClientHello */
    if (!could && s->outer_binds_name && port != 80) { /* plain HTTP gets a 403 that says why */
        session_note_denied(s, "no_rule", NULL);
        return -1;
    }
    return 0;
}

static void on_tunnel(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    if (ev == IO_READABLE) {
        io_callback(io, NULL, NULL);
        session_inner(s);
    } else if (ev != IO_DRAINED && ev != IO_CONNECTED) {
        session_close(s, "tunnel closed before its first byte");
    }
}

void session_enter_tunnel(struct session *s)
{
    s->tunnel = true;
    session_set_state(s, SESSION_PREAMBLE);
    io_callback(s->io, on_tunnel, s);
    io_deadline(s->io, s->gate->limits.head_seconds);
}

/* The first byte on an explicit port says which dialect of proxy the client speaks. */
static void on_explicit(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    if (ev == IO_READABLE) {
        io_callback(io, NULL, NULL);
        if (s->entry != ENTRY_FORWARDED && buf_data(io_in(io))[0] == SOCKS5_VERSION)
            session_start_socks(s);
        else
            session_start_http(s);
    } else if (ev != IO_DRAINED && ev != IO_CONNECTED) {
        session_close(s, "closed before its first byte");
    }
}

void session_explicit(struct session *s)
{
    session_set_state(s, SESSION_PREAMBLE);
    io_callback(s->io, on_explicit, s);
    io_deadline(s->io, s->gate->limits.idle_seconds);
}

static void begin(struct session *s)
{
    if (s->explicit_inner) {
        s->entry_name = s->entry == ENTRY_FORWARDED ? "forwarded" : "forward";
        memset(&s->outer, 0, sizeof s->outer);
        s->outer_binds_name = false;
        if (s->port_name)
            session_start_port(s);
        else
            session_explicit(s);
        return;
    }
    io_callback(s->io, on_beginning, s);
    io_deadline(s->io, s->gate->limits.head_seconds);
}

struct session *session_make(struct gate *g, int fd, enum session_entry entry,
                             void (*closed)(void *arg), void *arg)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(fd);
        closed(arg);
        return NULL;
    }
    s->gate = g;
    LIST_INSERT_HEAD(&g->sessions, s, link);
    meter_add(METER_SESSIONS, 1);
    meter_add(METER_SESSIONS_OPEN, 1);
    s->entry = entry;
    s->entry_name = entry == ENTRY_TRANSPARENT ? "transparent" : "forward";
    s->closed = closed;
    s->closed_arg = arg;
    if (g->mode != GATE_TOKEN) {
        s->who.route = &g->routes[0];
        snprintf(s->who.sandbox, sizeof s->who.sandbox, "%s", g->sandbox);
    }
    s->io = io_new(g->base, fd, STREAM_IN_MAX, STREAM_OUT_MAX, false);
    if (s->io == NULL) {
        session_close(s, "out of memory");
        return NULL;
    }
    return s;
}

void session_new(struct gate *g, int fd, enum session_entry entry,
                 const struct sockaddr_storage *destination, const char *port_name,
                 void (*closed)(void *arg), void *arg)
{
    struct session *s = session_make(g, fd, entry, closed, arg);
    if (s == NULL)
        return;
    s->explicit_inner = entry != ENTRY_TRANSPARENT;
    s->port_name = port_name;
    if (destination) {
        s->destination = *destination;
        if (session_try_broker(s))
            return;
        if (port_of(destination) == 22) {
            session_note_denied(s, "ssh_port", NULL);
            ssh_refusal_write(s->io);
            session_close(s, "port 22");
            return;
        }
        if (session_destination(s) < 0) {
            io_break(s->io); /* a reset: a refusal, not an empty reply */
            session_close(s, "refused by its destination");
            return;
        }
    }
    begin(s);
}
