/* What the vault signs for an injector, and what it captures for one: whose channel it is, which
 * sandbox, which key; with this test as parent and as injectors. */
#include "aws_sign.h"
#include "captured.h"
#include "derived_fixture.h"
#include "env_block.h"
#include "ipc.h"
#include "loop_bed.h"
#include "proc.h"
#include "secret_list.h"
#include "tap_main.h"
#include "tls_sign.h"
#include "vault.h"
#include "vault_entry.h"
#include "wire.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_vault_sign(void);

#define ID       "AKIDEXAMPLE"
#define KEY      "wJalrXUtnFEMI/K7MDENG"
#define HASH     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OWN_ID   "ASIAOFSANDBOX"
#define OWN_KEY  "own-key-of-the-sandbox"
#define RELEASED "not released to this policy"

struct world {
    struct vault *vault;
    int control;
};

static const struct {
    const char *name, *source;
} secrets[] = {
    {"id", NULL},
    {"key", NULL},
    {"odd", NULL},
    {"file", ""},
    {"pair", "{\"kind\":\"aws_key\",\"access_key_id\":\"id\",\"secret_access_key\":\"key\"}"},
    {"late", "{\"kind\":\"aws_key\",\"access_key_id\":\"file\",\"secret_access_key\":\"key\"}"},
    {"mac", "{\"kind\":\"hmac_key\",\"key\":\"key\",\"encoding\":\"text\",\"algorithm\":\"sha256\","
            "\"key_id\":\"k1\"}"},
    {"unread", "{\"kind\":\"hmac_key\",\"key\":\"odd\",\"encoding\":\"hex\",\"algorithm\":"
               "\"sha256\",\"key_id\":\"k1\"}"},
    {"host", "agent"},
    {"signer", "{\"kind\":\"ssh_signing_key\",\"key\":\"host\",\"namespaces\":\"git\"}"},
    {"got", "{\"kind\":\"captured\"}"},
    {"other", "{\"kind\":\"captured\"}"},
    {"stays", "{\"kind\":\"captured\",\"keep\":\"home\"}"},
    {"shown", "{\"kind\":\"captured\",\"claims\":\"exp\"}"},
};

static bool turn(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < ms; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        if (poll(&p, 1, 1) > 0)
            return true;
    }
    return false;
}

static int receive(int fd, struct msg *m)
{
    return turn(fd, 2000) ? msg_recv(fd, m) : -1;
}

static void send_on(int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
}

static struct world start(void)
{
    int fds[2];
    struct msg m;
    struct buf b;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    struct world w = {vault_new(base, fds[0], false, NULL), fds[1]};
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.vault);
    env_block_begin(&b);
    CU_ASSERT_EQUAL(env_block_add(&b, "id", SLICE(ID), NULL), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "key", SLICE(KEY), NULL), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "odd", SLICE("g0"), NULL), 0);
    msg_init(&m, W_INIT);
    msg_put_u32(&m, ARRAY_LEN(secrets));
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        const char *source = secrets[i].source;
        msg_put_str(&m, secrets[i].name);
        msg_put_u8(&m, source == NULL   ? STORE_ENV
                       : *source == '{' ? STORE_MINT
                       : *source        ? STORE_AGENT
                                        : STORE_FILE);
        msg_put_u32(&m, source && *source == 'a' ? 60 : 0);
        msg_put_u8(&m, 0);
        if (source && *source == '{')
            derived_said(&m, source);
    }
    msg_put_fd(&m, env_block_end(&b, NULL));
    send_on(w.control, &m);
    CU_ASSERT_EQUAL_FATAL(receive(w.control, &m), 1);
    CU_ASSERT_EQUAL_FATAL(m.type, W_READY);
    msg_done(&m);
    return w;
}

static void stop(struct world w)
{
    vault_free(w.vault);
    close(w.control);
}

