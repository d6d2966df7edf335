/* The dialer role, whole, in this process: the test is its parent, its logger, its gates and
 * injectors, the name server and the origins. */
#include "dialer.h"
#include "dialer_bed.h"
#include "tap_main.h"
#include "token.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void suite_dialer(void);

static void test_connects(void)
{
    struct bed b;
    struct reply r;
    int v = 0;
    socklen_t n = sizeof v;
    char c = 0;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 7, "box-1");
    bed_dial(&b, gate, 1, "plain.example", 443, "4-9", "");
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
    CU_ASSERT_EQUAL(r.type, W_DIALED);
    CU_ASSERT_EQUAL(r.req, 1);
    CU_ASSERT_STRING_EQUAL(r.text, b.origin_text);
    CU_ASSERT_FATAL(r.fd >= 0);
    CU_ASSERT(fcntl(r.fd, F_GETFL) & O_NONBLOCK);
    CU_ASSERT(getsockopt(r.fd, IPPROTO_TCP, TCP_NODELAY, &v, &n) == 0 && v == 1);
    int far = accept4(b.origin, NULL, NULL, SOCK_CLOEXEC);
    CU_ASSERT_FATAL(far >= 0);
    CU_ASSERT(write(r.fd, "x", 1) == 1 && read(far, &c, 1) == 1 && c == 'x');
    close(r.fd);
    CU_ASSERT_EQUAL(read(far, &c, 1), 0); /* the dialer has kept no copy */
    close(far);
    CU_ASSERT_EQUAL(b.lookups, 0);
    struct seen s;
    CU_ASSERT_EQUAL(bed_records(&b, &s), 1);
    CU_ASSERT_STRING_EQUAL(s.code, "ok");
    CU_ASSERT_STRING_EQUAL(s.authority, "plain.example");
    CU_ASSERT_STRING_EQUAL(s.address, b.origin_text);
    CU_ASSERT_STRING_EQUAL(s.sandbox, "box-1");
    CU_ASSERT_STRING_EQUAL(s.policy, "coder");
    CU_ASSERT_STRING_EQUAL(s.request, "4-9");
    CU_ASSERT_STRING_EQUAL(s.detail, "");
    CU_ASSERT(s.has_ms);
    close(gate);
    bed_close(&b);
}

/* What each kind of channel gets. No name is asked for before a decision (attack D3). */
static void test_decides(void)
{
    static const struct {
        enum role kind;
        const char *host;
        uint32_t port;
        bool allowed;
    } rows[] = {
        {ROLE_GATE, "plain.example", 443, true},
        {ROLE_INJECTOR, "plain.example", 443, false},
        {ROLE_GATE, "secret.example", 443, false},
        {ROLE_INJECTOR, "secret.example", 443, true},
        {ROLE_GATE, "plain.example", 8443, false},
        {ROLE_GATE, "other.example", 443, false},
        {ROLE_GATE, "sub.plain.example", 443, false},
        {ROLE_GATE, "a.wild.example", 443, true},
        {ROLE_GATE, "wild.example", 443, false},
        {ROLE_INJECTOR, "a.wild.example", 443, false},
        {ROLE_GATE, "denied.example", 443, false},
        /* of a host that gets a secret no gate has a descriptor, whichever rule it names */
        {ROLE_GATE, "both.example", 443, false},
        {ROLE_INJECTOR, "both.example", 443, true},
        {ROLE_GATE, "both.example", 8443, false},
        {ROLE_INJECTOR, "both.example", 8443, true},
        {ROLE_GATE, "a.keyed.example", 443, false},
        {ROLE_INJECTOR, "a.keyed.example", 443, true},
    };
    struct bed b;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    int injector = bed_peer(&b, ROLE_INJECTOR, 2, "");
    unsigned connected = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reply r;
        int fd = rows[i].kind == ROLE_GATE ? gate : injector;
        bed_dial(&b, fd, (uint32_t)i + 1, rows[i].host, rows[i].port, "1-1", "");
        CU_ASSERT_FATAL(bed_reply(&b, fd, &r, 2000));
        if (rows[i].allowed != (r.type == W_DIALED))
            printf("# %s:%u %s\n", rows[i].host, rows[i].port, r.code);
        CU_ASSERT_EQUAL(r.type, rows[i].allowed ? W_DIALED : W_DIAL_FAIL);
        if (!rows[i].allowed)
            CU_ASSERT_STRING_EQUAL(r.code, "denied");
        connected += r.fd >= 0;
        if (r.fd >= 0)
            close(r.fd);
    }
    CU_ASSERT_EQUAL(b.lookups, 0);
    CU_ASSERT_EQUAL(connected, 6);
    struct seen s;
    CU_ASSERT_EQUAL(bed_records(&b, &s), ARRAY_LEN(rows)); /* each has its record */
    CU_ASSERT_STRING_EQUAL(s.authority, "a.keyed.example");
    close(gate);
    close(injector);
    bed_close(&b);
}

