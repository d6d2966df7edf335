/* Messages between roles: what is put comes out, and nothing else does. */
#include "tap_main.h"

#include "ipc_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2];

static void open_pair(void)
{
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
                    0);
}

static void close_pair(void)
{
    close(pair[0]);
    close(pair[1]);
}

static unsigned open_fds(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_round_trip(void)
{
    struct msg m;
    uint8_t a;
    uint32_t b;
    uint64_t c;
    struct slice s;
    char text[8];
    int fd;
    open_pair();
    msg_init(&m, 7);
    msg_put_u8(&m, 200);
    msg_put_u32(&m, 0xfeedbeef);
    msg_put_u64(&m, UINT64_MAX);
    msg_put_bytes(&m, "a\0b", 3);
    msg_put_str(&m, "seven77");
    msg_put_str(&m, NULL);
    msg_put_fd_dup(&m, 0);
    CU_ASSERT_EQUAL(msg_send(pair[0], &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(msg_recv(pair[1], &m), 1);
    CU_ASSERT_EQUAL(m.type, 7);
    CU_ASSERT(msg_get_u8(&m, &a) == 0 && a == 200);
    CU_ASSERT(msg_get_u32(&m, &b) == 0 && b == 0xfeedbeef);
    CU_ASSERT(msg_get_u64(&m, &c) == 0 && c == UINT64_MAX);
    CU_ASSERT(msg_get_slice(&m, 3, &s) == 0 && s.n == 3 && memcmp(s.p, "a\0b", 3) == 0);
    CU_ASSERT(msg_get_str(&m, text, sizeof text) == 0 && strcmp(text, "seven77") == 0);
    CU_ASSERT(msg_get_str(&m, text, sizeof text) == 0 && text[0] == 0);
    CU_ASSERT(msg_get_fd(&m, &fd) == 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    close(fd);
    msg_done(&m);
    close_pair();
}

/* Sends raw bytes and reads them as a message; the caller checks m and calls msg_done. */
static int receive_raw(const void *p, size_t n, struct msg *m)
{
    open_pair();
    CU_ASSERT_FATAL(send(pair[0], p, n, 0) == (ssize_t)n);
    int r = msg_recv(pair[1], m);
    close_pair();
    return r;
}

static void test_bad_lengths(void)
{
    struct msg m;
    struct slice s;
    char text[4];
    uint32_t v = 1;
    CU_ASSERT_EQUAL(receive_raw("\0", 1, &m), -1);
    CU_ASSERT_EQUAL(errno, EBADMSG);
    CU_ASSERT_EQUAL(receive_raw("\0\1\0\1", 4, &m), -1);
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\0\0\0\5abcd", 12, &m), 1);
    CU_ASSERT_EQUAL(msg_get_slice(&m, 100, &s), -1);
    CU_ASSERT(m.bad && s.n == 0);
    CU_ASSERT_EQUAL(msg_end(&m), -1);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\0\0\0\4abcd", 12, &m), 1);
    CU_ASSERT_EQUAL(msg_get_slice(&m, 3, &s), -1);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\0\0\0\4abcd", 12, &m), 1);
    CU_ASSERT_EQUAL(msg_get_str(&m, text, sizeof text), -1);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\0\0\0\2a\0", 10, &m), 1);
    CU_ASSERT_EQUAL(msg_get_str(&m, text, sizeof text), -1);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\377\377\377\377", 8, &m), 1);
    CU_ASSERT_EQUAL(msg_get_slice(&m, SIZE_MAX, &s), -1);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\1\2\3", 7, &m), 1);
    CU_ASSERT(msg_get_u32(&m, &v) == -1 && v == 0);
    msg_done(&m);
}

static void test_left_over(void)
{
    struct msg m;
    uint8_t v;
    CU_ASSERT_EQUAL_FATAL(receive_raw("\0\1\0\0\1\2", 6, &m), 1);
    CU_ASSERT_EQUAL(msg_get_u8(&m, &v), 0);
    CU_ASSERT_EQUAL(msg_end(&m), -1);
    msg_done(&m);
}

/* Descriptors that nobody asked for are closed, and make the message bad. */
static void test_descriptors(void)
{
    struct msg m;
    int fd;
    unsigned before = open_fds();
    open_pair();
    msg_init(&m, 1);
    msg_put_fd_dup(&m, 0);
    msg_put_fd_dup(&m, 0);
    CU_ASSERT_EQUAL(msg_send(pair[0], &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(msg_recv(pair[1], &m), 1);
    CU_ASSERT_EQUAL(msg_get_fd(&m, &fd), 0);
    CU_ASSERT_EQUAL(msg_end(&m), -1);
    close(fd);
    msg_done(&m);
    msg_init(&m, 1);
    CU_ASSERT_EQUAL(msg_send(pair[0], &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(msg_recv(pair[1], &m), 1);
    CU_ASSERT(msg_get_fd(&m, &fd) == -1 && m.bad);
    msg_done(&m);
    close_pair();
    CU_ASSERT_EQUAL(open_fds(), before);
}

static void test_ends(void)
{
    struct msg m;
    open_pair();
    CU_ASSERT_EQUAL(msg_recv(pair[1], &m), -1);
    CU_ASSERT_EQUAL(errno, EAGAIN);
    close(pair[0]);
    CU_ASSERT_EQUAL(msg_recv(pair[1], &m), 0);
    close(pair[1]);
}

static void test_too_large(void)
{
    static char big[IPC_MSG_MAX];
    struct msg m;
    msg_init(&m, 1);
    msg_put_bytes(&m, big, sizeof big);
    CU_ASSERT(m.bad);
    open_pair();
    CU_ASSERT_EQUAL(msg_send(pair[0], &m), -1);
    msg_done(&m);
    close_pair();
    msg_init(&m, 1);
    for (int i = 0; i <= IPC_FDS_MAX; i++)
        msg_put_fd_dup(&m, 0);
    CU_ASSERT(m.bad);
    msg_done(&m);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("ipc_msg", NULL, NULL);
    CU_add_test(s, "what is put comes out", test_round_trip);
    CU_add_test(s, "lengths that lie", test_bad_lengths);
    CU_add_test(s, "bytes left over", test_left_over);
    CU_add_test(s, "descriptors: too many, missing, none leaks", test_descriptors);
    CU_add_test(s, "nothing there, and the end", test_ends);
    CU_add_test(s, "larger than a message may be", test_too_large);
}
