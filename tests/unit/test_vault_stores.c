/* Secrets of stores behind an endpoint in the vault, with this test as parent and as the way to the
 * endpoints: logins that are shared, prolonged and made anew; failures; W_SECRET_TRY. */
#include "config.h"
#include "derived_fixture.h"
#include "aws_sign.h"
#include "env_block.h"
#include "ipc.h"
#include "peer.h"
#include "proc.h"
#include "secret_list.h"
#include "tap_main.h"
#include "token_fetch.h"
#include "vault.h"
#include "vault_internal.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void suite_vault_stores(void);

enum { FETCHES = 32 };

struct fetch {
    char method[8], url[128], token[32];
    token_fetch_fn fn;
    void *arg;
};

struct world {
    struct event_base *base;
    struct vault *vault;
    int control;
    struct fetch fetches[FETCHES];
    size_t started, seen;
    struct token_fetcher fetcher;
};

static void *start_fetch(void *self, const struct token_request *r, token_fetch_fn fn, void *arg)
{
    struct world *w = self;
    CU_ASSERT_FATAL(w->started < FETCHES);
    struct fetch *f = &w->fetches[w->started++];
    snprintf(f->method, sizeof f->method, "%s", r->method);
    snprintf(f->url, sizeof f->url, "%s", r->url);
    f->token[0] = 0;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->fields[i].name, "x-vault-token") == 0)
            snprintf(f->token, sizeof f->token, "%.*s", SL(buf_slice(&r->fields[i].value)));
    f->fn = fn;
    f->arg = arg;
    return f;
}

static void cancel_fetch(void *fetch)
{
    ((struct fetch *)fetch)->fn = NULL;
}

static void put_secret(struct msg *m, const char *name, enum store_kind store, const char *source)
{
    msg_put_str(m, name);
    msg_put_u8(m, (uint8_t)store);
    msg_put_u32(m, 0);
    msg_put_u8(m, 0);
    if (store == STORE_MINT)
        derived_said(m, source);
}

#define KV(path)                                                                             \
    "{\"kind\":\"vault\",\"endpoint\":\"https://v/" path "\",\"ttl\":\"0\",\"key\":\"k\",\"" \
    "auth\":\"(login 1)\"}"

#define LOGIN                                                                 \
    "{\"kind\":\"oauth_login\",\"session\":\"session\",\"endpoint\":\"https:" \
    "//v/t\",\"client_id\":\"c\",\"refresh\":\"yes\"}"
#define SESSION "{\"access\":\"old\",\"refresh\":\"r\"}"