static void expect_fail(struct bed *b, int fd, const char *host, uint32_t port, const char *code,
                        const char *address)
{
    struct reply r;
    struct seen s;
    static uint32_t req = 100;
    bed_dial(b, fd, ++req, host, port, "1-1", "");
    CU_ASSERT_FATAL(bed_reply(b, fd, &r, 4000));
    CU_ASSERT_EQUAL(r.type, W_DIAL_FAIL);
    CU_ASSERT_EQUAL(r.req, req);
    CU_ASSERT_STRING_EQUAL(r.code, code);
    if (strcmp(r.code, code) != 0)
        printf("# %s: %s, expected %s\n", host, r.code, code);
    (void)bed_records(b, &s);
    CU_ASSERT_STRING_EQUAL(s.code, code);
    if (address)
        CU_ASSERT_STRING_EQUAL(s.address, address);
}

/* D5, D6: an allowed name that leads to a forbidden address. */
static void test_blocked(void)
{
    struct bed b;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    b.answer_v4[0] = 169, b.answer_v4[1] = 254, b.answer_v4[2] = 169, b.answer_v4[3] = 254;
    b.answer_a = true;
    expect_fail(&b, gate, "resolved.example", 443, "blocked_ip", "169.254.169.254:443");
    CU_ASSERT_EQUAL(b.lookups, 2); /* A and AAAA */
    memcpy(b.answer_v4, "\x7f\0\0\1", 4);
    memcpy(b.answer_v6, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
    b.answer_aaaa = true;
    expect_fail(&b, gate, "resolved.example", 443, "blocked_ip", NULL);
    b.answer_a = false;
    expect_fail(&b, gate, "resolved.example", 443, "blocked_ip", "[::ffff:10.0.0.1]:443");
    b.answer_aaaa = false;
    expect_fail(&b, gate, "resolved.example", 443, "resolve", "");
    b.nxdomain = true;
    expect_fail(&b, gate, "resolved.example", 443, "resolve", "");
    CU_ASSERT_EQUAL(b.lookups, 10);
    /* addresses themselves, which a rule names */
    expect_fail(&b, gate, "169.254.169.254", 443, "blocked_ip", "169.254.169.254:443");
    expect_fail(&b, gate, "127.0.0.1", 443, "blocked_ip", "127.0.0.1:443");
    expect_fail(&b, gate, "::1", 443, "blocked_ip", "[::1]:443");
    expect_fail(&b, gate, "93.184.216.34", 443, "blocked_ip", "93.184.216.34:443"); /* listed */
    CU_ASSERT_EQUAL(b.lookups, 10);
    /* names that only /etc/hosts knows are resolved, and blocked */
    expect_fail(&b, gate, "localhost", 443, "blocked_ip", NULL);
    CU_ASSERT_EQUAL(b.lookups, 10);
    close(gate);
    bed_close(&b);
}

/* No search domain is ever put behind a name. */
static void test_no_search(void)
{
    struct bed b;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    b.nxdomain = true;
    expect_fail(&b, gate, "single", 443, "resolve", "");
    CU_ASSERT_EQUAL(b.lookups, 2);
    CU_ASSERT_STRING_EQUAL(b.asked, "single");
    close(gate);
    bed_close(&b);
}

static void test_refused(void)
{
    struct bed b;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    close(b.origin);
    b.origin = -1;
    expect_fail(&b, gate, "plain.example", 443, "connect", b.origin_text);
    close(gate);
    bed_close(&b);
}

static void test_timeout(void)
{
    struct bed b;
    bed_open(&b, "", 1, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    b.hold = true;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    expect_fail(&b, gate, "resolved.example", 443, "timeout", "");
    clock_gettime(CLOCK_MONOTONIC, &to);
    CU_ASSERT(to.tv_sec - from.tv_sec <= 2);
    close(gate);
    bed_close(&b);
}

static void test_cancel(void)
{
    struct bed b;
    struct reply r;
    struct seen s;
    struct msg m;
    bed_open(&b, "", 30, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    b.hold = true;
    bed_dial(&b, gate, 5, "resolved.example", 443, "1-1", "");
    CU_ASSERT(!bed_reply(&b, gate, &r, 50));
    CU_ASSERT_EQUAL(bed_records(&b, &s), 0);
    msg_init(&m, W_DIAL_CANCEL);
    msg_put_u32(&m, 5);
    bed_send(gate, &m);
    CU_ASSERT(!bed_reply(&b, gate, &r, 50));
    CU_ASSERT_EQUAL(bed_records(&b, &s), 1);
    CU_ASSERT_STRING_EQUAL(s.code, "cancelled");
    msg_init(&m, W_DIAL_CANCEL); /* of what has ended: nothing happens */
    msg_put_u32(&m, 5);
    bed_send(gate, &m);
    bed_dial(&b, gate, 5, "resolved.example", 443, "1-2", ""); /* the number is free again */
    CU_ASSERT(!bed_reply(&b, gate, &r, 50));
    close(gate); /* with one under way */
    bed_turn(&b, 50);
    CU_ASSERT_EQUAL(bed_records(&b, &s), 2);
    CU_ASSERT_STRING_EQUAL(s.request, "1-2");
    bed_close(&b);
}

static void test_overload(void)
{
    struct bed b;
    struct reply r;
    struct seen s;
    bed_open(&b, "", 30, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1"), other = bed_peer(&b, ROLE_GATE, 2, "box-2");
    bed_mute(&b);
    for (uint32_t i = 1; i <= DIALER_CHANNEL_DIALS; i++) {
        bed_dial(&b, gate, i, "resolved.example", 443, "1-1", "");
        if (i % 16 == 0)
            bed_turn(&b, 1);
    }
    CU_ASSERT(!bed_reply(&b, gate, &r, 20));
    bed_dial(&b, gate, 1000, "resolved.example", 443, "1-1", "");
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 1000));
    CU_ASSERT_STRING_EQUAL(r.code, "overload");
    CU_ASSERT_EQUAL(r.req, 1000);
    CU_ASSERT_EQUAL(bed_records(&b, &s), 1);
    bed_dial(&b, other, 1, "plain.example", 443, "2-1", ""); /* the neighbour is served */
    CU_ASSERT_FATAL(bed_reply(&b, other, &r, 2000));
    CU_ASSERT_EQUAL(r.type, W_DIALED);
    close(r.fd);
    close(gate);
    close(other);
    bed_close(&b);
}

/* Does the name server that answers nothing hear of this label? */
static bool is_asked(struct bed *b, const char *label, int ms)
{
    char p[600];
    for (int i = 0; i < ms; i++) {
        ssize_t n;
        bed_turn(b, 1);
        while ((n = recv(b->names_fd, p, sizeof p, MSG_DONTWAIT)) > 0)
            if (memmem(p, (size_t)n, label, strlen(label)))
                return true;
    }
    return false;
}

/* Who loses its channel and is given another has the same account: what it gave up is still asked.
 */
static void test_anew(void)
{
    struct bed b;
    bed_open(&b, "", 30, NULL, false);
    int first = bed_peer(&b, ROLE_GATE, 100, "box-1");
    bed_mute(&b);
    for (uint32_t i = 1; i <= DIALER_CHANNEL_DIALS; i++) {
        bed_dial(&b, first, i, "resolved.example", 443, "1-1", "");
        if (i % 16 == 0)
            bed_turn(&b, 1);
    }
    close(first);
    CU_ASSERT(!is_asked(&b, "single", 5));
    int again = bed_peer(&b, ROLE_GATE, 101, "box-1"), other = bed_peer(&b, ROLE_GATE, 2, "box-2");
    bed_dial(&b, again, 1, "single", 443, "1-2", "");
    CU_ASSERT(!is_asked(&b, "single", 100));
    bed_dial(&b, other, 1, "single", 443, "2-1", "");
    CU_ASSERT(is_asked(&b, "single", 1000));
    close(again);
    close(other);
    bed_close(&b);
}

/* P4: what cannot be recorded is not made. */
static void test_audit(void)
{
    struct bed b;
    struct reply r;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    bed_credit(&b, 40); /* a new journal with room for no record */
    bed_dial(&b, gate, 1, "plain.example", 443, "1-1", "");
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
    CU_ASSERT_EQUAL(r.type, W_DIAL_FAIL);
    CU_ASSERT_STRING_EQUAL(r.code, "audit");
    close(b.logger); /* no logger at all: not even a connection is tried */
    b.logger = -1;
    bed_turn(&b, 20);
    int before = accept4(b.origin, NULL, NULL, SOCK_CLOEXEC); /* that of the first, unrecorded */
    CU_ASSERT(before >= 0);
    close(before);
    bed_dial(&b, gate, 2, "plain.example", 443, "1-2", "");
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 4000));
    CU_ASSERT_STRING_EQUAL(r.code, "audit");
    CU_ASSERT_EQUAL(accept4(b.origin, NULL, NULL, SOCK_CLOEXEC), -1);
    bed_dial(&b, gate, 3, "resolved.example", 443, "1-3", "");
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 4000));
    CU_ASSERT_STRING_EQUAL(r.code, "audit");
    CU_ASSERT_EQUAL(b.lookups, 0);
    close(gate);
    bed_close(&b);
}

