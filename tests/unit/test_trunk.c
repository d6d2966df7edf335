/* The trunk: both ends over one line, what each kind carries, and what a hostile end may not. */
#define _GNU_SOURCE 1
#include "tap_main.h"
#include "trunk.h"
#include "wire.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_trunk(void);

static int there = -1; /* the far end of what the host opened last */
static unsigned refused;

static int open_there(enum trunk_kind kind, const struct trunk_address *to)
{
    int p[2];
    if (to->port == 1)
        return -1;
    CU_ASSERT_FATAL(socketpair(AF_UNIX, kind == TRUNK_TCP ? SOCK_STREAM : SOCK_DGRAM, 0, p) == 0);
    CU_ASSERT(fcntl(p[0], F_SETFL, O_NONBLOCK) == 0);
    there = p[1];
    return p[0];
}

static void on_refused(const struct trunk_address *to)
{
    refused += to->port;
}

static const struct trunk_ops ops = {open_there, on_refused};

struct ends {
    struct trunk *guest, *host;
    int init, keeper; /* whoever's messages each carries */
};

static void begin(struct ends *e)
{
    int line[2], a[2], b[2];
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, line) == 0 &&
                    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, a) == 0 &&
                    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, b) == 0);
    e->guest = trunk_new(line[0], a[0], NULL);
    e->host = trunk_new(line[1], b[0], &ops);
    CU_ASSERT_FATAL(e->guest && e->host);
    e->init = a[1];
    e->keeper = b[1];
}

static void end(struct ends *e)
{
    trunk_free(e->guest);
    trunk_free(e->host);
    close(e->init);
    close(e->keeper);
}

static int turn(struct trunk *t)
{
    static struct pollfd p[TRUNK_POLLED];
    unsigned n = trunk_watch(t, p);
    CU_ASSERT_FATAL(poll(p, n, 0) >= 0);
    return trunk_turn(t, p, n);
}

static void turns(struct ends *e)
{
    for (int i = 0; i < 60; i++)
        CU_ASSERT_FATAL(turn(e->guest) == 0 && turn(e->host) == 0);
}

/* A message with these descriptors arrives inside, with others in their place. */
static void pass(struct ends *e, const int *fds, unsigned n, int *inner)
{
    struct msg m;
    uint32_t number;
    msg_init(&m, W_INIT_FILE);
    msg_put_u32(&m, 7);
    for (unsigned i = 0; i < n; i++)
        msg_put_fd(&m, fds[i]);
    CU_ASSERT(msg_send(e->keeper, &m) == 0);
    msg_done(&m);
    turns(e);
    CU_ASSERT_FATAL(msg_recv(e->init, &m) == 1);
    CU_ASSERT(m.type == W_INIT_FILE && msg_get_u32(&m, &number) == 0 && number == 7);
    for (unsigned i = 0; i < n; i++)
        CU_ASSERT(msg_get_fd(&m, &inner[i]) == 0);
    CU_ASSERT(msg_end(&m) == 0);
    msg_done(&m);
}

static void test_pipes(void)
{
    struct ends e;
    int in[2], out[2], inner[2];
    char got[16];
    begin(&e);
    CU_ASSERT_FATAL(pipe(in) == 0 && pipe(out) == 0);
    pass(&e, (const int[]){in[0], out[1]}, 2, inner);
    CU_ASSERT(write(in[1], "hello", 5) == 5 && write(inner[1], "world", 5) == 5);
    turns(&e);
    CU_ASSERT(read(inner[0], got, sizeof got) == 5 && memcmp(got, "hello", 5) == 0);
    CU_ASSERT(read(out[0], got, sizeof got) == 5 && memcmp(got, "world", 5) == 0);
    close(in[1]);
    close(inner[1]);
    turns(&e);
    CU_ASSERT(read(inner[0], got, sizeof got) == 0); /* each way's end */
    CU_ASSERT(read(out[0], got, sizeof got) == 0);
    close(inner[0]);
    close(out[0]);
    end(&e);
}