static int injector(struct world w, const char *policy, const char *const *names, size_t n)
{
    int fds[2];
    struct msg m;
    struct buf b;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    buf_init(&b, 4096);
    CU_ASSERT_EQUAL(secret_list_pack(&b, names, n), 0);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, ROLE_INJECTOR);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "");
    msg_put_str(&m, policy);
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0); /* wire */
    msg_put_slice(&m, buf_slice(&b));
    msg_put_fd(&m, fds[0]);
    send_on(w.control, &m);
    buf_free(&b);
    turn(fds[1], 2);
    return fds[1];
}

static const char *const all[] = {"id",     "pair", "late",  "mac",  "unread",
                                  "signer", "got",  "stays", "shown"};

/* What is asked; the good one is of the pair. */
struct wish {
    const char *name, *sandbox, *key_id, *region;
    uint8_t text;
    const char *previous;
    bool more; /* a byte after it */
};

static const struct wish good = {"pair", "", ID, "eu-west-1", AWS_REQUEST, "", false};

static void ask(int fd, uint32_t req, const struct wish *x)
{
    struct msg m;
    msg_init(&m, W_SIGN);
    msg_put_u32(&m, req);
    msg_put_str(&m, x->name);
    msg_put_str(&m, x->sandbox);
    msg_put_str(&m, x->key_id);
    msg_put_str(&m, "20260102T030405Z");
    msg_put_str(&m, x->region);
    msg_put_str(&m, "s3");
    msg_put_str(&m, HASH);
    msg_put_u8(&m, x->text);
    msg_put_str(&m, x->previous);
    if (x->more)
        msg_put_u8(&m, 0);
    send_on(fd, &m);
}

static void ask_text_of(int fd, uint32_t req, const char *sandbox, const char *name,
                        uint32_t scheme, struct slice text)
{
    struct msg m;
    msg_init(&m, W_SIGN_TEXT);
    msg_put_u32(&m, req);
    msg_put_str(&m, name);
    msg_put_str(&m, sandbox);
    msg_put_u32(&m, scheme);
    msg_put_slice(&m, text);
    send_on(fd, &m);
}

static void ask_text(int fd, uint32_t req, const char *name, uint32_t scheme, struct slice text)
{
    ask_text_of(fd, req, "box", name, scheme, text);
}

/* The next answer is this signature, or words that have this in them. */
static void signs(int fd, uint32_t req, bool ok, struct slice want)
{
    struct msg m;
    uint32_t got_req = 0;
    uint8_t got_ok = 9;
    struct slice s = {"", 0};
    int r = receive(fd, &m);
    CU_ASSERT_EQUAL_FATAL(r, 1);
    CU_ASSERT_EQUAL(m.type, W_SIGNED);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &got_req) | msg_get_u8(&m, &got_ok) |
                        msg_get_slice(&m, TLS_SIGNATURE_MAX, &s) | msg_end(&m),
                    0);
    bool same = ok ? slice_eq(s, want) : slice_find_slice(s, want) >= 0;
    if (!same || got_ok != ok)
        printf("# wanted \"%.*s\": \"%.*s\"\n", SL(want), SL(s));
    CU_ASSERT(got_req == req && got_ok == ok && same);
    msg_done(&m);
}

static void refuses(int fd, uint32_t req, const char *why)
{
    signs(fd, req, false, slice_str(why));
}

static struct slice signed_with(const char *id, const char *key, const char *region)
{
    static char hex[AWS_HEX + 1];
    struct aws_pair pair = {slice_str(id), slice_str(key), SLICE("")};
    struct aws_scope s = {.time = "20260102T030405Z", .service = "s3", .hash = HASH};
    snprintf(s.region, sizeof s.region, "%s", region);
    CU_ASSERT_EQUAL(aws_sign(&pair, &s, hex), 0);
    return slice_str(hex);
}

