/* Channels: what is bad ends the channel, once, and nothing else; what is slow is bounded. */
#include "ipc.h"
#include "loop_bed.h"
#include "tap_main.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct side {
    struct ipc *ch;
    int far;
    unsigned messages, closed, drained;
    bool bad, free_on_message, free_on_drained, pause_on_message, send_on_message;
    char why[64];
};

static void turn(void)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static unsigned open_fds(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int on_message(struct ipc *ch, struct msg *m, void *arg)
{
    struct side *s = arg;
    s->messages++;
    if (s->send_on_message) {
        struct msg answer;
        msg_init(&answer, m->type);
        CU_ASSERT_EQUAL(ipc_send(ch, &answer), 0);
    }
    if (s->pause_on_message)
        ipc_pause(ch);
    if (s->free_on_message) {
        ipc_free(ch);
        s->ch = NULL;
    }
    return s->bad ? -1 : 0;
}

static void on_closed(struct ipc *ch, const char *why, void *arg)
{
    struct side *s = arg;
    s->closed++;
    snprintf(s->why, sizeof s->why, "%s", why);
    s->ch = NULL;
    ipc_free(ch);
}

static void on_drained(void *arg)
{
    struct side *s = arg;
    s->drained++;
    if (s->free_on_drained) {
        ipc_free(s->ch);
        s->ch = NULL;
    }
}

static void open_side(struct side *s)
{
    int fds[2];
    memset(s, 0, sizeof *s);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    CU_ASSERT(fcntl(fds[0], F_GETFD) & FD_CLOEXEC && fcntl(fds[1], F_GETFL) & O_NONBLOCK);
    s->far = fds[1];
    s->ch = ipc_new(base, fds[0], on_message, on_closed, s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->ch);
    ipc_on_drained(s->ch, on_drained, s);
}

static void close_side(struct side *s)
{
    ipc_free(s->ch);
    close(s->far);
    turn();
}

static void raw(int fd, const void *p, size_t n)
{
    CU_ASSERT_EQUAL(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* n descriptors with one datagram of these bytes. */
static void raw_fds(int fd, const void *p, size_t size, unsigned n)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * 128)];
    } c;
    struct iovec iov = {(void *)(uintptr_t)p, size};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &c,
                        .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
    memset(&c, 0, sizeof c);
    struct cmsghdr *h = CMSG_FIRSTHDR(&mh);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int) * n);
    for (unsigned i = 0; i < n; i++)
        memcpy(CMSG_DATA(h) + i * sizeof(int), &(int){0}, sizeof(int));
    CU_ASSERT_EQUAL(sendmsg(fd, &mh, MSG_NOSIGNAL), (ssize_t)size);
}

static void test_messages(void)
{
    struct side s;
    struct msg m;
    open_side(&s);
    s.send_on_message = true;
    for (int i = 0; i < 200; i++) {
        raw(s.far, "\0\5\0\0", 4);
        turn();
        CU_ASSERT_EQUAL_FATAL(msg_recv(s.far, &m), 1);
        CU_ASSERT_EQUAL(m.type, 5);
        msg_done(&m);
    }
    CU_ASSERT(s.messages == 200 && s.closed == 0 && s.drained == 0);
    close_side(&s);
}

/* Each closes the channel, once, and leaves no descriptor behind. */
static void ends(void (*say)(struct side *s), unsigned messages)
{
    struct side s;
    unsigned before = open_fds();
    open_side(&s);
    say(&s);
    turn();
    CU_ASSERT(s.closed == 1 && s.messages == messages && s.ch == NULL);
    close_side(&s);
    CU_ASSERT_EQUAL(s.closed, 1);
    CU_ASSERT_EQUAL(open_fds(), before);
}

static void say_short(struct side *s)
{
    raw(s->far, "\0\1\0", 3);
    raw(s->far, "\0\1\0\0", 4); /* not seen any more */
}

static void say_reserved(struct side *s)
{
    raw(s->far, "\0\1\1\0", 4);
}

static void say_short_with_fds(struct side *s)
{
    raw_fds(s->far, "\0", 1, 5);
}

