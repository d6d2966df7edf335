/* The asking side of the dialer, against a dialer that the test plays by hand. */
#include "dial_client.h"
#include "ipc.h"
#include "meter.h"
#include "pace.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void suite_dial_client(void);

struct heard {
    unsigned n;
    int fd;
    char code[32], address[80], detail[600];
    struct dial_client *free_me; /* from inside the callback */
};

struct bed {
    struct event_base *base;
    struct dial_client *client;
    int dialer; /* our end */
    struct authority authority;
};

static void heard(void *arg, int fd, const char *address, const char *code, const char *detail)
{
    struct heard *h = arg;
    h->n++;
    h->fd = fd;
    snprintf(h->code, sizeof h->code, "%s", code);
    snprintf(h->address, sizeof h->address, "%s", address ? address : "");
    snprintf(h->detail, sizeof h->detail, "%s", detail ? detail : "");
    dial_client_free(h->free_me);
}

static void attach(struct bed *b)
{
    int pair[2];
    struct err err;
    CU_ASSERT_FATAL(ipc_pair(pair, &err) == 0);
    dial_client_attach(b->client, pair[0], 1);
    b->dialer = pair[1];
    CU_ASSERT_FATAL(fcntl(b->dialer, F_SETFL, O_NONBLOCK) == 0);
}

static void bed_open(struct bed *b, bool attached, unsigned seconds)
{
    memset(b, 0, sizeof *b);
    b->base = event_base_new();
    b->client = dial_client_new(b->base, seconds);
    b->dialer = -1;
    CU_ASSERT_FATAL(b->base && b->client);
    CU_ASSERT_FATAL(authority_parse(&b->authority, SCHEME_HTTPS, SLICE("api.example:8443")) == 0);
    if (attached)
        attach(b);
}

static void bed_close(struct bed *b)
{
    dial_client_free(b->client);
    event_base_free(b->base);
    if (b->dialer >= 0)
        close(b->dialer);
}

static void turn(struct bed *b)
{
    event_base_loop(b->base, EVLOOP_NONBLOCK);
}

/* Runs the loop until h was called, or ms are over. */
static void run_until(struct bed *b, const struct heard *h, int ms)
{
    for (int i = 0; i < ms / 10 && h->n == 0; i++) {
        turn(b);
        if (h->n == 0)
            poll(NULL, 0, 10);
    }
}

/* The next message that the client sent: its request number, 0 when there is none. */
static uint32_t next_message(struct bed *b, uint16_t type)
{
    struct msg m;
    uint32_t req = 0;
    if (msg_recv(b->dialer, &m) != 1)
        return 0;
    CU_ASSERT_EQUAL(m.type, type);
    CU_ASSERT(msg_get_u32(&m, &req) == 0);
    msg_done(&m);
    return req;
}

static void send_msg(struct bed *b, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(b->dialer, m), 0);
    msg_done(m);
}

/* Answers with one end of a fresh pair; the other is given back. */
static int send_dialed(struct bed *b, uint32_t req)
{
    struct msg m;
    int pair[2];
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    msg_init(&m, W_DIALED);
    msg_put_u32(&m, req);
    msg_put_str(&m, "192.0.2.1:8443");
    msg_put_fd(&m, pair[0]);
    send_msg(b, &m);
    return pair[1];
}

static void send_fail(struct bed *b, uint32_t req, const char *code)
{
    struct msg m;
    msg_init(&m, W_DIAL_FAIL);
    msg_put_u32(&m, req);
    msg_put_str(&m, code);
    msg_put_str(&m, "some text");
    send_msg(b, &m);
}

