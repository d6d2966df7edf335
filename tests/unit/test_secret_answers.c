/* What an injector takes from the vault, which this test is: answers that fit what was asked, late
 * ones, ones of another kind, nonsense, and a channel that ends. */
#include "aws_sign.h"
#include "captured.h"
#include "ipc.h"
#include "loop_bed.h"
#include "secret_client.h"
#include "tap_main.h"
#include "wire.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void suite_secret_answers(void);

struct world {
    struct secret_client *client;
    int vault;
};

struct seen {
    unsigned good, bad;
    char text[200];
    size_t values;
};

static void keep(struct seen *s, struct slice body, const struct err *err)
{
    if (body.n)
        s->good++;
    else
        s->bad++;
    if (body.n)
        snprintf(s->text, sizeof s->text, "%.*s", SL(body));
    else
        snprintf(s->text, sizeof s->text, "%.199s", err->text);
}

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    keep(arg, value ? secret_slice(value) : SLICE(""), err);
}

static void on_signature(void *arg, struct slice signature, const struct err *err)
{
    keep(arg, signature, err);
}

static void on_renewed(void *arg, bool ok)
{
    struct seen *s = arg;
    s->good += ok;
    s->bad += !ok;
}

static void on_captured(void *arg, struct slice body, const struct slice *values, size_t n,
                        const struct err *err)
{
    struct seen *s = arg;
    s->values = n;
    for (size_t i = 0; i < n; i++)
        CU_ASSERT(values[i].n > 0);
    keep(s, body, err);
}

static void on_stale(void *arg, struct slice name)
{
    snprintf(arg, 32, "%.*s", SL(name));
}

static struct world start(void)
{
    int fds[2];
    struct world w = {secret_client_new(base), -1};
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.client);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    secret_client_attach(w.client, fds[0], 1);
    w.vault = fds[1];
    return w;
}

static void stop(struct world w)
{
    secret_client_free(w.client);
    close(w.vault);
}

static void turn(int ms)
{
    for (int i = 0; i <= ms; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        if (i < ms)
            poll(NULL, 0, 1);
    }
}

/* What came to the vault: its number; 0 when nothing of that type did. */
static uint32_t asked(struct world w, uint16_t type)
{
    struct pollfd p = {.fd = w.vault, .events = POLLIN};
    struct msg m;
    uint32_t req = 0;
    turn(0);
    if (poll(&p, 1, 20) <= 0 || msg_recv(w.vault, &m) != 1)
        return 0;
    CU_ASSERT_EQUAL(m.type, type);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    msg_done(&m);
    return req;
}

static bool closed(struct world w)
{
    struct msg m;
    turn(1);
    return msg_recv(w.vault, &m) == 0;
}

static void reply(struct world w, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(w.vault, m), 0);
    msg_done(m);
    turn(1);
}

/* extra: bytes after it. */
static void secret(struct world w, uint32_t req, uint8_t ok, uint32_t ttl, const char *text,
                   size_t extra)
{
    struct msg m;
    msg_init(&m, W_SECRET);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    msg_put_u32(&m, ttl);
    msg_put_slice(&m, slice_str(text));
    for (size_t i = 0; i < extra; i++)
        msg_put_u8(&m, 0);
    reply(w, &m);
}

