/* Takes sessions from OpenSSL's callback, keeps the newest of a key, and offers it to the next
 * connection of the same key. A resumed session keeps the time of the handshake that verified. */
#include "tls_sessions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

enum { SESSION_SECONDS = 3600 };

struct kept {
    char *key;
    SSL_SESSION *session;
    time_t since; /* monotonic: when the handshake that made it ended */
    TAILQ_ENTRY(kept) link;
};

struct tls_sessions {
    size_t max, n;
    unsigned refs; /* the owner's and the connections' */
    bool closed;
    unsigned drops; /* connections begun before the last drop give nothing any more */
    TAILQ_HEAD(kept_list, kept) list; /* newest first */
};

/* Belongs to one SSL. */
struct begun {
    struct tls_sessions *sessions;
    unsigned drops;
    char key[];
};

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void unref(struct tls_sessions *t)
{
    if (--t->refs == 0)
        free(t);
}

static void on_ssl_free(void *parent UNUSED, void *ptr, CRYPTO_EX_DATA *ad UNUSED, int idx UNUSED,
                        long argl UNUSED, void *argp UNUSED)
{
    struct begun *b = ptr;
    if (b == NULL)
        return;
    unref(b->sessions);
    free(b);
}

static int slot(void)
{
    static int index = -1;
    if (index < 0)
        index = SSL_get_ex_new_index(0, NULL, NULL, NULL, on_ssl_free);
    return index;
}

struct tls_sessions *tls_sessions_new(size_t max)
{
    struct tls_sessions *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->max = max;
    t->refs = 1;
    TAILQ_INIT(&t->list);
    return t;
}

static void forget(struct tls_sessions *t, struct kept *k)
{
    TAILQ_REMOVE(&t->list, k, link);
    t->n--;
    SSL_SESSION_free(k->session);
    free(k->key);
    free(k);
}

void tls_sessions_drop(struct tls_sessions *t, const char *prefix)
{
    struct kept *k, *next;
    size_t n = strlen(prefix);
    t->drops++;
    for (k = TAILQ_FIRST(&t->list); k; k = next) {
        next = TAILQ_NEXT(k, link);
        if (strncmp(k->key, prefix, n) == 0)
            forget(t, k);
    }
}

void tls_sessions_free(struct tls_sessions *t)
{
    if (t == NULL)
        return;
    t->closed = true;
    tls_sessions_drop(t, "");
    unref(t);
}

static struct kept *find(const struct tls_sessions *t, const char *key)
{
    struct kept *k;
    TAILQ_FOREACH(k, &t->list, link)
    if (strcmp(k->key, key) == 0)
        return k;
    return NULL;
}

/* The newest of a key is the one. Returns 1: the session is ours now. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct begun *b = SSL_get_ex_data(ssl, slot());
    struct tls_sessions *t = b ? b->sessions : NULL;
    if (t == NULL || t->closed || b->drops != t->drops || !SSL_SESSION_is_resumable(session))
        return 0;
    struct kept *k = find(t, b->key);
    time_t since = k && SSL_session_reused(ssl) ? k->since : now();
    if (k)
        forget(t, k);
    k = calloc(1, sizeof *k);
    if (k == NULL || (k->key = strdup(b->key)) == NULL) {
        free(k);
        return 0;
    }
    k->session = session;
    k->since = since;
    TAILQ_INSERT_HEAD(&t->list, k, link);
    if (++t->n > t->max)
        forget(t, TAILQ_LAST(&t->list, kept_list));
    return 1;
}

void tls_sessions_setup(SSL_CTX *ctx)
{
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
}

int tls_sessions_begin(struct tls_sessions *t, const char *key, SSL *ssl)
{
    size_t n = strlen(key) + 1;
    struct begun *b = calloc(1, sizeof *b + n);
    if (b == NULL)
        return -1;
    b->sessions = t;
    b->drops = t->drops;
    memcpy(b->key, key, n);
    if (!SSL_set_ex_data(ssl, slot(), b)) {
        free(b);
        return -1;
    }
    t->refs++;
    struct kept *k = find(t, key);
    if (k == NULL)
        return 0;
    if (now() - k->since >= SESSION_SECONDS || !SSL_SESSION_is_resumable(k->session))
        forget(t, k);
    else if (!SSL_set_session(ssl, k->session))
        return -1;
    return 0;
}

bool tls_sessions_owner(const SSL *ssl, struct slice *ret)
{
    const struct begun *b = ssl ? SSL_get_ex_data(ssl, slot()) : NULL;
    if (b == NULL)
        return false;
    *ret = (struct slice){b->key, strcspn(b->key, "|")};
    return true;
}

size_t tls_sessions_count(const struct tls_sessions *t)
{
    return t->n;
}