static bool is_closed(int fd)
{
    char c;
    return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

/* A process that has run out of descriptors loses the one in the answer, not the channel. */
static void test_no_room_for_descriptors(void)
{
    struct bed b;
    struct heard h = {0}, again = {0};
    struct rlimit was, none;
    bed_open(&b, true, 5);
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "1-1", "", heard, &h));
    int far = send_dialed(&b, next_message(&b, W_DIAL));
    CU_ASSERT_FATAL(getrlimit(RLIMIT_NOFILE, &was) == 0);
    none = was;
    none.rlim_cur = 3; /* all those numbers are taken */
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
    run_until(&b, &h, 500);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &was) == 0);
    CU_ASSERT_EQUAL(h.n, 1);
    CU_ASSERT_EQUAL(h.fd, -1);
    CU_ASSERT_STRING_EQUAL(h.code, "overload");
    CU_ASSERT(is_closed(far));
    close(far);
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "1-2", "", heard, &again));
    far = send_dialed(&b, next_message(&b, W_DIAL));
    run_until(&b, &again, 500);
    CU_ASSERT_EQUAL(again.n, 1);
    CU_ASSERT_STRING_EQUAL(again.code, "ok");
    CU_ASSERT_FATAL(again.fd >= 0);
    close(again.fd);
    close(far);
    bed_close(&b);
}

/* What is traced is said before the question, whose answer may come at once; of that question
 * alone. */
static void test_traced(void)
{
    struct bed b;
    struct heard h[2] = {{0}, {0}};
    const struct trace t = {.session = 7, .begun = 1};
    bed_open(&b, true, 10);
    dial_client_next_trace(b.client, &t);
    for (size_t i = 0; i < ARRAY_LEN(h); i++)
        CU_ASSERT_PTR_NOT_NULL(
            dial_client_get(b.client, SLICE("box"), &b.authority, "1-1", "", heard, &h[i]));
    uint32_t traced = next_message(&b, W_TRACING), asked = next_message(&b, W_DIAL);
    CU_ASSERT(traced != 0 && traced == asked);
    CU_ASSERT(next_message(&b, W_DIAL) != 0);
    bed_close(&b);
}

static void test_fields(void)
{
    struct bed b;
    struct heard h = {0};
    struct msg m;
    uint32_t req, port;
    uint8_t scheme;
    char host[256], id[65], token[600], owner[65];
    bed_open(&b, true, 10);
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "3-17", "tok", heard, &h));
    CU_ASSERT_EQUAL(h.n, 0);
    CU_ASSERT_FATAL(msg_recv(b.dialer, &m) == 1);
    CU_ASSERT_EQUAL(m.type, W_DIAL);
    CU_ASSERT(msg_get_u32(&m, &req) == 0 && msg_get_u8(&m, &scheme) == 0);
    CU_ASSERT(msg_get_str(&m, host, sizeof host) == 0 && msg_get_u32(&m, &port) == 0);
    CU_ASSERT(msg_get_str(&m, id, sizeof id) == 0 && msg_get_str(&m, token, sizeof token) == 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, owner, sizeof owner), 0);
    CU_ASSERT_STRING_EQUAL(owner, "box");
    CU_ASSERT(msg_end(&m) == 0);
    msg_done(&m);
    CU_ASSERT(scheme == SCHEME_HTTPS && port == 8443);
    CU_ASSERT_STRING_EQUAL(host, "api.example");
    CU_ASSERT_STRING_EQUAL(id, "3-17");
    CU_ASSERT_STRING_EQUAL(token, "tok");
    int far = send_dialed(&b, req);
    turn(&b);
    CU_ASSERT_EQUAL_FATAL(h.n, 1);
    CU_ASSERT_STRING_EQUAL(h.code, "ok");
    CU_ASSERT_STRING_EQUAL(h.address, "192.0.2.1:8443");
    CU_ASSERT_FATAL(h.fd >= 0);
    CU_ASSERT(!is_closed(far));
    close(h.fd);
    CU_ASSERT(is_closed(far));
    close(far);
    bed_close(&b);
}