static void test_reload(void)
{
    struct bed b;
    struct reply r;
    char *json = bed_policy_json("other.example");
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    bed_policy(&b, 2, "{ not json");
    bed_turn(&b, 20);
    CU_ASSERT(bed_reply(&b, b.control, &r, 1000)); /* a complaint, and nothing else changes */
    CU_ASSERT_EQUAL(r.type, W_LOG);
    bed_dial(&b, gate, 1, "plain.example", 443, "1-1", "");
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
    CU_ASSERT_EQUAL(r.type, W_DIALED);
    close(r.fd);
    bed_policy(&b, 2, json);
    bed_turn(&b, 20);
    expect_fail(&b, gate, "plain.example", 443, "denied", "");
    b.nxdomain = true;
    expect_fail(&b, gate, "other.example", 443, "resolve", "");
    /* a later channel that still brings the old text gets the new policy */
    int late = bed_peer(&b, ROLE_GATE, 2, "box-2");
    expect_fail(&b, late, "plain.example", 443, "denied", "");
    free(json);
    close(gate);
    close(late);
    bed_close(&b);
}

/* `to`: what a rule opens is open for its own host and kind of channel, at the addresses it names,
 * and never for our own listeners. */
static void test_to(void)
{
    struct bed b;
    struct reply r;
    char also[300];
    bed_open(&b, "127.9.9.0/24", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    int injector = bed_peer(&b, ROLE_INJECTOR, 2, "");
    uint32_t port = (uint32_t)strtoul(strchr(b.origin_text, ':') + 1, NULL, 10);
    snprintf(also, sizeof also,
             "inside.example:%u\n        to: [10.0.0.0/8, 127.0.0.0/8]\n"
             "      - allow: [outside.example:%u]\n"
             "      - { allow: \"keyed.example:%u\", with: { bearer: k }, to: 127.0.0.1/32 }\n",
             port, port, port);
    char *json = bed_policy_json(also);
    bed_policy(&b, 2, json);
    bed_turn(&b, 20);
    b.answer_a = true;
    memcpy(b.answer_v4, "\x7f\0\0\1", 4);
    for (int i = 0; i < 2; i++) {
        bed_dial(&b, i ? injector : gate, 1, i ? "keyed.example" : "inside.example", port, "1-1",
                 "");
        CU_ASSERT_FATAL(bed_reply(&b, i ? injector : gate, &r, 4000));
        CU_ASSERT_EQUAL(r.type, W_DIALED);
        CU_ASSERT_STRING_EQUAL(r.text, b.origin_text);
        close(r.fd);
    }
    expect_fail(&b, gate, "outside.example", port, "blocked_ip", NULL);
    memcpy(b.answer_v4, "\x7f\0\0\2", 4); /* the /32 is one address */
    expect_fail(&b, injector, "keyed.example", port, "blocked_ip", NULL);
    memcpy(b.answer_v4, "\x7f\x09\x09\1", 4); /* in the range, and ours */
    expect_fail(&b, gate, "inside.example", port, "blocked_ip", NULL);
    memcpy(b.answer_v4, "\xc0\xa8\0\1", 4); /* another private range */
    expect_fail(&b, gate, "inside.example", port, "blocked_ip", NULL);
    b.answer_a = false;
    b.answer_aaaa = true;
    memcpy(b.answer_v6, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
    expect_fail(&b, gate, "inside.example", port, "blocked_ip", NULL);
    free(json);
    close(gate);
    close(injector);
    bed_close(&b);
}

/* The policy changes while the acknowledgement of the record is awaited: no descriptor. */
static void test_reload_meanwhile(void)
{
    struct bed b;
    struct reply r;
    char *json = bed_policy_json("other.example");
    bed_open(&b, "", 5, NULL, true);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    bed_dial(&b, gate, 1, "plain.example", 443, "1-1", "");
    CU_ASSERT(!bed_reply(&b, gate, &r, 100)); /* connected, recorded, not acknowledged */
    uint64_t upto = bed_synced_upto(&b);
    CU_ASSERT(upto > 0);
    bed_policy(&b, 2, json);
    bed_turn(&b, 20);
    bed_ack(&b, upto);
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 1000));
    CU_ASSERT_EQUAL(r.type, W_DIAL_FAIL);
    CU_ASSERT_STRING_EQUAL(r.code, "denied");
    free(json);
    close(gate);
    bed_close(&b);
}

