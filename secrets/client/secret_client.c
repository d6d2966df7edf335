/* Asks the vault over one channel and shares an answer among all who wait for the same value. When
 * the vault is replaced, values are asked for again and signatures fail. */
#include "secret_client.h"

#include "aws_sign.h"
#include "ipc.h"
#include "quota.h"
#include "secret_list.h"
#include "wire.h"
#include "peer.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

/* IDLE: nothing under way. QUEUED: wanted, but there is no vault. ASKED: an answer is owed. */
enum held_state { HELD_IDLE, HELD_QUEUED, HELD_ASKED };

struct secret_wait {
    struct held *held;
    secret_fn fn;
    void *arg;
    TAILQ_ENTRY(secret_wait) link;
};

/* One name that was ever asked for: a policy has a handful. */
struct held {
    struct secret_client *client;
    char *name;
    enum held_state state;
    uint32_t req;
    struct secret *value;
    int64_t until;  /* ms, monotonic: the value may be used before */
    bool renewable; /* before its time */
    struct err why; /* of the last answer; ERR_NONE: it was a value */
    unsigned failures;
    int64_t retry_at;
    struct event *timeout;
    TAILQ_HEAD(, secret_wait) waits;
    LIST_ENTRY(held) link;
};

/* One signature that is owed, or a reply that is being looked into, or another value. */
struct sign_wait {
    struct secret_client *client;
    struct quota_part part;
    uint32_t req;
    struct event *timeout;
    sign_fn fn;          /* or */
    captured_fn capture; /* of what was captured; or */
    renewed_fn renewed;  /* one of the three */
    void *arg;
    LIST_ENTRY(sign_wait) link;
};

struct secret_client {
    struct ipc *parent; /* told of a channel that ended; NULL: nobody is */
    struct event_base *base;
    struct ipc *vault;     /* NULL while there is none */
    uint32_t number;       /* of that channel */
    secret_stale_fn stale; /* NULL: nobody wants to know */
    void *stale_arg;
    uint32_t last_req;
    unsigned n;
    LIST_HEAD(, held) list;
    LIST_HEAD(, sign_wait) signing;
    struct quota signs; /* of those, by sandbox */
    struct trace trace; /* of what is asked next */
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void set_state(struct held *h, enum held_state to)
{
    struct timeval tv = {
        to == HELD_ASKED ? SECRET_CLIENT_ANSWER_SECONDS : SECRET_CLIENT_WAIT_SECONDS, 0};
    h->state = to;
    if (to == HELD_IDLE)
        event_del(h->timeout);
    else
        event_add(h->timeout, &tv);
}

static void drop_value(struct held *h)
{
    secret_unref(h->value);
    h->value = NULL;
}

/* Those who wait now are answered; whom a callback adds waits behind them. */
static void answer_all(struct held *h, struct secret *value, const struct err *err)
{
    struct secret_wait *w;
    unsigned n = 0;
    TAILQ_FOREACH(w, &h->waits, link)
    n++;
    while (n-- > 0 && (w = TAILQ_FIRST(&h->waits)) != NULL) {
        secret_fn fn = w->fn;
        void *arg = w->arg;
        secret_client_cancel(w);
        fn(arg, value, err);
    }
}

static void forget_failure(struct held *h)
{
    h->why = (struct err){0};
    h->failures = 0;
}

static void fail(struct held *h, enum err_code code, struct slice why)
{
    struct err err = {0};
    int64_t wait = SECRET_CLIENT_RETRY_MS;
    set_state(h, HELD_IDLE);
    err_set(&err, code, "secret %s: %.*s", h->name, SL(why));
    for (unsigned i = 0; i < h->failures && wait < SECRET_CLIENT_RETRY_MAX_MS; i++)
        wait *= 2;
    h->failures++;
    h->retry_at =
        now_ms() + (wait < SECRET_CLIENT_RETRY_MAX_MS ? wait : SECRET_CLIENT_RETRY_MAX_MS);
    h->why = err;
    answer_all(h, NULL, &err);
}

static void on_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct held *h = arg;
    if (h->state == HELD_IDLE) { /* what may not be used is not kept either */
        drop_value(h);
        return;
    }
    fail(h, ERR_UNREADY,
         slice_str(h->state == HELD_ASKED ? "the vault did not answer" : "there is no vault"));
}

