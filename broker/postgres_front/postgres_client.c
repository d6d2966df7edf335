/* A connection of the sandbox's: its first packets, the decision, and bytes both ways. */
#include "postgres_front.h"

#include "proc.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void client_free(struct postgres_client *c, bool flushed)
{
    front_tls_end(&c->tls);
    if (flushed)
        io_close_lingering(c->io);
    else
        io_close(c->io);
    broker_stream_free(c->stream);
    postgres_reader_free(&c->up_reader);
    postgres_reader_free(&c->down_reader);
    policy_free(c->policy);
    buf_free(&c->up);
    LIST_REMOVE(c, link);
    free(c);
}

/* The last word to the client. */
static void say_and_end(struct postgres_client *c, const char *sqlstate, const char *code,
                        const char *text)
{
    char words[800];
    snprintf(words, sizeof words, "durward: %s: %s", text, code);
    bool said = postgres_put_error(io_out(c->io), "FATAL", sqlstate, slice_str(words)) == 0;
    client_free(c, said);
}

static void deny(struct postgres_client *c, const char *code, const char *detail)
{
    struct record r;
    char path[POSTGRES_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", c->database);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, path);
    record_put_str(&r, RF_DETAIL, detail);
    if (c->rule)
        record_put_str(&r, RF_RULE, c->rule->text);
    front_denied(c->of->front, &r, &c->at, code);
    say_and_end(c, "28000", code, detail[0] ? detail : "denied: no rule of the policy allows it");
}

/* ---- the back's stream ---- */

/* A statement's fingerprint, and in the same packet what goes with it: a packet is a call of the
 * kernel's on each side. As broker_stream_send. */
static int send_print(struct postgres_client *c, struct slice some)
{
    char packet[BROKER_PACKET_MAX];
    memcpy(packet, c->print, c->n_print);
    if (some.n)
        memcpy(packet + c->n_print, some.p, some.n);
    int r =
        broker_stream_send(c->stream, BROKER_EVENT, (struct slice){packet, c->n_print + some.n});
    if (r > 0)
        c->n_print = 0;
    return r;
}

/* True: all of it is with the back. False: the rest waits for room, or for the server's answers. */
static bool send_up(struct postgres_client *c)
{
    size_t most;
    while ((most = c->answers.held ? c->answers.held_at : buf_len(&c->up)) + c->n_print > 0) {
        struct slice some = {(const char *)buf_data(&c->up), most};
        if (some.n > BROKER_PACKET_MAX - c->n_print)
            some.n = BROKER_PACKET_MAX - c->n_print;
        int r = c->n_print ? send_print(c, some) : broker_stream_send(c->stream, BROKER_DATA, some);
        if (r <= 0)
            return false;
        buf_drain(&c->up, some.n);
        if (c->answers.held)
            c->answers.held_at -= some.n;
    }
    return !c->answers.held;
}

/* As send_up; what is not gone blocks the client. */
static bool pass_up(struct postgres_client *c)
{
    if (send_up(c))
        return true;
    c->blocked = true;
    io_pause(c->io);
    return false;
}

/* What comes next is a statement: a packet has room for one fingerprint. */
static bool is_statement(const struct postgres_client *c, const struct buf *in)
{
    bool between = postgres_reader_between(&c->up_reader);
    unsigned char type = between ? *buf_data(in) : c->up_reader.head[0];
    return type == 'Q' || type == 'P';
}

/* What the client has sent: what goes with a statement (Bind, Execute, Sync) is in its packet. */
static void turn(struct postgres_client *c)
{
    struct buf *in = io_in(c->io);
    while (buf_len(in) > 0 && !c->over) {
        if (c->n_print && is_statement(c, in) && !pass_up(c))
            return;
        struct slice rest = buf_slice(in);
        struct postgres_part m;
        size_t had = rest.n;
        enum postgres_event e = postgres_read(&c->up_reader, &rest, &m);
        if (e == POSTGRES_VIOLATION) {
            deny(c, "postgres_protocol", c->up_reader.why);
            return;
        }
        if (e != POSTGRES_MORE && postgres_judge_up(c, &m) < 0) {
            say_and_end(c, "53200", "memory", "out of memory");
            return;
        }
        buf_drain(in, had - rest.n);
        if ((c->answers.held || buf_len(&c->up) >= BROKER_PACKET_MAX || buf_len(in) == 0) &&
            !pass_up(c))
            return;
    }
    io_consumed(c->io);
    if (!pass_up(c))
        return;
    if (c->over) {
        (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
        client_free(c, true);
        return;
    }
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
}

/* process: the server's number of the session, which notifications and its own functions say, too;
 * empty: it has none. The key beside it is ours. */
static int on_opened(struct postgres_client *c, struct slice process)
{
    struct buf *out = io_out(c->io), key;
    uint32_t number;
    if (c->state != CLIENT_WAITING)
        return -1;
    if (process.n > 0) {
        if (postgres_take_u32(&process, &number) < 0 || process.n > 0)
            return -1;
        c->key.process = number;
    }
    buf_init(&key, 8);
    int r = postgres_put_u32(&key, c->key.process) < 0 || postgres_put_u32(&key, c->key.key) < 0 ||
                    postgres_put_authentication(out, 0, SLICE("")) < 0 ||
                    postgres_put(out, 'K', buf_slice(&key)) < 0
                ? -1
                : 0;
    buf_free(&key);
    c->state = CLIENT_RUNNING;
    io_flush_soon(c->io);
    if (r == 0)
        turn(c); /* what it has sent meanwhile */
    return r;
}

/* What was held back goes on. */
static void go_on(struct postgres_client *c)
{
    if (!c->blocked || !send_up(c))
        return;
    c->blocked = false;
    io_resume(c->io);
    turn(c);
}

static int on_data(struct postgres_client *c, struct slice bytes)
{
    struct postgres_part m;
    enum postgres_event e;
    bool answered = false;
    if (c->state != CLIENT_RUNNING)
        return -1;
    while ((e = postgres_read(&c->down_reader, &bytes, &m)) != POSTGRES_MORE) {
        if (e == POSTGRES_VIOLATION || postgres_judge_down(c, &m, io_out(c->io)) < 0)
            return -1;
        answered = (m.last && postgres_answers_down(&c->answers, m.type)) || answered;
    }
    io_flush(c->io);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    if (io_out_len(c->io) >= POSTGRES_IO)
        broker_stream_pause(c->stream, true);
    if (answered)
        go_on(c); /* it may be gone */
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct postgres_client *c = arg;
    char code[64], text[700];
    ssize_t nul;
    switch (type) {
    case BROKER_OPENED:
        return on_opened(c, s);
    case BROKER_DATA:
        return on_data(c, s);
    case BROKER_REFUSED:
        nul = slice_find(s, 0);
        if (nul < 0 || nul >= (ssize_t)sizeof code)
            return -1;
        snprintf(code, sizeof code, "%.*s", (int)nul, s.p);
        snprintf(text, sizeof text, "%.*s", (int)(s.n - (size_t)nul - 1), s.p + nul + 1);
        say_and_end(c, "08006", code, text[0] ? text : "failed");
        return 0;
    case BROKER_END:
        client_free(c, true);
        return 0;
    default:
        return -1;
    }
}

static void on_writable(void *arg)
{
    go_on(arg);
}

static void on_closed(void *arg)
{
    struct postgres_client *c = arg;
    if (c->state == CLIENT_WAITING)
        say_and_end(c, "08006", "broker_gone", "failed: the broker is being started again");
    else
        client_free(c, true);
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

/* ---- the first packets ---- */

/* Settings that the session may have from its start. 0; 1: it is left out; -1: not this one. */
static int judge_setting(const struct postgres_setting *s)
{
    struct slice v = s->value;
    if (slice_ieq_str(s->name, "options") || slice_ieq_str(s->name, "application_name"))
        return 1;
    switch (postgres_setting_kind(s->name)) {
    case POSTGRES_SETTING_FREE:
        return 0;
    case POSTGRES_SETTING_ENCODING:
        return postgres_encoding_ok(v) || slice_eq_str(v, "auto") ? 1 : -1;
    case POSTGRES_SETTING_READING:
        return postgres_reading_ok(s->name, v) ? 1 : -1;
    default:
        return -1;
    }
}

static int put_facts(struct postgres_startup *s, struct buf *words, struct buf *facts,
                     struct err *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (slice_ieq_str(s->settings[i].name, "options") &&
            postgres_options_read(s->settings[i].value, words, s, err) < 0)
            return -1;
    if (postgres_startup_begin(facts) < 0 ||
        postgres_startup_put(facts, SLICE("database"), s->database) < 0)
        return err_set(err, ERR_LIMIT, "the startup is too long");
    for (size_t i = 0; i < s->n; i++) {
        int r = judge_setting(&s->settings[i]);
        if (r < 0)
            return err_set(err, ERR_DENIED, "a session may not set '%.*s'",
                           SL(s->settings[i].name));
        if (r == 0 && postgres_startup_put(facts, s->settings[i].name, s->settings[i].value) < 0)
            return err_set(err, ERR_LIMIT, "the startup is too long");
    }
    return postgres_startup_end(facts, 0) < 0 ? err_set(err, ERR_LIMIT, "the startup is too long")
                                              : 0;
}

static void set_terms(struct postgres_client *c, const struct decision *d)
{
    const struct postgres_terms *t = d->rule->postgres;
    c->policy = policy_ref(c->of->front->policy);
    c->rule = d->rule;
    c->bounds = (struct statement_bounds){t->statements, t->read_only, t->role != NULL, t->activity,
                                          t->role};
}

/* 3.0 is what is spoken; options of the protocol are none. */
static int negotiate(struct postgres_client *c)
{
    struct buf b;
    buf_init(&b, 8);
    int r = postgres_put_u32(&b, POSTGRES_PROTOCOL_3) < 0 || postgres_put_u32(&b, 0) < 0 ||
                    postgres_put(io_out(c->io), 'v', buf_slice(&b)) < 0
                ? -1
                : 0;
    buf_free(&b);
    return r;
}

/* n: of the packet, in which all that it says lies. */
static void start(struct postgres_client *c, struct postgres_startup *s, size_t n)
{
    struct decision d;
    struct err err = {.text = ""};
    struct buf words, facts;
    struct slice name = s->database.p && s->database.n ? s->database : s->user;
    if (name.p == NULL || name.n > POSTGRES_NAME_MAX) {
        deny(c, "postgres_database", "a database without a name, or with too long a one");
        return;
    }
    s->database = name;
    memcpy(c->database, name.p, name.n);
    policy_postgres_decide(c->of->front->policy, &c->at, name, &d);
    if (d.verdict == VERDICT_DENY) {
        c->rule = NULL;
        deny(c, d.code, "");
        return;
    }
    set_terms(c, &d);
    io_deadline(c->io, front_wait_seconds(c->of->front, c->rule));
    buf_init(&words, POSTGRES_STARTUP_MAX);
    buf_init(&facts, POSTGRES_STARTUP_MAX);
    int r = put_facts(s, &words, &facts, &err);
    if (r == 0 && s->extensions)
        r = negotiate(c);
    if (r == 0)
        c->stream = front_open(c->of->front, &c->at, buf_slice(&facts), &stream_ops, c);
    buf_free(&words);
    buf_free(&facts);
    c->state = CLIENT_WAITING;
    if (r < 0)
        deny(c, "postgres_settings", err.text);
    else if (c->stream == NULL)
        say_and_end(c, "08006", "broker_gone", "failed: the broker is being started again");
    else
        buf_drain(io_in(c->io), n);
}

static void cancel(struct postgres_client *c, struct postgres_cancel key)
{
    struct postgres_client *o;
    LIST_FOREACH(o, &c->of->clients, link)
    if (o->state == CLIENT_RUNNING && o->key.process == key.process && o->key.key == key.key) {
        (void)broker_stream_send(o->stream, BROKER_EVENT, SLICE("C"));
        break;
    }
    client_free(c, false);
}

/* A wish for encryption, n bytes long. What came in clear behind one for TLS would be read as if it
 * had come within. True: another packet may follow. */
static bool answer_wish(struct postgres_client *c, bool tls, size_t n)
{
    struct buf *in = io_in(c->io);
    c->wants_tls = tls && !c->tls.begun;
    if (++c->requests > POSTGRES_REQUESTS_MAX || io_write(c->io, c->wants_tls ? "S" : "N", 1) < 0) {
        client_free(c, false);
        return false;
    }
    buf_drain(in, n);
    if (c->wants_tls && buf_len(in) > 0) {
        deny(c, "postgres_protocol", "something came between the wish for TLS and TLS");
        return false; /* and c is gone */
    }
    return !c->wants_tls;
}

/* True: there may be another. */
static bool first_packet(struct postgres_client *c)
{
    struct buf *in = io_in(c->io);
    struct postgres_startup s;
    struct err err = {.text = ""};
    ssize_t n = postgres_startup_length(buf_slice(in));
    if (n < 0) {
        deny(c, "postgres_protocol", "what came is not a startup of PostgreSQL's");
        return false;
    }
    if (n == 0 || buf_len(in) < (size_t)n)
        return false;
    if (postgres_startup_read((struct slice){(const char *)buf_data(in), (size_t)n}, &s, &err) <
        0) {
        deny(c, "postgres_protocol", err.text);
        return false;
    }
    if (s.code == POSTGRES_CANCEL) {
        cancel(c, s.cancel);
        return false;
    }
    if (s.code == POSTGRES_SSL || s.code == POSTGRES_GSS)
        return answer_wish(c, s.code == POSTGRES_SSL, (size_t)n);
    start(c, &s, (size_t)n);
    return false; /* it may be gone */
}

/* ---- the connection ---- */

static void on_no_tls(void *arg)
{
    client_free(arg, false);
}

/* TLS may come at once, too, as from clients of PostgreSQL 17. */
static void on_first(struct postgres_client *c)
{
    struct slice first = buf_slice(io_in(c->io));
    if (front_tls_pending(&c->tls) || first.n == 0)
        return;
    if (!c->tls.begun && front_tls_is_hello(first)) {
        c->wants_tls = false;
        front_tls_begin(&c->tls, c->of->front, c->io, &c->at, on_no_tls, c);
    } else if (c->wants_tls) {
        deny(c, "postgres_protocol", "what followed the wish for TLS is none");
    } else {
        while (first_packet(c))
            ;
    }
}

static void on_readable(struct postgres_client *c)
{
    switch (c->state) {
    case CLIENT_FIRST:
        on_first(c);
        break;
    case CLIENT_RUNNING:
        if (!c->blocked)
            turn(c);
        break;
    default: /* it stays in the buffer until the back is there */
        break;
    }
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct postgres_client *c = arg;
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
        if (c->state == CLIENT_RUNNING)
            say_and_end(c, "57P05", "timeout", "nothing went either way");
        else
            client_free(c, false);
        break;
    default:
        if (ev == IO_ERROR && front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, io_why(io));
        if (c->stream)
            (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
        client_free(c, false);
        break;
    }
}

void postgres_client_new(struct postgres_front *of, const struct authority *at, int fd)
{
    struct postgres_client *c = of->n_clients < POSTGRES_CLIENTS_MAX ? calloc(1, sizeof *c) : NULL;
    unsigned char random[16];
    if (c == NULL || RAND_bytes(random, sizeof random) != 1) {
        free(c);
        close(fd);
        return;
    }
    c->io = io_new(of->front->base, fd, POSTGRES_IO, POSTGRES_QUEUE_MAX, false);
    if (c->io == NULL) {
        free(c);
        return;
    }
    memcpy(&c->mark, random, 8);
    memcpy(&c->key.process, random + 8, 4);
    memcpy(&c->key.key, random + 12, 4);
    c->key.process = (c->key.process & 0x7fffffff) | 1; /* drivers take it for a signed number */
    c->of = of;
    c->at = *at;
    c->answers.due = 1; /* to the startup */
    buf_init(&c->up, POSTGRES_QUEUE_MAX);
    postgres_reader_init(&c->up_reader, POSTGRES_CLIENT, POSTGRES_SESSION);
    postgres_reader_init(&c->down_reader, POSTGRES_SERVER, POSTGRES_SESSION);
    LIST_INSERT_HEAD(&of->clients, c, link);
    io_counted(c->io, &of->n_clients);
    io_high_mark(c->io, POSTGRES_IO);
    io_callback(c->io, on_io, c);
    io_deadline(c->io, of->front->limits.head_seconds);
}