static void turn(struct world *w, int ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    event_base_loopexit(w->base, &tv);
    event_base_loop(w->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void begin(struct world *w, const char *login)
{
    int fds[2];
    struct msg m;
    struct buf b;
    memset(w, 0, sizeof *w);
    w->base = event_base_new();
    w->fetcher = (struct token_fetcher){.self = w, .start = start_fetch, .cancel = cancel_fetch};
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    w->vault = vault_new(w->base, fds[0], false, &w->fetcher);
    w->control = fds[1];
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->vault);
    env_block_begin(&b);
    CU_ASSERT_EQUAL(env_block_add(&b, "sid", SLICE("given"), NULL), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "session", SLICE(SESSION), NULL), 0);
    msg_init(&m, W_INIT);
    msg_put_u32(&m, 6);
    put_secret(&m, "sid", STORE_ENV, "SID");
    put_secret(&m, "session", STORE_ENV, "SESSION");
    put_secret(&m, "o", STORE_MINT, LOGIN);
    put_secret(&m, "a", STORE_MINT, KV("a"));
    put_secret(&m, "b", STORE_MINT, KV("b"));
    put_secret(&m, "(login 1)", STORE_MINT, login);
    msg_put_fd(&m, env_block_end(&b, NULL));
    CU_ASSERT_EQUAL(msg_send(w->control, &m), 0);
    msg_done(&m);
    turn(w, 10);
    CU_ASSERT_EQUAL_FATAL(msg_recv(w->control, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_READY);
    msg_done(&m);
}

static void end(struct world *w)
{
    vault_free(w->vault);
    close(w->control);
    event_base_free(w->base);
}

#define ROLE                                                                      \
    "{\"kind\":\"vault_approle\",\"address\":\"https://v\",\"endpoint\":\"https:" \
    "//v/login\",\"role_id\":\"r\",\"secret_id\":\"sid\"}"
#define TOKEN "{\"kind\":\"vault_token\",\"endpoint\":\"https://v/renew-self\",\"token\":\"sid\"}"
#define LEASE(token, seconds) \
    "{\"auth\":{\"client_token\":\"" token "\",\"lease_duration\":" seconds "}}"
#define VALUE(v) "{\"data\":{\"data\":{\"k\":\"" v "\"}}}"

static void ask(struct world *w, uint32_t req, const char *name)
{
    struct msg m;
    msg_init(&m, W_SECRET_TRY);
    msg_put_u32(&m, req);
    msg_put_str(&m, name);
    CU_ASSERT_EQUAL(msg_send(w->control, &m), 0);
    msg_done(&m);
    turn(w, 10);
}

/* The next W_SECRET_TRIED; what is told of a store's state in between is counted. */
static void tried(struct world *w, uint32_t req, uint32_t bytes, const char *why)
{
    struct msg m;
    uint32_t got_req = 0, got_bytes = 0;
    uint8_t ok = 2;
    struct slice text = SLICE("");
    for (;;) {
        CU_ASSERT_EQUAL_FATAL(msg_recv(w->control, &m), 1);
        if (m.type != W_STORE_STATE)
            break;
        msg_done(&m);
    }
    CU_ASSERT_EQUAL(m.type, W_SECRET_TRIED);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &got_req) | msg_get_u8(&m, &ok) | msg_get_u32(&m, &got_bytes) |
                        msg_get_slice(&m, 1024, &text) | msg_end(&m),
                    0);
    if (got_bytes != bytes || slice_find_slice(text, slice_str(why)) < 0)
        printf("# %u: %u bytes, \"%.*s\", not %u, \"%s\"\n", req, got_bytes, SL(text), bytes, why);
    CU_ASSERT(got_req == req && ok == (bytes > 0) && got_bytes == bytes);
    CU_ASSERT(slice_find_slice(text, slice_str(why)) >= 0);
    msg_done(&m);
}

/* Exactly one more request was begun: this one. */
static struct fetch *begun(struct world *w, const char *method, const char *url, const char *token)
{
    CU_ASSERT_FATAL(w->seen < w->started);
    struct fetch *f = &w->fetches[w->seen++];
    if (strcmp(f->url, url) != 0 || strcmp(f->token, token) != 0)
        printf("# %s %s with '%s', not %s with '%s'\n", f->method, f->url, f->token, url, token);
    CU_ASSERT_STRING_EQUAL(f->method, method);
    CU_ASSERT_STRING_EQUAL(f->url, url);
    CU_ASSERT_STRING_EQUAL(f->token, token);
    return f;
}

static void reply(struct world *w, struct fetch *f, unsigned status, const char *body)
{
    token_fetch_fn fn = f->fn;
    CU_ASSERT_FATAL(fn != NULL);
    f->fn = NULL;
    fn(f->arg, status, slice_str(body), "");
    turn(w, 5);
}

static bool quiet(const struct world *w)
{
    return w->seen == w->started;
}

static void logged_in(struct world *w, const char *lease)
{
    reply(w, begun(w, "POST", "https://v/login", ""), 200, lease);
}

static void test_shared(void)
{
    struct world w;
    begin(&w, ROLE);
    ask(&w, 1, "a");
    ask(&w, 2, "b");
    logged_in(&w, LEASE("t1", "600")); /* one for both */
    struct fetch *a = begun(&w, "GET", "https://v/a", "t1");
    reply(&w, begun(&w, "GET", "https://v/b", "t1"), 200, VALUE("four"));
    tried(&w, 2, 4, "");
    reply(&w, a, 200, VALUE("seventy"));
    tried(&w, 1, 7, "");
    ask(&w, 3, "a"); /* its ttl is 0, the login's lease is not */
    reply(&w, begun(&w, "GET", "https://v/a", "t1"), 200, VALUE("a\\nb"));
    tried(&w, 3, 0, "line");
    ask(&w, 4, "none");
    tried(&w, 4, 0, "not configured");
    CU_ASSERT(quiet(&w));
    end(&w);
}