/* Beside what is asked with this number; said once. */
static void say_traced(struct secret_client *c, uint32_t req)
{
    trace_send(c->vault, req, &c->trace);
    c->trace.session = 0;
}

static void ask(struct held *h)
{
    struct secret_client *c = h->client;
    if (c->vault == NULL) {
        set_state(h, HELD_QUEUED);
        return;
    }
    struct msg m;
    h->req = ++c->last_req;
    say_traced(c, h->req);
    msg_init(&m, W_SECRET_GET);
    msg_put_u32(&m, h->req);
    msg_put_str(&m, h->name);
    ipc_send(c->vault, &m); /* a dead channel says so by its closed callback */
    set_state(h, HELD_ASKED);
}

static struct held *find(struct secret_client *c, struct slice name)
{
    struct held *h;
    LIST_FOREACH(h, &c->list, link)
    if (slice_eq_str(name, h->name))
        return h;
    return NULL;
}

static void held_free(struct held *h)
{
    struct secret_wait *w;
    while ((w = TAILQ_FIRST(&h->waits)) != NULL)
        secret_client_cancel(w);
    drop_value(h);
    if (h->timeout)
        event_free(h->timeout);
    free(h->name);
    free(h);
}

static struct held *held_new(struct secret_client *c, const char *name)
{
    struct held *h = c->n < SECRET_LIST_MAX ? calloc(1, sizeof *h) : NULL;
    if (h == NULL)
        return NULL;
    TAILQ_INIT(&h->waits);
    h->client = c;
    h->name = strdup(name);
    h->timeout = event_new(c->base, -1, 0, on_timeout, h);
    if (h->name == NULL || h->timeout == NULL) {
        held_free(h);
        return NULL;
    }
    LIST_INSERT_HEAD(&c->list, h, link);
    c->n++;
    return h;
}

/* ---- signatures ---- */

static const struct slice no_signature = {"", 0};

void secret_client_sign_cancel(struct sign_wait *w)
{
    if (w == NULL)
        return;
    LIST_REMOVE(w, link);
    quota_leave(&w->part);
    if (w->timeout)
        event_free(w->timeout);
    free(w);
}

static void sign_done(struct sign_wait *w, struct slice signature, struct slice why)
{
    struct err err = {0};
    sign_fn fn = w->fn;
    captured_fn capture = w->capture;
    renewed_fn renewed = w->renewed;
    void *arg = w->arg;
    secret_client_sign_cancel(w);
    if (signature.n == 0)
        err_set(&err, ERR_UNREADY, "%.*s", SL(why));
    if (renewed)
        renewed(arg, false);
    else if (capture)
        capture(arg, no_signature, NULL, 0, &err);
    else
        fn(arg, signature, &err);
}

static void on_sign_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    sign_done(arg, no_signature, SLICE("the vault did not sign in time"));
}

static void fail_signing(struct secret_client *c)
{
    struct sign_wait *w;
    while ((w = LIST_FIRST(&c->signing)) != NULL)
        sign_done(w, no_signature, SLICE("the vault is gone"));
}

/* NULL: it was told why not, if it has a function for that. */
static struct sign_wait *sign_wait_new(struct secret_client *c, const char *payer, sign_fn fn,
                                       captured_fn capture, void *arg)
{
    struct err err = {0};
    struct timeval tv = {SECRET_CLIENT_ANSWER_SECONDS, 0};
    struct sign_wait *w = c->vault ? calloc(1, sizeof *w) : NULL;
    bool room = w && quota_take(&c->signs, &w->part, slice_str(payer), 1) == QUOTA_TAKEN;
    if (!room) {
        if (w)
            err_set(&err, ERR_LIMIT, "as many answers as this sandbox may await are owed");
        else
            err_set(&err, ERR_UNREADY, "there is no vault");
        free(w);
        if (capture)
            capture(arg, no_signature, NULL, 0, &err);
        else if (fn)
            fn(arg, no_signature, &err);
        return NULL;
    }
    w->capture = capture;
    w->client = c;
    w->req = ++c->last_req;
    w->fn = fn;
    w->arg = arg;
    w->timeout = event_new(c->base, -1, 0, on_sign_timeout, w);
    if (w->timeout)
        event_add(w->timeout, &tv);
    LIST_INSERT_HEAD(&c->signing, w, link);
    return w;
}

