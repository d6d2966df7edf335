/* A gate that an adversary owns, against the injector (promises P2 and P5): what it may send on its
 * channel must not make a request of its own out of a body, nor undo what the rule does to heads.
 * The test is the gate, the vault, the logger, the dialer and the origin. */
#include "tap_main.h"

#include "config.h"
#include "dial_client.h"
#include "injection.h"
#include "injector.h"
#include "mint.h"
#include "policy.h"
#include "proc.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void suite_owned_gate(void);

static const char text[] = "version: 1\n"
                           "secrets: { k: { env: K } }\n"
                           "policies:\n"
                           "  p:\n"
                           "    rules:\n"
                           "      - { allow: keyed.example/plain, methods: [GET] }\n"
                           "      - allow: keyed.example\n"
                           "        methods: [GET, POST]\n"
                           "        with: { bearer: k }\n"
                           "        set_headers: { X-Set: policy }\n"
                           "        remove_headers: [X-Gone]\n";

struct bed {
    struct injector i;
    int gate, vault, dialer, logger;
};

static int pair(int *theirs)
{
    int fds[2];
    struct err err;
    CU_ASSERT_FATAL(ipc_pair(fds, &err) == 0);
    *theirs = fds[0];
    return fds[1];
}

static void post(int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
}

static void give_journal(struct bed *b)
{
    char path[] = "/tmp/durward-test-XXXXXX";
    struct msg m;
    close(mkostemp(path, O_CLOEXEC));
    msg_init(&m, W_JOURNAL);
    msg_put_u32(&m, 9);
    msg_put_u64(&m, 1 << 20);
    msg_put_u64(&m, 1);
    msg_put_fd(&m, open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
    unlink(path);
    post(b->logger, &m);
}

static void bed_open(struct bed *b)
{
    struct err err = {0};
    int far;
    memset(b, 0, sizeof *b);
    struct injector *i = &b->i;
    struct config *c = config_parse(slice_str(text), "test", &err);
    char *json = c ? config_policy_json(c, "p") : NULL;
    if (json == NULL)
        printf("# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    snprintf(i->name, sizeof i->name, "p");
    i->limits = *config_limits(c);
    i->policy = policy_parse(json, strlen(json), &err);
    i->base = event_base_new();
    i->journal = journal_new(i->base, false);
    i->dial = dial_client_new(i->base, 5);
    i->secrets = secret_client_new(i->base);
    injection_shares(i, 1024);
    i->scrubs = scrub_cache_new(i->base);
    i->recall = recall_new();
    CU_ASSERT_EQUAL(origin_env_init(&i->origin, i->base, &i->limits, 4, 5), 0);
    b->logger = pair(&far);
    journal_attach(i->journal, far, 1);
    b->dialer = pair(&far);
    dial_client_attach(i->dial, far, 1);
    b->vault = pair(&far);
    secret_client_attach(i->secrets, far, 1);
    b->gate = pair(&far);
    CU_ASSERT_PTR_NOT_NULL_FATAL(injector_channel_server_new(i, far, "sb-1", false));
    give_journal(b);
    config_unref(c);
    free(json);
}

static void bed_close(struct bed *b)
{
    close(b->gate);
    for (int i = 0; i < 5; i++)
        event_base_loop(b->i.base, EVLOOP_NONBLOCK);
    if (b->vault >= 0)
        close(b->vault);
    close(b->dialer);
    close(b->logger);
    pool_free(b->i.origin.pool);
    scrub_cache_free(b->i.scrubs);
    recall_free(b->i.recall);
    secret_client_free(b->i.secrets);
    dial_client_free(b->i.dial);
    journal_free(b->i.journal);
    policy_free(b->i.policy);
    SSL_CTX_free(b->i.origin.tls);
    event_base_free(b->i.base);
}

/* The next message on one of our ends: 1, 0 the channel was ended, -1 nothing came. */
static int bed_next(struct bed *b, int fd, struct msg *m, int ms)
{
    for (int i = 0; i <= ms; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        event_base_loop(b->i.base, EVLOOP_NONBLOCK);
        if (poll(&p, 1, 1) > 0)
            return msg_recv(fd, m);
    }
    return -1;
}

static const char *const override[][2] = {
    {"x-http-method-override", "DELETE"}, {"x-set", "gate"}, {"x-gone", "here"}, {"x-kept", "1"}};

static void request_of(struct bed *b, const char *method, const char *path, const char *credential,
                       enum body_kind body, uint64_t length)
{
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_REQUEST);
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 1);
    msg_put_u8(&m, SCHEME_HTTPS);
    msg_put_str(&m, "keyed.example");
    msg_put_u32(&m, 443);
    msg_put_str(&m, method);
    msg_put_str(&m, path);
    msg_put_u8(&m, 0);
    msg_put_str(&m, "");
    msg_put_u8(&m, (uint8_t)body);
    msg_put_u64(&m, length);
    msg_put_u8(&m, 0);
    msg_put_str(&m, credential);
    msg_put_str(&m, "connect");
    msg_put_str(&m, "");
    msg_put_u32(&m, 0); /* marks */
    msg_put_u32(&m, 0); /* blanks */
    msg_put_u32(&m, ARRAY_LEN(override));
    for (size_t i = 0; i < ARRAY_LEN(override); i++) {
        msg_put_str(&m, override[i][0]);
        msg_put_str(&m, override[i][1]);
    }
    post(b->gate, &m);
}