static void test_synced(void)
{
    struct bed b;
    struct reply r;
    bed_open(&b, "", 5, NULL, true);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    bed_dial(&b, gate, 1, "plain.example", 443, "1-1", "");
    CU_ASSERT(!bed_reply(&b, gate, &r, 100));
    bed_ack(&b, bed_synced_upto(&b));
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 1000));
    CU_ASSERT_EQUAL(r.type, W_DIALED);
    close(r.fd);
    bed_dial(&b, gate, 2, "plain.example", 443, "1-2", ""); /* never acknowledged */
    CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 4000));
    CU_ASSERT_STRING_EQUAL(r.code, "audit");
    close(gate);
    bed_close(&b);
}

static void test_token(void)
{
    static const unsigned char secret_half[TOKEN_KEY] = {5};
    unsigned char raw[TOKEN_KEY];
    size_t n = sizeof raw;
    char text[TOKEN_TEXT_MAX], other[TOKEN_TEXT_MAX];
    struct token t = {.sandbox = "box-1", .policy = "coder", .expiry = (uint64_t)time(NULL) + 600};
    EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret_half, TOKEN_KEY);
    CU_ASSERT_FATAL(k && EVP_PKEY_get_raw_public_key(k, raw, &n) == 1);
    CU_ASSERT_FATAL(token_sign(k, &t, text, sizeof text, NULL) == 0);
    snprintf(t.policy, sizeof t.policy, "other");
    CU_ASSERT_FATAL(token_sign(k, &t, other, sizeof other, NULL) == 0);
    EVP_PKEY_free(k);
    for (int with_key = 0; with_key < 2; with_key++) {
        struct bed b;
        struct reply r;
        bed_open(&b, "", 5, with_key ? raw : NULL, false);
        int gate = bed_peer(&b, ROLE_GATE, 1, "");
        bed_dial(&b, gate, 1, "plain.example", 443, "1-1", text);
        CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
        CU_ASSERT_EQUAL(r.type, with_key ? W_DIALED : W_DIAL_FAIL);
        struct seen s;
        CU_ASSERT_EQUAL(bed_records(&b, &s), 1);
        CU_ASSERT_STRING_EQUAL(s.sandbox, with_key ? "box-1" : "");
        if (r.fd >= 0)
            close(r.fd);
        bed_dial(&b, gate, 2, "plain.example", 443, "1-1", other);
        CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
        CU_ASSERT_STRING_EQUAL(r.code, "denied");
        bed_dial(&b, gate, 3, "plain.example", 443, "1-1", "dwt1.x.y");
        CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
        CU_ASSERT_STRING_EQUAL(r.code, "denied");
        close(gate);
        /* the gate of a token listener cannot leave the token out */
        char *json = NULL;
        CU_ASSERT_FATAL(asprintf(&json, "token%s", b.policy_json) > 0);
        gate = bed_peer_json(&b, ROLE_GATE, 2, "", json);
        free(json);
        bed_dial(&b, gate, 4, "plain.example", 443, "1-1", "");
        CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
        CU_ASSERT_EQUAL(r.type, W_DIAL_FAIL);
        CU_ASSERT_STRING_EQUAL(r.code, "denied");
        bed_dial(&b, gate, 5, "plain.example", 443, "1-1", text);
        CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
        CU_ASSERT_EQUAL(r.type, with_key ? W_DIALED : W_DIAL_FAIL);
        if (r.fd >= 0)
            close(r.fd);
        close(gate);
        bed_close(&b);
    }
}