struct sign_wait *secret_client_sign(struct secret_client *c, const char *payer, const char *name,
                                     const char *sandbox, const char *key_id,
                                     const struct aws_scope *scope, sign_fn fn, void *arg)
{
    struct sign_wait *w = sign_wait_new(c, payer, fn, NULL, arg);
    if (w == NULL)
        return NULL;
    struct msg m;
    say_traced(c, w->req);
    msg_init(&m, W_SIGN);
    msg_put_u32(&m, w->req);
    msg_put_str(&m, name);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, key_id);
    msg_put_str(&m, scope->time);
    msg_put_str(&m, scope->region);
    msg_put_str(&m, scope->service);
    msg_put_str(&m, scope->hash);
    msg_put_u8(&m, (uint8_t)scope->text);
    msg_put_str(&m, scope->previous);
    ipc_send(c->vault, &m); /* a dead channel says so by its closed callback */
    return w;
}

struct sign_wait *secret_client_sign_text(struct secret_client *c, const char *payer,
                                          const char *name, uint32_t scheme, struct slice text,
                                          sign_fn fn, void *arg)
{
    struct sign_wait *w = sign_wait_new(c, payer, fn, NULL, arg);
    if (w == NULL)
        return NULL;
    struct msg m;
    say_traced(c, w->req);
    msg_init(&m, W_SIGN_TEXT);
    msg_put_u32(&m, w->req);
    msg_put_str(&m, name);
    msg_put_str(&m, payer);
    msg_put_u32(&m, scheme);
    msg_put_slice(&m, text);
    ipc_send(c->vault, &m);
    return w;
}

/* NULL: nothing of that kind is owed under this number. */
static struct sign_wait *owed(struct secret_client *c, uint32_t type, uint32_t req)
{
    struct sign_wait *w;
    LIST_FOREACH(w, &c->signing, link)
    if (w->req == req && type == (w->capture   ? W_CAPTURED
                                  : w->renewed ? W_SECRET_RENEWED
                                               : W_SIGNED))
        break;
    return w;
}

static int on_signed(struct secret_client *c, struct msg *m)
{
    uint32_t req;
    uint8_t ok;
    struct slice s;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 ||
        msg_get_slice(m, SECRET_CLIENT_SIGNATURE_MAX, &s) < 0 || msg_end(m) < 0 || ok > 1 ||
        s.n == 0)
        return -1;
    struct sign_wait *w = owed(c, W_SIGNED, req);
    if (w)
        sign_done(w, ok ? s : no_signature, s);
    return 0;
}

/* ---- values that were refused ---- */

bool secret_client_renewable(const struct secret_client *c, const char *name)
{
    const struct held *h;
    LIST_FOREACH(h, &c->list, link)
    if (strcmp(name, h->name) == 0)
        return h->renewable;
    return false;
}

struct sign_wait *secret_client_refused(struct secret_client *c, const char *payer,
                                        const char *name, const char *sent, renewed_fn fn,
                                        void *arg)
{
    struct held *h = find(c, slice_str(name));
    struct sign_wait *w = sign_wait_new(c, payer, NULL, NULL, arg);
    if (h)
        drop_value(h); /* the vault knows best which one is good */
    if (w == NULL)
        return NULL;
    struct msg m;
    w->renewed = fn;
    say_traced(c, w->req);
    msg_init(&m, W_SECRET_REFUSED);
    msg_put_u32(&m, w->req);
    msg_put_str(&m, name);
    msg_put_str(&m, sent);
    ipc_send(c->vault, &m);
    return w;
}

static int on_renewed(struct secret_client *c, struct msg *m)
{
    uint32_t req;
    uint8_t ok;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || msg_end(m) < 0 || ok > 1)
        return -1;
    struct sign_wait *w = owed(c, W_SECRET_RENEWED, req);
    if (w) {
        renewed_fn fn = w->renewed;
        void *arg = w->arg;
        secret_client_sign_cancel(w);
        fn(arg, ok);
    }
    return 0;
}

/* ---- replies with new secrets ---- */

