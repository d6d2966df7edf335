/* Caches leaves and asks the signer for those that are missing. One in the last tenth of its life
 * is still served while a new one is minted. */
#include "mint_client.h"

#include "authority.h"
#include "ipc.h"
#include "leaf_reader.h"
#include "meter.h"
#include "mint_policy.h"
#include "peer.h"
#include "public_half.h"
#include "wire.h"

#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

enum {
    BUCKETS = 256,
    ASKED_MAX = 1024,   /* hosts being minted at once */
    WAIT_SECONDS = 2,   /* for a channel to a signer */
    ANSWER_SECONDS = 5, /* for the signer's answer */
    LEAF_DER_MAX = 16 * 1024,
    RETIRE_SECONDS = 60, /* a leaf with less life left is not served */
};

/* FRESH: served. AGING: less than a tenth of its life left; served while a new one is minted.
 * ENDING: not served any more, or not yet: the clock was put back. */
enum age { AGE_FRESH, AGE_AGING, AGE_ENDING };

struct cached {
    char host[HOST_TEXT_MAX];
    X509 *cert, *issuer;
    time_t begins_at, aging_at, ending_at;
    LIST_ENTRY(cached) bucket;
    TAILQ_ENTRY(cached) used; /* most recently used first */
};

enum asked_state { ASKED_QUEUED, ASKED_SENT };

/* One host on its way. */
struct asked {
    struct mint_client *client;
    char host[HOST_TEXT_MAX];
    uint32_t req;
    uint64_t since; /* us, monotonic */
    enum asked_state state;
    struct event *timeout;
    TAILQ_HEAD(, mint_wait) waits; /* may be empty: a re-mint ahead of need, or all cancelled */
    TAILQ_ENTRY(asked) link;
};

struct mint_wait {
    mint_fn fn;
    void *arg;
    struct asked *asked; /* NULL: refused, the answer comes from `soon` */
    struct mint_client *client;
    struct event *soon;
    struct err err;
    TAILQ_ENTRY(mint_wait) link;
};

struct mint_client {
    struct ipc *parent; /* told of a channel that ended; NULL: nobody is */
    struct event_base *base;
    struct ipc *signer; /* NULL while there is none */
    uint32_t number;    /* of that channel */
    EVP_PKEY *key;
    struct leaf_reader *reader;
    unsigned char *spki;
    size_t spki_len;
    unsigned mints, tokens; /* tokens left in this second */
    time_t second;
    unsigned cache, n_cached, n_asked;
    uint32_t next_req;
    X509 *issuer; /* the last one seen: every leaf shares it */
    unsigned char *issuer_der;
    size_t issuer_len;
    LIST_HEAD(, cached) buckets[BUCKETS];
    TAILQ_HEAD(used_list, cached) used;
    TAILQ_HEAD(, asked) asked;
    TAILQ_HEAD(, mint_wait) refused;
};

static void asked_send(struct asked *a);

/* ---- cache ---- */

static unsigned bucket_of(const char *host)
{
    uint32_t h = 2166136261u;
    for (; *host; host++)
        h = (h ^ (unsigned char)*host) * 16777619u;
    return h % BUCKETS;
}

static struct cached *cache_find(struct mint_client *c, const char *host)
{
    struct cached *e;
    LIST_FOREACH(e, &c->buckets[bucket_of(host)], bucket)
    if (strcmp(e->host, host) == 0)
        return e;
    return NULL;
}

static void cache_drop(struct mint_client *c, struct cached *e)
{
    LIST_REMOVE(e, bucket);
    TAILQ_REMOVE(&c->used, e, used);
    c->n_cached--;
    X509_free(e->cert);
    X509_free(e->issuer);
    free(e);
}

static enum age cache_age(const struct cached *e)
{
    time_t now = time(NULL);
    if (now < e->begins_at || now >= e->ending_at)
        return AGE_ENDING;
    return now >= e->aging_at ? AGE_AGING : AGE_FRESH;
}

/* Seconds between two times of a certificate (NULL: now); 0 when they cannot be read. */
static time_t span(const ASN1_TIME *from, const ASN1_TIME *to)
{
    int days = 0, seconds = 0;
    if (ASN1_TIME_diff(&days, &seconds, from, to) != 1)
        return 0;
    return (time_t)days * 86400 + seconds;
}

static void set_life(struct cached *e, time_t now)
{
    const ASN1_TIME *from = X509_get0_notBefore(e->cert), *to = X509_get0_notAfter(e->cert);
    time_t end = now + span(NULL, to);
    e->begins_at = end - span(from, to);
    e->aging_at = end - span(from, to) / 10;
    e->ending_at = end - RETIRE_SECONDS;
}