/* Its bytes fill more than a pipe; its end is told once they are there. */
static void test_order(void)
{
    struct ends e;
    static char bytes[60000], got[200000];
    int out[2], inner[1], n = 0;
    ssize_t k;
    struct msg m;
    begin(&e);
    CU_ASSERT_FATAL(pipe2(out, O_NONBLOCK) == 0);
    pass(&e, (const int[]){out[1]}, 1, inner);
    CU_ASSERT(fcntl(inner[0], F_SETFL, O_NONBLOCK) == 0);
    for (int i = 0; i < 3; i++) {
        k = write(inner[0], bytes, sizeof bytes);
        n += k > 0 ? (int)k : 0;
        turns(&e);
    }
    close(inner[0]);
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, 7);
    msg_put_u32(&m, 0);
    msg_put_str(&m, "");
    CU_ASSERT(msg_send(e.init, &m) == 0);
    msg_done(&m);
    turns(&e);
    CU_ASSERT(n > TRUNK_WINDOW && msg_recv(e.keeper, &m) < 0); /* a pipe is full outside */
    while (n > 0 && (k = read(out[0], got, sizeof got)) > 0) {
        n -= (int)k;
        turns(&e);
    }
    CU_ASSERT(n == 0 && msg_recv(e.keeper, &m) == 1 && m.type == W_INIT_EXIT);
    msg_done(&m);
    close(out[0]);
    end(&e);
}

/* What nobody reads stays where it is, and holds up nobody else. */
static void test_window(void)
{
    struct ends e;
    static char bytes[1 << 20];
    struct trunk_address to = {.family = 4, .ip = {1, 2, 3, 4}, .port = 443};
    int p[2], q[2], n = 0;
    begin(&e);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) == 0 &&
                    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, q) == 0);
    CU_ASSERT(trunk_open(e.guest, TRUNK_TCP, p[0], &to) == 0);
    turns(&e);
    int first = there;
    for (int i = 0; i < 40; i++) {
        ssize_t k = write(p[1], bytes, sizeof bytes);
        n += k > 0 ? (int)k : 0;
        turns(&e);
    }
    CU_ASSERT(n > TRUNK_WINDOW && n < 2 * (int)sizeof bytes);
    CU_ASSERT(write(p[1], bytes, 1) < 0);
    CU_ASSERT(trunk_open(e.guest, TRUNK_TCP, q[0], &to) == 0);
    turns(&e);
    CU_ASSERT(write(q[1], "x", 1) == 1);
    turns(&e);
    CU_ASSERT(recv(there, bytes, sizeof bytes, MSG_DONTWAIT) == 1);
    for (ssize_t k; (k = recv(first, bytes, sizeof bytes, MSG_DONTWAIT)) > 0; n -= (int)k)
        turns(&e);
    CU_ASSERT_EQUAL(n, 0); /* all of it, once it is read */
    close(p[1]);
    close(q[1]);
    turns(&e);
    CU_ASSERT(recv(first, bytes, 1, MSG_DONTWAIT) == 0);
    close(first);
    close(there);
    end(&e);
}

static void test_datagrams(void)
{
    struct ends e;
    struct trunk_address to = {.family = 6, .ip = {[15] = 1}, .port = 53};
    int p[2];
    char got[16];
    begin(&e);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) == 0);
    CU_ASSERT(trunk_ask(e.guest, p[0], &to, SLICE("ask")) == 0);
    turns(&e);
    CU_ASSERT(recv(there, got, sizeof got, MSG_DONTWAIT) == 3);
    CU_ASSERT(send(there, "answer", 6, 0) == 6);
    turns(&e);
    CU_ASSERT(recv(p[1], got, sizeof got, MSG_DONTWAIT) == 6);
    refused = 0;
    trunk_refused(e.guest, &to);
    turns(&e);
    CU_ASSERT_EQUAL(refused, 53);
    to.port = 1; /* nobody is there */
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) == 0);
    CU_ASSERT(trunk_open(e.guest, TRUNK_TCP, p[0], &to) == 0);
    turns(&e);
    CU_ASSERT(recv(p[1], got, sizeof got, MSG_DONTWAIT) == 0);
    close(p[1]);
    close(there);
    end(&e);
}