static void test_order(void)
{
    struct bed b;
    struct heard h[3] = {{0}};
    uint32_t req[3];
    bed_open(&b, true, 10);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_PTR_NOT_NULL(
            dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h[i]));
        req[i] = next_message(&b, W_DIAL);
    }
    CU_ASSERT(req[0] != req[1] && req[1] != req[2] && req[0] != req[2]);
    send_fail(&b, req[1], "blocked_ip");
    send_fail(&b, req[1], "denied"); /* a second answer says nothing any more */
    int far = send_dialed(&b, req[2]);
    turn(&b);
    CU_ASSERT_EQUAL(h[0].n, 0);
    CU_ASSERT_EQUAL(h[1].n, 1);
    CU_ASSERT_STRING_EQUAL(h[1].code, "blocked_ip");
    CU_ASSERT_STRING_EQUAL(h[1].detail, "some text");
    CU_ASSERT_EQUAL(h[1].fd, -1);
    CU_ASSERT_EQUAL_FATAL(h[2].n, 1);
    close(h[2].fd);
    close(far);
    bed_close(&b); /* the first is dropped without a call */
    CU_ASSERT_EQUAL(h[0].n, 0);
}

static void test_cancel(void)
{
    struct bed b;
    struct heard h = {0}, h2 = {0};
    bed_open(&b, true, 10);
    struct dial_wait *w = dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h);
    uint32_t req = next_message(&b, W_DIAL);
    dial_client_cancel(w);
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL_CANCEL), req);
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h2));
    uint32_t req2 = next_message(&b, W_DIAL);
    CU_ASSERT_NOT_EQUAL(req, req2);
    int far = send_dialed(&b, req); /* it was on its way */
    turn(&b);
    CU_ASSERT(is_closed(far));
    CU_ASSERT(h.n == 0 && h2.n == 0);
    close(far);
    send_fail(&b, req2, "connect");
    turn(&b);
    CU_ASSERT_EQUAL(h2.n, 1);
    bed_close(&b);
}

static void test_gone(void)
{
    struct bed b;
    struct heard h[2] = {{0}}, late = {0};
    bed_open(&b, true, 10);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_PTR_NOT_NULL(
            dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h[i]));
    close(b.dialer);
    run_until(&b, &h[0], 1000);
    run_until(&b, &h[1], 1000);
    CU_ASSERT_STRING_EQUAL(h[0].code, "dialer_gone");
    CU_ASSERT_STRING_EQUAL(h[1].code, "dialer_gone");
    /* the next one waits for the next dialer */
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &late));
    turn(&b);
    CU_ASSERT_EQUAL(late.n, 0);
    attach(&b);
    uint32_t req = next_message(&b, W_DIAL);
    CU_ASSERT_NOT_EQUAL(req, 0);
    send_fail(&b, req, "timeout");
    run_until(&b, &late, 1000);
    CU_ASSERT_STRING_EQUAL(late.code, "timeout");
    bed_close(&b);
}

static void test_never_attached(void)
{
    struct bed b;
    struct heard h = {0}, cancelled = {0};
    struct timespec from, to;
    bed_open(&b, false, 10);
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h));
    struct dial_wait *w =
        dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &cancelled);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    dial_client_cancel(w);
    clock_gettime(CLOCK_MONOTONIC, &from);
    run_until(&b, &h, 5000);
    clock_gettime(CLOCK_MONOTONIC, &to);
    CU_ASSERT_STRING_EQUAL(h.code, "dialer_gone");
    double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    CU_ASSERT(s > 1.8 && s < 4);
    CU_ASSERT_EQUAL(cancelled.n, 0);
    bed_close(&b);
}

static void test_silence(void)
{
    struct bed b;
    struct heard h = {0};
    bed_open(&b, true, 0); /* the margin alone */
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h));
    uint32_t req = next_message(&b, W_DIAL);
    run_until(&b, &h, 8000);
    CU_ASSERT_STRING_EQUAL(h.code, "timeout");
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL_CANCEL), req);
    bed_close(&b);
}