static void request(struct bed *b, const char *method, enum body_kind body, uint64_t length)
{
    request_of(b, method, "/a", "k", body, length);
}

static void send_body(struct bed *b, size_t n)
{
    static const char bytes[64];
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_BODY);
    msg_put_u32(&m, 1);
    msg_put_bytes(&m, bytes, n);
    post(b->gate, &m);
}

static void send_end(struct bed *b)
{
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_END);
    msg_put_u32(&m, 1);
    post(b->gate, &m);
}

/* A byte too many would be read as a request, a byte too few makes the next request a body. */
static void test_bodies(void)
{
    static const struct {
        const char *method;
        enum body_kind kind;
        uint64_t length;
        size_t first, second;
        bool end, good;
    } rows[] = {
        {"GET", BODY_NONE, 0, 1, 0, false, false},    {"GET", BODY_NONE, 7, 1, 0, false, false},
        {"GET", BODY_NONE, 0, 0, 0, true, true},      {"POST", BODY_LENGTH, 5, 6, 0, false, false},
        {"POST", BODY_LENGTH, 5, 5, 1, false, false}, {"POST", BODY_LENGTH, 5, 3, 0, true, false},
        {"POST", BODY_LENGTH, 5, 0, 0, true, false},  {"POST", BODY_LENGTH, 5, 2, 3, true, true},
        {"POST", BODY_CHUNKED, 0, 7, 9, true, true},
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct bed b;
        struct msg m;
        bed_open(&b);
        request(&b, rows[k].method, rows[k].kind, rows[k].length);
        if (rows[k].first)
            send_body(&b, rows[k].first);
        if (rows[k].second)
            send_body(&b, rows[k].second);
        if (rows[k].end)
            send_end(&b);
        int r = bed_next(&b, b.gate, &m, 30);
        if (r != (rows[k].good ? -1 : 0))
            printf("# row %zu: %d\n", k, r);
        CU_ASSERT_EQUAL(r, rows[k].good ? -1 : 0);
        if (r > 0)
            msg_done(&m);
        bed_close(&b);
    }
}

/* ---- an origin ---- */

static NORETURN void serve(int fd, X509 *cert, EVP_PKEY *key, int report)
{
    char head[4096];
    size_t n = 0;
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL *ssl = SSL_new(ctx);
    alarm(10);
    if (SSL_use_certificate(ssl, cert) != 1 || SSL_use_PrivateKey(ssl, key) != 1 ||
        SSL_set_fd(ssl, fd) != 1 || SSL_accept(ssl) != 1)
        _exit(1);
    while (n < sizeof head && !memmem(head, n, "\r\n\r\n", 4)) {
        int got = SSL_read(ssl, head + n, (int)(sizeof head - n));
        if (got <= 0)
            _exit(2);
        n += (size_t)got;
    }
    _exit(write(report, head, n) == (ssize_t)n ? 0 : 3);
}

static int dialed_origin(struct bed *b, pid_t *pid, int report)
{
    int fds[2];
    struct err err = {0};
    struct mint_issuer issuer = {0};
    struct authority a = {.scheme = SCHEME_HTTPS, .kind = HOST_NAME, .host = "keyed.example"};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    CU_ASSERT_FATAL(mint_issuer_make(&issuer, time(NULL), &err) == 0);
    X509 *leaf = mint_leaf(&issuer, &a, key, 1, time(NULL), &err);
    CU_ASSERT_FATAL(leaf != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(b->i.origin.tls), issuer.cert);
    *pid = fork();
    if (*pid == 0)
        serve(fds[1], leaf, key, report);
    close(fds[1]);
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    X509_free(leaf);
    EVP_PKEY_free(key);
    mint_issuer_clear(&issuer);
    return fds[0];
}