static void mcp_dial(int fd, uint32_t req, const char *host, enum scheme scheme, uint32_t port,
                     const char *token)
{
    struct msg m;
    msg_init(&m, W_DIAL);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)scheme);
    msg_put_str(&m, host);
    msg_put_u32(&m, port);
    msg_put_str(&m, "1-1");
    msg_put_str(&m, token);
    msg_put_str(&m, "victim");
    bed_send(fd, &m);
}

/* What the parent is asked for within some turns of the loop; "": nothing. */
static uint32_t mcp_asked(struct bed *b, char *sandbox, char *server, size_t size)
{
    struct msg m;
    uint32_t req = 0;
    char policy[64];
    sandbox[0] = server[0] = 0;
    bed_turn(b, 3);
    while (req == 0 && msg_recv(b->control, &m) == 1) {
        if (m.type == W_MCP_DIAL) {
            CU_ASSERT(msg_get_u32(&m, &req) == 0 && msg_get_str(&m, sandbox, size) == 0 &&
                      msg_get_str(&m, policy, sizeof policy) == 0 &&
                      msg_get_str(&m, server, size) == 0);
            CU_ASSERT_STRING_EQUAL(policy, "coder");
        }
        msg_done(&m);
    }
    return req;
}

/* Whose server it is, the channel says or a token: not what a conquered gate calls its owner. */
static void test_mcp_sandbox(void)
{
    static const struct {
        enum role kind;
        const char *sandbox, *host, *asked;
    } rows[] = {
        {ROLE_GATE, "", "demo.mcp.durward.internal", ""},
        {ROLE_GATE, "box-1", "demo.mcp.durward.internal", "box-1"},
        {ROLE_INJECTOR, "", "kept.mcp.durward.internal", "victim"},
        {ROLE_INJECTOR, "box-1", "kept.mcp.durward.internal", "box-1"},
    };
    struct bed b;
    char sandbox[64], server[64], token[TOKEN_TEXT_MAX];
    unsigned char raw[TOKEN_KEY];
    size_t n = sizeof raw;
    static const unsigned char secret_half[TOKEN_KEY] = {5};
    struct token t = {.sandbox = "told", .policy = "coder", .expiry = (uint64_t)time(NULL) + 600};
    EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret_half, TOKEN_KEY);
    CU_ASSERT_FATAL(k && EVP_PKEY_get_raw_public_key(k, raw, &n) == 1);
    CU_ASSERT_FATAL(token_sign(k, &t, token, sizeof token, NULL) == 0);
    EVP_PKEY_free(k);
    bed_open(&b, "", 5, raw, false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int fd = bed_peer(&b, rows[i].kind, (uint32_t)i + 1, rows[i].sandbox);
        mcp_dial(fd, 1, rows[i].host, SCHEME_HTTP, 80, "");
        (void)mcp_asked(&b, sandbox, server, sizeof sandbox);
        CU_ASSERT_STRING_EQUAL(sandbox, rows[i].asked);
        close(fd);
    }
    int fd = bed_peer(&b, ROLE_GATE, 9, "");
    mcp_dial(fd, 1, "demo.mcp.durward.internal", SCHEME_HTTP, 80, token);
    (void)mcp_asked(&b, sandbox, server, sizeof sandbox);
    CU_ASSERT_STRING_EQUAL(sandbox, "told");
    close(fd);
    bed_close(&b);
}