static struct dial_wait *get(struct bed *b, const char *owner, struct heard *h)
{
    struct dial_wait *w =
        dial_client_get(b->client, slice_str(owner), &b->authority, "", "", heard, h);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_EQUAL(h->n, 0); /* never before it returns */
    return w;
}

/* All that an owner may have under way; their numbers. */
static void fill(struct bed *b, const char *owner, struct heard *h, uint32_t *req)
{
    for (int i = 0; i < DIALS_OWNER; i++) {
        get(b, owner, h);
        req[i] = next_message(b, W_DIAL);
        CU_ASSERT_NOT_EQUAL_FATAL(req[i], 0);
    }
}

static void test_turns(void)
{
    struct bed b;
    struct heard h = {0}, waits[3] = {{0}}, other = {0};
    uint32_t req[DIALS_OWNER];
    bed_open(&b, true, 10);
    fill(&b, "box", &h, req);
    get(&b, "box", &waits[0]);
    struct dial_wait *gone = get(&b, "box", &waits[1]);
    get(&b, "box", &waits[2]);
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL), 0); /* beyond its part: it waits */
    get(&b, "neighbour", &other);
    uint32_t others = next_message(&b, W_DIAL);
    CU_ASSERT_NOT_EQUAL(others, 0); /* who has none under way has room */
    send_fail(&b, others, "denied");
    run_until(&b, &other, 1000);
    CU_ASSERT_STRING_EQUAL(other.code, "denied");
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL), 0); /* that was not the box's to have */
    send_fail(&b, req[7], "connect");
    run_until(&b, &h, 1000);
    uint32_t first = next_message(&b, W_DIAL);
    CU_ASSERT_NOT_EQUAL(first, 0);
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL), 0); /* one for one */
    dial_client_cancel(gone);
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL_CANCEL), 0); /* the dialer had never heard of it */
    send_fail(&b, first, "timeout");
    run_until(&b, &waits[0], 1000);
    CU_ASSERT_STRING_EQUAL(waits[0].code, "timeout"); /* it was the first */
    send_fail(&b, next_message(&b, W_DIAL), "resolve");
    run_until(&b, &waits[2], 1000);
    CU_ASSERT_STRING_EQUAL(waits[2].code, "resolve");
    CU_ASSERT(waits[1].n == 0 && h.n == 1);
    bed_close(&b);
}

/* Those that are cancelled while they are asked give their slots to those that wait. */
static void test_cancelled_slots(void)
{
    struct bed b;
    struct heard h = {0}, late = {0};
    struct dial_wait *w[DIALS_OWNER];
    bed_open(&b, true, 10);
    for (int i = 0; i < DIALS_OWNER; i++) {
        w[i] = get(&b, "box", &h);
        CU_ASSERT_NOT_EQUAL(next_message(&b, W_DIAL), 0);
    }
    uint64_t begun = 0;
    dial_client_begun(get(&b, "box", &late), &begun);
    CU_ASSERT_EQUAL(begun, 0);
    dial_client_cancel(w[3]);
    CU_ASSERT_NOT_EQUAL(next_message(&b, W_DIAL_CANCEL), 0);
    CU_ASSERT_NOT_EQUAL(next_message(&b, W_DIAL), 0);
    CU_ASSERT_NOT_EQUAL(begun, 0);
    bed_close(&b);
    CU_ASSERT(h.n == 0 && late.n == 0);
}

/* Whoever has waited for the time that a dial may take is told why. */
static void test_turn_missed(void)
{
    struct bed b;
    struct heard h = {0}, late = {0};
    uint32_t req[DIALS_OWNER];
    bed_open(&b, true, 1);
    fill(&b, "box", &h, req);
    get(&b, "box", &late);
    run_until(&b, &late, 4000);
    CU_ASSERT_STRING_EQUAL(late.code, "share_used");
    CU_ASSERT_EQUAL(h.n, 0);
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL_CANCEL), 0);
    bed_close(&b);
}