/* Takes cert over. */
static struct cached *cache_put(struct mint_client *c, const char *host, X509 *cert)
{
    struct cached *e = cache_find(c, host);
    if (e)
        cache_drop(c, e);
    e = calloc(1, sizeof *e);
    if (e == NULL) {
        X509_free(cert);
        return NULL;
    }
    memcpy(e->host, host, strlen(host) + 1);
    e->cert = cert;
    e->issuer = c->issuer;
    X509_up_ref(e->issuer);
    set_life(e, time(NULL));
    LIST_INSERT_HEAD(&c->buckets[bucket_of(host)], e, bucket);
    TAILQ_INSERT_HEAD(&c->used, e, used);
    c->n_cached++;
    while (c->n_cached > c->cache && TAILQ_LAST(&c->used, used_list) != e)
        cache_drop(c, TAILQ_LAST(&c->used, used_list));
    return e;
}

/* ---- requests ---- */

static void wait_free(struct mint_wait *w)
{
    if (w->asked)
        TAILQ_REMOVE(&w->asked->waits, w, link);
    else
        TAILQ_REMOVE(&w->client->refused, w, link);
    if (w->soon)
        event_free(w->soon);
    free(w);
}

static void asked_free(struct asked *a)
{
    struct mint_wait *w;
    while ((w = TAILQ_FIRST(&a->waits)) != NULL)
        wait_free(w);
    TAILQ_REMOVE(&a->client->asked, a, link);
    a->client->n_asked--;
    if (a->timeout)
        event_free(a->timeout);
    free(a);
}

/* The one end of a request: everyone who waits learns, then it is gone. A callback may cancel other
 * waits or ask again, so the request leaves the list of those that can be joined first. */
static void asked_end(struct asked *a, const struct leaf *leaf, const struct err *err)
{
    a->host[0] = 0;
    struct mint_wait *w;
    while ((w = TAILQ_FIRST(&a->waits)) != NULL) {
        mint_fn fn = w->fn;
        void *arg = w->arg;
        wait_free(w);
        fn(arg, leaf, err);
    }
    asked_free(a);
}

static void asked_fail(struct asked *a, enum err_code code, const char *why)
{
    struct err err = {0};
    err_set(&err, code, "%s", why);
    asked_end(a, NULL, &err);
}

static void on_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct asked *a = arg;
    asked_fail(a, ERR_UNREADY,
               a->state == ASKED_QUEUED ? "there is no signer" : "the signer did not answer");
}

static void asked_state(struct asked *a, enum asked_state to)
{
    struct timeval tv = {to == ASKED_SENT ? ANSWER_SECONDS : WAIT_SECONDS, 0};
    a->state = to;
    event_add(a->timeout, &tv);
}

static void asked_send(struct asked *a)
{
    struct mint_client *c = a->client;
    struct msg m;
    a->req = ++c->next_req;
    msg_init(&m, W_MINT);
    msg_put_u32(&m, a->req);
    msg_put_str(&m, a->host);
    msg_put_bytes(&m, c->spki, c->spki_len);
    ipc_send(c->signer, &m); /* a dead channel says so by its closed callback */
    asked_state(a, ASKED_SENT);
}

static bool take_token(struct mint_client *c)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    if (ts.tv_sec != c->second) {
        c->second = ts.tv_sec;
        c->tokens = c->mints;
    }
    if (c->tokens == 0)
        return false;
    c->tokens--;
    return true;
}

static struct asked *asked_find(struct mint_client *c, const char *host)
{
    struct asked *a;
    TAILQ_FOREACH(a, &c->asked, link)
    if (strcmp(a->host, host) == 0)
        return a;
    return NULL;
}

