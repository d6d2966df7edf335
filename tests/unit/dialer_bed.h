/* What tests of the dialer need around it: its parent, logger, name server and one origin. Only
 * they include this, so everything is static. */
#ifndef DURWARD_DIALER_BED_H
#define DURWARD_DIALER_BED_H

#include "authority.h"
#include "budget_ledger.h"
#include "config.h"
#include "dialer.h"
#include "dns_server.h"
#include "ipc.h"
#include "proc.h"
#include "record_read.h"
#include "wire.h"

#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct bed {
    struct event_base *base;
    struct dialer *dialer;
    struct dns_server *names;
    int control, logger, journal; /* our ends; the journal's file, for reading */
    int origin;                   /* a listener on loopback */
    int names_fd;                 /* the name server's socket once more */
    char origin_text[32], servers[32];
    char *policy_json;
    bool ended;
    uint64_t synced_upto;
    /* the name server's answers */
    bool hold, nxdomain, answer_a, answer_aaaa;
    unsigned char answer_v4[4], answer_v6[16];
    unsigned lookups, n_held;
    struct dns_query *held[DNS_SERVER_QUERIES];
    char asked[HOST_TEXT_MAX];
};

static uint32_t bed_hold; /* seconds of a lease of the fleet's shares; 0: no fleet */

/* What the parent keeps for budgets. */
static int bed_book(void)
{
    int fd = memfd_create("book", MFD_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)budget_ledger_size()) == 0);
    return fd;
}

struct reply {
    uint16_t type;
    uint32_t req;
    char code[64], text[800];
    int fd;
};

struct seen {
    char code[64], authority[300], address[80], detail[400];
    char sandbox[128], policy[128], request[128];
    bool has_ms;
};

static void bed_lookup(void *arg, struct slice host, uint16_t type, struct dns_query *q)
{
    struct bed *b = arg;
    b->lookups++;
    snprintf(b->asked, sizeof b->asked, "%.*s", SL(host));
    if (b->hold && b->n_held < DNS_SERVER_QUERIES)
        b->held[b->n_held++] = q;
    else if (b->nxdomain)
        dns_query_nxdomain(q);
    else if (type == DNS_TYPE_A ? b->answer_a : b->answer_aaaa)
        dns_query_answer_addr(q, b->answer_v4, b->answer_v6);
    else
        dns_query_nodata(q);
}

static void bed_ended(void *arg)
{
    ((struct bed *)arg)->ended = true;
}

