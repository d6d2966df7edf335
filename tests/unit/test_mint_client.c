/* The gate's side of minting against a real signer, and against one that misbehaves. */
#include "ca_files.h"
#include "ca_key.h"
#include "ipc.h"
#include "mint.h"
#include "mint_client.h"
#include "mint_policy.h"
#include "proc.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void suite_mint_client(void);

static struct event_base *base;
static struct mint_issuer issuer;

static int setup(void)
{
    base = event_base_new();
    return base && mint_issuer_make(&issuer, time(NULL), NULL) == 0 ? 0 : -1;
}

static int teardown(void)
{
    event_base_free(base);
    mint_issuer_clear(&issuer);
    return 0;
}

/* A signer played by this test: it answers when told to. */
struct fake {
    int fd, far;
};

static struct fake fake_new(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    return (struct fake){.fd = fds[0], .far = fds[1]};
}

/* The next request, or false when none came. */
static bool fake_take(struct fake *f, uint32_t *req, char host[256], unsigned char spki[128],
                      size_t *spki_len)
{
    struct msg m;
    struct slice key;
    event_base_loop(base, EVLOOP_NONBLOCK);
    if (msg_recv(f->fd, &m) != 1)
        return false;
    CU_ASSERT_EQUAL(m.type, W_MINT);
    CU_ASSERT_EQUAL(msg_get_u32(&m, req) | msg_get_str(&m, host, 256) |
                        msg_get_slice(&m, 128, &key) | msg_end(&m),
                    0);
    memcpy(spki, key.p, key.n);
    *spki_len = key.n;
    msg_done(&m);
    return true;
}

static void put_der(struct msg *m, X509 *x)
{
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);
    msg_put_bytes(m, der, (size_t)n);
    OPENSSL_free(der);
}

/* Answer one request with a leaf minted `ago` seconds in the past. */
static bool fake_answer(struct fake *f, time_t ago)
{
    uint32_t req;
    char host[256];
    unsigned char spki[128];
    size_t n;
    struct authority a;
    EVP_PKEY *key = NULL;
    struct msg m;
    if (!fake_take(f, &req, host, spki, &n))
        return false;
    CU_ASSERT_EQUAL_FATAL(
        mint_policy_check(slice_str(host), (struct slice){(char *)spki, n}, &a, &key, NULL), 0);
    X509 *leaf = mint_leaf(&issuer, &a, key, MINT_HOURS_MAX, time(NULL) - ago, NULL);
    EVP_PKEY_free(key);
    msg_init(&m, W_MINTED);
    msg_put_u32(&m, req);
    put_der(&m, leaf);
    put_der(&m, issuer.cert);
    CU_ASSERT_EQUAL(msg_send(f->fd, &m), 0);
    msg_done(&m);
    X509_free(leaf);
    event_base_loop(base, EVLOOP_NONBLOCK);
    return true;
}

struct seen {
    unsigned good, bad;
    enum err_code code;
    char text[768];
};

static void on_leaf(void *arg, const struct leaf *leaf, const struct err *err)
{
    struct seen *s = arg;
    if (leaf) {
        s->good++;
        CU_ASSERT_EQUAL(X509_check_private_key(leaf->cert, leaf->key), 1);
        CU_ASSERT_EQUAL(X509_cmp(leaf->issuer, issuer.cert), 0);
    } else {
        s->bad++;
        s->code = err->code;
        snprintf(s->text, sizeof s->text, "%s", err->text);
    }
}

static struct mint_client *client(unsigned mints, unsigned cache, struct fake *f)
{
    struct mint_client *c = mint_client_new(base, mints, cache, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    if (f) {
        *f = fake_new();
        mint_client_attach(c, f->far, 1);
    }
    return c;
}

static void test_shared(void)
{
    struct fake f;
    struct mint_client *c = client(100, 10, &f);
    struct seen a = {0}, b = {0}, gone = {0};
    CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, "a.example", on_leaf, &a));
    CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, "a.example", on_leaf, &b));
    mint_client_cancel(mint_client_get(c, "a.example", on_leaf, &gone));
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT(!fake_answer(&f, 0)); /* one request for all */
    CU_ASSERT(a.good == 1 && b.good == 1 && gone.good == 0 && gone.bad == 0);
    CU_ASSERT_EQUAL(mint_client_cached(c), 1);
    CU_ASSERT_PTR_NULL(mint_client_get(c, "a.example", on_leaf, &a)); /* from the cache, at once */
    CU_ASSERT_EQUAL(a.good, 2);
    CU_ASSERT(!fake_answer(&f, 0));
    /* all waiters left: the leaf is kept all the same */
    mint_client_cancel(mint_client_get(c, "b.example", on_leaf, &gone));
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT_PTR_NULL(mint_client_get(c, "b.example", on_leaf, &b));
    CU_ASSERT_EQUAL(gone.good + gone.bad, 0);
    mint_client_free(c);
    close(f.fd);
}