static void test_sign(void)
{
    struct world w = start();
    int fd = injector(w, "coder", all, ARRAY_LEN(all)), none = injector(w, "poor", NULL, 0);
    struct wish x = good;
    ask(fd, 1, &x);
    signs(fd, 1, true, signed_with(ID, KEY, "eu-west-1"));
    ask(none, 2, &x); /* another policy's channel */
    refuses(none, 2, RELEASED);
    x.key_id = "AKIDBEFORE";
    ask(fd, 3, &x);
    refuses(fd, 3, "the key was changed meanwhile");
    x = good;
    x.name = "id"; /* released, and no key that signs */
    ask(fd, 4, &x);
    refuses(fd, 4, RELEASED);
    x.name = "got"; /* nothing was captured for it */
    ask(fd, 5, &x);
    refuses(fd, 5, RELEASED);
    x.name = "nobody";
    ask(fd, 6, &x);
    refuses(fd, 6, RELEASED);
    x.name = "mac"; /* another kind of key */
    ask(fd, 7, &x);
    refuses(fd, 7, "it is not a key that signs");
    close(none);
    close(fd);
    stop(w);
}

/* What no injector says ends its channel, and its alone. */
static void test_bad_messages(void)
{
    static char long_name[200], long_text[70000];
    struct wish bad[10];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bad[i] = good;
    memset(long_name, 'a', sizeof long_name - 1);
    bad[0].name = long_name;
    bad[1].sandbox = long_name;
    bad[2].key_id = long_name;
    bad[3].region = long_name;
    bad[4].region = "eu/west\n";
    bad[5].region = "";
    bad[6].text = AWS_TRAILER + 1;
    bad[6].previous = HASH;
    bad[7].text = AWS_CHUNK; /* of no signature before it */
    bad[8].previous = HASH;  /* a request has none */
    bad[9].more = true;
    struct world w = start();
    int fine = injector(w, "coder", all, ARRAY_LEN(all));
    for (size_t i = 0; i < ARRAY_LEN(bad) + 2; i++) {
        struct msg m;
        int fd = injector(w, "coder", all, ARRAY_LEN(all));
        if (i < ARRAY_LEN(bad))
            ask(fd, 1, &bad[i]);
        else if (i == ARRAY_LEN(bad))
            ask_text(fd, 1, "mac", 0, (struct slice){long_text, sizeof long_text});
        else {
            msg_init(&m, W_SIGN_TEXT);
            msg_put_u32(&m, 1);
            msg_put_str(&m, "mac");
            msg_put_str(&m, "box");
            msg_put_u32(&m, 0);
            msg_put_slice(&m, SLICE("text"));
            msg_put_u8(&m, 0);
            send_on(fd, &m);
        }
        CU_ASSERT_EQUAL(receive(fd, &m), 0);
        close(fd);
    }
    ask(fine, 2, &good);
    signs(fine, 2, true, signed_with(ID, KEY, "eu-west-1"));
    close(fine);
    stop(w);
}

static void test_text(void)
{
    struct world w = start();
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int fd = injector(w, "coder", all, ARRAY_LEN(all)), none = injector(w, "poor", NULL, 0);
    CU_ASSERT_PTR_NOT_NULL(
        HMAC(EVP_sha256(), KEY, strlen(KEY), (const unsigned char *)"a text", 6, mac, &n));
    ask_text(fd, 1, "mac", 0, SLICE("a text"));
    signs(fd, 1, true, (struct slice){(const char *)mac, n});
    ask_text(none, 2, "mac", 0, SLICE("a text"));
    refuses(none, 2, RELEASED);
    ask_text(fd, 3, "id", 0, SLICE("a text"));
    refuses(fd, 3, RELEASED);
    ask_text(fd, 4, "got", 0, SLICE("a text"));
    refuses(fd, 4, RELEASED);
    ask_text(fd, 5, "nobody", 0, SLICE("a text"));
    refuses(fd, 5, RELEASED);
    ask_text(fd, 6, "pair", 0x0804, SLICE("a text")); /* an AWS key signs no text that comes */
    refuses(fd, 6, "it does not sign that");
    ask_text(fd, 7, "unread", 0, SLICE("a text"));
    refuses(fd, 7, "its key is not hex");
    close(none);
    close(fd);
    stop(w);
}

/* ---- keys of an agent ---- */