static void say_truncated(struct side *s)
{
    static char big[IPC_MSG_MAX + 5];
    raw_fds(s->far, big, sizeof big, 3);
}

static void say_many_fds(struct side *s)
{
    raw_fds(s->far, "\0\1\0\0", 4, IPC_FDS_MAX + 20);
}

static void say_bad(struct side *s)
{
    s->bad = true;
    raw_fds(s->far, "\0\1\0\0", 4, IPC_FDS_MAX);
    raw(s->far, "\0\1\0\0", 4);
}

static void say_end(struct side *s)
{
    shutdown(s->far, SHUT_RDWR);
}

static void test_bad(void)
{
    ends(say_short, 0);
    ends(say_reserved, 0);
    ends(say_short_with_fds, 0);
    ends(say_truncated, 0);
    ends(say_many_fds, 0);
    ends(say_bad, 1);
    ends(say_end, 0);
}

static void test_free_inside(void)
{
    struct side s;
    open_side(&s);
    s.free_on_message = true;
    raw(s.far, "\0\1\0\0", 4);
    raw(s.far, "\0\1\0\0", 4);
    turn();
    CU_ASSERT(s.messages == 1 && s.closed == 0);
    close_side(&s);
    open_side(&s); /* and the message was bad at that */
    s.free_on_message = s.bad = true;
    raw(s.far, "\0\1\0\0", 4);
    turn();
    CU_ASSERT(s.messages == 1 && s.closed == 0);
    close_side(&s);
}

static void test_pause(void)
{
    struct side s;
    open_side(&s);
    s.pause_on_message = true;
    for (int i = 0; i < 5; i++)
        raw(s.far, "\0\1\0\0", 4);
    for (unsigned i = 1; i <= 5; i++) {
        turn();
        CU_ASSERT_EQUAL(s.messages, i);
        ipc_resume(s.ch);
    }
    close_side(&s);
}

static int send_one(struct side *s, size_t n, bool with_fd)
{
    static const char zeros[65536];
    struct msg m;
    msg_init(&m, 9);
    msg_put_bytes(&m, zeros, n);
    if (with_fd)
        msg_put_fd_dup(&m, 0);
    return ipc_send(s->ch, &m);
}

/* A peer that reads nothing: the queue ends at its bound, counted with what it costs to keep. */
static void full(size_t size)
{
    struct side s;
    unsigned before = open_fds(), sent = 0;
    open_side(&s);
    while (send_one(&s, size, true) == 0 && sent < 40000)
        sent++;
    CU_ASSERT(sent > 10 && sent < 40000);
    CU_ASSERT(ipc_queued(s.ch) <= 8 << 20);
    CU_ASSERT(ipc_queued(s.ch) > 7 << 20);
    CU_ASSERT_EQUAL(s.closed, 0); /* told from the loop, not from inside the call */
    CU_ASSERT_EQUAL(send_one(&s, 1, true), -1);
    turn();
    CU_ASSERT_EQUAL(s.closed, 1);
    close_side(&s);
    CU_ASSERT_EQUAL(open_fds(), before);
}

static void test_queue(void)
{
    struct side s;
    struct msg m;
    unsigned got = 0, sent = 0;
    full(60000);
    open_side(&s); /* what had queued goes out in order, and is told of */
    while (sent < 1000 && send_one(&s, 2000 + sent, false) == 0)
        sent++;
    CU_ASSERT(sent == 1000 && ipc_queued(s.ch) > 0 && s.drained == 0);
    for (int i = 0; i < 2000 && got < sent; i++) {
        struct slice b;
        turn();
        while (msg_recv(s.far, &m) == 1) {
            CU_ASSERT(msg_get_slice(&m, 65536, &b) == 0 && b.n == 2000 + got);
            got++;
            msg_done(&m);
        }
    }
    CU_ASSERT(got == 1000 && ipc_queued(s.ch) == 0 && s.drained == 1);
    close_side(&s);
}

/* Many small messages, without descriptors, are bounded as well. */
static void test_small(void)
{
    struct side s;
    unsigned sent = 0;
    open_side(&s);
    for (; sent < 200000; sent++) {
        struct msg m;
        msg_init(&m, 9);
        if (ipc_send(s.ch, &m) < 0)
            break;
    }
    CU_ASSERT(sent < 200000);
    turn();
    CU_ASSERT_EQUAL(s.closed, 1);
    close_side(&s);
}

