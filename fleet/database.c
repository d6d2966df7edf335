/* Dials, asks for TLS, logs in, and then says queries and reads their answers. */
#include "database.h"

#include "dial_client.h"
#include "io.h"
#include "origin.h"
#include "postgres_auth.h"
#include "postgres_message.h"
#include "postgres_startup.h"
#include "proc.h"
#include "secret_client.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    IO_MAX = 64 * 1024,
    OUT_MAX = 1024 * 1024,
    LOGIN_SECONDS = 10,
    ANSWER_SECONDS = 10,
    AGAIN_MS = 500,
};

enum database_state {
    DATABASE_RESTING = 0,
    DATABASE_LOGIN,   /* the vault says as whom */
    DATABASE_DIALING, /* and for TLS, */
    DATABASE_ASKING,  /* which the server answers with a byte */
    DATABASE_SECURING,
    DATABASE_AUTHENTICATING,
    DATABASE_STARTING, /* until it is ready */
    DATABASE_UP,
};

struct asked {
    database_fn fn;
    void *arg;
    struct database_tag tag;
    bool failed;
    STAILQ_ENTRY(asked) link;
};

struct database {
    const struct database_means *means;
    struct database_place place;
    struct database_owner owner;
    enum database_state state;
    char user[POSTGRES_NAME_MAX + 1];
    struct secret_wait *login;
    struct dial_wait *dial;
    struct sign_wait *proof;
    struct io *io;
    struct postgres_reader reader;
    struct postgres_auth auth;
    struct buf row, rows; /* the row that comes; those of the answer that comes */
    struct event *again;
    size_t n_asked;
    STAILQ_HEAD(, asked) asked;
    char said[200]; /* why it went down last: said once */
};

/* ---- down ---- */

static void answer(struct database *d, struct asked *a, bool ok)
{
    STAILQ_REMOVE_HEAD(&d->asked, link);
    d->n_asked--;
    if (a->fn)
        a->fn(a->arg, &a->tag, ok, ok ? buf_slice(&d->rows) : SLICE(""));
    free(a);
}

static void hang_up(struct database *d)
{
    secret_client_cancel(d->login);
    dial_client_cancel(d->dial);
    secret_client_sign_cancel(d->proof);
    io_close(d->io);
    d->login = NULL;
    d->dial = NULL;
    d->proof = NULL;
    d->io = NULL;
    postgres_reader_free(&d->reader);
    postgres_reader_init(&d->reader, POSTGRES_SERVER, POSTGRES_LOGIN);
    postgres_auth_free(&d->auth);
    buf_clear(&d->row);
    buf_clear(&d->rows);
}

/* What it says of itself is not ours: printable text, and the same once. */
static int down(struct database *d, const char *what, struct slice detail)
{
    static const struct timeval soon = {0, AGAIN_MS * 1000};
    char text[sizeof d->said];
    struct asked *a;
    bool was = d->state == DATABASE_UP;
    snprintf(text, sizeof text, "%s%s%.*s", what, detail.n ? ": " : "",
             detail.n < 120 ? (int)detail.n : 120, detail.p ? detail.p : "");
    if (strcmp(text, d->said) != 0)
        proc_log("the database of the fleet cannot be used: %s", text);
    memcpy(d->said, text, sizeof text);
    d->state = DATABASE_RESTING;
    hang_up(d);
    while ((a = STAILQ_FIRST(&d->asked)) != NULL)
        answer(d, a, false);
    if (was)
        d->owner.down(d->owner.arg);
    (void)event_add(d->again, &soon);
    return -1;
}

/* ---- login ---- */

static int put(struct database *d, char type, struct slice body)
{
    if (postgres_put(io_out(d->io), type, body) < 0)
        return down(d, "a message is too long", SLICE(""));
    io_flush_soon(d->io);
    return 0;
}

static void on_proof(void *arg, struct slice proof, const struct err *err)
{
    struct database *d = arg;
    struct buf out;
    d->proof = NULL;
    buf_init_wiped(&out, 8192);
    if (postgres_auth_prove(&d->auth, proof, &out) < 0)
        (void)down(d, "the vault gives no proof", slice_str(err ? err->text : ""));
    else
        (void)put(d, 'p', buf_slice(&out));
    buf_free(&out);
}

