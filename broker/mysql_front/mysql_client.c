/* A connection of the sandbox's: its login, which asks for nothing, and the decision. */
#include "mysql_front.h"

#include "proc.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DENIED_CODE = 1045, GONE_CODE = 2013 };

void mysql_client_free(struct mysql_client *c, bool flushed)
{
    front_tls_end(&c->tls);
    if (flushed)
        io_close_lingering(c->io);
    else
        io_close(c->io);
    broker_stream_free(c->stream);
    mysql_reader_free(&c->up_reader);
    mysql_reader_free(&c->down_reader);
    policy_free(c->policy);
    buf_free(&c->up);
    LIST_REMOVE(c, link);
    free(c);
}

/* In its login, and at the place of a reply; otherwise nobody would take it for one. */
void mysql_client_end(struct mysql_client *c, const char *code, const char *text)
{
    char words[500];
    bool running = c->state >= CLIENT_RUNNING;
    snprintf(words, sizeof words, "durward: %.400s: %s", text, code);
    bool said = mysql_put_error(io_out(c->io), running ? 1 : c->number, DENIED_CODE, "28000",
                                slice_str(words)) == 0;
    mysql_client_free(c, said);
}

void mysql_client_deny(struct mysql_client *c, const char *code, const char *detail)
{
    struct record r;
    char path[MYSQL_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", c->database);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, path);
    record_put_str(&r, RF_DETAIL, detail);
    if (c->rule)
        record_put_str(&r, RF_RULE, c->rule->text);
    front_denied(c->of->front, &r, &c->at, code);
    mysql_client_end(c, code, detail[0] ? detail : "denied: no rule of the policy allows it");
}

/* ---- the back's stream ---- */

static int on_opened(struct mysql_client *c)
{
    if (c->state != CLIENT_WAITING || (!c->welcomed && mysql_put_ok(io_out(c->io), c->number) < 0))
        return -1;
    c->welcomed = true;
    c->state = CLIENT_RUNNING;
    c->up_reader.phase = MYSQL_COMMANDS;
    io_flush_soon(c->io);
    mysql_talk_turn(c); /* what it has sent meanwhile; it may be gone */
    return 0;
}

static int on_refused(struct mysql_client *c, struct slice s)
{
    char code[64], text[700];
    ssize_t nul = slice_find(s, 0);
    if (nul < 0 || nul >= (ssize_t)sizeof code || c->state == CLIENT_RUNNING)
        return -1;
    snprintf(code, sizeof code, "%.*s", (int)nul, s.p);
    snprintf(text, sizeof text, "%.*s", (int)(s.n - (size_t)nul - 1), s.p + nul + 1);
    mysql_client_end(c, code, text[0] ? text : "failed");
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct mysql_client *c = arg;
    switch (type) {
    case BROKER_OPENED:
        return on_opened(c);
    case BROKER_DATA:
        return c->state == CLIENT_RUNNING ? mysql_talk_data(c, s) : -1;
    case BROKER_REFUSED:
        return on_refused(c, s);
    case BROKER_END:
        mysql_client_free(c, true);
        return 0;
    default:
        return -1;
    }
}

static void on_writable(void *arg)
{
    mysql_talk_writable(arg);
}

static void on_closed(void *arg)
{
    struct mysql_client *c = arg;
    if (c->state != CLIENT_RUNNING)
        mysql_client_end(c, "broker_gone", "failed: the broker is being started again");
    else
        mysql_client_free(c, true);
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

/* ---- the login ---- */

static void begin_killing(struct mysql_client *c)
{
    c->state = CLIENT_KILLING;
    c->up_reader.phase = MYSQL_COMMANDS;
    c->welcomed = true;
    if (mysql_put_ok(io_out(c->io), c->number) < 0)
        mysql_client_free(c, false);
    else
        io_flush_soon(c->io);
    c->number = 1; /* of an answer to a command */
}

static void open_back(struct mysql_client *c)
{
    struct buf facts;
    if (c->rule == NULL) {
        begin_killing(c);
        return;
    }
    buf_init(&facts, 256);
    c->state = CLIENT_WAITING;
    io_deadline(c->io, front_wait_seconds(c->of->front, c->rule));
    if (mysql_facts_put(&facts, &c->facts) == 0)
        c->stream = front_open(c->of->front, &c->at, buf_slice(&facts), &stream_ops, c);
    buf_free(&facts);
    if (c->stream == NULL)
        mysql_client_end(c, "broker_gone", "failed: the broker is being started again");
}

/* What it proves is not looked at. By which method it does, it must hear the end of, or take
 * another. */
static void on_method(struct mysql_client *c, const struct mysql_answer *a)
{
    bool sha2 = slice_eq_str(a->plugin, MYSQL_PLUGIN_SHA2) && a->proof.n > 1;
    if (a->plugin.n == 0 || slice_eq_str(a->plugin, MYSQL_PLUGIN_NATIVE) ||
        slice_eq_str(a->plugin, MYSQL_PLUGIN_SHA2)) {
        if (sha2 && mysql_put(io_out(c->io), c->number++, SLICE("\x01\x03")) < 0)
            mysql_client_free(c, false);
        else
            open_back(c);
        return;
    }
    c->state = CLIENT_SWITCHING;
    if (mysql_switch_put(io_out(c->io), c->number, MYSQL_PLUGIN_NATIVE, c->greeting.nonce) < 0)
        mysql_client_free(c, false);
    else
        io_flush_soon(c->io);
}

/* Somebody whose query may be killed: the client programs connect anew for it, and name nothing. */
static bool has_session(const struct mysql_client *c)
{
    const struct mysql_client *o;
    LIST_FOREACH(o, &c->of->clients, link)
    if (o->state == CLIENT_RUNNING && o->at.port == c->at.port &&
        strcmp(o->at.host, c->at.host) == 0)
        return true;
    return false;
}

/* Whose rules leave one database to choose from has that where it names none, as the server's own
 * programs do before they say USE. */
static bool decide(struct mysql_client *c, struct slice named, struct decision *d)
{
    const struct policy *p = c->of->front->policy;
    policy_mysql_decide(p, &c->at, named, d);
    if (d->verdict == VERDICT_DENY && named.n == 0) {
        struct slice only = policy_only_segment(p, &c->at);
        if (only.n > 0 && only.n <= MYSQL_NAME_MAX)
            policy_mysql_decide(p, &c->at, only, d);
        if (d->verdict != VERDICT_DENY)
            named = only;
    }
    if (d->verdict == VERDICT_DENY)
        return false;
    memcpy(c->database, named.p ? named.p : "", named.n);
    c->facts.database = (struct slice){c->database, named.n};
    c->policy = policy_ref(c->of->front->policy);
    c->rule = d->rule;
    return true;
}

bool mysql_client_open(struct mysql_client *c)
{
    struct decision d;
    if (!decide(c, SLICE(""), &d))
        return false;
    open_back(c);
    return true;
}

static void on_answer(struct mysql_client *c, const struct mysql_answer *a)
{
    struct decision d;
    if (a->database.n > MYSQL_NAME_MAX) {
        mysql_client_deny(c, "mysql_database", "a database with too long a name");
        return;
    }
    memcpy(c->database, a->database.p ? a->database.p : "", a->database.n);
    if (!mysql_charset_ok(a->charset)) {
        mysql_client_deny(
            c, "mysql_protocol",
            "a character set in which statements may be read differently; use utf8mb4");
        return;
    }
    c->facts =
        (struct mysql_facts){.capabilities = a->capabilities & MYSQL_CHOSEN, .charset = a->charset};
    policy_mysql_decide(c->of->front->policy, &c->at, a->database, &d);
    if (d.verdict == VERDICT_DENY && a->database.n == 0 && has_session(c)) {
        on_method(c, a);
        return;
    }
    if (!decide(c, a->database, &d)) {
        mysql_client_deny(c, d.code,
                          d.code && strcmp(d.code, "no_rule") == 0 && a->database.n == 0
                              ? "denied: name a database that a rule has"
                              : "");
        return;
    }
    on_method(c, a);
}

static void on_no_tls(void *arg)
{
    mysql_client_free(arg, false);
}

/* What follows the wish is TLS or refused, never read in clear. */
static void begin_tls(struct mysql_client *c)
{
    if (!front_tls_is_hello(buf_slice(io_in(c->io)))) {
        mysql_client_deny(c, "mysql_protocol", "what followed the wish for TLS is none");
        return;
    }
    c->wants_tls = false;
    front_tls_begin(&c->tls, c->of->front, c->io, &c->at, on_no_tls, c);
}

/* Clients do not wait for an answer: TLS may have come with the wish. */
static void on_wish(struct mysql_client *c)
{
    c->wants_tls = true;
    if (c->tls.begun)
        mysql_client_deny(c, "mysql_protocol", "a wish for TLS within TLS");
    else if (buf_len(io_in(c->io)) > 0)
        begin_tls(c);
}

static void on_login(struct mysql_client *c, const struct mysql_part *m)
{
    struct mysql_answer a;
    c->number = (unsigned char)(mysql_number(m) + 1);
    if (c->state == CLIENT_SWITCHING)
        open_back(c);
    else if (mysql_answer_read(m->body, &a) < 0)
        mysql_client_deny(c, "mysql_protocol", "what came is not a login of MySQL's");
    else if (a.asks_tls)
        on_wish(c);
    else
        on_answer(c, &a);
}

static void read_login(struct mysql_client *c)
{
    struct buf *in = io_in(c->io);
    struct slice rest = buf_slice(in);
    struct mysql_part m;
    size_t had = rest.n;
    enum mysql_event e = mysql_read(&c->up_reader, &rest, &m);
    buf_drain(in, had - rest.n);
    io_consumed(c->io);
    if (e == MYSQL_VIOLATION)
        mysql_client_deny(c, "mysql_protocol", c->up_reader.why);
    else if (e == MYSQL_PART)
        on_login(c, &m);
}

/* ---- the connection ---- */

static void on_readable(struct mysql_client *c)
{
    struct slice in = buf_slice(io_in(c->io));
    if (in.n == 0 || front_tls_pending(&c->tls) || c->state == CLIENT_WAITING)
        return; /* it stays in the buffer until the back is there */
    if (c->state == CLIENT_RUNNING) {
        if (!c->blocked)
            mysql_talk_turn(c);
    } else if (c->state == CLIENT_KILLING) {
        mysql_talk_kill(c);
    } else if (c->wants_tls) {
        begin_tls(c);
    } else {
        read_login(c);
    }
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct mysql_client *c = arg;
    switch (ev) {
    case IO_READABLE:
        on_readable(c);
        break;
    case IO_DRAINED:
        if (c->stream)
            broker_stream_pause(c->stream, false);
        break;
    case IO_CONNECTED:
        break;
    case IO_TIMEOUT:
        if (front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, "handshake time-out");
        mysql_client_free(c, false);
        break;
    default:
        if (ev == IO_ERROR && front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, io_why(io));
        if (c->stream)
            (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
        mysql_client_free(c, false);
        break;
    }
}

/* The version is one that no driver draws conclusions from. */
static int greet(struct mysql_client *c)
{
    unsigned char random[4 + MYSQL_NONCE_MAX];
    struct mysql_greeting *g = &c->greeting;
    if (RAND_bytes(random, sizeof random) != 1)
        return -1;
    *g = (struct mysql_greeting){.capabilities = MYSQL_ALWAYS | MYSQL_CHOSEN | MYSQL_SSL |
                                                 MYSQL_CONNECT_WITH_DB | MYSQL_CONNECT_ATTRS |
                                                 MYSQL_PLUGIN_AUTH_LENENC,
                                 .version = SLICE("5.7.0-durward"),
                                 .plugin = SLICE(MYSQL_PLUGIN_NATIVE)};
    memcpy(&g->id, random, 4);
    for (size_t i = 0; i < MYSQL_NONCE_MAX; i++)
        g->nonce[i] = (char)(33 + random[4 + i] % 94); /* no zero byte */
    return mysql_greeting_put(io_out(c->io), g);
}

void mysql_client_new(struct mysql_front *of, const struct authority *at, int fd)
{
    struct mysql_client *c = of->n_clients < MYSQL_CLIENTS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        close(fd);
        return;
    }
    c->io = io_new(of->front->base, fd, MYSQL_IO, MYSQL_DOWN_MAX, false);
    if (c->io == NULL || greet(c) < 0) {
        io_close(c->io);
        free(c);
        return;
    }
    c->of = of;
    c->at = *at;
    c->number = 1;
    buf_init(&c->up, MYSQL_UP_MAX);
    mysql_reader_init(&c->up_reader, MYSQL_LOGIN);
    mysql_reader_init(&c->down_reader, MYSQL_REPLIES);
    LIST_INSERT_HEAD(&of->clients, c, link);
    io_counted(c->io, &of->n_clients);
    io_high_mark(c->io, MYSQL_IO);
    io_callback(c->io, on_io, c);
    io_deadline(c->io, of->front->limits.head_seconds);
    io_flush_soon(c->io);
}