/* A name of ours is no name of the network's, at any scheme and port, and no rule for a whole
 * domain means a server. */
static void test_mcp_hosts(void)
{
    static const struct {
        const char *host;
        enum scheme scheme;
        uint32_t port;
    } rows[] = {
        {"other.mcp.durward.internal", SCHEME_HTTP, 80},
        {"demo.mcp.durward.internal", SCHEME_HTTP, 8080},
        {"demo.mcp.durward.internal", SCHEME_HTTPS, 443},
        {"a.b.mcp.durward.internal", SCHEME_HTTP, 80},
        {"a_b.mcp.durward.internal", SCHEME_HTTPS, 443},
    };
    struct bed b;
    struct reply r;
    char sandbox[64], server[64];
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        mcp_dial(gate, (uint32_t)i + 1, rows[i].host, rows[i].scheme, rows[i].port, "");
        CU_ASSERT_FATAL(bed_reply(&b, gate, &r, 2000));
        CU_ASSERT_STRING_EQUAL(r.code, "denied");
        CU_ASSERT_EQUAL(mcp_asked(&b, sandbox, server, sizeof sandbox), 0);
    }
    CU_ASSERT_EQUAL(b.lookups, 0);
    close(gate);
    bed_close(&b);
}

/* What was cancelled the controller still has: it counts until that has answered. */
static void test_mcp_cancelled(void)
{
    struct bed b;
    struct msg m;
    struct reply r;
    char sandbox[64], server[64];
    unsigned asked = 0;
    uint32_t req = 0, last = 0;
    bed_open(&b, "", 5, NULL, false);
    int gate = bed_peer(&b, ROLE_GATE, 1, "box-1");
    for (uint32_t i = 1; i <= 300; i++) {
        mcp_dial(gate, i, "demo.mcp.durward.internal", SCHEME_HTTP, 80, "");
        msg_init(&m, W_DIAL_CANCEL);
        msg_put_u32(&m, i);
        bed_send(gate, &m);
        req = mcp_asked(&b, sandbox, server, sizeof sandbox);
        asked += req != 0;
        last = req ? req : last;
    }
    CU_ASSERT(asked > 16 && asked <= 128);
    while (bed_reply(&b, gate, &r, 0))
        CU_ASSERT_STRING_EQUAL(r.code, "overload");
    mcp_dial(gate, 301, "demo.mcp.durward.internal", SCHEME_HTTP, 80, "");
    CU_ASSERT_EQUAL(mcp_asked(&b, sandbox, server, sizeof sandbox), 0);
    msg_init(&m, W_MCP_DIALED);
    msg_put_u32(&m, last);
    msg_put_u8(&m, 0);
    msg_put_str(&m, "no");
    bed_send(b.control, &m);
    mcp_dial(gate, 302, "demo.mcp.durward.internal", SCHEME_HTTP, 80, "");
    CU_ASSERT(mcp_asked(&b, sandbox, server, sizeof sandbox) != 0);
    int other = bed_peer(&b, ROLE_GATE, 2, "box-2"); /* has a share of its own */
    mcp_dial(other, 1, "demo.mcp.durward.internal", SCHEME_HTTP, 80, "");
    CU_ASSERT(mcp_asked(&b, sandbox, server, sizeof sandbox) != 0);
    CU_ASSERT_STRING_EQUAL(sandbox, "box-2");
    close(gate);
    close(other);
    bed_close(&b);
}