#define BLOB                          \
    "\0\0\0\x0bssh-ed25519\0\0\0\x20" \
    "12345678901234567890123456789012"
#define LIST "\0\0\0\x41\x0c\0\0\0\1\0\0\0\x33" BLOB "\0\0\0\1x"

/* Under a commit. */
#define SIGNED                                            \
    "SSHSIG\0\0\0\3git\0\0\0\0\0\0\0\x06sha256\0\0\0\x20" \
    "12345678901234567890123456789012"

/* The parent opens the agent, whose list is there. Its end. */
static int open_agent(struct world w, uint32_t req)
{
    int fds[2];
    struct msg m;
    char key[128] = "ssh-ed25519 ";
    EVP_EncodeBlock((unsigned char *)key + strlen(key), (const unsigned char *)BLOB,
                    sizeof BLOB - 1);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    CU_ASSERT_EQUAL(write(fds[1], LIST, sizeof LIST - 1), sizeof LIST - 1);
    msg_init(&m, W_STORE_FD);
    msg_put_u32(&m, req);
    msg_put_u8(&m, 1);
    msg_put_str(&m, key);
    msg_put_fd(&m, fds[0]);
    send_on(w.control, &m);
    return fds[1];
}

/* 0: the agent is asked, who says nothing; 1: the request is refused. */
static int one_more(struct world w, int fd, const char *sandbox)
{
    struct msg m;
    static uint32_t req = 100;
    ask_text_of(fd, ++req, sandbox, "signer", 0, SLICE(SIGNED));
    for (int i = 0; i < 2000; i++) {
        if (turn(w.control, 1)) {
            CU_ASSERT_FATAL(receive(w.control, &m) == 1 && m.type == W_STORE_OPEN);
            msg_done(&m);
            return 0;
        }
        if (turn(fd, 1)) {
            refuses(fd, req, "too many signatures");
            return 1;
        }
    }
    CU_FAIL("nothing comes");
    return -1;
}

static int until_refused(struct world w, int fd, const char *sandbox)
{
    int n = 0;
    while (n < 1000 && one_more(w, fd, sandbox) == 0)
        n++;
    return n;
}

/* An agent that says nothing: whoever has all asked for that it may leaves others their share,
 * those of its policy and of the next; and who is gone holds nothing. */
static void test_agent_shares(void)
{
    struct world w = start();
    struct msg m;
    uint32_t req = 0;
    char bytes[400];
    int fd = injector(w, "coder", all, ARRAY_LEN(all)),
        other = injector(w, "other", all, ARRAY_LEN(all));
    ask_text(fd, 1, "signer", 0, SLICE(SIGNED));
    CU_ASSERT_FATAL(receive(w.control, &m) == 1 && m.type == W_STORE_OPEN);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    msg_done(&m);
    int agent = open_agent(w, req);
    CU_ASSERT_FATAL(receive(w.control, &m) == 1 && m.type == W_STORE_OPEN); /* to have it signed */
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    msg_done(&m);
    int asked = open_agent(w, req);
    CU_ASSERT(turn(asked, 2000) && read(asked, bytes, sizeof bytes) > 100);
    int first = until_refused(w, fd, "box"), second = until_refused(w, fd, "box-2");
    CU_ASSERT(first + 1 == 32 && second == 16);
    int third = until_refused(w, fd, "box-3");
    CU_ASSERT(third >= 4 && until_refused(w, other, "box") >= 16);
    close(fd);
    CU_ASSERT(turn(asked, 2000) && read(asked, bytes, sizeof bytes) == 0);
    fd = injector(w, "coder", all, ARRAY_LEN(all));
    CU_ASSERT_EQUAL(until_refused(w, fd, "box"), 32);
    close(agent);
    close(asked);
    close(fd);
    close(other);
    stop(w);
}