static void signature(struct world w, uint32_t req, uint8_t ok, const char *text, size_t extra)
{
    struct msg m;
    msg_init(&m, W_SIGNED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    msg_put_slice(&m, slice_str(text));
    for (size_t i = 0; i < extra; i++)
        msg_put_u8(&m, 0);
    reply(w, &m);
}

static void captured(struct world w, uint32_t req, uint8_t ok, const char *body, uint32_t n,
                     const char *value, size_t extra)
{
    struct msg m;
    msg_init(&m, W_CAPTURED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    msg_put_slice(&m, slice_str(body));
    msg_put_u32(&m, n);
    for (uint32_t i = 0; i < n; i++)
        msg_put_slice(&m, slice_str(value));
    for (size_t i = 0; i < extra; i++)
        msg_put_u8(&m, 0);
    reply(w, &m);
}

static void test_secrets(void)
{
    struct world w = start();
    struct seen s = {0}, other = {0};
    char stale[32] = "";
    secret_client_on_stale(w.client, on_stale, stale);
    secret_client_get(w.client, "a", on_secret, &s);
    uint32_t req = asked(w, W_SECRET_GET);
    CU_ASSERT(req > 0);
    secret(w, req + 5, 1, 60, "of nobody", 0);
    CU_ASSERT_EQUAL(s.good + s.bad, 0);
    secret(w, req, 1, 60, "value", 0);
    CU_ASSERT(s.good == 1 && strcmp(s.text, "value") == 0);
    secret(w, req, 1, 60, "twice", 0); /* it is owed no longer */
    secret_client_get(w.client, "a", on_secret, &s);
    CU_ASSERT(s.good == 2 && strcmp(s.text, "value") == 0 && asked(w, W_SECRET_GET) == 0);
    secret_client_get(w.client, "b", on_secret, &other); /* another's value is not it */
    uint32_t second = asked(w, W_SECRET_GET);
    CU_ASSERT(second > req && other.good == 0);
    secret(w, second, 0, 0, "it is not there", 0);
    CU_ASSERT(other.bad == 1 && strcmp(other.text, "secret b: it is not there") == 0);
    struct msg m;
    msg_init(&m, W_SECRET_STALE);
    msg_put_str(&m, "a");
    reply(w, &m);
    CU_ASSERT_STRING_EQUAL(stale, "a");
    secret_client_get(w.client, "a", on_secret, &s); /* asked again: it was told to forget it */
    CU_ASSERT(s.good == 2 && (req = asked(w, W_SECRET_GET)) > second);
    secret(w, req, 1, 1, "new", 0);
    CU_ASSERT_STRING_EQUAL(s.text, "new");
    for (int i = 0; i < 30 && s.good == 3; i++) { /* for its second, and no longer */
        turn(100);
        struct seen later = {0};
        struct secret_wait *wait = secret_client_get(w.client, "a", on_secret, &later);
        if (wait)
            s.good = 0;
        secret_client_cancel(wait);
    }
    CU_ASSERT_EQUAL(s.good, 0);
    CU_ASSERT(asked(w, W_SECRET_GET) > req);
    stop(w);
}

static struct sign_wait *ask_signature(struct world w, struct seen *s)
{
    struct aws_scope scope = {.time = "20260102T030405Z", .region = "r", .service = "s"};
    return secret_client_sign(w.client, "box", "a", "", "ID", &scope, on_signature, s);
}

static void renewed(struct world w, uint32_t req, uint8_t ok, size_t extra)
{
    struct msg m;
    msg_init(&m, W_SECRET_RENEWED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    for (size_t i = 0; i < extra; i++)
        msg_put_u8(&m, 0);
    reply(w, &m);
}

static void on_value(void *arg, struct secret *value, const struct err *err)
{
    keep(arg, value ? secret_slice(value) : (struct slice){"", 0}, err);
}

/* A value that was refused is asked for again, and whether there is another one is told once. */
static void test_renewals(void)
{
    struct world w = start();
    struct seen value = {0}, s = {0}, none = {0};
    secret_client_get(w.client, "a", on_value, &value);
    secret(w, asked(w, W_SECRET_GET), 2, 60, "old", 0);
    CU_ASSERT(value.good == 1 && secret_client_renewable(w.client, "a"));
    CU_ASSERT_FALSE(secret_client_renewable(w.client, "b"));
    CU_ASSERT_PTR_NOT_NULL(secret_client_refused(w.client, "box", "a", "hash", on_renewed, &s));
    uint32_t req = asked(w, W_SECRET_REFUSED);
    secret_client_get(w.client, "a", on_value, &value); /* not from what was kept */
    secret(w, asked(w, W_SECRET_GET), 1, 60, "new", 0);
    CU_ASSERT(value.good == 2 && strcmp(value.text, "new") == 0);
    CU_ASSERT_FALSE(secret_client_renewable(w.client, "a"));
    signature(w, req, 1, "of another kind", 0);
    renewed(w, req + 7, 1, 0);
    CU_ASSERT(s.good == 0 && s.bad == 0);
    renewed(w, req, 1, 0);
    renewed(w, req, 1, 0);
    CU_ASSERT(s.good == 1 && s.bad == 0);
    secret_client_refused(w.client, "box", "a", "hash", on_renewed, &s);
    renewed(w, asked(w, W_SECRET_REFUSED), 0, 0);
    CU_ASSERT(s.good == 1 && s.bad == 1);
    secret_client_refused(w.client, "box", "a", "hash", on_renewed, &s);
    renewed(w, asked(w, W_SECRET_REFUSED), 1, 1); /* and the channel is gone */
    CU_ASSERT(s.good == 1 && s.bad == 2);
    CU_ASSERT_PTR_NULL(secret_client_refused(w.client, "box", "a", "hash", on_renewed, &none));
    CU_ASSERT(none.good == 0 && none.bad == 0);
    stop(w);
}

static void test_signatures(void)
{
    struct world w = start();
    struct seen s = {0}, text = {0}, reply_seen = {0}, gone = {0};
    CU_ASSERT_PTR_NOT_NULL(ask_signature(w, &s));
    uint32_t req = asked(w, W_SIGN);
    secret_client_sign_text(w.client, "box", "a", 0, SLICE("text"), on_signature, &text);
    uint32_t of_text = asked(w, W_SIGN_TEXT);
    secret_client_captured(w.client, "box", "a", on_captured, &reply_seen);
    uint32_t of_reply = asked(w, W_CAPTURED_GET);
    secret_client_sign_cancel(ask_signature(w, &gone));
    uint32_t of_gone = asked(w, W_SIGN);
    CU_ASSERT(req > 0 && of_text > req && of_reply > of_text && of_gone > of_reply);
    signature(w, of_reply, 1, "no signature was asked", 0); /* an answer of the other kind */
    captured(w, req, 1, "body", 0, "", 0);
    signature(w, of_gone, 1, "late", 0);
    CU_ASSERT_EQUAL(s.good + s.bad + text.good + text.bad + reply_seen.good + reply_seen.bad +
                        gone.good + gone.bad,
                    0);
    signature(w, of_text, 1, "of the text", 0);
    CU_ASSERT(text.good == 1 && strcmp(text.text, "of the text") == 0 && s.good == 0);
    signature(w, req, 0, "it was refused", 0);
    CU_ASSERT(s.bad == 1 && s.good == 0 && strcmp(s.text, "it was refused") == 0);
    captured(w, of_reply, 1, "body", 2, "value", 0);
    CU_ASSERT(reply_seen.good == 1 && reply_seen.values == 2);
    secret_client_captured_all(w.client, "box", "a", on_captured, &reply_seen);
    captured(w, asked(w, W_CAPTURED_ALL), 0, "not released", 0, "", 0);
    CU_ASSERT(reply_seen.bad == 1 && strcmp(reply_seen.text, "not released") == 0);
    stop(w);
}

/* What no vault says ends the channel, and nothing of it is taken. */
static void test_nonsense(void)
{
    for (int kind = 0; kind < 14; kind++) {
        static char long_text[SECRET_CLIENT_SIGNATURE_MAX + 2];
        struct world w = start();
        struct seen a = {0}, b = {0}, c = {0};
        struct msg m;
        memset(long_text, 'x', sizeof long_text - 1);
        secret_client_get(w.client, "a", on_secret, &a);
        uint32_t one = asked(w, W_SECRET_GET);
        ask_signature(w, &b);
        uint32_t two = asked(w, W_SIGN);
        secret_client_captured(w.client, "box", "a", on_captured, &c);
        uint32_t three = asked(w, W_CAPTURED_GET);
        if (kind == 0)
            secret(w, one, 3, 9, "value", 0);
        else if (kind == 1)
            secret(w, one, 1, 9, "", 0);
        else if (kind == 2)
            secret(w, one, 1, 9, "value", 1);
        else if (kind == 3)
            signature(w, two, 2, "signature", 0);
        else if (kind == 4)
            signature(w, two, 1, "", 0);
        else if (kind == 5)
            signature(w, two, 1, "signature", 1);
        else if (kind == 6)
            signature(w, two, 1, long_text, 0);
        else if (kind == 7)
            captured(w, three, 2, "body", 0, "", 0);
        else if (kind == 8)
            captured(w, three, 1, "body", CAPTURED_LIST_MAX + 1, "value", 0);
        else if (kind == 9)
            captured(w, three, 1, "body", 1, "", 0);
        else if (kind == 10)
            captured(w, three, 1, "body", 1, "value", 1);
        else {
            static const uint16_t types[] = {W_SECRET_STALE, W_SECRET_GET, W_SIGNED};
            msg_init(&m, types[kind - 11]);
            msg_put_u32(&m, kind == 12 ? 1 : 0);
            msg_put_u8(&m, 1);
            reply(w, &m);
        }
        CU_ASSERT(closed(w));
        CU_ASSERT_EQUAL(a.good + b.good + c.good, 0);
        CU_ASSERT_EQUAL(b.bad, 1); /* they are told that it ended; secrets wait for the next one */
        CU_ASSERT_EQUAL(c.bad, 1);
        CU_ASSERT_EQUAL(a.bad, 0);
        stop(w);
    }
}

static void test_another_vault(void)
{
    struct world w = start();
    struct seen s = {0}, sign = {0}, early = {0};
    int fds[2], control[2];
    struct msg m;
    uint32_t number = 0;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(control, NULL), 0);
    struct ipc *parent = ipc_new(base, control[0], NULL, NULL, NULL);
    secret_client_lost_to(w.client, parent);
    secret_client_get(w.client, "a", on_secret, &s);
    uint32_t first = asked(w, W_SECRET_GET);
    ask_signature(w, &sign);
    CU_ASSERT(asked(w, W_SIGN) > first);
    close(w.vault);
    turn(2);
    CU_ASSERT(sign.bad == 1 && s.good + s.bad == 0);
    CU_ASSERT_STRING_EQUAL(sign.text, "the vault is gone");
    CU_ASSERT_EQUAL(msg_recv(control[1], &m), 1);
    CU_ASSERT(m.type == W_LOST && msg_get_u32(&m, &number) == 0 && number == 1);
    msg_done(&m);
    CU_ASSERT_PTR_NULL(ask_signature(w, &early)); /* there is none now */
    CU_ASSERT_STRING_EQUAL(early.text, "there is no vault");
    struct seen capture = {0};
    CU_ASSERT_PTR_NULL(secret_client_captured_all(w.client, "box", "a", on_captured, &capture));
    CU_ASSERT_STRING_EQUAL(capture.text, "there is no vault");
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    secret_client_attach(w.client, fds[0], 2);
    w.vault = fds[1];
    uint32_t again = asked(w, W_SECRET_GET);
    CU_ASSERT(again > first);
    secret(w, first, 1, 0, "of the first", 0);
    CU_ASSERT_EQUAL(s.good, 0);
    secret(w, again, 1, 0, "value", 0);
    CU_ASSERT(s.good == 1 && strcmp(s.text, "value") == 0);
    ask_signature(w, &sign);
    CU_ASSERT(asked(w, W_SIGN) > again);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    secret_client_attach(w.client, fds[0], 3); /* while the old one lives */
    CU_ASSERT_EQUAL(sign.bad, 2);
    CU_ASSERT(closed(w));
    close(w.vault);
    w.vault = fds[1];
    CU_ASSERT_EQUAL(asked(w, W_SECRET_GET), 0); /* nothing was owed */
    ipc_free(parent);
    close(control[1]);
    stop(w);
}

/* Those who wait are told when no other one comes; not after the time that an answer may take. */
static void test_none_comes(void)
{
    struct world w = start();
    struct seen s = {0};
    secret_client_get(w.client, "a", on_secret, &s);
    CU_ASSERT(asked(w, W_SECRET_GET) > 0);
    close(w.vault);
    w.vault = -1;
    for (int i = 0; i < 60 && s.bad == 0; i++)
        turn(100);
    CU_ASSERT(s.bad == 1 && strstr(s.text, "there is no vault"));
    secret_client_free(w.client);
}

void suite_secret_answers(void)
{
    CU_pSuite s = CU_add_suite("secret_answers", setup, teardown);
    CU_add_test(s, "values that a server refuses", test_renewals);
    CU_add_test(s, "secrets: late, another's, forgotten", test_secrets);
    CU_add_test(s, "signatures and captured secrets", test_signatures);
    CU_add_test(s, "nonsense ends the channel", test_nonsense);
    CU_add_test(s, "another vault", test_another_vault);
    CU_add_test(s, "no other vault", test_none_comes);
}

void tap_suites(void)
{
    suite_secret_answers();
}