/* The policy "coder" as the configuration renders it; `also` is one more plain host. */
static char *bed_policy_json(const char *also)
{
    struct err err = {0};
    char text[1500];
    bool small = also[0] != 0;
    snprintf(text, sizeof text,
             "version: 1\n"
             "secrets: { k: { env: K } }\n"
             "policies:\n"
             "  coder:\n"
             "    rules:\n"
             "      - allow: %s\n"
             "%s",
             small ? also : "plain.example",
             small ? ""
                   : "      - { allow: secret.example, with: { bearer: k } }\n"
                     "      - { allow: both.example/x, with: { bearer: k } }\n"
                     "      - allow: both.example/y\n"
                     "      - allow: both.example:8443\n"
                     "      - { allow: .keyed.example/x, with: { bearer: k } }\n"
                     "      - allow: a.keyed.example/y\n"
                     "      - allow: .wild.example\n"
                     "      - allow: http://durward.internal/mcp/demo\n"
                     "      - { allow: http://durward.internal/mcp/kept, mcp: { tools: [x] } }\n"
                     "      - allow: http://.durward.internal\n"
                     "      - allow: .durward.internal\n"
                     "      - allow: http://demo.mcp.durward.internal:8080\n"
                     "      - deny: denied.example\n"
                     "      - allow: resolved.example\n"
                     "      - allow: single\n"
                     "      - allow: localhost\n"
                     "      - allow: 169.254.169.254\n"
                     "      - allow: 127.0.0.1\n"
                     "      - allow: \"[::1]\"\n"
                     "      - allow: 93.184.216.34\n");
    struct config *c = config_parse(slice_str(text), "test", &err);
    if (c == NULL)
        printf("# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    char *json = config_policy_json(c, "coder");
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    config_unref(c);
    return json;
}

static int bed_loopback(int type, char *text, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_FATAL(fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0);
    CU_ASSERT_FATAL(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    snprintf(text, size, "127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

static void bed_open_raw(struct bed *b)
{
    static const struct dns_server_ops ops = {bed_lookup, NULL};
    struct err err;
    int pair[2];
    memset(b, 0, sizeof *b);
    b->logger = b->journal = -1;
    b->base = event_base_new();
    b->names = dns_server_new(b->base, &ops, b);
    b->policy_json = bed_policy_json("");
    CU_ASSERT_FATAL(b->base && b->names);
    int udp = bed_loopback(SOCK_DGRAM, b->servers, sizeof b->servers);
    b->names_fd = fcntl(udp, F_DUPFD_CLOEXEC, 0);
    CU_ASSERT_FATAL(dns_server_add_udp(b->names, udp, &err) == 0);
    b->origin = bed_loopback(SOCK_STREAM, b->origin_text, sizeof b->origin_text);
    CU_ASSERT_FATAL(listen(b->origin, 64) == 0);
    CU_ASSERT_FATAL(ipc_pair(pair, &err) == 0);
    b->control = pair[1];
    (void)fcntl(b->control, F_SETFL, O_NONBLOCK);
    struct dialer_options o = {.servers = b->servers, .ended = bed_ended, .arg = b};
    b->dialer = dialer_new(b->base, pair[0], &o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->dialer);
}

/* From here on the name server takes queries and answers none. */
static UNUSED void bed_mute(struct bed *b)
{
    dns_server_free(b->names);
    b->names = NULL;
}

static void bed_close(struct bed *b)
{
    dialer_free(b->dialer);
    dns_server_free(b->names);
    for (unsigned i = 0; i < b->n_held; i++)
        dns_query_nxdomain(b->held[i]);
    event_base_free(b->base);
    close(b->control);
    close(b->names_fd);
    if (b->logger >= 0)
        close(b->logger);
    if (b->journal >= 0)
        close(b->journal);
    if (b->origin >= 0)
        close(b->origin);
    free(b->policy_json);
}

static void bed_turn(struct bed *b, int ms)
{
    for (int i = 0; i <= ms; i++) {
        event_base_loop(b->base, EVLOOP_NONBLOCK);
        if (i < ms)
            poll(NULL, 0, 1);
    }
}

static void bed_send(int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
}

/* The next message on our end of a channel, or false when none came within ms. */
static bool bed_reply(struct bed *b, int fd, struct reply *r, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct msg m;
    memset(r, 0, sizeof *r);
    r->fd = -1;
    for (int i = 0; i <= ms; i++) {
        event_base_loop(b->base, EVLOOP_NONBLOCK);
        if (poll(&p, 1, 1) > 0)
            break;
    }
    if (msg_recv(fd, &m) != 1)
        return false;
    r->type = m.type;
    if (m.type == W_FAILED) {
        (void)msg_get_str(&m, r->text, sizeof r->text);
    } else if (m.type == W_DIALED || m.type == W_DIAL_FAIL) {
        (void)msg_get_u32(&m, &r->req);
        if (m.type == W_DIAL_FAIL)
            (void)msg_get_str(&m, r->code, sizeof r->code);
        (void)msg_get_str(&m, r->text, sizeof r->text);
        if (m.type == W_DIALED)
            (void)msg_get_fd(&m, &r->fd);
        CU_ASSERT_EQUAL(msg_end(&m), 0);
    }
    msg_done(&m);
    return true;
}

static bool bed_closed(struct bed *b, int fd)
{
    struct msg m;
    for (int i = 0; i < 500; i++) {
        bed_turn(b, 1);
        int r = msg_recv(fd, &m);
        if (r == 1)
            msg_done(&m);
        else if (r == 0)
            return true;
    }
    return false;
}

static void bed_init(struct bed *b, const char *cidr, uint32_t seconds, const unsigned char *key,
                     bool synced)
{
    static const char *const hosts[] = {"plain.example", "secret.example", ".wild.example",
                                        "both.example",  "both.example",   "a.keyed.example"};
    struct msg m;
    msg_init(&m, W_INIT);
    msg_put_u32(&m, ARRAY_LEN(hosts));
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        msg_put_str(&m, hosts[i]);
        msg_put_u32(&m, i == 4 ? 8443 : 443);
        msg_put_str(&m, b->origin_text);
    }
    msg_put_u32(&m, 1);
    msg_put_str(&m, cidr);
    msg_put_u32(&m, 0); /* no ports of our own */
    msg_put_u8(&m, 0);  /* no upstream proxy */
    msg_put_u32(&m, seconds);
    msg_put_bytes(&m, key ? key : (const unsigned char *)"", key ? 32 : 0);
    msg_put_u8(&m, synced);
    msg_put_u32(&m, bed_hold);
    msg_put_fd(&m, bed_book());
    bed_send(b->control, &m);
}

/* Its image; of what is no policy the text itself. */
static int bed_policy_fd(const char *json)
{
    struct err err;
    struct policy *p = policy_parse(json, strlen(json), &err);
    struct slice image = p ? policy_image_bytes(p) : slice_str(json);
    int fd = ipc_memfd("policy", image.p, image.n, &err);
    CU_ASSERT_FATAL(fd >= 0);
    policy_free(p);
    return fd;
}

static void bed_policy(struct bed *b, uint32_t generation, const char *json)
{
    struct msg m;
    msg_init(&m, W_POLICY);
    msg_put_str(&m, "coder");
    msg_put_u32(&m, generation);
    msg_put_fd(&m, bed_policy_fd(json));
    bed_send(b->control, &m);
}

/* json: a policy, after the word "token" where its requests must carry one. */
static int bed_peer_json(struct bed *b, enum role kind, uint32_t number, const char *sandbox,
                         const char *json)
{
    struct msg m;
    struct err err;
    int pair[2];
    CU_ASSERT_FATAL(ipc_pair(pair, &err) == 0);
    (void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
    bool token = strncmp(json, "token", 5) == 0;
    if (json[0])
        bed_policy(b, 1, token ? json + 5 : json);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, (uint8_t)kind);
    msg_put_u32(&m, number);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, kind == ROLE_LOGGER ? "" : "coder");
    msg_put_u32(&m, 1);
    msg_put_u32(&m, number < 100 ? number : 100); /* wire: those beyond are one's, made anew */
    msg_put_str(&m, token ? "token" : "");
    msg_put_fd(&m, pair[0]);
    bed_send(b->control, &m);
    bed_turn(b, 2);
    return pair[1];
}

static UNUSED int bed_peer(struct bed *b, enum role kind, uint32_t number, const char *sandbox)
{
    return bed_peer_json(b, kind, number, sandbox, b->policy_json);
}

/* A fresh journal with this much credit. */
static void bed_credit(struct bed *b, uint64_t credit)
{
    struct msg m;
    char path[] = "/tmp/durward-test-XXXXXX";
    if (b->logger >= 0)
        close(b->logger);
    if (b->journal >= 0)
        close(b->journal);
    b->logger = bed_peer_json(b, ROLE_LOGGER, 0, "", "");
    b->journal = mkostemp(path, O_CLOEXEC);
    CU_ASSERT_FATAL(b->journal >= 0);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0);
    unlink(path);
    msg_init(&m, W_JOURNAL);
    msg_put_u32(&m, 9);
    msg_put_u64(&m, credit);
    msg_put_u64(&m, 1);
    msg_put_fd(&m, fd);
    bed_send(b->logger, &m);
    bed_turn(b, 2);
}

static void bed_open(struct bed *b, const char *cidr, uint32_t seconds, const unsigned char *key,
                     bool synced)
{
    struct reply r;
    bed_open_raw(b);
    bed_init(b, cidr[0] ? cidr : "93.184.216.34/32", seconds, key, synced);
    CU_ASSERT_FATAL(bed_reply(b, b->control, &r, 1000));
    CU_ASSERT_EQUAL_FATAL(r.type, W_READY);
    bed_credit(b, 1 << 20);
}

static UNUSED void bed_dial(struct bed *b, int fd, uint32_t req, const char *host, uint32_t port,
                            const char *id, const char *token)
{
    struct msg m;
    (void)b;
    msg_init(&m, W_DIAL);
    msg_put_u32(&m, req);
    msg_put_u8(&m, SCHEME_HTTPS);
    msg_put_str(&m, host);
    msg_put_u32(&m, port);
    msg_put_str(&m, id);
    msg_put_str(&m, token);
    msg_put_str(&m, "box");
    bed_send(fd, &m);
}

static void bed_field(const struct record_view *v, enum record_field f, char *to, size_t size)
{
    snprintf(to, size, "%.*s", SL(v->field[f]));
}

/* How many records the journal holds; *last is the last of them. */
static UNUSED unsigned bed_records(struct bed *b, struct seen *last)
{
    static unsigned char p[1 << 20];
    struct record_view v;
    const char *why = "";
    unsigned count = 0;
    memset(last, 0, sizeof *last);
    ssize_t n = pread(b->journal, p, sizeof p, 0), at = 0;
    CU_ASSERT_FATAL(n >= 0);
    while (at < n) {
        ssize_t used = record_read(&v, p + at, (size_t)(n - at), &why);
        CU_ASSERT_FATAL(used > 0);
        CU_ASSERT_EQUAL(v.kind, RECORD_CONNECTION);
        at += used;
        count++;
    }
    if (count == 0)
        return 0;
    bed_field(&v, RF_CODE, last->code, sizeof last->code);
    bed_field(&v, RF_AUTHORITY, last->authority, sizeof last->authority);
    bed_field(&v, RF_ADDRESS, last->address, sizeof last->address);
    bed_field(&v, RF_DETAIL, last->detail, sizeof last->detail);
    bed_field(&v, RF_SANDBOX, last->sandbox, sizeof last->sandbox);
    bed_field(&v, RF_POLICY, last->policy, sizeof last->policy);
    bed_field(&v, RF_REQUEST, last->request, sizeof last->request);
    last->has_ms = v.field[RF_MS].n > 0;
    return count;
}

/* What the journal last asked to be acknowledged. */
static UNUSED uint64_t bed_synced_upto(struct bed *b)
{
    struct msg m;
    uint64_t upto = 0;
    while (msg_recv(b->logger, &m) == 1) {
        if (m.type == W_SYNC)
            (void)msg_get_u64(&m, &upto);
        msg_done(&m);
    }
    return upto;
}

static UNUSED void bed_ack(struct bed *b, uint64_t upto)
{
    struct msg m;
    (void)b;
    msg_init(&m, W_SYNCED);
    msg_put_u64(&m, upto);
    bed_send(b->logger, &m);
    bed_turn(b, 2);
}

#endif