/* The request for this host, joined or begun; NULL with err. */
static struct asked *ask(struct mint_client *c, const char *host, struct err *err)
{
    struct asked *a = asked_find(c, host);
    if (a)
        return a;
    size_t n = strlen(host);
    if (n == 0 || n > HOST_MAX) {
        err_set(err, ERR_PARSE, "no host of %zu bytes can be certified", n);
        return NULL;
    }
    if (c->n_asked >= ASKED_MAX || !take_token(c)) {
        err_set(err, ERR_LIMIT, "too many new host names a second (limits.mints is %u)", c->mints);
        return NULL;
    }
    a = calloc(1, sizeof *a);
    if (a == NULL || (a->timeout = event_new(c->base, -1, 0, on_timeout, a)) == NULL) {
        free(a);
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    a->client = c;
    a->since = meter_now();
    memcpy(a->host, host, n + 1);
    TAILQ_INIT(&a->waits);
    TAILQ_INSERT_TAIL(&c->asked, a, link);
    c->n_asked++;
    if (c->signer)
        asked_send(a);
    else
        asked_state(a, ASKED_QUEUED);
    return a;
}

/* ---- answers ---- */

static X509 *parse_cert(struct slice der)
{
    const unsigned char *at = (const unsigned char *)der.p;
    X509 *x = d2i_X509(NULL, &at, (long)der.n);
    if (x && at != (const unsigned char *)der.p + der.n) {
        X509_free(x);
        x = NULL;
    }
    if (x == NULL)
        ERR_clear_error();
    return x;
}

/* All leaves have one issuer, so its certificate is parsed once. */
static int set_issuer(struct mint_client *c, struct slice der)
{
    if (c->issuer && slice_eq(der, (struct slice){(char *)c->issuer_der, c->issuer_len}))
        return 0;
    X509 *x = parse_cert(der);
    unsigned char *copy = x ? malloc(der.n) : NULL;
    if (copy == NULL) {
        X509_free(x);
        return -1;
    }
    memcpy(copy, der.p, der.n);
    X509_free(c->issuer);
    free(c->issuer_der);
    c->issuer = x;
    c->issuer_der = copy;
    c->issuer_len = der.n;
    return 0;
}

static void asked_done(struct asked *a, X509 *cert)
{
    struct mint_client *c = a->client;
    meter_time(SPAN_MINT, meter_now() - a->since);
    struct cached *e = cache_put(c, a->host, cert);
    if (e == NULL) {
        asked_fail(a, ERR_INTERNAL, "out of memory");
        return;
    }
    /* a callback may make the cache drop this very entry */
    struct leaf leaf = {.cert = e->cert, .issuer = e->issuer, .key = c->key};
    X509_up_ref(leaf.cert);
    X509_up_ref(leaf.issuer);
    asked_end(a, &leaf, NULL);
    X509_free(leaf.cert);
    X509_free(leaf.issuer);
}

static struct asked *asked_by_req(struct mint_client *c, uint32_t req)
{
    struct asked *a;
    TAILQ_FOREACH(a, &c->asked, link)
    if (a->state == ASKED_SENT && a->req == req)
        return a;
    return NULL;
}

static int on_minted(struct mint_client *c, struct msg *m)
{
    uint32_t req;
    struct slice leaf, issuer;
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, LEAF_DER_MAX, &leaf) < 0 ||
        msg_get_slice(m, LEAF_DER_MAX, &issuer) < 0 || msg_end(m) < 0)
        return -1;
    struct asked *a = asked_by_req(c, req);
    if (a == NULL) /* it timed out meanwhile */
        return 0;
    X509 *cert = leaf_reader_read(c->reader, leaf);
    if (cert == NULL || set_issuer(c, issuer) < 0) { /* not an answer to what was asked */
        X509_free(cert);
        return -1;
    }
    asked_done(a, cert);
    return 0;
}

static int on_mint_fail(struct mint_client *c, struct msg *m)
{
    uint32_t req;
    char text[1024];
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    struct asked *a = asked_by_req(c, req);
    if (a)
        asked_fail(a, ERR_DENIED, text);
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_MINTED:
        return on_minted(arg, m);
    case W_MINT_FAIL:
        return on_mint_fail(arg, m);
    default:
        return -1;
    }
}

/* What was under way waits for the next signer, for as long as WAIT_SECONDS. */
static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct mint_client *c = arg;
    struct asked *a;
    if (c->signer != ch)
        return;
    ipc_free(ch);
    c->signer = NULL;
    TAILQ_FOREACH(a, &c->asked, link)
    asked_state(a, ASKED_QUEUED);
    peer_lost(c->parent, c->number);
}

/* ---- interface ---- */

struct mint_client *mint_client_new(struct event_base *base, unsigned mints, unsigned cache,
                                    struct err *err)
{
    struct mint_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        goto fail;
    c->base = base;
    c->mints = mints;
    c->cache = cache ? cache : 1;
    for (size_t i = 0; i < BUCKETS; i++)
        LIST_INIT(&c->buckets[i]);
    TAILQ_INIT(&c->used);
    TAILQ_INIT(&c->asked);
    TAILQ_INIT(&c->refused);
    c->key = EVP_EC_gen("P-256");
    EVP_PKEY *public = c->key ? public_half(c->key) : NULL;
    int n = public ? i2d_PUBKEY(public, &c->spki) : -1;
    EVP_PKEY_free(public);
    if (n != MINT_SPKI_LEN)
        goto fail;
    c->spki_len = (size_t)n;
    c->reader = leaf_reader_new(c->key);
    if (c->reader)
        return c;
fail:
    ERR_clear_error();
    if (c) {
        EVP_PKEY_free(c->key);
        OPENSSL_free(c->spki);
        free(c);
    }
    err_set(err, ERR_INTERNAL, "no leaf key can be made");
    return NULL;
}

