/* A table of hashes, and the questions to the controller that are under way. */
#include "preview_sessions.h"

#include "gate.h"
#include "ipc.h"
#include "meter.h"
#include "wire.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define SECOND UINT64_C(1000000)

struct seen {
    char name[WIRE_SERVICE_MAX + 1];
    uint32_t port;
};

struct known {
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char service[WIRE_SERVICE_MAX + 1];
    bool cookie;
    unsigned port; /* of the service, then */
    uint64_t ends; /* us, monotonic; 0: free */
};

struct preview_ask {
    struct preview_sessions *all;
    uint32_t req;
    bool once;
    char service[WIRE_SERVICE_MAX + 1];
    char text[PREVIEW_TEXT_MAX];
    preview_ask_fn fn; /* NULL: nobody waits any more */
    void *arg;
    LIST_ENTRY(preview_ask) link;
};

struct preview_sessions {
    struct gate *gate;
    struct known known[PREVIEW_SESSIONS_MAX];
    bool on;
    uint32_t n_seen;
    struct seen seen[WIRE_SERVICES];
    uint32_t last;
    unsigned n_asks;
    uint64_t used; /* told last */
    LIST_HEAD(, preview_ask) asks;
};

struct preview_sessions *preview_sessions_new(struct gate *g)
{
    struct preview_sessions *s = calloc(1, sizeof *s);
    if (s)
        s->gate = g;
    return s;
}

static void ask_free(struct preview_ask *a)
{
    a->all->n_asks--;
    LIST_REMOVE(a, link);
    free(a);
}

void preview_sessions_free(struct preview_sessions *s)
{
    while (s && !LIST_EMPTY(&s->asks))
        ask_free(LIST_FIRST(&s->asks));
    free(s);
}

/* ---- what may be seen ---- */

unsigned preview_sessions_port(const struct preview_sessions *s, const char *service)
{
    uint64_t port;
    if (!s->on)
        return 0;
    for (size_t i = 0; i < s->n_seen; i++)
        if (strcmp(s->seen[i].name, service) == 0)
            return s->seen[i].port;
    bool plain = service[0] != '0' && slice_u64(slice_str(service), 65535, &port) == 0;
    return plain ? (unsigned)port : 0;
}

int preview_sessions_may(struct preview_sessions *s, struct msg *m)
{
    uint8_t on;
    uint32_t n;
    struct seen seen[WIRE_SERVICES];
    if (msg_get_u8(m, &on) < 0 || on > 1 || msg_get_u32(m, &n) < 0 || n > WIRE_SERVICES)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (msg_get_str(m, seen[i].name, sizeof seen[i].name) < 0 ||
            msg_get_u32(m, &seen[i].port) < 0 || seen[i].port == 0 || seen[i].port > 65535)
            return -1;
    if (msg_end(m) < 0)
        return -1;
    s->on = on != 0;
    s->n_seen = n;
    memcpy(s->seen, seen, n * sizeof *seen);
    for (size_t i = 0; i < PREVIEW_SESSIONS_MAX; i++) {
        struct known *k = &s->known[i];
        if (k->ends && preview_sessions_port(s, k->service) != k->port)
            k->ends = 0;
    }
    return 0;
}

/* ---- who may ---- */

void preview_sessions_forget(struct preview_sessions *s, const char *service)
{
    unsigned port = preview_sessions_port(s, service);
    for (size_t i = 0; i < PREVIEW_SESSIONS_MAX; i++)
        if (service[0] == 0 || strcmp(s->known[i].service, service) == 0 ||
            s->known[i].port == port)
            s->known[i].ends = 0;
}

bool preview_sessions_know(const struct preview_sessions *s, const char *service, bool cookie,
                           struct slice text)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    uint64_t now = meter_now();
    bool found = false;
    SHA256((const unsigned char *)text.p, text.n, hash);
    for (size_t i = 0; i < PREVIEW_SESSIONS_MAX; i++) {
        const struct known *k = &s->known[i];
        if (k->ends > now && k->cookie == cookie && strcmp(k->service, service) == 0)
            found |= CRYPTO_memcmp(k->hash, hash, sizeof hash) == 0;
    }
    return found;
}