static unsigned far_datagrams(int fd)
{
    struct msg m;
    unsigned n = 0;
    for (; msg_recv(fd, &m) == 1; n++)
        msg_done(&m);
    return n;
}

/* Small messages of one turn are one datagram; what is large or has descriptors keeps its place
 * among them. */
static void test_body_buffer(void)
{
    struct side s, t;
    open_side(&s);
    ipc_gather(s.ch);
    for (int i = 0; i < 10; i++)
        send_one(&s, 100, false);
    CU_ASSERT(ipc_queued(s.ch) > 1000 && far_datagrams(s.far) == 0);
    turn();
    CU_ASSERT_EQUAL(far_datagrams(s.far), 1);
    send_one(&s, 100, false);
    send_one(&s, 60000, false);
    send_one(&s, 100, false);
    send_one(&s, 100, true);
    CU_ASSERT_EQUAL(far_datagrams(s.far), 4);
    for (int i = 0; i < 20; i++)
        send_one(&s, 8000, false);
    CU_ASSERT(far_datagrams(s.far) == 2 && s.closed == 0);
    send_one(&s, 1, false); /* last words */
    ipc_free(s.ch);
    s.ch = NULL;
    CU_ASSERT_EQUAL(far_datagrams(s.far), 1);
    close_side(&s);
    open_side(&s); /* the other direction, and a freeing handler in the middle */
    ipc_gather(s.ch);
    raw(s.far, "\xff\xff\0\0\0\1\0\0\0\0\0\2\0\0\0\1x", 17);
    turn();
    CU_ASSERT(s.messages == 2 && s.closed == 0);
    s.free_on_message = true;
    raw(s.far, "\xff\xff\0\0\0\1\0\0\0\0\0\2\0\0\0\1x", 17);
    turn();
    CU_ASSERT(s.messages == 3 && s.ch == NULL);
    close_side(&s);
    open_side(&s); /* torn inside */
    ipc_gather(s.ch);
    raw(s.far, "\xff\xff\0\0\0\1\0\0\0\0\0\2\0\0\0\2x", 17);
    turn();
    CU_ASSERT(s.messages == 1 && s.closed == 1);
    close_side(&s);
    open_side(&t); /* with nothing in it, it would count for nothing */
    ipc_gather(t.ch);
    raw(t.far, "\xff\xff\0\0", 4);
    turn();
    CU_ASSERT(t.messages == 0 && t.closed == 1);
    close(t.far);
    open_side(&t); /* who does not gather takes none */
    raw(t.far, "\xff\xff\0\0\0\1\0\0\0\0", 10);
    turn();
    CU_ASSERT(t.messages == 0 && t.closed == 1);
    close_side(&t);
}

/* So many messages in one datagram, or each in its own. */
static void many(int fd, unsigned n, bool gathered)
{
    unsigned char all[4 + 6 * 100] = {0xff, 0xff};
    for (unsigned i = 0; i < n; i++)
        if (gathered)
            all[4 + 6 * i + 1] = 1;
        else
            raw(fd, "\0\1\0\0", 4);
    if (gathered)
        raw(fd, all, 4 + 6 * n);
}

/* One channel has no more than its share of a turn, whichever way it says it; nothing is lost or
 * comes twice, and what is held is stopped by a pause and let go with the channel. */
static void share(bool gathered)
{
    struct side s;
    unsigned turns = 0;
    open_side(&s);
    ipc_gather(s.ch);
    many(s.far, 100, gathered);
    while (s.messages < 100 && turns < 50) {
        unsigned before = s.messages;
        event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
        CU_ASSERT(s.messages - before <= 16);
        turns++;
    }
    CU_ASSERT(s.messages == 100 && turns >= 6);
    turn();
    CU_ASSERT(s.messages == 100 && s.closed == 0);
    s.pause_on_message = true;
    many(s.far, 3, gathered);
    turn();
    CU_ASSERT_EQUAL(s.messages, 101);
    ipc_resume(s.ch);
    turn();
    CU_ASSERT_EQUAL(s.messages, 102);
    s.pause_on_message = false;
    ipc_resume(s.ch);
    turn();
    CU_ASSERT_EQUAL(s.messages, 103);
    many(s.far, 100, gathered);
    event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
    CU_ASSERT(s.messages < 203);
    close_side(&s);
}