/* A bad message ends its own channel and nothing else. */
static void test_bad_messages(void)
{
    struct bed b;
    struct reply r;
    bed_open(&b, "", 30, NULL, false);
    int good = bed_peer(&b, ROLE_GATE, 1, "box-1");
    b.hold = true;
    for (int kind = 0; kind < 10; kind++) {
        static const char *const hosts[] = {
            "Plain.example", "plain.example.", "plain.example:443", "", "[::1]", "a b"};
        int bad = bed_peer(&b, ROLE_GATE, 10 + (uint32_t)kind, "box-2");
        struct msg m;
        if (kind < 6)
            bed_dial(&b, bad, 1, hosts[kind], 443, "1-1", "");
        else if (kind == 6)
            bed_dial(&b, bad, 1, "plain.example", 65536, "1-1", "");
        else if (kind == 7)
            bed_dial(&b, bad, 1, "plain.example", 443, "1 1\n", "");
        else if (kind == 8) { /* a number twice */
            bed_dial(&b, bad, 1, "resolved.example", 443, "1-1", "");
            bed_dial(&b, bad, 1, "resolved.example", 443, "1-1", "");
        } else {
            msg_init(&m, W_POLICY); /* not from here */
            msg_put_u32(&m, 1);
            bed_send(bad, &m);
        }
        CU_ASSERT(bed_closed(&b, bad));
        close(bad);
    }
    bed_dial(&b, good, 1, "plain.example", 443, "1-1", "");
    CU_ASSERT_FATAL(bed_reply(&b, good, &r, 2000));
    CU_ASSERT_EQUAL(r.type, W_DIALED);
    close(r.fd);
    struct msg m;
    msg_init(&m, W_PEER_GONE);
    msg_put_u32(&m, 1);
    bed_send(b.control, &m);
    CU_ASSERT(bed_closed(&b, good));
    close(good);
    bed_close(&b);
}