/* A key whose part cannot be read, while the injector waits, and when it is gone. */
static void test_late(void)
{
    struct world w = start();
    int fd = injector(w, "coder", all, ARRAY_LEN(all)),
        gone = injector(w, "coder", all, ARRAY_LEN(all));
    struct wish x = good;
    struct msg m;
    uint32_t req = 0;
    x.name = "late";
    ask(fd, 1, &x);
    ask(gone, 2, &x);
    ask_text(fd, 3, "late", 0, SLICE("a text"));
    CU_ASSERT_EQUAL_FATAL(receive(w.control, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_STORE_OPEN);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    msg_done(&m);
    close(gone);
    CU_ASSERT_FALSE(turn(fd, 5)); /* nothing is signed yet */
    CU_ASSERT_EQUAL(vault_channels(w.vault), 1);
    msg_init(&m, W_STORE_FD);
    msg_put_u32(&m, req);
    msg_put_u8(&m, 0);
    msg_put_str(&m, "it is not there");
    send_on(w.control, &m);
    refuses(fd, 1, "it is not there");
    refuses(fd, 3, "it is not there");
    close(fd);
    stop(w);
}

/* ---- what replies held ---- */

enum { MANY = CAPTURED_FIELDS_MAX + 1 };

struct reply {
    const char *sandbox, *secret, *body;
    uint32_t n;
    uint8_t form;
    bool more;
};

static void capture(int fd, uint32_t req, const struct reply *x)
{
    struct msg m;
    msg_init(&m, W_CAPTURE);
    msg_put_u32(&m, req);
    msg_put_str(&m, x->sandbox);
    msg_put_u32(&m, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        msg_put_str(&m, "a");
        msg_put_str(&m, x->secret);
        msg_put_str(&m, "<placeholder>");
    }
    msg_put_u8(&m, x->form);
    msg_put_slice(&m, slice_str(x->body));
    if (x->more)
        msg_put_u8(&m, 0);
    send_on(fd, &m);
}

static void get(int fd, uint32_t req, const char *sandbox, const char *name, bool more)
{
    struct msg m;
    msg_init(&m, W_CAPTURED_GET);
    msg_put_u32(&m, req);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, name);
    if (more)
        msg_put_u8(&m, 0);
    send_on(fd, &m);
}

static void list(int fd, uint32_t req, const char *name, bool more)
{
    struct msg m;
    msg_init(&m, W_CAPTURED_ALL);
    msg_put_u32(&m, req);
    msg_put_str(&m, name);
    if (more)
        msg_put_u8(&m, 0);
    send_on(fd, &m);
}

/* The next answer: its body (or words with this in them), and how many values; the first of them.
 */
static void captures(int fd, uint32_t req, bool ok, const char *body, uint32_t n, const char *first)
{
    struct msg m;
    uint32_t got_req = 0, got_n = 99;
    uint8_t got_ok = 9;
    struct slice s = {"", 0}, value = {"", 0}, one;
    int r = receive(fd, &m);
    CU_ASSERT_EQUAL_FATAL(r, 1);
    CU_ASSERT_EQUAL(m.type, W_CAPTURED);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &got_req) | msg_get_u8(&m, &got_ok) |
                        msg_get_slice(&m, CAPTURED_WRITTEN_MAX, &s) | msg_get_u32(&m, &got_n),
                    0);
    for (uint32_t i = 0; i < got_n && msg_get_slice(&m, CAPTURED_VALUE_MAX, &one) == 0; i++)
        value = i == 0 ? one : value;
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    bool same = ok ? slice_eq_str(s, body) : slice_find_slice(s, slice_str(body)) >= 0;
    if (!same || got_ok != ok || got_n != n || !slice_eq_str(value, first))
        printf("# wanted \"%s\": \"%.*s\", %u \"%.*s\"\n", body, SL(s), got_n, SL(value));
    CU_ASSERT(got_req == req && got_ok == ok && same && got_n == n && slice_eq_str(value, first));
    msg_done(&m);
}

static const struct reply token = {"box-1", "got", "{\"a\":\"token-0123456789\"}", 1, 0, false};