static int prove(struct database *d)
{
    struct sign_wait *w = secret_client_sign_text(d->means->secrets, "fleet", d->place.login,
                                                  d->auth.scheme, d->auth.text, on_proof, d);
    if (w == NULL)
        return -1; /* on_proof ran, and the connection may be gone */
    d->proof = w;
    return 0;
}

static int on_authentication(struct database *d, struct slice body)
{
    struct buf out;
    int r = 0;
    buf_init(&out, 300);
    switch (postgres_auth_read(&d->auth, body, io_ssl(d->io), &out)) {
    case POSTGRES_AUTH_FAILED:
        r = down(d, "the login failed", slice_str(d->auth.why));
        break;
    case POSTGRES_AUTH_SAY:
        r = put(d, 'p', buf_slice(&out));
        break;
    case POSTGRES_AUTH_PROVE:
        r = prove(d);
        break;
    case POSTGRES_AUTH_DONE:
        d->state = DATABASE_STARTING;
        break;
    case POSTGRES_AUTH_MORE:
        break;
    }
    buf_free(&out);
    return r;
}

/* What a transaction of ours needs, whatever the server's own settings are: it is on disk before we
 * hear of it, and sees what is committed when a statement begins. And who is gone without a word is
 * noticed. */
static int put_startup(const struct database *d, struct buf *out)
{
    static const struct {
        struct slice name, value;
    } settings[] = {
        {SLICE_INIT("application_name"), SLICE_INIT("durward-fleet")},
        {SLICE_INIT("client_encoding"), SLICE_INIT("UTF8")},
        {SLICE_INIT("standard_conforming_strings"), SLICE_INIT("on")},
        {SLICE_INIT("default_transaction_isolation"), SLICE_INIT("read committed")},
        {SLICE_INIT("default_transaction_read_only"), SLICE_INIT("off")},
        {SLICE_INIT("synchronous_commit"), SLICE_INIT("on")},
        {SLICE_INIT("statement_timeout"), SLICE_INIT("5s")},
        {SLICE_INIT("tcp_keepalives_idle"), SLICE_INIT("5")},
        {SLICE_INIT("tcp_keepalives_interval"), SLICE_INIT("2")},
        {SLICE_INIT("tcp_keepalives_count"), SLICE_INIT("3")},
    };
    size_t from = buf_len(out);
    int r = postgres_startup_begin(out) < 0 ||
                    postgres_startup_put(out, SLICE("user"), slice_str(d->user)) < 0 ||
                    postgres_startup_put(out, SLICE("database"), slice_str(d->place.name)) < 0
                ? -1
                : 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(settings); i++)
        r = postgres_startup_put(out, settings[i].name, settings[i].value);
    return r < 0 ? -1 : postgres_startup_end(out, from);
}

static void on_secured(struct database *d)
{
    if (put_startup(d, io_out(d->io)) < 0) {
        (void)down(d, "out of memory", SLICE(""));
        return;
    }
    d->state = DATABASE_AUTHENTICATING;
    io_flush_soon(d->io);
}

/* ---- answers ---- */

static int on_row(struct database *d, const struct postgres_part *m)
{
    struct slice value;
    if (m->first)
        buf_clear(&d->row);
    if (buf_append_slice(&d->row, m->body) < 0)
        return down(d, "a row is too long", SLICE(""));
    if (!m->last)
        return 0;
    if (postgres_only_value(buf_slice(&d->row), &value) < 0 || slice_find(value, '\n') >= 0 ||
        buf_append_slice(&d->rows, value) < 0 || buf_append(&d->rows, "\n", 1) < 0)
        return down(d, "an answer cannot be read", SLICE(""));
    return 0;
}