/* A channel of datagrams that are answered ends soon, another does not. */
static void test_answered(void)
{
    struct ends e;
    struct trunk_address to = {.family = 4, .ip = {1}, .port = 53};
    int p[2], q[2], far[2];
    char got[8];
    begin(&e);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, p) == 0 &&
                    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, q) == 0);
    CU_ASSERT(trunk_ask(e.guest, p[0], &to, SLICE("ask")) == 0);
    turns(&e);
    far[0] = there;
    CU_ASSERT(trunk_ask(e.guest, q[0], &to, SLICE("ask")) == 0);
    turns(&e);
    far[1] = there;
    CU_ASSERT(send(far[0], "answer", 6, 0) == 6);
    turns(&e);
    CU_ASSERT(recv(p[1], got, sizeof got, MSG_DONTWAIT) == 6);
    struct pollfd ended = {.fd = p[1], .events = POLLIN};
    for (int i = 0; i < 100 && poll(&ended, 1, 50) == 0; i++)
        turns(&e);
    CU_ASSERT(recv(p[1], got, sizeof got, MSG_DONTWAIT) == 0);
    CU_ASSERT(recv(q[1], got, sizeof got, MSG_DONTWAIT) < 0);
    for (int i = 0; i < 2; i++)
        close(far[i]);
    close(p[1]);
    close(q[1]);
    end(&e);
}

/* However many names are asked for, connections have room. */
static void test_many_datagrams(void)
{
    struct ends e;
    struct trunk_address to = {.family = 4, .ip = {1}, .port = 53};
    int p[2];
    begin(&e);
    for (unsigned i = 0; i <= TRUNK_ASKING; i++) {
        CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) == 0);
        CU_ASSERT_EQUAL(trunk_ask(e.guest, p[0], &to, SLICE("ask")), i < TRUNK_ASKING ? 0 : -1);
        close(p[1]);
    }
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) == 0);
    CU_ASSERT_EQUAL(trunk_open(e.guest, TRUNK_TCP, p[0], &to), 0);
    close(p[1]);
    end(&e);
}

/* An end that waits for bytes is told to no later controller. */
static void test_reset(void)
{
    struct ends e;
    static char bytes[60000], got[200000];
    int out[2], inner[1];
    struct msg m;
    begin(&e);
    CU_ASSERT_FATAL(pipe2(out, O_NONBLOCK) == 0);
    pass(&e, (const int[]){out[1]}, 1, inner);
    CU_ASSERT(fcntl(inner[0], F_SETFL, O_NONBLOCK) == 0);
    for (int i = 0; i < 5; i++) {
        (void)!write(inner[0], bytes, sizeof bytes);
        turns(&e);
    }
    close(inner[0]);
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, 7);
    CU_ASSERT(msg_send(e.init, &m) == 0);
    msg_done(&m);
    turns(&e);
    CU_ASSERT(msg_recv(e.keeper, &m) < 0);
    msg_init(&m, W_INIT_RESET);
    CU_ASSERT(msg_send(e.init, &m) == 0);
    msg_done(&m);
    turns(&e);
    CU_ASSERT(msg_recv(e.keeper, &m) == 1 && m.type == W_INIT_RESET);
    msg_done(&m);
    while (read(out[0], got, sizeof got) > 0)
        turns(&e);
    turns(&e);
    CU_ASSERT(msg_recv(e.keeper, &m) < 0);
    close(out[0]);
    end(&e);
}