struct sign_wait *secret_client_capture(struct secret_client *c, const char *sandbox,
                                        const struct captured_field *fields, size_t n,
                                        enum captured_form form, struct slice body, captured_fn fn,
                                        void *arg)
{
    struct sign_wait *w = sign_wait_new(c, sandbox, NULL, fn, arg);
    if (w == NULL)
        return NULL;
    struct msg m;
    msg_init(&m, W_CAPTURE);
    msg_put_u32(&m, w->req);
    msg_put_str(&m, sandbox);
    msg_put_u32(&m, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        msg_put_str(&m, fields[i].path);
        msg_put_str(&m, fields[i].secret);
        msg_put_str(&m, fields[i].placeholder);
    }
    msg_put_u8(&m, (uint8_t)form);
    msg_put_slice(&m, body);
    ipc_send(c->vault, &m);
    return w;
}

struct sign_wait *secret_client_captured(struct secret_client *c, const char *sandbox,
                                         const char *name, captured_fn fn, void *arg)
{
    struct sign_wait *w = sign_wait_new(c, sandbox, NULL, fn, arg);
    if (w == NULL)
        return NULL;
    struct msg m;
    msg_init(&m, W_CAPTURED_GET);
    msg_put_u32(&m, w->req);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, name);
    ipc_send(c->vault, &m);
    return w;
}

struct sign_wait *secret_client_captured_all(struct secret_client *c, const char *payer,
                                             const char *name, captured_fn fn, void *arg)
{
    struct sign_wait *w = sign_wait_new(c, payer, NULL, fn, arg);
    if (w == NULL)
        return NULL;
    struct msg m;
    msg_init(&m, W_CAPTURED_ALL);
    msg_put_u32(&m, w->req);
    msg_put_str(&m, name);
    ipc_send(c->vault, &m);
    return w;
}

static int on_captured(struct secret_client *c, struct msg *m)
{
    uint32_t req, n;
    uint8_t ok;
    struct slice body, values[CAPTURED_LIST_MAX];
    struct err err = {0};
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_slice(m, CAPTURED_WRITTEN_MAX, &body) < 0 || msg_get_u32(m, &n) < 0 ||
        n > CAPTURED_LIST_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (msg_get_slice(m, CAPTURED_VALUE_MAX, &values[i]) < 0 || values[i].n == 0)
            return -1;
    if (msg_end(m) < 0)
        return -1;
    struct sign_wait *w = owed(c, W_CAPTURED, req);
    if (w && ok) {
        captured_fn fn = w->capture;
        void *arg = w->arg;
        secret_client_sign_cancel(w);
        fn(arg, body, values, n, &err);
    } else if (w) {
        sign_done(w, no_signature, body);
    }
    return 0;
}

/* ---- messages ---- */

static int on_secret(struct secret_client *c, struct msg *m)
{
    uint32_t req, ttl;
    uint8_t ok;
    struct slice text;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || msg_get_u32(m, &ttl) < 0 ||
        msg_get_slice(m, SECRET_MAX, &text) < 0 || msg_end(m) < 0 || ok > 2 || (ok && text.n == 0))
        return -1;
    struct held *h;
    LIST_FOREACH(h, &c->list, link)
    if (h->state == HELD_ASKED && h->req == req)
        break;
    if (h == NULL) /* it timed out meanwhile */
        return 0;
    if (!ok) {
        fail(h, ERR_DENIED, text);
        return 0;
    }
    struct secret *value = secret_new(text.p, text.n);
    if (value == NULL) {
        fail(h, ERR_INTERNAL, SLICE("no memory for a secret"));
        return 0;
    }
    set_state(h, HELD_IDLE);
    drop_value(h);
    forget_failure(h);
    h->renewable = ok == 2;
    if (ttl > 0) {
        struct timeval tv = {ttl, 0};
        h->value = secret_ref(value);
        h->until = now_ms() + (int64_t)ttl * 1000;
        event_add(h->timeout, &tv);
    }
    answer_all(h, value, NULL);
    secret_unref(value);
    return 0;
}

static int on_stale(struct secret_client *c, struct msg *m)
{
    struct slice name;
    if (msg_get_slice(m, SECRET_NAME_MAX, &name) < 0 || msg_end(m) < 0)
        return -1;
    struct held *h = find(c, name);
    if (h) {
        drop_value(h);
        forget_failure(h);
    }
    if (c->stale)
        c->stale(c->stale_arg, name);
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_SECRET:
        return on_secret(arg, m);
    case W_SECRET_STALE:
        return on_stale(arg, m);
    case W_SECRET_RENEWED:
        return on_renewed(arg, m);
    case W_SIGNED:
        return on_signed(arg, m);
    case W_CAPTURED:
        return on_captured(arg, m);
    default:
        return -1;
    }
}