/* A lease that ended early: once it is made anew, within the request. */
static void test_refused(void)
{
    struct world w;
    begin(&w, ROLE);
    ask(&w, 1, "a");
    logged_in(&w, LEASE("t1", "600"));
    reply(&w, begun(&w, "GET", "https://v/a", "t1"), 403, "{}");
    reply(&w, begun(&w, "POST", "https://v/v1/auth/token/renew-self", "t1"), 403, "{}");
    logged_in(&w, LEASE("t2", "600"));
    reply(&w, begun(&w, "GET", "https://v/a", "t2"), 403, "{}");
    tried(&w, 1, 0, "403: its login may not read this path");
    ask(&w, 2, "a"); /* it is left alone for a second */
    tried(&w, 2, 0, "403");
    CU_ASSERT(quiet(&w));
    end(&w);
}

/* It is being prolonged when the store no longer takes it: nobody else gets it meanwhile. */
static void test_refused_meanwhile(void)
{
    struct world w;
    begin(&w, ROLE);
    ask(&w, 1, "a");
    logged_in(&w, LEASE("t1", "3"));
    reply(&w, begun(&w, "GET", "https://v/a", "t1"), 200, VALUE("v"));
    tried(&w, 1, 1, "");
    turn(&w, 1700); /* four fifths of 2 s */
    ask(&w, 2, "a");
    struct fetch *renewal = begun(&w, "POST", "https://v/v1/auth/token/renew-self", "t1");
    reply(&w, begun(&w, "GET", "https://v/a", "t1"), 403, "{}");
    CU_ASSERT(quiet(&w));
    reply(&w, renewal, 403, "{}");
    logged_in(&w, LEASE("t2", "60"));
    reply(&w, begun(&w, "GET", "https://v/a", "t2"), 200, VALUE("vv"));
    tried(&w, 2, 2, "");
    end(&w);
}

/* A failure is over when what the login is made of has changed. */
static void test_changed(void)
{
    struct world w;
    struct msg m;
    begin(&w, ROLE);
    ask(&w, 1, "a");
    reply(&w, begun(&w, "POST", "https://v/login", ""), 400, "{}");
    tried(&w, 1, 0, "(login 1): its endpoint answered 400: this login is refused");
    ask(&w, 2, "b");
    tried(&w, 2, 0, "");
    CU_ASSERT(quiet(&w));
    msg_init(&m, W_STORE_CHANGED);
    msg_put_str(&m, "sid");
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
    turn(&w, 10);
    ask(&w, 3, "a");
    logged_in(&w, LEASE("t", "60"));
    reply(&w, begun(&w, "GET", "https://v/a", "t"), 0, "");
    tried(&w, 3, 0, "its endpoint: ");
    end(&w);
}

/* A token is prolonged from the start on; one that cannot be serves as it is. */
static void test_kept(void)
{
    struct world w;
    begin(&w, TOKEN);
    CU_ASSERT(quiet(&w));
    turn(&w, 1200);
    reply(&w, begun(&w, "POST", "https://v/renew-self", "given"), 503, "{}");
    CU_ASSERT(quiet(&w));
    turn(&w, 1200); /* again, although nobody asks */
    reply(&w, begun(&w, "POST", "https://v/renew-self", "given"), 200, LEASE("given", "3"));
    turn(&w, 1700);
    reply(&w, begun(&w, "POST", "https://v/renew-self", "given"), 403, "{}");
    ask(&w, 1, "a");
    reply(&w, begun(&w, "GET", "https://v/a", "given"), 200, VALUE("v"));
    tried(&w, 1, 1, "");
    CU_ASSERT(quiet(&w));
    end(&w);
}

/* The vault ends while somebody waits: nothing is leaked, nobody called. */
static void test_ends(void)
{
    struct world w;
    struct msg m;
    begin(&w, ROLE);
    ask(&w, 1, "a");
    ask(&w, 2, "b");
    struct fetch *f = begun(&w, "POST", "https://v/login", "");
    msg_init(&m, W_SECRET_TRY); /* without a name */
    msg_put_u32(&m, 3);
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
    event_base_loop(w.base, EVLOOP_ONCE);
    CU_ASSERT(event_base_got_break(w.base));
    end(&w);
    CU_ASSERT_PTR_NULL(f->fn);
}