static void test_bound(void)
{
    struct bed b;
    struct heard h = {0}, over = {0}, other = {0};
    uint32_t req[DIALS_OWNER];
    bed_open(&b, true, 10);
    fill(&b, "box", &h, req);
    for (int i = 0; i < DIALS_WAITING_OWNER; i++)
        get(&b, "box", &h);
    get(&b, "box", &over);
    run_until(&b, &over, 1000);
    CU_ASSERT_STRING_EQUAL(over.code, "share_used");
    CU_ASSERT_EQUAL(h.n, 0);
    get(&b, "neighbour", &other);
    CU_ASSERT_NOT_EQUAL(next_message(&b, W_DIAL), 0);
    bed_close(&b);
}

/* An owner that dials too fast waits for its pace, which is its own. */
static void test_paced(void)
{
    struct bed b;
    struct heard h = {0}, late = {0}, gone = {0}, other = {0}, early = {0};
    bed_open(&b, true, 10);
    for (int i = 0; i < PACE_BURST; i++) {
        struct dial_wait *w = get(&b, "box", &h);
        CU_ASSERT_NOT_EQUAL_FATAL(next_message(&b, W_DIAL), 0);
        dial_client_cancel(w);
        CU_ASSERT_NOT_EQUAL_FATAL(next_message(&b, W_DIAL_CANCEL), 0);
    }
    struct dial_wait *waits[PACE_SECOND];
    for (int i = 0; i < PACE_SECOND; i++) /* however fast that was: a second's worth */
        waits[i] = get(&b, "box", &gone);
    while (next_message(&b, W_DIAL) != 0) {
    }
    get(&b, "box", &late);
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL), 0);
    get(&b, "neighbour", &other);
    CU_ASSERT_NOT_EQUAL(next_message(&b, W_DIAL), 0);
    poll(NULL, 0, 30);
    dial_client_cancel(get(&b, "box", &early)); /* its pace allows one, which is another's */
    CU_ASSERT_EQUAL(next_message(&b, W_DIAL), 0);
    for (int i = 0; i < PACE_SECOND; i++) /* their places go with them */
        dial_client_cancel(waits[i]);
    struct msg m;
    for (int i = 0; i < 500 && late.n == 0; i++) {
        uint32_t req = 0;
        turn(&b);
        while (msg_recv(b.dialer, &m) == 1) {
            if (m.type == W_DIAL && msg_get_u32(&m, &req) == 0)
                send_fail(&b, req, "connect"); /* of those that were cancelled too */
            msg_done(&m);
        }
        poll(NULL, 0, 1);
    }
    CU_ASSERT_STRING_EQUAL(late.code, "connect");
    CU_ASSERT(h.n == 0 && gone.n == 0);
    bed_close(&b);
}

enum { CROWD_OWNERS = 8, CROWD = CROWD_OWNERS * DIALS_OWNER };

static void counted(void *arg, int fd, const char *address UNUSED, const char *code,
                    const char *detail UNUSED)
{
    unsigned *of = arg;
    CU_ASSERT(fd == -1 && strcmp(code, "connect") == 0);
    (*of)++;
}

/* The dialer's work of this moment: takes what was asked, and answers it or not yet. */
static unsigned read_all(struct bed *b, uint32_t *req, unsigned n)
{
    struct msg m;
    while (n < CROWD && msg_recv(b->dialer, &m) == 1) {
        CU_ASSERT(m.type == W_DIAL && msg_get_u32(&m, &req[n]) == 0);
        msg_done(&m);
        n++;
    }
    return n;
}

/* A dialer that does not read for a while: what it has not taken is bounded, the rest waits its
 * turn and fails for none of it. */