void mint_client_free(struct mint_client *c)
{
    if (c == NULL)
        return;
    struct asked *a;
    struct mint_wait *w;
    while ((a = TAILQ_FIRST(&c->asked)) != NULL)
        asked_free(a);
    while ((w = TAILQ_FIRST(&c->refused)) != NULL)
        wait_free(w);
    while (!TAILQ_EMPTY(&c->used))
        cache_drop(c, TAILQ_FIRST(&c->used));
    ipc_free(c->signer);
    X509_free(c->issuer);
    free(c->issuer_der);
    leaf_reader_free(c->reader);
    EVP_PKEY_free(c->key);
    OPENSSL_free(c->spki);
    free(c);
}

void mint_client_lost_to(struct mint_client *c, struct ipc *parent)
{
    c->parent = parent;
}

void mint_client_attach(struct mint_client *c, int signer_fd, uint32_t number)
{
    struct asked *a;
    c->number = number;
    /* it may sign with another CA's key, and for one whose time is over clients have no trust */
    while (!TAILQ_EMPTY(&c->used))
        cache_drop(c, TAILQ_FIRST(&c->used));
    ipc_free(c->signer);
    c->signer = ipc_new(c->base, signer_fd, on_message, on_closed, c);
    TAILQ_FOREACH(a, &c->asked, link)
    {
        if (c->signer)
            asked_send(a);
        else
            asked_state(a, ASKED_QUEUED);
    }
}

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct mint_wait *w = arg;
    mint_fn fn = w->fn;
    void *fn_arg = w->arg;
    struct err err = w->err;
    wait_free(w);
    fn(fn_arg, NULL, &err);
}

/* Answers come from the loop, refusals too: only a hit may call back at once. */
static struct mint_wait *refuse(struct mint_client *c, struct mint_wait *w)
{
    w->asked = NULL;
    TAILQ_INSERT_TAIL(&c->refused, w, link);
    w->soon = event_new(c->base, -1, 0, on_soon, w);
    if (w->soon == NULL) {
        on_soon(-1, 0, w);
        return NULL;
    }
    event_active(w->soon, EV_TIMEOUT, 0);
    return w;
}

struct mint_wait *mint_client_get(struct mint_client *c, const char *host, mint_fn fn, void *arg)
{
    struct cached *e = cache_find(c, host);
    enum age age = e ? cache_age(e) : AGE_ENDING;
    if (age != AGE_ENDING) {
        if (age == AGE_AGING)
            ask(c, host, NULL); /* ahead of need; should it fail, the next call tries again */
        meter_add(METER_LEAVES_CACHED, 1);
        TAILQ_REMOVE(&c->used, e, used);
        TAILQ_INSERT_HEAD(&c->used, e, used);
        struct leaf leaf = {.cert = e->cert, .issuer = e->issuer, .key = c->key};
        fn(arg, &leaf, NULL);
        return NULL;
    }
    struct mint_wait *w = calloc(1, sizeof *w);
    if (w == NULL) {
        struct err err = {0};
        err_set(&err, ERR_INTERNAL, "out of memory");
        fn(arg, NULL, &err);
        return NULL;
    }
    w->fn = fn;
    w->arg = arg;
    w->client = c;
    w->asked = ask(c, host, &w->err);
    if (w->asked == NULL)
        return refuse(c, w);
    TAILQ_INSERT_TAIL(&w->asked->waits, w, link);
    return w;
}

void mint_client_cancel(struct mint_wait *w)
{
    if (w)
        wait_free(w);
}

size_t mint_client_cached(const struct mint_client *c)
{
    return c->n_cached;
}

int leaf_use(const struct leaf *leaf, SSL *ssl)
{
    STACK_OF(X509) *chain = sk_X509_new_null();
    bool ok = chain && sk_X509_push(chain, leaf->issuer) &&
              SSL_use_cert_and_key(ssl, leaf->cert, leaf->key, chain, 1) == 1;
    sk_X509_free(chain);
    return ok ? 0 : -1;
}