/* ---- values that a server refuses ---- */

static int injector_of(struct world *w, const char *const *names, size_t n)
{
    int fds[2];
    struct msg m;
    struct buf b;
    buf_init(&b, 4096);
    CU_ASSERT_EQUAL(secret_list_pack(&b, names, n), 0);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, ROLE_INJECTOR);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "");
    msg_put_str(&m, "coder");
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0);
    msg_put_slice(&m, buf_slice(&b));
    msg_put_fd(&m, fds[0]);
    CU_ASSERT_EQUAL(msg_send(w->control, &m), 0);
    msg_done(&m);
    buf_free(&b);
    turn(w, 5);
    return fds[1];
}

static void say_refused(struct world *w, int ch, const char *name, const char *value)
{
    struct msg m;
    char hash[AWS_HEX + 1];
    CU_ASSERT_EQUAL(aws_hash(slice_str(value), hash), 0);
    msg_init(&m, W_SECRET_REFUSED);
    msg_put_u32(&m, 9);
    msg_put_str(&m, name);
    msg_put_str(&m, hash);
    CU_ASSERT_EQUAL(msg_send(ch, &m), 0);
    msg_done(&m);
    turn(w, 10);
}

/* The next one of this type has these numbers. */
static void hears(int ch, uint16_t type, uint32_t req, uint8_t ok)
{
    struct msg m;
    uint32_t got = 0;
    uint8_t said = 9;
    CU_ASSERT_EQUAL_FATAL(msg_recv(ch, &m), 1);
    CU_ASSERT_EQUAL(m.type, type);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &got), 0);
    if (m.type != W_SECRET_STALE) {
        CU_ASSERT_EQUAL(msg_get_u8(&m, &said), 0);
        CU_ASSERT(got == req && said == ok);
    }
    msg_done(&m);
}

/* The parent's part: the login's file is locked; or written. */
static void parent_does(struct world *w, uint16_t type, uint16_t answer, const char *session)
{
    struct msg m;
    uint32_t req = 0;
    for (;;) {
        CU_ASSERT_EQUAL_FATAL(msg_recv(w->control, &m), 1);
        if (m.type == type)
            break;
        msg_done(&m);
    }
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    msg_done(&m);
    msg_init(&m, answer);
    msg_put_u32(&m, req);
    msg_put_u8(&m, 1);
    msg_put_str(&m, session);
    CU_ASSERT_EQUAL(msg_send(w->control, &m), 0);
    msg_done(&m);
    turn(w, 10);
}

static void get_value(struct world *w, int ch)
{
    struct msg m;
    msg_init(&m, W_SECRET_GET);
    msg_put_u32(&m, 3);
    msg_put_str(&m, "o");
    CU_ASSERT_EQUAL(msg_send(ch, &m), 0);
    msg_done(&m);
    turn(w, 10);
}

static void test_renewed(void)
{
    static const char *const names[] = {"o", "sid"};
    struct world w;
    begin(&w, ROLE);
    int ch = injector_of(&w, names, ARRAY_LEN(names)), other = injector_of(&w, NULL, 0);
    get_value(&w, ch);
    hears(ch, W_SECRET, 3, 2); /* and another one can be made */
    say_refused(&w, other, "o", "old");
    hears(other, W_SECRET_RENEWED, 9, 0); /* it is not this policy's */
    say_refused(&w, ch, "sid", "given");
    hears(ch, W_SECRET_RENEWED, 9, 0); /* it is what it is */
    say_refused(&w, ch, "o", "guessed");
    hears(ch, W_SECRET_RENEWED, 9, 1); /* what was refused is not what it is */
    CU_ASSERT(quiet(&w));
    say_refused(&w, ch, "o", "old");
    say_refused(&w, ch, "o", "old"); /* waits for the same */
    parent_does(&w, W_LOGIN_LOCK, W_LOGIN_LOCKED, SESSION);
    get_value(&w, ch); /* the refused one is not given any more */
    reply(&w, begun(&w, "POST", "https://v/t", ""), 200,
          "{\"access_token\":\"new\",\"refresh_token\":\"r2\"}");
    parent_does(&w, W_LOGIN_SAVE, W_LOGIN_SAVED, "");
    hears(ch, W_SECRET_STALE, 0, 0);
    hears(ch, W_SECRET_RENEWED, 9, 1);
    hears(ch, W_SECRET_RENEWED, 9, 1);
    hears(ch, W_SECRET, 3, 2);
    for (int i = 0; i < 3; i++) {
        say_refused(&w, ch, "o", "new");
        hears(ch, W_SECRET_RENEWED, 9, 0); /* not twice within a minute */
    }
    say_refused(&w, ch, "o", "old");
    hears(ch, W_SECRET_RENEWED, 9, 1);
    CU_ASSERT(quiet(&w));
    close(ch);
    close(other);
    end(&w);
}

