/* The signer over its channels, with this test as parent and as gates. */
#include "signer_fixture.h"

void suite_signer(void);

static void test_create_then_load(void)
{
    char first[4096], second[4096];
    bool created;
    struct stat st;
    char path[128];
    struct started s = start_ready(&created, first, sizeof first);
    CU_ASSERT(created);
    stop(s);
    snprintf(path, sizeof path, "%s/key.pem", ca_dir);
    CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size > 0);
    s = start_ready(&created, second, sizeof second);
    CU_ASSERT(!created);
    CU_ASSERT_STRING_EQUAL(first, second);
    CU_ASSERT_PTR_NOT_NULL(strstr(first, "BEGIN CERTIFICATE"));
    CU_ASSERT_PTR_NULL(strstr(first, "PRIVATE"));
    stop(s);
}

static void test_mints(void)
{
    char pem[4096];
    bool created;
    struct msg m;
    uint32_t req;
    struct slice leaf, issuer;
    unsigned char *spki = NULL;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    int n = i2d_PUBKEY(key, &spki);
    struct started s = start_ready(&created, pem, sizeof pem);
    int ch = gate_channel(s, 5);
    CU_ASSERT_EQUAL(signer_channels(s.signer), 1);
    ask(ch, 77, "api.github.com", (struct slice){(char *)spki, (size_t)n});
    CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_MINTED);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    CU_ASSERT_EQUAL(req, 77);
    CU_ASSERT_EQUAL(msg_get_slice(&m, 20000, &leaf) | msg_get_slice(&m, 20000, &issuer), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    X509 *x = to_cert(leaf), *ca = to_cert(issuer);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ca);
    CU_ASSERT_EQUAL(X509_check_host(x, "api.github.com", 0, 0, NULL), 1);
    CU_ASSERT_EQUAL(X509_verify(x, X509_get0_pubkey(ca)), 1);
    CU_ASSERT_EQUAL(X509_check_private_key(x, key), 1);
    X509_free(x);
    X509_free(ca);
    msg_done(&m);

    /* what the policy refuses is answered; the channel stays */
    ask(ch, 78, "*.github.com", (struct slice){(char *)spki, (size_t)n});
    CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_MINT_FAIL);
    msg_done(&m);
    ask(ch, 79, "a.example", SLICE("no key"));
    CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_MINT_FAIL);
    msg_done(&m);
    CU_ASSERT_EQUAL(signer_minted(s.signer), 1);
    close(ch);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(signer_channels(s.signer), 0);
    stop(s);
    OPENSSL_free(spki);
    EVP_PKEY_free(key);
}

static void send_plain(int fd, uint16_t type, size_t junk)
{
    struct msg m;
    msg_init(&m, type);
    for (size_t i = 0; i < junk; i++)
        msg_put_u8(&m, 0xff);
    CU_ASSERT_EQUAL(msg_send(fd, &m), 0);
    msg_done(&m);
}