static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct secret_client *c = arg;
    struct held *h;
    if (c->vault != ch)
        return;
    ipc_free(ch);
    c->vault = NULL;
    LIST_FOREACH(h, &c->list, link)
    if (h->state == HELD_ASKED)
        set_state(h, HELD_QUEUED);
    fail_signing(c);
    peer_lost(c->parent, c->number);
}

/* ---- interface ---- */

void secret_client_trace(struct secret_client *c, const struct trace *t)
{
    c->trace = *t;
}

void secret_client_on_stale(struct secret_client *c, secret_stale_fn fn, void *arg)
{
    c->stale = fn;
    c->stale_arg = arg;
}

struct secret_client *secret_client_new(struct event_base *base)
{
    struct secret_client *c = calloc(1, sizeof *c);
    if (c) {
        c->base = base;
        LIST_INIT(&c->list);
        LIST_INIT(&c->signing);
        c->signs = (struct quota){.total = SECRET_CLIENT_SIGNS, .each = SECRET_CLIENT_SIGNS};
    }
    return c;
}

void secret_client_free(struct secret_client *c)
{
    struct held *h;
    if (c == NULL)
        return;
    while (!LIST_EMPTY(&c->signing))
        secret_client_sign_cancel(LIST_FIRST(&c->signing));
    while ((h = LIST_FIRST(&c->list)) != NULL) {
        LIST_REMOVE(h, link);
        held_free(h);
    }
    ipc_free(c->vault);
    free(c);
}

void secret_client_lost_to(struct secret_client *c, struct ipc *parent)
{
    c->parent = parent;
}

void secret_client_attach(struct secret_client *c, int vault_fd, uint32_t number)
{
    struct held *h;
    c->number = number;
    ipc_free(c->vault);
    c->vault = NULL;
    fail_signing(c);
    c->vault = ipc_new(c->base, vault_fd, on_message, on_closed, c);
    LIST_FOREACH(h, &c->list, link)
    if (h->state != HELD_IDLE)
        ask(h);
}

struct secret_wait *secret_client_get(struct secret_client *c, const char *name, secret_fn fn,
                                      void *arg)
{
    struct held *h = find(c, slice_str(name));
    if (h && h->value && now_ms() >= h->until)
        drop_value(h);
    if (h && h->value) {
        struct secret *value = secret_ref(h->value); /* a callback may bring it down */
        c->trace.session = 0;
        fn(arg, value, NULL);
        secret_unref(value);
        return NULL;
    }
    struct secret_wait *w = calloc(1, sizeof *w);
    if (h == NULL && w)
        h = held_new(c, name);
    if (h == NULL || w == NULL) {
        struct err err = {0};
        free(w);
        err_set(&err, ERR_INTERNAL, "secret %s: out of memory", name);
        fn(arg, NULL, &err);
        return NULL;
    }
    w->held = h;
    w->fn = fn;
    w->arg = arg;
    TAILQ_INSERT_TAIL(&h->waits, w, link);
    if (h->state == HELD_IDLE)
        ask(h);
    c->trace.session = 0;
    return w;
}

struct secret_wait *secret_client_look(struct secret_client *c, const char *name, secret_fn fn,
                                       void *arg)
{
    struct held *h = find(c, slice_str(name));
    if (h == NULL || h->value || h->why.code == ERR_NONE)
        return secret_client_get(c, name, fn, arg);
    if (h->state == HELD_IDLE && now_ms() >= h->retry_at)
        ask(h);
    struct err why = h->why; /* a callback may forget it */
    fn(arg, NULL, &why);
    return NULL;
}

void secret_client_cancel(struct secret_wait *w)
{
    if (w == NULL)
        return;
    TAILQ_REMOVE(&w->held->waits, w, link);
    free(w);
}

struct slice secret_client_login_name(const struct secret *told, size_t most)
{
    struct slice all = told ? secret_slice(told) : SLICE("");
    ssize_t blank = slice_find(all, ' ');
    struct slice name = {all.p + blank + 1, all.n - (size_t)(blank + 1)};
    return blank < 0 || name.n > most ? SLICE("") : name;
}