static void test_least_recently_used(void)
{
    struct fake f;
    struct mint_client *c = client(100, 2, &f);
    struct seen s = {0};
    mint_client_get(c, "a.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, 0));
    mint_client_get(c, "b.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT_PTR_NULL(mint_client_get(c, "a.example", on_leaf, &s));
    mint_client_get(c, "c.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT_EQUAL(mint_client_cached(c), 2);
    CU_ASSERT_PTR_NULL(mint_client_get(c, "a.example", on_leaf, &s));
    CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, "b.example", on_leaf, &s)); /* it went */
    CU_ASSERT_EQUAL(s.good, 5);
    mint_client_free(c);
    close(f.fd);
}

static void test_rate(void)
{
    struct fake f;
    struct mint_client *c = client(3, 100, &f);
    struct seen s = {0};
    char host[32];
    for (int i = 0; i < 40; i++) { /* the second may turn once in between: 3 or 6 pass */
        snprintf(host, sizeof host, "h%d.example", i);
        CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, host, on_leaf, &s));
        CU_ASSERT_EQUAL(s.bad, 0); /* refusals come from the loop too */
    }
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT(s.bad == 37 || s.bad == 34);
    CU_ASSERT_EQUAL(s.code, ERR_LIMIT);
    mint_client_free(c);
    close(f.fd);
}

static void test_aging(void)
{
    struct fake f;
    struct mint_client *c = client(100, 10, &f);
    struct seen s = {0};
    mint_client_get(c, "old.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, 86400 - 30)); /* half a minute left: served once, never from cache */
    CU_ASSERT_EQUAL(s.good, 1);
    struct mint_wait *w = mint_client_get(c, "old.example", on_leaf, &s);
    CU_ASSERT_PTR_NOT_NULL(w);
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT_EQUAL(s.good, 2);
    CU_ASSERT_PTR_NULL(mint_client_get(c, "old.example", on_leaf, &s));
    CU_ASSERT(!fake_answer(&f, 0)); /* fresh: nothing is asked */
    /* a tenth of its life left: served at once, and minted again meanwhile */
    mint_client_get(c, "late.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, 86400 - 8000));
    CU_ASSERT_PTR_NULL(mint_client_get(c, "late.example", on_leaf, &s));
    CU_ASSERT_PTR_NULL(mint_client_get(c, "late.example", on_leaf, &s));
    CU_ASSERT_EQUAL(s.good, 6);
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT(!fake_answer(&f, 0));
    CU_ASSERT_PTR_NULL(mint_client_get(c, "late.example", on_leaf, &s));
    CU_ASSERT(!fake_answer(&f, 0));
    CU_ASSERT_EQUAL(mint_client_cached(c), 2);
    /* made before the clock was put back: not yet valid */
    mint_client_get(c, "early.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, -MINT_SKEW_SECONDS - 60));
    CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, "early.example", on_leaf, &s));
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT_PTR_NULL(mint_client_get(c, "early.example", on_leaf, &s));
    CU_ASSERT(!fake_answer(&f, 0));
    mint_client_free(c);
    close(f.fd);
}

static void run_for(int ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    event_base_loopexit(base, &tv);
    event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void test_no_signer(void)
{
    struct mint_client *c = client(100, 10, NULL);
    struct seen s = {0}, late = {0};
    CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, "a.example", on_leaf, &s));
    run_for(2300);
    CU_ASSERT_EQUAL(s.bad, 1);
    CU_ASSERT_EQUAL(s.code, ERR_UNREADY);
    /* one that comes in time is used */
    mint_client_get(c, "b.example", on_leaf, &late);
    struct fake f = fake_new();
    mint_client_attach(c, f.far, 1);
    CU_ASSERT(fake_answer(&f, 0));
    CU_ASSERT_EQUAL(late.good, 1);
    mint_client_free(c);
    close(f.fd);
}