#define ADDRESS "\4\1\2\3\4\0\0\0\0\0\0\0\0\0\0\0\0\1\xbb"
#define OPENED  "\2\0\0\0\0\0\0\x14\6" ADDRESS

static void refuse(const char *bytes, size_t n)
{
    struct ends e;
    begin(&e);
    CU_ASSERT(trunk_take(e.host, (struct slice){bytes, n}) < 0);
    end(&e);
    if (there >= 0)
        close(there);
    there = -1;
}
#define REFUSE(s) refuse(s, sizeof(s) - 1)

static void test_hostile(void)
{
    struct ends e;
    there = -1;
    begin(&e);
    CU_ASSERT(trunk_take(e.host, SLICE(OPENED)) == 0);
    CU_ASSERT(trunk_take(e.host, SLICE("\4\0\0\0\0\0\0\1x\5\0\0\0\0\0\0\0")) == 0);
    end(&e);
    close(there);
    there = -1;
    REFUSE("\0\0\0\0\0\0\0\0");                /* no type */
    REFUSE(OPENED "\4\1\0\0\0\0\0\1x");        /* not zero */
    REFUSE("\4\0\0\0\0\0\0\1x");               /* nobody opened it */
    REFUSE("\4\0\0\0\0\0\0\0");                /* no bytes */
    REFUSE("\4\0\0\0\0\0\x40\1");              /* too many */
    REFUSE("\4\0\x01\x80\0\0\0\1x");           /* no such channel */
    REFUSE("\2\0\x80\0\0\0\0\x14\6" ADDRESS);  /* the host's own */
    REFUSE("\2\0\0\0\0\0\0\x14\5" ADDRESS);    /* of a kind that it may not */
    REFUSE(OPENED OPENED);                     /* twice */
    REFUSE(OPENED "\6\0\0\0\0\0\0\4\0\0\0\1"); /* more credit than there is */
    REFUSE(OPENED "\5\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0");
    REFUSE(OPENED "\5\0\0\0\0\0\0\0\4\0\0\0\0\0\0\1x");                   /* after the end */
    REFUSE("\3\0\0\0\0\0\0\x13\5\1\2\3\4\0\0\0\0\0\0\0\0\0\0\0\0\1\xbb"); /* another family */
    REFUSE("\1\0\0\0\0\0\0\6\0\1\1\2\x80\0"); /* a message with descriptors */
    REFUSE("\7\0\0\0\0\0\0\0");               /* the end of nothing */
    REFUSE("\1\0\0\0\0\2\0\0");               /* longer than any */
}

/* More than the host gave credit for. */
static void test_beyond_window(void)
{
    struct ends e;
    static char frame[TRUNK_HEAD + TRUNK_CHUNK] = "\4\0\0\0\0\0\x40\0";
    int r = 0, n = 0;
    begin(&e);
    CU_ASSERT(trunk_take(e.host, SLICE(OPENED)) == 0);
    for (; r == 0 && n < 100; n++)
        r = trunk_take(e.host, (struct slice){frame, sizeof frame});
    CU_ASSERT(r < 0 && n == TRUNK_WINDOW / TRUNK_CHUNK + 1);
    end(&e);
    close(there);
}

void suite_trunk(void)
{
    CU_pSuite s = CU_add_suite("trunk", NULL, NULL);
    CU_add_test(s, "pipes of a message", test_pipes);
    CU_add_test(s, "a command's last bytes, and its end", test_order);
    CU_add_test(s, "what nobody reads", test_window);
    CU_add_test(s, "datagrams, and what is refused", test_datagrams);
    CU_add_test(s, "datagrams that are answered", test_answered);
    CU_add_test(s, "more datagrams than there is room for", test_many_datagrams);
    CU_add_test(s, "ends that wait when all is reset", test_reset);
    CU_add_test(s, "what is none of it", test_hostile);
    CU_add_test(s, "more than there is credit for", test_beyond_window);
}

void tap_suites(void)
{
    suite_trunk();
}