static size_t count(const char *in, const char *what)
{
    size_t n = 0;
    for (const char *at = in; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static uint32_t expect(struct bed *b, int fd, uint16_t type)
{
    struct msg m;
    uint32_t req = 0;
    CU_ASSERT_EQUAL_FATAL(bed_next(b, fd, &m, 2000), 1);
    CU_ASSERT_EQUAL_FATAL(m.type, type);
    (void)msg_get_u32(&m, &req);
    msg_done(&m);
    return req;
}

/* The injector repeats all of it: fields that name another method, and the rule's own edits. */
static void test_heads(void)
{
    struct bed b;
    struct msg m;
    char head[4096] = "";
    int report[2];
    pid_t pid;
    size_t n = 0;
    bed_open(&b);
    CU_ASSERT_FATAL(pipe2(report, O_CLOEXEC) == 0);
    request(&b, "GET", BODY_NONE, 0);
    send_end(&b);
    uint32_t req = expect(&b, b.vault, W_SECRET_GET);
    msg_init(&m, W_SECRET);
    msg_put_u32(&m, req);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, 60);
    msg_put_str(&m, "s3cret");
    post(b.vault, &m);
    req = expect(&b, b.dialer, W_DIAL);
    msg_init(&m, W_DIALED);
    msg_put_u32(&m, req);
    msg_put_str(&m, "192.0.2.1:443");
    msg_put_fd(&m, dialed_origin(&b, &pid, report[1]));
    post(b.dialer, &m);
    struct pollfd p = {.fd = report[0], .events = POLLIN};
    for (int i = 0; i < 5000 && poll(&p, 1, 1) == 0; i++)
        event_base_loop(b.i.base, EVLOOP_NONBLOCK);
    if (p.revents & POLLIN)
        n = (size_t)read(report[0], head, sizeof head - 1);
    head[n] = 0;
    CU_ASSERT_EQUAL(count(head, "authorization: Bearer s3cret\r\n"), 1);
    CU_ASSERT_EQUAL(count(head, "x-http-method-override"), 0);
    CU_ASSERT_EQUAL(count(head, "x-set: "), 1);
    CU_ASSERT_EQUAL(count(head, "x-set: policy\r\n"), 1);
    CU_ASSERT_EQUAL(count(head, "x-gone"), 0);
    CU_ASSERT_EQUAL(count(head, "x-kept: 1\r\n"), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(report[0]);
    close(report[1]);
    bed_close(&b);
}

/* A secret of that host which cannot be had: alone, an injector has not sent it either. Where there
 * may be another one, only the vault's no says that nobody has. */
static void test_several(void)
{
    static const struct {
        bool several, vault_says_no, goes_on;
    } rows[] = {
        {false, false, true}, {true, false, false}, {false, true, true}, {true, true, true}};
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct bed b;
        struct msg m;
        bed_open(&b);
        b.i.several = rows[k].several;
        if (!rows[k].vault_says_no) {
            close(b.vault);
            b.vault = -1;
            while (bed_next(&b, b.gate, &m, 5) == 1)
                msg_done(&m);
        }
        request_of(&b, "GET", "/plain", "", BODY_NONE, 0);
        send_end(&b);
        if (rows[k].vault_says_no) {
            uint32_t req = expect(&b, b.vault, W_SECRET_GET);
            msg_init(&m, W_SECRET);
            msg_put_u32(&m, req);
            msg_put_u8(&m, 0);
            msg_put_u32(&m, 0);
            msg_put_str(&m, "it is not set");
            post(b.vault, &m);
        }
        int r = bed_next(&b, b.dialer, &m, (SECRET_CLIENT_WAIT_SECONDS + 1) * 1000);
        CU_ASSERT_EQUAL(r, rows[k].goes_on ? 1 : -1);
        if (r == 1) {
            CU_ASSERT_EQUAL(m.type, W_DIAL);
            msg_done(&m);
        }
        bed_close(&b);
    }
}

void suite_owned_gate(void)
{
    CU_pSuite s = CU_add_suite("owned_gate", NULL, NULL);
    CU_add_test(s, "a body is exactly what its head declared", test_bodies);
    CU_add_test(s, "the rule's edits hold whatever the gate sends", test_heads);
    CU_add_test(s, "a secret of the host that this injector never had", test_several);
}

void tap_suites(void)
{
    signal(SIGPIPE, SIG_IGN);
    suite_owned_gate();
}