static void test_bad_channel(void)
{
    char pem[4096];
    bool created;
    struct msg m;
    struct started s = start_ready(&created, pem, sizeof pem);
    int a = gate_channel(s, 1), b = gate_channel(s, 2);
    send_plain(a, W_SECRET_GET, 0);
    CU_ASSERT_EQUAL(receive(a, &m), 0);
    CU_ASSERT_EQUAL(signer_channels(s.signer), 1);
    int c = gate_channel(s, 3);
    send_plain(c, W_MINT, 9);
    CU_ASSERT_EQUAL(receive(c, &m), 0);
    ask(b, 1, "a.example", SLICE("x")); /* the other one lives */
    CU_ASSERT_EQUAL(receive(b, &m), 1);
    msg_done(&m);
    msg_init(&m, W_PEER_GONE);
    msg_put_u32(&m, 2);
    CU_ASSERT_EQUAL(msg_send(s.control, &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL(receive(b, &m), 0);
    close(a);
    close(b);
    close(c);
    /* only gates mint */
    int d = channel_of(s, 9, ROLE_INJECTOR, "sb-one", "", MINT_SANDBOX, NULL);
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(signer_channels(s.signer), 0);
    CU_ASSERT_EQUAL(receive(d, &m), 0);
    close(d);
    stop(s);
}

/* One key for many names, then another key: each leaf is for its own name and key alone. */
static void test_many_names(void)
{
    static const char *const hosts[] = {"a.example", "b.example", "192.0.2.9", "a.example"};
    char pem[4096];
    bool created;
    struct msg m;
    EVP_PKEY *keys[] = {EVP_EC_gen("P-256"), EVP_EC_gen("P-256")};
    struct started s = start_ready(&created, pem, sizeof pem);
    int ch = gate_channel(s, 5);
    for (uint32_t i = 0; i < 2 * ARRAY_LEN(hosts); i++) {
        unsigned char *spki = NULL;
        EVP_PKEY *key = keys[i / 3 % 2];
        const char *host = hosts[i % ARRAY_LEN(hosts)];
        uint32_t req;
        struct slice leaf, issuer;
        int n = i2d_PUBKEY(key, &spki);
        ask(ch, i, host, (struct slice){(char *)spki, (size_t)n});
        OPENSSL_free(spki);
        CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
        CU_ASSERT_EQUAL_FATAL(m.type, W_MINTED);
        CU_ASSERT(msg_get_u32(&m, &req) == 0 && req == i);
        CU_ASSERT_EQUAL(msg_get_slice(&m, 20000, &leaf) | msg_get_slice(&m, 20000, &issuer), 0);
        X509 *x = to_cert(leaf);
        CU_ASSERT_PTR_NOT_NULL_FATAL(x);
        CU_ASSERT_EQUAL(X509_check_private_key(x, key), 1);
        for (size_t k = 0; k < ARRAY_LEN(hosts); k++)
            CU_ASSERT_EQUAL(X509_check_host(x, hosts[k], 0, 0, NULL) == 1 ||
                                X509_check_ip_asc(x, hosts[k], 0) == 1,
                            strcmp(hosts[k], host) == 0);
        X509_free(x);
        msg_done(&m);
    }
    CU_ASSERT_EQUAL(signer_minted(s.signer), 2 * ARRAY_LEN(hosts));
    close(ch);
    stop(s);
    EVP_PKEY_free(keys[0]);
    EVP_PKEY_free(keys[1]);
}

/* What a gate that was taken over may ask for in a second is bounded by limits.mints, beyond twice
 * as much at once; other gates do not notice. */
static void test_rate(void)
{
    enum { RATE = 20, ASKED = 200 };
    char pem[4096], text[512];
    bool created;
    struct msg m;
    uint32_t req;
    unsigned minted = 0, over = 0;
    rate = RATE;
    struct started s = start_ready(&created, pem, sizeof pem);
    rate = 1000;
    int ch = gate_channel(s, 5);
    int other = channel_of(s, 6, ROLE_GATE, "sb-two", "", MINT_SANDBOX, NULL);
    for (uint32_t i = 0; i < ASKED; i++)
        ask(ch, i, "a.example", spki_of());
    for (uint32_t i = 0; i < ASKED; i++) {
        CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
        minted += m.type == W_MINTED;
        if (m.type == W_MINT_FAIL)
            over += msg_get_u32(&m, &req) == 0 && msg_get_str(&m, text, sizeof text) == 0 &&
                    strcmp(text, "more than 20 leaves a second were asked for") == 0;
        msg_done(&m);
    }
    CU_ASSERT_EQUAL(minted + over, ASKED);
    CU_ASSERT(minted >= 2 * RATE && minted <= 4 * RATE); /* twice, and what two seconds bring */
    ask(other, 1, "a.example", spki_of());
    CU_ASSERT_EQUAL_FATAL(receive(other, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_MINTED);
    msg_done(&m);
    close(ch);
    close(other);
    stop(s);
}

/* Channels take turns: who asks for one leaf waits for one of each other, not for their queues. */
static void test_turns(void)
{
    enum { FLOODS = 8, EACH = 60 };
    char pem[4096];
    bool created;
    struct msg m;
    int flood[FLOODS];
    struct started s = start_ready(&created, pem, sizeof pem);
    for (uint32_t i = 0; i < FLOODS; i++)
        flood[i] = channel_of(s, i, ROLE_GATE, "sb-flood", "", MINT_SANDBOX, NULL);
    int ch = gate_channel(s, 100);
    for (uint32_t k = 0; k < EACH; k++)
        for (uint32_t i = 0; i < FLOODS; i++)
            ask(flood[i], k, "a.example", spki_of());
    for (int i = 0; i < 10; i++) /* they have queues now */
        event_base_loop(base, EVLOOP_ONCE);
    uint64_t before = signer_minted(s.signer);
    CU_ASSERT(before < FLOODS * EACH / 4);
    ask(ch, 1, "b.example", spki_of());
    CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_MINTED);
    CU_ASSERT(signer_minted(s.signer) - before <= 2 * FLOODS);
    msg_done(&m);
    close(ch);
    for (uint32_t i = 0; i < FLOODS; i++)
        close(flood[i]);
    stop(s);
}

/* The parent never says these: the role ends rather than guess. */
static void test_bad_control(void)
{
    static const struct {
        uint16_t type;
        size_t junk;
    } rows[] = {{W_MINT, 0},      {W_INIT, 0},   {W_PEER, 0}, {W_PEER, 40},
                {W_PEER_GONE, 3}, {W_POLICY, 0}, {W_ROOT, 2}};
    char pem[4096];
    for (size_t i = 0; i <= ARRAY_LEN(rows); i++) {
        bool created, ready = i < ARRAY_LEN(rows);
        struct timeval tv = {5, 0};
        struct started s = ready ? start_ready(&created, pem, sizeof pem) : start();
        send_plain(s.control, ready ? rows[i].type : W_PEER, ready ? rows[i].junk : 0);
        event_base_loopexit(base, &tv);
        event_base_dispatch(base);
        CU_ASSERT(event_base_got_break(base));
        stop(s);
    }
}

static void test_cannot_start(void)
{
    struct ca_files f;
    struct msg m;
    char text[512];
    CU_ASSERT_EQUAL_FATAL(ca_files_open(ca_dir, NULL, NULL, &f, NULL), 0);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct ca_files empty = {.key_fd = null, .cert_fd = f.cert_fd};
    struct started s = start();
    send_init(s, &empty, false, MINT_HOURS_MAX);
    CU_ASSERT_EQUAL_FATAL(receive(s.control, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_FAILED);
    CU_ASSERT_EQUAL(msg_get_str(&m, text, sizeof text), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "key"));
    msg_done(&m);
    stop(s);
    s = start(); /* more than a day is no leaf's life: the message is bad */
    send_init(s, &f, false, MINT_HOURS_MAX + 1);
    struct timeval tv = {2, 0};
    event_base_loopexit(base, &tv);
    event_base_dispatch(base);
    CU_ASSERT(event_base_got_break(base)); /* the role has ended, not the time */
    stop(s);
    close(null);
    ca_files_close(&f);
}

void suite_signer(void)
{
    CU_pSuite s = CU_add_suite("signer", setup, teardown);
    CU_add_test(s, "makes a CA once and loads it afterwards", test_create_then_load);
    CU_add_test(s, "mints for a gate", test_mints);
    CU_add_test(s, "a bad message ends its channel only", test_bad_channel);
    CU_add_test(s, "many names, two keys", test_many_names);
    CU_add_test(s, "leaves a second are bounded", test_rate);
    CU_add_test(s, "channels take turns", test_turns);
    CU_add_test(s, "what its parent never says", test_bad_control);
    CU_add_test(s, "a CA that cannot sign is reported", test_cannot_start);
}

void tap_suites(void)
{
    suite_signer();
}