static int on_ready(struct database *d)
{
    struct asked *a = STAILQ_FIRST(&d->asked);
    if (d->state == DATABASE_STARTING) {
        d->state = DATABASE_UP;
        d->reader.phase = POSTGRES_SESSION;
        d->said[0] = 0;
        io_deadline(d->io, 0);
        d->owner.up(d->owner.arg);
        return 0;
    }
    if (a == NULL)
        return down(d, "it answers what was not asked", SLICE(""));
    io_deadline(d->io, STAILQ_NEXT(a, link) ? ANSWER_SECONDS : 0);
    answer(d, a, !a->failed);
    buf_clear(&d->rows);
    return 0;
}

static int on_error(struct database *d, struct slice body)
{
    struct slice said = postgres_field(body, 'M');
    if (d->state != DATABASE_UP || STAILQ_EMPTY(&d->asked)) /* of a login its code alone */
        return down(d, "it refuses",
                    d->state == DATABASE_AUTHENTICATING && d->auth.answered
                        ? postgres_field(body, 'C')
                        : said);
    STAILQ_FIRST(&d->asked)->failed = true;
    proc_log("the database of the fleet says: %.*s", said.n < 200 ? (int)said.n : 200,
             said.p ? said.p : "");
    return 0;
}

/* Of a notification: behind the number of whoever sent it. */
static struct slice channel_of(struct slice body)
{
    struct slice rest = body.n > 4 ? (struct slice){body.p + 4, body.n - 4} : SLICE("");
    ssize_t end = slice_find(rest, 0);
    return end < 0 ? SLICE("") : (struct slice){rest.p, (size_t)end};
}

static int on_message(struct database *d, const struct postgres_part *m)
{
    switch (m->type) {
    case 'R':
        return d->state == DATABASE_AUTHENTICATING ? on_authentication(d, m->body)
                                                   : down(d, "a login after a login", SLICE(""));
    case 'E':
        return on_error(d, m->body);
    case 'D':
        return STAILQ_EMPTY(&d->asked) ? down(d, "it answers what was not asked", SLICE(""))
                                       : on_row(d, m);
    case 'Z':
        return d->state < DATABASE_STARTING ? down(d, "it is ready too early", SLICE(""))
                                            : on_ready(d);
    case 'A':
        d->owner.notified(d->owner.arg, channel_of(m->body));
        return 0;
    default:
        return 0; /* settings, notices, heads of rows, tags */
    }
}

static void on_bytes(struct database *d)
{
    struct postgres_part m;
    for (;;) {
        struct buf *in = io_in(d->io);
        struct slice left = buf_slice(in);
        enum postgres_event e = postgres_read(&d->reader, &left, &m);
        /* a body may lie in the input: it is used before that is drained */
        size_t used = buf_len(in) - left.n;
        if (e == POSTGRES_VIOLATION) {
            (void)down(d, "what it says cannot be read", slice_str(d->reader.why));
            return;
        }
        if (e != POSTGRES_MORE && on_message(d, &m) < 0)
            return;
        if (d->io == NULL)
            return;
        buf_drain(in, used);
        io_consumed(d->io);
        if (e == POSTGRES_MORE)
            return;
    }
}

/* ---- the connection ---- */

/* The answer to the wish for TLS is one byte, and nothing may come behind it. */
static void on_answer(struct database *d)
{
    struct buf *in = io_in(d->io);
    SSL *ssl;
    if (buf_len(in) != 1 || *buf_data(in) != 'S') {
        if (buf_len(in) > 0)
            (void)down(d, "it does not speak TLS", SLICE(""));
        return;
    }
    buf_drain(in, 1);
    io_consumed(d->io);
    ssl = origin_ssl_for(d->means->tls, &d->place.at);
    if (ssl == NULL) {
        (void)down(d, "out of memory", SLICE(""));
        return;
    }
    d->state = DATABASE_SECURING;
    io_tls_connect(d->io, ssl);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct database *d = arg;
    switch (ev) {
    case IO_CONNECTED:
        on_secured(d);
        break;
    case IO_READABLE:
        if (d->state == DATABASE_ASKING)
            on_answer(d);
        else if (d->state >= DATABASE_AUTHENTICATING)
            on_bytes(d);
        break;
    case IO_DRAINED:
        break;
    case IO_TIMEOUT:
        (void)down(d, "it took too long", SLICE(""));
        break;
    default:
        (void)down(d, "the connection ended", slice_str(ev == IO_ERROR ? io_why(io) : ""));
        break;
    }
}