static void test_behind(void)
{
    struct bed b;
    char token[1000];
    uint32_t req[CROWD];
    unsigned answered = 0, n = 0;
    uint64_t waited = meters_own()->count[METER_DIALS_QUEUED];
    memset(token, 't', sizeof token - 1);
    token[sizeof token - 1] = 0;
    bed_open(&b, true, 60);
    for (int i = 0; i < CROWD; i++) {
        char owner[16];
        snprintf(owner, sizeof owner, "box-%d", i % CROWD_OWNERS);
        CU_ASSERT_PTR_NOT_NULL_FATAL(dial_client_get(b.client, slice_str(owner), &b.authority, "",
                                                     token, counted, &answered));
    }
    for (int i = 0; i < 50; i++) { /* longer than it looks away */
        turn(&b);
        poll(NULL, 0, 1);
    }
    CU_ASSERT_EQUAL(answered, 0);
    waited = meters_own()->count[METER_DIALS_QUEUED] - waited;
    CU_ASSERT(waited > CROWD / 4 && waited < CROWD);
    for (int i = 0; i < 10000 && n < CROWD; i++) { /* it reads again, and has answered nobody yet */
        turn(&b);
        n = read_all(&b, req, n);
        poll(NULL, 0, n < CROWD);
    }
    CU_ASSERT_EQUAL(n, CROWD);
    for (unsigned i = 0; i < n; i++) {
        send_fail(&b, req[i], "connect");
        turn(&b);
    }
    CU_ASSERT_EQUAL(answered, CROWD);
    bed_close(&b);
}

/* A dialer that talks nonsense is as good as gone. */
static void test_nonsense(void)
{
    for (int kind = 0; kind < 4; kind++) {
        struct bed b;
        struct heard h = {0};
        struct msg m;
        bed_open(&b, true, 10);
        CU_ASSERT_PTR_NOT_NULL(
            dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h));
        uint32_t req = next_message(&b, W_DIAL);
        if (kind == 0) {
            send_fail(&b, req, "no_such_code");
        } else {
            msg_init(&m, kind == 1 ? W_DIALED : kind == 2 ? W_DIAL_FAIL : W_MINTED);
            msg_put_u32(&m, req);
            msg_put_str(&m, "192.0.2.1:1");
            send_msg(&b, &m);
        }
        run_until(&b, &h, 1000);
        CU_ASSERT_STRING_EQUAL(h.code, "dialer_gone");
        bed_close(&b);
    }
}

static void test_free_inside(void)
{
    struct bed b;
    struct heard h = {0};
    bed_open(&b, true, 10);
    CU_ASSERT_PTR_NOT_NULL(
        dial_client_get(b.client, SLICE("box"), &b.authority, "", "", heard, &h));
    h.free_me = b.client;
    send_fail(&b, next_message(&b, W_DIAL), "connect");
    turn(&b);
    CU_ASSERT_EQUAL(h.n, 1);
    b.client = NULL;
    bed_close(&b);
}

void suite_dial_client(void)
{
    CU_pSuite s = CU_add_suite("dial_client", NULL, NULL);
    CU_add_test(s, "the request and its answer", test_fields);
    CU_add_test(s, "a trace goes before its question", test_traced);
    CU_add_test(s, "out of descriptors", test_no_room_for_descriptors);
    CU_add_test(s, "answers in any order", test_order);
    CU_add_test(s, "cancel, and a late descriptor", test_cancel);
    CU_add_test(s, "the dialer dies, another comes", test_gone);
    CU_add_test(s, "no dialer for two seconds", test_never_attached);
    CU_add_test(s, "a dialer that never answers", test_silence);
    CU_add_test(s, "beyond its part an owner's wait, in order", test_turns);
    CU_add_test(s, "a cancelled one's slot", test_cancelled_slots);
    CU_add_test(s, "its turn never comes", test_turn_missed);
    CU_add_test(s, "those that wait are bounded", test_bound);
    CU_add_test(s, "an owner that dials too fast", test_paced);
    CU_add_test(s, "a dialer that is behind", test_behind);
    CU_add_test(s, "a dialer that talks nonsense", test_nonsense);
    CU_add_test(s, "freed inside the callback", test_free_inside);
}

void tap_suites(void)
{
    suite_dial_client();
}