/* Without a policy a channel is closed, not served. */
static void test_no_policy(void)
{
    struct bed b;
    bed_open(&b, "", 5, NULL, false);
    int unknown = bed_peer_json(&b, ROLE_GATE, 1, "box-1", "");
    CU_ASSERT(bed_closed(&b, unknown));
    close(unknown);
    int broken = bed_peer_json(&b, ROLE_GATE, 2, "box-1", "{}");
    CU_ASSERT(bed_closed(&b, broken));
    close(broken);
    bed_close(&b);
}

static void test_bad_init(void)
{
    static const char *const bad[] = {"x", "10.0.0.0/40"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bed b;
        struct reply r;
        bed_open_raw(&b);
        bed_init(&b, bad[i], 5, NULL, false);
        CU_ASSERT_FATAL(bed_reply(&b, b.control, &r, 1000));
        CU_ASSERT_EQUAL(r.type, W_FAILED);
        CU_ASSERT(strlen(r.text) > 0);
        bed_turn(&b, 20);
        CU_ASSERT(b.ended);
        bed_close(&b);
    }
}

void suite_dialer(void)
{
    CU_pSuite s = CU_add_suite("dialer", NULL, NULL);
    CU_add_test(s, "connects, records, hands over", test_connects);
    CU_add_test(s, "decides by its channel's policy, before any lookup", test_decides);
    CU_add_test(s, "blocked addresses, however named", test_blocked);
    CU_add_test(s, "no search domains", test_no_search);
    CU_add_test(s, "a refused connection", test_refused);
    CU_add_test(s, "the time is over", test_timeout);
    CU_add_test(s, "cancel, and a channel's end", test_cancel);
    CU_add_test(s, "dials of a channel are bounded", test_overload);
    CU_add_test(s, "and stay its own when it is made anew", test_anew);
    CU_add_test(s, "nothing without a record", test_audit);
    CU_add_test(s, "what `to` opens", test_to);
    CU_add_test(s, "a new policy", test_reload);
    CU_add_test(s, "a new policy while a dial waits", test_reload_meanwhile);
    CU_add_test(s, "durability synced", test_synced);
    CU_add_test(s, "tokens", test_token);
    CU_add_test(s, "whose MCP server", test_mcp_sandbox);
    CU_add_test(s, "hosts of MCP servers", test_mcp_hosts);
    CU_add_test(s, "cancelled dials of MCP servers", test_mcp_cancelled);
    CU_add_test(s, "bad messages", test_bad_messages);
    CU_add_test(s, "a channel without a policy", test_no_policy);
    CU_add_test(s, "a bad first message", test_bad_init);
}

void tap_suites(void)
{
    suite_dialer();
}