static void test_signer_dies(void)
{
    struct fake f, next;
    struct mint_client *c = client(100, 10, &f);
    struct seen s = {0};
    uint32_t req;
    char host[256];
    unsigned char spki[128];
    size_t n;
    mint_client_get(c, "a.example", on_leaf, &s);
    CU_ASSERT(fake_take(&f, &req, host, spki, &n));
    close(f.fd);
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(s.good + s.bad, 0);
    next = fake_new();
    mint_client_attach(c, next.far, 1);
    CU_ASSERT(fake_answer(&next, 0)); /* asked again */
    CU_ASSERT_EQUAL(s.good, 1);
    mint_client_free(c);
    close(next.fd);
}

static int none(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return -1;
}

static void ended(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static void test_bad_answers(void)
{
    struct fake f;
    struct mint_client *c = client(100, 10, &f);
    struct seen s = {0};
    uint32_t req;
    char host[256];
    unsigned char spki[128];
    size_t n;
    struct msg m;
    mint_client_get(c, "no.example", on_leaf, &s);
    CU_ASSERT(fake_take(&f, &req, host, spki, &n));
    msg_init(&m, W_MINT_FAIL);
    msg_put_u32(&m, req);
    msg_put_str(&m, "because");
    CU_ASSERT_EQUAL(msg_send(f.fd, &m), 0);
    msg_done(&m);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(s.bad, 1);
    CU_ASSERT_STRING_EQUAL(s.text, "because");
    /* a certificate for another key is no answer: the channel ends, nobody is served */
    mint_client_get(c, "a.example", on_leaf, &s);
    CU_ASSERT(fake_take(&f, &req, host, spki, &n));
    msg_init(&m, W_MINTED);
    msg_put_u32(&m, req);
    put_der(&m, issuer.cert);
    put_der(&m, issuer.cert);
    CU_ASSERT_EQUAL(msg_send(f.fd, &m), 0);
    msg_done(&m);
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(msg_recv(f.fd, &m), 0);
    CU_ASSERT_EQUAL(s.good, 0);
    CU_ASSERT_EQUAL(mint_client_cached(c), 0);
    mint_client_free(c);
    close(f.fd);
}

/* What is no answer at all ends the channel; what was asked waits for the next signer. */
static void test_no_answers(void)
{
    static const char *const junk[] = {"", "0", "0\x82\x7f\xff", "not a certificate"};
    struct seen s = {0};
    for (size_t i = 0; i < ARRAY_LEN(junk) + 4; i++) {
        struct fake f, next;
        struct mint_client *c = client(100, 10, &f);
        uint32_t req;
        char host[256];
        unsigned char spki[128], *der = NULL;
        size_t n, k = i - ARRAY_LEN(junk);
        struct msg m;
        int len = i2d_X509(issuer.cert, &der);
        mint_client_get(c, "a.example", on_leaf, &s);
        CU_ASSERT(fake_take(&f, &req, host, spki, &n));
        msg_init(&m, i < ARRAY_LEN(junk) || k == 0 ? W_MINTED : k == 1 ? W_MINT_FAIL : W_PEER);
        if (k != 1)
            msg_put_u32(&m, req);
        if (i < ARRAY_LEN(junk)) {
            msg_put_bytes(&m, junk[i], strlen(junk[i]));
            put_der(&m, issuer.cert);
        } else if (k == 0) { /* a byte behind it */
            der = OPENSSL_realloc(der, (size_t)len + 1);
            der[len] = 0;
            msg_put_bytes(&m, der, (size_t)len + 1);
            put_der(&m, issuer.cert);
        } else if (k == 3) {
            m.type = W_MINTED; /* cut off */
        }
        CU_ASSERT_EQUAL(msg_send(f.fd, &m), 0);
        msg_done(&m);
        event_base_loop(base, EVLOOP_NONBLOCK);
        event_base_loop(base, EVLOOP_NONBLOCK);
        CU_ASSERT_EQUAL(msg_recv(f.fd, &m), 0);
        CU_ASSERT_EQUAL(s.good + s.bad, i);
        next = fake_new();
        mint_client_attach(c, next.far, 1);
        CU_ASSERT(fake_answer(&next, 0));
        CU_ASSERT_EQUAL(s.good, i + 1);
        mint_client_free(c);
        OPENSSL_free(der);
        close(f.fd);
        close(next.fd);
    }
}

/* Answers that nobody waits for are dropped, and another signer's leaves are not its own. */
static void test_late_answers(void)
{
    struct fake f, next;
    struct mint_client *c = client(100, 10, &f);
    struct seen s = {0};
    struct msg m;
    for (unsigned i = 0; i < 2; i++) {
        msg_init(&m, i ? W_MINT_FAIL : W_MINTED);
        msg_put_u32(&m, 99);
        if (i == 0)
            put_der(&m, issuer.cert);
        msg_put_str(&m, "late");
        CU_ASSERT_EQUAL(msg_send(f.fd, &m), 0);
        msg_done(&m);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    mint_client_get(c, "a.example", on_leaf, &s);
    CU_ASSERT(fake_answer(&f, 0)); /* the channel lives */
    CU_ASSERT(s.good == 1 && mint_client_cached(c) == 1);
    next = fake_new();
    mint_client_attach(c, next.far, 1); /* maybe of another CA */
    CU_ASSERT_EQUAL(mint_client_cached(c), 0);
    CU_ASSERT_PTR_NOT_NULL(mint_client_get(c, "a.example", on_leaf, &s));
    CU_ASSERT(fake_answer(&next, 0));
    CU_ASSERT_EQUAL(s.good, 2);
    mint_client_get(c, "", on_leaf, &s); /* refused, not told yet */
    mint_client_free(c);
    CU_ASSERT_EQUAL(s.bad, 0);
    mint_client_free(NULL);
    close(f.fd);
    close(next.fd);
}

/* The parent is told that the signer is gone, so that it makes another wire. */
static void test_lost(void)
{
    struct fake f, parent = fake_new();
    struct mint_client *c = client(100, 10, &f);
    struct ipc *up = ipc_new(base, parent.far, none, ended, NULL);
    struct msg m;
    uint32_t channel = 0;
    mint_client_lost_to(c, up);
    close(f.fd);
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL_FATAL(msg_recv(parent.fd, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_LOST);
    CU_ASSERT(msg_get_u32(&m, &channel) == 0 && channel == 1);
    msg_done(&m);
    mint_client_free(c);
    ipc_free(up);
    close(parent.fd);
}

static void test_bad_host(void)
{
    struct fake f;
    struct mint_client *c = client(100, 10, &f);
    struct seen s = {0};
    char host[HOST_TEXT_MAX + 10];
    memset(host, 'a', sizeof host);
    host[sizeof host - 1] = 0;
    mint_client_get(c, host, on_leaf, &s);
    mint_client_get(c, "", on_leaf, &s);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(s.bad, 2);
    CU_ASSERT_EQUAL(s.code, ERR_PARSE);
    mint_client_cancel(NULL);
    mint_client_free(c);
    close(f.fd);
}

void suite_mint_client(void)
{
    CU_pSuite s = CU_add_suite("mint_client", setup, teardown);
    CU_add_test(s, "waiters share a request, hits are at once", test_shared);
    CU_add_test(s, "least recently used leaf goes", test_least_recently_used);
    CU_add_test(s, "new names a second are capped", test_rate);
    CU_add_test(s, "a leaf near its end is minted again", test_aging);
    CU_add_test(s, "without a signer requests fail after 2 s", test_no_signer);
    CU_add_test(s, "a new signer is asked what the dead one was", test_signer_dies);
    CU_add_test(s, "refusals and wrong answers", test_bad_answers);
    CU_add_test(s, "what is no answer", test_no_answers);
    CU_add_test(s, "late answers, and another signer", test_late_answers);
    CU_add_test(s, "the parent hears that the signer is gone", test_lost);
    CU_add_test(s, "hosts beyond the bound", test_bad_host);
}

void tap_suites(void)
{
    suite_mint_client();
}