static void test_share(void)
{
    share(false);
    share(true);
}

/* The far end is gone with words of its under way: they are heard first. */
static void test_last_words(void)
{
    struct side s;
    open_side(&s);
    ipc_gather(s.ch);
    many(s.far, 100, true);
    many(s.far, 20, false);
    shutdown(s.far, SHUT_RDWR);
    turn();
    CU_ASSERT(s.messages == 120 && s.closed == 1);
    close_side(&s);
}

/* The last words of a process, with an owner that frees the channel when they are out. */
static void test_flush(void)
{
    struct side s;
    struct msg m;
    open_side(&s);
    s.free_on_drained = true;
    while (ipc_queued(s.ch) == 0)
        CU_ASSERT_EQUAL_FATAL(send_one(&s, 60000, false), 0);
    ipc_flush(s.ch, 1); /* nobody reads: it gives up */
    CU_ASSERT(s.ch && ipc_queued(s.ch) > 0);
    while (msg_recv(s.far, &m) == 1)
        msg_done(&m);
    ipc_flush(s.ch, 1000);
    CU_ASSERT(s.drained == 1 && s.ch == NULL);
    close_side(&s);
    CU_ASSERT_EQUAL(ipc_send(NULL, (msg_init(&m, 1), &m)), -1);
}

static void test_memfd(void)
{
    struct err err = {0};
    char *p = NULL;
    size_t n = 0;
    int fd = ipc_memfd("t", "a\0b", 3, &err);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, "x", 1), -1);
    CU_ASSERT_EQUAL(ftruncate(fd, 0), -1);
    CU_ASSERT_EQUAL(lseek(fd, 2, SEEK_SET), 2); /* its place does not matter */
    CU_ASSERT_EQUAL_FATAL(ipc_memfd_read(fd, 3, &p, &n, &err), 0);
    CU_ASSERT(n == 3 && memcmp(p, "a\0b", 4) == 0);
    free(p);
    CU_ASSERT_EQUAL(ipc_memfd_read(fd, 2, &p, &n, &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_LIMIT);
    close(fd);
    fd = ipc_memfd("t", "", 0, &err);
    CU_ASSERT_EQUAL(ipc_memfd_read(fd, 0, &p, &n, &err), 0);
    CU_ASSERT_EQUAL(n, 0);
    free(p);
    close(fd);
    CU_ASSERT_EQUAL(ipc_memfd_read(-1, 10, &p, &n, &err), -1);
}

/* A number that ends early leaves nothing of itself behind. */
static void test_half_number(void)
{
    struct msg m;
    uint64_t v = 7;
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    raw(fds[0], "\0\1\0\0\1\2\3\4\5\6", 10);
    CU_ASSERT_EQUAL_FATAL(msg_recv(fds[1], &m), 1);
    CU_ASSERT_EQUAL(msg_get_u64(&m, &v), -1);
    CU_ASSERT(v == 0 && m.bad);
    msg_done(&m);
    close(fds[0]);
    close(fds[1]);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("ipc", setup, teardown);
    CU_add_test(s, "messages and answers", test_messages);
    CU_add_test(s, "bad ones end the channel, and leak no descriptor", test_bad);
    CU_add_test(s, "freed inside its callback", test_free_inside);
    CU_add_test(s, "pause and resume", test_pause);
    CU_add_test(s, "the queue", test_queue);
    CU_add_test(s, "the queue of small messages", test_small);
    CU_add_test(s, "gathered", test_body_buffer);
    CU_add_test(s, "a channel's share of a turn", test_share);
    CU_add_test(s, "what was said before the end", test_last_words);
    CU_add_test(s, "flush", test_flush);
    CU_add_test(s, "memfd", test_memfd);
    CU_add_test(s, "half a number", test_half_number);
}