static void on_dialled(void *arg, int fd, const char *address UNUSED, const char *code,
                       const char *detail)
{
    struct database *d = arg;
    d->dial = NULL;
    if (fd < 0) {
        (void)down(d, code, slice_str(detail ? detail : ""));
        return;
    }
    d->io = io_new(d->means->base, fd, IO_MAX, OUT_MAX, true);
    if (d->io == NULL || postgres_request_put(io_out(d->io), POSTGRES_SSL) < 0) {
        (void)down(d, "out of memory", SLICE(""));
        return;
    }
    d->state = DATABASE_ASKING;
    io_callback(d->io, on_io, d);
    io_deadline(d->io, LOGIN_SECONDS);
    io_flush_soon(d->io);
}

/* "scram-sha-256 NAME": the vault says of a login as whom it is, and no more. */
static void on_login(void *arg, struct secret *value, const struct err *err)
{
    struct database *d = arg;
    d->login = NULL;
    struct slice name = secret_client_login_name(value, POSTGRES_NAME_MAX);
    if (name.n == 0) {
        (void)down(d, "there is no login", slice_str(err ? err->text : ""));
        return;
    }
    memset(d->user, 0, sizeof d->user);
    memcpy(d->user, name.p, name.n);
    d->state = DATABASE_DIALING;
    d->dial =
        dial_client_get(d->means->dial, SLICE("fleet"), &d->place.at, "fleet", "", on_dialled, d);
    if (d->dial == NULL)
        (void)down(d, "out of memory", SLICE(""));
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct database *d = arg;
    d->state = DATABASE_LOGIN;
    struct secret_wait *w = secret_client_get(d->means->secrets, d->place.login, on_login, d);
    if (w)
        d->login = w;
}

struct database *database_new(const struct database_means *means,
                              const struct database_place *place,
                              const struct database_owner *owner)
{
    static const struct timeval now = {0, 0};
    struct database *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->means = means;
    d->place = *place;
    d->owner = *owner;
    STAILQ_INIT(&d->asked);
    postgres_reader_init(&d->reader, POSTGRES_SERVER, POSTGRES_LOGIN);
    buf_init(&d->row, DATABASE_ROW_MAX);
    buf_init(&d->rows, DATABASE_ROWS_MAX);
    d->again = event_new(means->base, -1, 0, on_again, d);
    if (d->again == NULL || event_add(d->again, &now) < 0) {
        database_free(d);
        return NULL;
    }
    return d;
}

void database_free(struct database *d)
{
    struct asked *a;
    if (d == NULL)
        return;
    hang_up(d);
    while ((a = STAILQ_FIRST(&d->asked)) != NULL) {
        STAILQ_REMOVE_HEAD(&d->asked, link);
        free(a);
    }
    postgres_reader_free(&d->reader);
    buf_free(&d->row);
    buf_free(&d->rows);
    if (d->again)
        event_free(d->again);
    free(d);
}

bool database_is_up(const struct database *d)
{
    return d->state == DATABASE_UP;
}

size_t database_open(const struct database *d)
{
    return d->n_asked;
}

void database_ask(struct database *d, const char *text, database_fn fn, void *arg,
                  const struct database_tag *tag)
{
    static const struct database_tag none;
    struct asked *a =
        database_is_up(d) && d->n_asked < DATABASE_ASKED_MAX ? calloc(1, sizeof *a) : NULL;
    if (a == NULL || postgres_put_query(io_out(d->io), slice_str(text)) < 0) {
        free(a);
        if (fn)
            fn(arg, tag ? tag : &none, false, SLICE(""));
        return;
    }
    a->fn = fn;
    a->arg = arg;
    a->tag = tag ? *tag : none;
    STAILQ_INSERT_TAIL(&d->asked, a, link);
    d->n_asked++;
    if (STAILQ_FIRST(&d->asked) == a)
        io_deadline(d->io, ANSWER_SECONDS);
    io_flush_soon(d->io);
}
