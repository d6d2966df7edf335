/* The vault's process: its main, and the way to token endpoints that it cannot open by itself: a
 * descriptor from the dialer, TLS with the endpoint verified, one request, an answer of at most 64
 * KiB. */
#include "authority.h"
#include "dial_client.h"
#include "derived.h"
#include "meter.h"
#include "origin.h"
#include "proc.h"
#include "roots.h"
#include "token_fetch.h"
#include "vault.h"

#include <event2/event.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct vault_role {
    struct event_base *base;
    struct dial_client *dial;
    struct limits limits;
    struct origin_env env;
    struct roots *roots; /* NULL: they and the limits are not here yet */
    uint32_t last;
};

struct fetch {
    token_fetch_fn fn;
    void *arg;
    struct back back;
    struct buf answer;
    unsigned status;
    struct slice body; /* what is left to send; in `sent` */
    struct buf sent;
};

static void fetch_free(struct fetch *f)
{
    buf_free(&f->answer);
    buf_free(&f->sent);
    free(f);
}

/* ---- as the front of the origin ---- */

static void front_reply(void *self, const struct head *h)
{
    ((struct fetch *)self)->status = h->status;
}

static void front_data(void *self, const void *p, size_t n)
{
    struct fetch *f = self;
    if (buf_append(&f->answer, p, n) < 0)
        f->status = 0; /* beyond what room said: it cannot be */
}

static void front_trailers(void *self UNUSED, const struct head *fields UNUSED)
{
}

static void front_end(void *self)
{
    struct fetch *f = self;
    f->fn(f->arg, f->status, buf_slice(&f->answer), "its answer was too long");
    fetch_free(f);
}

static void front_fail(void *self, unsigned status UNUSED, const char *code, const char *id UNUSED)
{
    struct fetch *f = self;
    f->fn(f->arg, 0, (struct slice){"", 0}, code);
    fetch_free(f);
}

/* A full buffer stops reading, and the reply's time-out ends it. */
static size_t front_room(void *self)
{
    return buf_room(&((struct fetch *)self)->answer);
}

static void front_wanted(void *self)
{
    struct fetch *f = self;
    size_t room;
    while (f->body.n > 0 && (room = f->back.ops->room(f->back.self)) > 0) {
        size_t n = f->body.n < room ? f->body.n : room;
        f->back.ops->data(f->back.self, f->body.p, n);
        f->body = (struct slice){f->body.p + n, f->body.n - n};
        if (f->body.n == 0)
            f->back.ops->end(f->back.self);
    }
}

static const struct front_ops front_ops = {
    .reply = front_reply,
    .data = front_data,
    .trailers = front_trailers,
    .end = front_end,
    .fail = front_fail,
    .room = front_room,
    .wanted = front_wanted,
};

/* ---- as the vault's fetcher ---- */

static int head_of(struct head *h, const struct token_request *r, struct authority *a)
{
    const char *rest = r->url + strlen("https://");
    size_t n = strcspn(rest, "/");
    http_head_init(h);
    h->method = slice_str(r->method);
    h->minor = 1;
    h->form = TARGET_ORIGIN;
    if (authority_parse(a, SCHEME_HTTPS, (struct slice){rest, n}) < 0 ||
        http_head_set_path(h, rest[n] ? slice_str(rest + n) : SLICE("/")) < 0 ||
        http_head_add(h, "accept-encoding", SLICE("identity")) < 0)
        return -1;
    for (size_t i = 0; i < r->n; i++)
        if (http_head_add(h, r->fields[i].name, buf_slice(&r->fields[i].value)) < 0)
            return -1;
    h->length = buf_len(&r->body);
    h->body = h->length ? BODY_LENGTH : BODY_NONE;
    return 0;
}

static void *fetch_start(void *self, const struct token_request *r, token_fetch_fn fn, void *arg)
{
    struct vault_role *v = self;
    struct authority a;
    struct head h;
    char id[32];
    struct fetch *f = v->roots ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return NULL;
    f->fn = fn;
    f->arg = arg;
    buf_init_wiped(&f->answer, DERIVED_REPLY_MAX);
    buf_init_wiped(&f->sent, DERIVED_REPLY_MAX * 2);
    snprintf(id, sizeof id, "token-%u", ++v->last);
    struct origin *o = NULL;
    if (head_of(&h, r, &a) == 0 && buf_append_slice(&f->sent, buf_slice(&r->body)) == 0)
        o = origin_open(&v->env, v->dial, (struct front){&front_ops, f}, &a, &h, r->url, id, "",
                        NULL);
    http_head_free(&h);
    if (o == NULL) {
        fetch_free(f);
        return NULL;
    }
    f->body = buf_slice(&f->sent);
    f->back = origin_back(o);
    if (f->body.n == 0)
        f->back.ops->end(f->back.self);
    else
        front_wanted(f);
    return f;
}

static void fetch_cancel(void *fetch)
{
    struct fetch *f = fetch;
    f->back.ops->cancel(f->back.self, "cancelled");
    fetch_free(f);
}

static void attach(void *self, int dialer_fd)
{
    dial_client_attach(((struct vault_role *)self)->dial, dialer_fd);
}

static int take_roots(void *self, int roots_fd, struct slice limits)
{
    struct vault_role *v = self;
    struct err err = {0};
    if (limits.n != sizeof v->limits) {
        close(roots_fd);
        return -1;
    }
    memcpy(&v->limits, limits.p, limits.n);
    struct roots *roots = roots_load(roots_fd, &err);
    if (roots == NULL) {
        proc_log("token endpoints cannot be verified: %s", err.text);
        return 0;
    }
    SSL_CTX_set1_cert_store(v->env.tls, roots_store(roots));
    roots_free(v->roots);
    v->roots = roots;
    return 0;
}

/* Everything that needs files is made before the vault is confined. */
static int role_init(struct vault_role *v)
{
    v->base = event_base_new();
    if (v->base == NULL)
        return -1;
    v->dial = dial_client_new(v->base, 30);
    v->env = (struct origin_env){.base = v->base,
                                 .limits = &v->limits,
                                 .pool = pool_new(v->base, 4, 30),
                                 .tls = io_tls_client_ctx(),
                                 .wipe = true};
    return v->dial && v->env.pool && v->env.tls ? 0 : -1;
}

/* Answers of endpoints are parsed into memory that is cleared when it is given back. */
static void wiping_free(void *p)
{
    if (p)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

int vault_main(void);

int vault_main(void)
{
    static struct vault_role role;
    struct err err = {0};
    if (proc_enter(ROLE_VAULT, &err) < 0) {
        proc_log("%s", err.text);
        return 1;
    }
    json_set_alloc_funcs(malloc, wiping_free);
    struct token_fetcher fetcher = {.self = &role,
                                    .start = fetch_start,
                                    .cancel = fetch_cancel,
                                    .attach = attach,
                                    .roots = take_roots};
    struct vault *v =
        role_init(&role) == 0 ? vault_new(role.base, PROC_CONTROL_FD, true, &fetcher) : NULL;
    if (v && meter_report(role.base, vault_control(v)) == 0)
        event_base_dispatch(role.base);
    meter_report_end();
    vault_free(v);
    dial_client_free(role.dial);
    pool_free(role.env.pool);
    if (role.base) /* connections that were kept say farewell, and go */
        event_base_loop(role.base, EVLOOP_NONBLOCK);
    SSL_CTX_free(role.env.tls);
    roots_free(role.roots);
    if (role.base)
        event_base_free(role.base);
    return v ? 0 : 1;
}