/* The endpoint refuses, too: the old one goes on for who asks. */
static void test_not_renewed(void)
{
    static const char *const names[] = {"o"};
    struct world w;
    begin(&w, ROLE);
    int ch = injector_of(&w, names, 1);
    get_value(&w, ch);
    hears(ch, W_SECRET, 3, 2);
    say_refused(&w, ch, "o", "old");
    parent_does(&w, W_LOGIN_LOCK, W_LOGIN_LOCKED, SESSION);
    get_value(&w, ch);
    reply(&w, begun(&w, "POST", "https://v/t", ""), 400, "{\"error\":\"invalid_grant\"}");
    hears(ch, W_SECRET_RENEWED, 9, 0);
    hears(ch, W_SECRET, 3, 2);
    say_refused(&w, ch, "o", "old");
    hears(ch, W_SECRET_RENEWED, 9, 0);
    CU_ASSERT(quiet(&w));
    close(ch);
    end(&w);
}

/* How often an endpoint is asked within these seconds, when each request of a second is refused. */
static unsigned turns(unsigned seconds, unsigned life)
{
    struct vault_turn t = {0};
    unsigned n = 0;
    for (int64_t now = 1000; now <= (int64_t)seconds * 1000; now += 1000) {
        if (t.asked_at && now - t.asked_at < (int64_t)life * 1000)
            continue; /* it is taken so long */
        if (vault_turn_take(&t, now)) {
            t.asked_at = now;
            n++;
        }
    }
    return n;
}

static void test_turns(void)
{
    CU_ASSERT_EQUAL(turns(60, 0), 1);
    CU_ASSERT_EQUAL(turns(3600, 0), 6);
    CU_ASSERT(turns(24 * 3600, 0) <= 6 + 24);
    CU_ASSERT_EQUAL(turns(3600, 600), 6); /* tokens that last ten minutes are made anew each time */
    static const unsigned lives[] = {60, 119, 120, 121, 240, 479, 480, 481, 960, 3600};
    for (size_t i = 0; i < ARRAY_LEN(lives); i++)
        CU_ASSERT(turns(24 * 3600, lives[i]) <= 190);
    struct vault_turn t = {.asked_at = 1, .wait = 3600}; /* a token that lasted halves the wait */
    CU_ASSERT(vault_turn_take(&t, (int64_t)8 * 3600 * 1000 + 1));
    CU_ASSERT_EQUAL(t.wait, 1800);
}

void suite_vault_stores(void)
{
    CU_pSuite s = CU_add_suite("vault stores", NULL, NULL);
    CU_add_test(s, "secrets with the same login share it", test_shared);
    CU_add_test(s, "a login that is refused is made anew once", test_refused);
    CU_add_test(s, "a login that is refused while it is prolonged", test_refused_meanwhile);
    CU_add_test(s, "a failed login, and a new secret for it", test_changed);
    CU_add_test(s, "a token is kept alive", test_kept);
    CU_add_test(s, "the vault ends meanwhile", test_ends);
    CU_add_test(s, "what a server refuses is made anew, once", test_renewed);
    CU_add_test(s, "or cannot be: the old one goes on", test_not_renewed);
    CU_add_test(s, "a server that refuses everything drives no endpoint", test_turns);
}

void tap_suites(void)
{
    suite_vault_stores();
}
