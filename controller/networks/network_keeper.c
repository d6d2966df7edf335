/* Listens, reads one request of each connection, answers it, and carries what its watches carry. */
#define _GNU_SOURCE 1
#include "network_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "network_folder.h"
#include "network_loop.h"
#include "network_message.h"
#include "network_relay.h"
#include "network_tables.h"

enum { LISTENER = 3, BACKLOG = 16, REFRESH_MS = 1000, FIRST_MS = 10 * 1000 };

static const struct sockaddr_un place = {.sun_family = AF_UNIX,
                                         .sun_path = NETWORK_FOLDER "/networks"};

/* ---- its socket ---- */

static int fresh(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), room = 2 * NETWORK_REQUEST_MAX;
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    return fd;
}

/* -1: nobody listens. */
static int connected(void)
{
    int fd = fresh();
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&place, sizeof place) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int network_keeper_find(void)
{
    int folder = network_folder_open(NULL);
    int fd = folder < 0 ? -1 : connected();
    if (folder >= 0)
        close(folder);
    return fd;
}

/* ---- requests ---- */

static char text[NETWORK_REQUEST_MAX + 2], answer[NETWORK_KEEPER_ANSWER];
static struct network_request request;
static bool asked;

static void reply(int fd, char how, const char *said)
{
    /* what was set up has its answer already, behind its first byte */
    answer[0] = how;
    if (said != answer + 1)
        snprintf(answer + 1, sizeof answer - 1, "%s", said);
    (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
}

static void serve(int fd, size_t n, int netns)
{
    struct err err = {0};
    int r = n < 1 ? err_set(&err, ERR_PARSE, "nothing is asked")
                  : network_request_parse((struct slice){text + 1, n - 1}, &request, &err);
    if (r == 0 && text[0] == NETWORK_KEEPER_TEARDOWN)
        network_tables_teardown(&request);
    else if (r == 0)
        r = netns < 0 ? err_set(&err, ERR_PARSE, "there is no network namespace")
                      : network_tables_setup(&request, netns, &err);
    asked = true;
    network_tables_refresh();
    if (r == 0 && network_request_status(&request, answer + 1, sizeof answer - 1) == 0)
        reply(fd, NETWORK_KEEPER_DONE, answer + 1);
    else
        reply(fd, NETWORK_KEEPER_FAILED, r == 0 ? "the answer is too long" : err.text);
}

/* Whoever asks cannot hold up the others. */
static bool is_bounded(int fd)
{
    struct timeval at_most = {.tv_sec = 1};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &at_most, sizeof at_most) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &at_most, sizeof at_most) == 0;
}

static void on_request(struct network_watch *w, uint32_t events)
{
    int fd = network_loop_accept(w, 0), netns = -1;
    (void)events;
    if (fd < 0)
        return;
    ssize_t n = is_bounded(fd) ? network_message_receive(fd, text, sizeof text, &netns) : -1;
    if (n >= 0)
        serve(fd, (size_t)n, netns);
    if (netns >= 0)
        close(netns);
    close(fd);
}

/* ---- the process ---- */

static bool prepare(int listener)
{
    struct rlimit files;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (setsid() < 0 || chdir("/") < 0 || null < 0)
        return false;
    /* first out of the way of the numbers below */
    int high = fcntl(listener, F_DUPFD, LISTENER + 1);
    for (int i = 0; i < LISTENER; i++)
        if (dup2(null, i) < 0)
            return false;
    if (high < 0 || dup2(high, LISTENER) < 0 ||
        syscall(SYS_close_range, LISTENER + 1, ~0U, 0) < 0 ||
        fcntl(LISTENER, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        /* a relay has two: half of all, and the rest is for listeners */
        network_relay_bound(files.rlim_max / 4);
    }
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    (void)prctl(PR_SET_NAME, "durward-nets");
    return true;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void run(void)
{
    struct network_watch w = {.fd = LISTENER, .fn = on_request};
    int64_t last = 0, first = now_ms();
    if (network_loop_begin() < 0 || network_loop_want(&w, EPOLLIN) < 0)
        return;
    /* whoever began it asks at once, or never */
    while (!network_tables_empty() || (!asked && last - first < FIRST_MS)) {
        int64_t now = now_ms();
        if (now - last >= REFRESH_MS) {
            network_tables_refresh();
            last = now;
        }
        network_loop_turn((int)(REFRESH_MS - (now - last)));
    }
}

/* Becomes that process, in a child. Takes the listener. */
static int start(int listener)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (prepare(listener))
            run();
        _exit(0);
    }
    close(listener);
    return pid < 0 ? -1 : 0;
}

/* The socket of one that has ended makes room. */
static int begin(struct err *err)
{
    int fd = fresh();
    (void)unlink(place.sun_path);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&place, sizeof place) == 0 &&
        listen(fd, BACKLOG) == 0)
        return start(fd) < 0 ? err_sys(err, "the process of the networks cannot be started") : 0;
    err_sys(err, "the socket of the networks cannot be made");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Under a lock, so that one of those who ask at once begins it. */
int network_keeper_reach(struct err *err)
{
    int folder = network_folder_open(err), fd = -1;
    if (folder < 0)
        return -1;
    if (flock(folder, LOCK_EX) < 0)
        err_sys(err, NETWORK_FOLDER);
    else if ((fd = connected()) < 0 && begin(err) == 0 && (fd = connected()) < 0)
        err_sys(err, "the process of the networks does not listen");
    close(folder);
    return fd;
}
