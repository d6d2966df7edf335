/* Messages between the processes of containers' networks: bytes, and at most one descriptor. */
#define _GNU_SOURCE 1
#include "network_message.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tap_main.h"

static int ends[2];

static int begin(void)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int end(void)
{
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void send_two(const int fds[2])
{
    union {
        char room[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct iovec iov = {(void *)"two", 3};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
    CU_ASSERT_EQUAL(sendmsg(ends[0], &m, 0), 3);
}

/* Of a pipe whose reading ends are closed a writer hears EPIPE, and nothing while one is open. */
static bool has_readers(int fd)
{
    return write(fd, "x", 1) == 1;
}

static void test_one(void)
{
    char text[8];
    int got = 7, pipes[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(pipes, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL(network_message_send(ends[0], "none", 4, -1), 0);
    CU_ASSERT_EQUAL(network_message_receive(ends[1], text, sizeof text, &got), 4);
    CU_ASSERT_TRUE(got == -1 && memcmp(text, "none", 4) == 0);
    CU_ASSERT_EQUAL(network_message_send(ends[0], "one", 3, pipes[0]), 0);
    close(pipes[0]);
    CU_ASSERT_EQUAL(network_message_receive(ends[1], text, sizeof text, &got), 3);
    CU_ASSERT_TRUE_FATAL(got >= 0);
    CU_ASSERT_TRUE(has_readers(pipes[1]) && (fcntl(got, F_GETFD) & FD_CLOEXEC));
    close(got);
    CU_ASSERT_FALSE(has_readers(pipes[1]));
    close(pipes[1]);
}

static void test_two(void)
{
    char text[8];
    int got = -1, a[2], b[2];
    CU_ASSERT_TRUE_FATAL(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0);
    send_two((const int[2]){a[0], b[0]});
    close(a[0]);
    close(b[0]);
    CU_ASSERT_EQUAL(network_message_receive(ends[1], text, sizeof text, &got), 3);
    CU_ASSERT_TRUE_FATAL(got >= 0);
    CU_ASSERT_TRUE(has_readers(a[1]));
    CU_ASSERT_FALSE(has_readers(b[1]));
    close(got);
    close(a[1]);
    close(b[1]);
}

static void test_end(void)
{
    char text[8];
    int got = 7;
    shutdown(ends[0], SHUT_WR);
    CU_ASSERT_EQUAL(network_message_receive(ends[1], text, sizeof text, &got), 0);
    CU_ASSERT_EQUAL(got, -1);
    CU_ASSERT_EQUAL(network_message_send(ends[0], "x", 1, -1), -1);
}

void tap_suites(void)
{
    signal(SIGPIPE, SIG_IGN);
    CU_pSuite s = CU_add_suite("network_message", begin, end);
    CU_add_test(s, "one descriptor", test_one);
    CU_add_test(s, "more than one", test_two);
    CU_add_test(s, "the end", test_end);
}