static void remember(struct preview_sessions *s, const char *service, bool cookie, const char *text,
                     unsigned seconds)
{
    struct known *k = &s->known[0];
    for (size_t i = 1; i < PREVIEW_SESSIONS_MAX; i++)
        if (s->known[i].ends < k->ends)
            k = &s->known[i];
    SHA256((const unsigned char *)text, strlen(text), k->hash);
    snprintf(k->service, sizeof k->service, "%s", service);
    k->cookie = cookie;
    k->port = preview_sessions_port(s, service);
    k->ends = meter_now() + seconds * SECOND;
}

int preview_sessions_begin(struct preview_sessions *s, const char *service, unsigned seconds,
                           char cookie[PREVIEW_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[24];
    size_t n = 0;
    if (RAND_bytes(random, sizeof random) != 1)
        return -1;
    for (size_t i = 0; i < sizeof random; i++) {
        cookie[n++] = digits[random[i] >> 4];
        cookie[n++] = digits[random[i] & 15];
    }
    cookie[n] = 0;
    remember(s, service, true, cookie, seconds);
    return 0;
}

/* ---- asking ---- */

struct preview_ask *preview_ask_new(struct preview_sessions *s, const char *service, bool once,
                                    struct slice text, preview_ask_fn fn, void *arg)
{
    struct msg m;
    bool fits = text.n > 0 && text.n < PREVIEW_TEXT_MAX && memchr(text.p, 0, text.n) == NULL;
    if (s->n_asks >= PREVIEW_ASKS_MAX || s->gate->controller == NULL || !fits)
        return NULL;
    struct preview_ask *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    *a = (struct preview_ask){.all = s, .req = ++s->last, .once = once, .fn = fn, .arg = arg};
    snprintf(a->service, sizeof a->service, "%s", service);
    snprintf(a->text, sizeof a->text, "%.*s", SL(text));
    LIST_INSERT_HEAD(&s->asks, a, link);
    s->n_asks++;
    msg_init(&m, W_PREVIEW);
    msg_put_u32(&m, a->req);
    msg_put_str(&m, a->service);
    msg_put_u8(&m, once);
    msg_put_str(&m, a->text);
    ipc_send(s->gate->controller, &m); /* its end answers them all */
    return a;
}

/* It counts until it is answered. */
void preview_ask_cancel(struct preview_ask *a)
{
    if (a)
        a->fn = NULL;
}

static void answered(struct preview_ask *a, unsigned seconds)
{
    preview_ask_fn fn = a->fn;
    void *arg = a->arg;
    if (seconds && !a->once)
        remember(a->all, a->service, false, a->text, seconds);
    ask_free(a);
    if (fn)
        fn(arg, seconds);
}

int preview_sessions_message(struct preview_sessions *s, struct msg *m)
{
    uint32_t req, seconds;
    struct preview_ask *a;
    if (msg_get_u32(m, &req) < 0 || msg_get_u32(m, &seconds) < 0 || msg_end(m) < 0 ||
        seconds > WIRE_PREVIEW_SECONDS)
        return -1;
    LIST_FOREACH(a, &s->asks, link)
    if (a->req == req) {
        answered(a, seconds);
        return 0;
    }
    return 0;
}

void preview_sessions_controller_gone(struct preview_sessions *s)
{
    while (s && !LIST_EMPTY(&s->asks))
        answered(LIST_FIRST(&s->asks), 0);
}

void preview_sessions_used(struct preview_sessions *s)
{
    struct msg m;
    uint64_t now = meter_now();
    if (s->gate->controller == NULL || now - s->used < SECOND)
        return;
    s->used = now;
    msg_init(&m, W_PREVIEW_USED);
    ipc_send(s->gate->controller, &m);
}