/* A sandbox's is its own, and its policy's. */
static void test_captured(void)
{
    struct world w = start();
    struct reply x = token;
    int fd = injector(w, "coder", all, ARRAY_LEN(all)),
        other = injector(w, "other", all, ARRAY_LEN(all));
    int none = injector(w, "coder", NULL, 0);
    capture(fd, 1, &x);
    captures(fd, 1, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    get(fd, 2, "box-1", "got", false);
    captures(fd, 2, true, "token-0123456789", 0, "");
    get(fd, 3, "box-2", "got", false);
    captures(fd, 3, false, "no reply to this sandbox", 0, "");
    get(other, 4, "box-1", "got", false);
    captures(other, 4, false, "no reply to this sandbox", 0, "");
    get(none, 5, "box-1", "got", false);
    captures(none, 5, false, "no reply to this sandbox", 0, "");
    get(fd, 6, "box-1", "id",
        false); /* none that is captured: nothing of the stores comes this way */
    captures(fd, 6, false, "no reply to this sandbox", 0, "");
    list(fd, 7, "got", false);
    captures(fd, 7, true, "", 1, "token-0123456789");
    list(other, 8, "got", false);
    captures(other, 8, true, "", 0, "");
    list(none, 9, "got", false);
    captures(none, 9, false, RELEASED, 0, "");
    list(fd, 10, "id", false);
    captures(fd, 10, false, RELEASED, 0, "");
    x.secret = "other"; /* captured, and not this policy's */
    capture(fd, 11, &x);
    captures(fd, 11, false, RELEASED, 0, "");
    x.secret = "id";
    capture(fd, 12, &x);
    captures(fd, 12, false, RELEASED, 0, "");
    x.secret = "pair"; /* made, and of other secrets */
    capture(fd, 14, &x);
    captures(fd, 14, false, RELEASED, 0, "");
    x = token;
    x.body = "not JSON";
    capture(fd, 13, &x);
    captures(fd, 13, false, "it is not JSON", 0, "");
    close(none);
    close(other);
    close(fd);
    stop(w);
}

/* Of a token its sandbox sees the claims that its declaration names; it is told as it came. */
static void test_captured_claims(void)
{
    static const char jwt[] = "eyJhbGciOiJub25lIn0.eyJleHAiOjUsImp0aSI6InNlY3JldCJ9.c2ln";
    static const char opaque[] = "{\"a\":\"token-0123456789\"}";
    char body[200], inside[200];
    struct world w = start();
    struct reply x = token;
    int fd = injector(w, "coder", all, ARRAY_LEN(all));
    snprintf(body, sizeof body, "{\"a\":\"%s\",\"b\":\"%s\"}", jwt, jwt);
    snprintf(inside, sizeof inside, "{\"a\":\"%s\",\"b\":\"%s\"}",
             "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjV9.<placeholder>",
             "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjV9.<placeholder>");
    x.body = body;
    capture(fd, 1, &x); /* none is to be seen of it */
    captures(fd, 1, true, "{\"a\":\"<placeholder>\",\"b\":\"<placeholder>\"}", 1, jwt);
    x.secret = "shown";
    capture(fd, 2, &x);
    captures(fd, 2, true, inside, 1, jwt);
    get(fd, 3, "box-1", "shown", false);
    captures(fd, 3, true, jwt, 0, "");
    x.body = opaque;
    capture(fd, 4, &x);
    captures(fd, 4, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    x.body = "no JSON";
    capture(fd, 5, &x);
    captures(fd, 5, false, "it is not JSON", 0, "");
    close(fd);
    stop(w);
}

static void test_captured_gone(void)
{
    struct world w = start();
    int fd = injector(w, "coder", all, ARRAY_LEN(all));
    static const char *const boxes[] = {"box-1", "box-2"};
    struct msg m;
    for (uint32_t i = 0; i < 2; i++) {
        struct reply x = token;
        x.sandbox = boxes[i];
        capture(fd, i, &x);
        captures(fd, i, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    }
    msg_init(&m, W_CAPTURED_GONE);
    msg_put_str(&m, "box-1");
    send_on(w.control, &m);
    turn(fd, 2);
    get(fd, 3, "box-1", "got", false);
    captures(fd, 3, false, "no reply to this sandbox", 0, "");
    get(fd, 4, "box-2", "got", false);
    captures(fd, 4, true, "token-0123456789", 0, "");
    close(fd);
    stop(w);
}

/* What the parent is to write; its number. */
static uint32_t written(struct world w, const char *text)
{
    struct msg m;
    uint32_t req = 0, n = 0;
    char name[65] = "";
    struct slice kept = {"", 0};
    CU_ASSERT_EQUAL_FATAL(receive(w.control, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_HOME_KEEP);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req) | msg_get_u32(&m, &n) | msg_get_str(&m, name, 65) |
                        msg_get_slice(&m, CAPTURED_KEPT_MAX, &kept) | msg_end(&m),
                    0);
    CU_ASSERT(n == 1 && strcmp(name, "stays") == 0 && slice_eq_str(kept, text));
    msg_done(&m);
    return req;
}

static void say_kept(struct world w, uint32_t req, uint8_t ok)
{
    struct msg m;
    msg_init(&m, W_HOME_KEPT);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    send_on(w.control, &m);
}

/* One sandbox of one policy has the home: what is there is its own, what it captures is written
 * before it is answered, and nobody else's is. */
static void test_home(void)
{
    static const char old[] = "stays b2xkLXRva2Vu\ngot b2xkLXRva2Vu\nid eA==\ngone eA==\nbad\n";
    static const char new[] = "gone eA==\nstays dG9rZW4tMDEyMzQ1Njc4OQ==\n"; /* another's too */
    struct world w = start();
    struct msg m;
    struct reply x = token;
    int fd = injector(w, "coder", all, ARRAY_LEN(all)),
        other = injector(w, "other", all, ARRAY_LEN(all));
    msg_init(&m, W_HOME);
    msg_put_str(&m, "box-1");
    msg_put_str(&m, "coder");
    msg_put_str(&m, old);
    send_on(w.control, &m);
    turn(fd, 2);
    get(fd, 1, "box-1", "stays", false);
    captures(fd, 1, true, "old-token", 0, "");
    get(fd, 2, "box-2", "stays", false);
    captures(fd, 2, false, "no reply to this sandbox", 0, "");
    get(other, 3, "box-1", "stays", false);
    captures(other, 3, false, "no reply to this sandbox", 0, "");
    get(fd, 4, "box-1", "got", false); /* it does not stay: it is not taken from there */
    captures(fd, 4, false, "no reply to this sandbox", 0, "");
    capture(fd, 5, &x); /* nor written */
    captures(fd, 5, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    x.secret = "stays";
    capture(other, 6, &x);
    captures(other, 6, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    x.sandbox = "box-2";
    capture(fd, 7, &x);
    captures(fd, 7, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    CU_ASSERT(!turn(w.control, 20));
    x.sandbox = "box-1";
    capture(fd, 8, &x);
    uint32_t req = written(w, new);
    CU_ASSERT(!turn(fd, 20)); /* it waits */
    say_kept(w, req + 1, 1);
    CU_ASSERT(!turn(fd, 20));
    say_kept(w, req, 1);
    captures(fd, 8, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    capture(fd, 9, &x);
    say_kept(w, written(w, new), 0);
    captures(fd, 9, false, "could not be kept", 0, "");
    capture(fd, 10, &x);
    req = written(w, new);
    close(fd); /* the injector is gone meanwhile */
    turn(w.control, 20);
    say_kept(w, req, 1);
    turn(other, 20);
    get(other, 11, "box-1", "stays", false);
    captures(other, 11, true, "token-0123456789", 0, "");
    close(other);
    stop(w);
}

/* A captured AWS key signs for its sandbox; neither it nor its secret part is ever told. */
static void test_captured_key(void)
{
    struct world w = start();
    struct reply x = token;
    struct wish own = good;
    int fd = injector(w, "coder", all, ARRAY_LEN(all)), none = injector(w, "coder", NULL, 0);
    x.body = "{\"a\":{\"AccessKeyId\":\"" OWN_ID "\",\"SecretAccessKey\":\"" OWN_KEY
             "\",\"SessionToken\":\"session-token-9\"}}";
    capture(fd, 1, &x);
    captures(fd, 1, true,
             "{\"a\":{\"AccessKeyId\":\"<placeholder>\",\"SecretAccessKey\":\"<placeholder>\","
             "\"SessionToken\":\"<placeholder>\"}}",
             3, OWN_KEY); /* to look for them in what else comes: the longest first */
    get(fd, 2, "box-1", "got", false);
    captures(fd, 2, true, OWN_ID " session-token-9", 0, "");
    list(fd, 3, "got", false);
    captures(fd, 3, true, "", 1, "session-token-9");
    own.name = "got";
    own.sandbox = "box-1";
    own.key_id = OWN_ID;
    ask(fd, 4, &own);
    signs(fd, 4, true, signed_with(OWN_ID, OWN_KEY, "eu-west-1"));
    own.key_id = ID;
    ask(fd, 5, &own);
    refuses(fd, 5, "the key was changed meanwhile");
    own.key_id = OWN_ID;
    own.sandbox = "box-2";
    ask(fd, 6, &own);
    refuses(fd, 6, RELEASED);
    own.sandbox = "box-1";
    ask(none, 6, &own); /* the same policy's, to which it is released no longer */
    refuses(none, 6, RELEASED);
    close(none);
    x.body = "{\"a\":\"token-0123456789\"}"; /* the newest is no key */
    capture(fd, 7, &x);
    captures(fd, 7, true, "{\"a\":\"<placeholder>\"}", 1, "token-0123456789");
    own.sandbox = "box-1";
    ask(fd, 8, &own);
    refuses(fd, 8, "it is not a key that signs");
    close(fd);
    stop(w);
}

static void test_captured_bad(void)
{
    static char long_name[200];
    struct reply bad[5];
    struct world w = start();
    memset(long_name, 'a', sizeof long_name - 1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bad[i] = token;
    bad[0].sandbox = long_name;
    bad[1].n = MANY;
    bad[2].form = CAPTURED_XML + 1;
    bad[3].more = true;
    bad[4].secret = long_name;
    for (size_t i = 0; i < ARRAY_LEN(bad) + 4; i++) {
        struct msg m;
        int fd = injector(w, "coder", all, ARRAY_LEN(all));
        if (i < ARRAY_LEN(bad))
            capture(fd, 1, &bad[i]);
        else if (i < ARRAY_LEN(bad) + 2)
            get(fd, 1, i == ARRAY_LEN(bad) ? long_name : "box-1", "got", i > ARRAY_LEN(bad));
        else
            list(fd, 1, i == ARRAY_LEN(bad) + 2 ? long_name : "got", i > ARRAY_LEN(bad) + 2);
        CU_ASSERT_EQUAL(receive(fd, &m), 0);
        close(fd);
    }
    stop(w);
}

void suite_vault_sign(void)
{
    CU_pSuite s = CU_add_suite("vault_sign", setup, teardown);
    CU_add_test(s, "AWS keys: whose, which, what", test_sign);
    CU_add_test(s, "bad messages", test_bad_messages);
    CU_add_test(s, "texts", test_text);
    CU_add_test(s, "shares of an agent of the host that says nothing", test_agent_shares);
    CU_add_test(s, "keys that come late, or not", test_late);
    CU_add_test(s, "what replies held: whose it is", test_captured);
    CU_add_test(s, "a token whose claims are seen", test_captured_claims);
    CU_add_test(s, "of a sandbox that is gone", test_captured_gone);
    CU_add_test(s, "what stays with a home", test_home);
    CU_add_test(s, "a key that a reply held", test_captured_key);
    CU_add_test(s, "bad messages about replies", test_captured_bad);
}

void tap_suites(void)
{
    suite_vault_sign();
}
