/* The front of an origin that sends one request from memory and gathers the reply; then the set-up
 * of what all requests of a role share. */
#include "fetch.h"

#include "authority.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fetch {
    token_fetch_fn fn;
    void *arg;
    struct upstream upstream;
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

static void downstream_reply(void *self, const struct head *h)
{
    ((struct fetch *)self)->status = h->status;
}

static void downstream_data(void *self, const void *p, size_t n)
{
    struct fetch *f = self;
    if (buf_append(&f->answer, p, n) < 0)
        f->status = 0; /* beyond what room said: it cannot be */
}

static void downstream_trailers(void *self UNUSED, const struct head *fields UNUSED)
{
}

static void downstream_end(void *self)
{
    struct fetch *f = self;
    f->fn(f->arg, f->status, buf_slice(&f->answer), "its answer was too long");
    fetch_free(f);
}

static void downstream_fail(void *self, unsigned status UNUSED, const char *code,
                            const char *id UNUSED)
{
    struct fetch *f = self;
    f->fn(f->arg, 0, (struct slice){"", 0}, code);
    fetch_free(f);
}

/* A full buffer stops reading, and the reply's time-out ends it. */
static size_t downstream_room(void *self)
{
    return buf_room(&((struct fetch *)self)->answer);
}

static void downstream_wanted(void *self)
{
    struct fetch *f = self;
    if (f->body.n == 0)
        return;
    size_t n = stream_send(&f->upstream, f->body);
    f->body = (struct slice){f->body.p + n, f->body.n - n};
    if (f->body.n == 0)
        f->upstream.ops->end(f->upstream.self);
}

static const struct downstream_ops downstream_ops = {
    .reply = downstream_reply,
    .data = downstream_data,
    .trailers = downstream_trailers,
    .end = downstream_end,
    .fail = downstream_fail,
    .room = downstream_room,
    .wanted = downstream_wanted,
};

/* ---- starting one ---- */

/* Path and query. */
static int set_target(struct head *h, const char *text)
{
    size_t n = strcspn(text, "?");
    struct slice path = {text, n};
    if (n == 0)
        path = SLICE("/");
    if (http_head_set_path(h, path) < 0)
        return -1;
    return text[n] ? http_head_set_query(h, slice_str(text + n + 1), true) : 0;
}

static int head_of(struct head *h, const struct token_request *r, struct authority *a)
{
    bool tls = strncmp(r->url, "https://", 8) == 0;
    const char *rest = r->url + (tls ? 8 : strlen("http://"));
    size_t n = strcspn(rest, "/?");
    http_head_init(h);
    h->method = slice_str(r->method);
    h->minor = 1;
    h->form = TARGET_ORIGIN;
    if (authority_parse(a, tls ? SCHEME_HTTPS : SCHEME_HTTP, (struct slice){rest, n}) < 0 ||
        set_target(h, rest + n) < 0 || http_head_add(h, "accept-encoding", SLICE("identity")) < 0)
        return -1;
    for (size_t i = 0; i < r->n; i++)
        if (http_head_add(h, r->fields[i].name, buf_slice(&r->fields[i].value)) < 0)
            return -1;
    h->length = buf_len(&r->body);
    h->body = h->length ? BODY_LENGTH : BODY_NONE;
    return 0;
}

void *fetch_start(void *self, const struct token_request *r, token_fetch_fn fn, void *arg)
{
    struct fetch_means *v = self;
    struct authority a;
    struct head h;
    char id[32];
    struct fetch *f = v->env.roots ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return NULL;
    f->fn = fn;
    f->arg = arg;
    buf_init_wiped(&f->answer, FETCH_REPLY_MAX);
    buf_init_wiped(&f->sent, FETCH_REPLY_MAX * 2 + buf_len(&r->body));
    snprintf(id, sizeof id, "%s-%u", v->word, ++v->last);
    struct origin *o = NULL;
    if (head_of(&h, r, &a) == 0 && buf_append_slice(&f->sent, buf_slice(&r->body)) == 0)
        o = origin_open(&v->env, v->dial, (struct downstream){&downstream_ops, f}, &a, &h, r->url,
                        id, "", NULL, NULL);
    http_head_free(&h);
    if (o == NULL) {
        fetch_free(f);
        return NULL;
    }
    f->body = buf_slice(&f->sent);
    f->upstream = origin_upstream(o);
    if (f->body.n == 0)
        f->upstream.ops->end(f->upstream.self);
    else
        downstream_wanted(f);
    return f;
}

void fetch_cancel(void *fetch)
{
    struct fetch *f = fetch;
    f->upstream.ops->cancel(f->upstream.self, "cancelled");
    fetch_free(f);
}

/* ---- the means ---- */

int fetch_means_init(struct fetch_means *v, struct event_base *base, const char *word, bool wipe)
{
    v->word = word;
    v->dial = dial_client_new(base, 30);
    int r = origin_env_init(&v->env, base, &v->limits, 4, 30);
    v->env.wipe = wipe;
    return v->dial ? r : -1;
}

int fetch_means_roots(struct fetch_means *v, int roots_fd, struct slice limits, struct err *err)
{
    if (limits.n != sizeof v->limits) {
        close(roots_fd);
        return err_set(err, ERR_PARSE, "limits of another size");
    }
    memcpy(&v->limits, limits.p, limits.n);
    return origin_env_trust(&v->env, roots_fd, err);
}

void fetch_means_done(struct fetch_means *v)
{
    dial_client_free(v->dial);
    origin_env_done(&v->env);
}
