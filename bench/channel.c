/* What a message between two roles costs them, in processor time of both: as a datagram of a
 * socket pair, as lib/ipc.c sends it, and through a ring of shared memory (a prototype: two ring
 * buffers, sealed memfd, an eventfd that is written where the reader sleeps, each message copied
 * once before it is looked at). A question of some bytes, an answer of some bytes, one at a time
 * (as with one connection) or sixteen before either looks (as with many). In turn, medians and
 * quartiles.
 *
 * usage: bench/channel [ROUNDS] */
#include "compiler.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 21,
    ROUNDS_MAX = 1000,
    EXCHANGES = 2000, /* of a round, for each line */
    QUESTION = 420,   /* bytes of a request's fields in the benchmark of proxies */
    ANSWER = 1400,    /* of a reply's head and 1 KiB of body */
    MESSAGE_MAX = 4096,
    RING = 256 * 1024,
};

struct ring {
    _Atomic uint32_t head, tail; /* bytes ever written, ever read */
    _Atomic uint32_t asleep;     /* the reader is about to wait */
    unsigned char bytes[RING];
};

/* One end: what it reads of and writes to. */
struct end {
    int fd, epoll;         /* of the socket, or the eventfd that wakes us */
    int wake;              /* the eventfd of the far end */
    struct ring *in, *out; /* NULL: a socket */
};

static void need(bool good, const char *why)
{
    if (good)
        return;
    perror(why);
    exit(2);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void copy_in(struct ring *r, uint32_t at, const void *p, size_t n)
{
    size_t first = RING - at % RING;
    first = first < n ? first : n;
    memcpy(r->bytes + at % RING, p, first);
    memcpy(r->bytes, (const char *)p + first, n - first);
}

static void copy_out(const struct ring *r, uint32_t at, void *to, size_t n)
{
    size_t first = RING - at % RING;
    first = first < n ? first : n;
    memcpy(to, r->bytes + at % RING, first);
    memcpy((char *)to + first, r->bytes, n - first);
}

static void ring_put(struct end *e, const void *p, uint32_t n)
{
    struct ring *r = e->out;
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    copy_in(r, head, &n, sizeof n);
    copy_in(r, head + 4, p, n);
    atomic_store(&r->head, head + 4 + n);
}

static void ring_wake(const struct end *e)
{
    static const uint64_t one = 1;
    if (atomic_exchange(&e->out->asleep, 0))
        need(write(e->wake, &one, sizeof one) == sizeof one, "eventfd");
}

/* The size, or 0: nothing is there. Indices are read once and held against their bounds. */
static uint32_t ring_get(struct end *e, void *to)
{
    struct ring *r = e->in;
    uint32_t head = atomic_load(&r->head), n;
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (head == tail)
        return 0;
    need(head - tail >= 4 && head - tail <= RING, "indices");
    copy_out(r, tail, &n, sizeof n);
    need(n > 0 && n <= MESSAGE_MAX && n <= head - tail - 4, "a length");
    copy_out(r, tail + 4, to, n);
    atomic_store(&r->tail, tail + 4 + n);
    return n;
}

static void wait_for(const struct end *e)
{
    struct epoll_event ev;
    while (epoll_wait(e->epoll, &ev, 1, -1) != 1) {
    }
}

static uint32_t get(struct end *e, void *to)
{
    uint32_t n;
    if (e->in == NULL) {
        struct iovec iov = {to, MESSAGE_MAX};
        struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
        ssize_t r;
        wait_for(e);
        need((r = recvmsg(e->fd, &mh, 0)) > 0, "recvmsg");
        return (uint32_t)r;
    }
    while ((n = ring_get(e, to)) == 0) {
        atomic_store(&e->in->asleep, 1);
        if ((n = ring_get(e, to)) != 0)
            break;
        wait_for(e); /* edge-triggered: the count need not be read */
    }
    return n;
}

/* `many` messages leave together, as those of a turn of the loop do. */
static void put(struct end *e, const void *p, uint32_t n, int many)
{
    static unsigned char together[16 * MESSAGE_MAX];
    if (e->out) {
        for (int i = 0; i < many; i++)
            ring_put(e, p, n);
        ring_wake(e);
        return;
    }
    for (int i = 0; i < many; i++)
        memcpy(together + (size_t)i * n, p, n);
    struct iovec iov = {together, (size_t)many * n};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    need(sendmsg(e->fd, &mh, MSG_NOSIGNAL) > 0, "sendmsg");
}

static void take(struct end *e, void *to, uint32_t n, int many)
{
    static unsigned char together[16 * MESSAGE_MAX];
    if (e->in) {
        for (int i = 0; i < many; i++)
            need(get(e, to) == n, "a message");
        return;
    }
    struct iovec iov = {together, sizeof together};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    wait_for(e);
    need(recvmsg(e->fd, &mh, 0) == (ssize_t)((size_t)many * n), "recvmsg");
    for (int i = 0; i < many; i++)
        memcpy(to, together + (size_t)i * n, n);
}

static void watch(struct end *e, uint32_t events)
{
    struct epoll_event ev = {.events = events};
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    need(e->epoll >= 0 && epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->fd, &ev) == 0, "epoll");
}

static struct ring *ring_new(void)
{
    int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    need(fd >= 0 && ftruncate(fd, sizeof(struct ring)) == 0 &&
             fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
         "memfd");
    void *p = mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(p != MAP_FAILED, "mmap");
    close(fd);
    return p;
}

static void connect_ends(struct end ends[2], bool ring)
{
    int fds[2];
    if (!ring) {
        need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
        ends[0] = (struct end){.fd = fds[0]};
        ends[1] = (struct end){.fd = fds[1]};
        return;
    }
    struct ring *a = ring_new(), *b = ring_new();
    for (int i = 0; i < 2; i++)
        need((fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0, "eventfd");
    ends[0] = (struct end){.fd = fds[0], .wake = fds[1], .in = a, .out = b};
    ends[1] = (struct end){.fd = fds[1], .wake = fds[0], .in = b, .out = a};
}

static void answer(struct end *e, int many)
{
    unsigned char text[MESSAGE_MAX] = {0};
    watch(e, e->in ? EPOLLIN | EPOLLET : EPOLLIN);
    for (int i = 0; i < EXCHANGES; i++) {
        take(e, text, QUESTION, many);
        put(e, text, ANSWER, many);
    }
}

/* -> us of both processes for a question and its answer. */
static double once(bool ring, int many)
{
    struct end ends[2];
    unsigned char text[MESSAGE_MAX] = {0};
    struct rusage child;
    int status;
    connect_ends(ends, ring);
    pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        answer(&ends[1], many);
        _exit(0);
    }
    watch(&ends[0], ring ? EPOLLIN | EPOLLET : EPOLLIN);
    double before = cpu_us();
    for (int i = 0; i < EXCHANGES; i++) {
        put(&ends[0], text, QUESTION, many);
        take(&ends[0], text, ANSWER, many);
    }
    double spent = cpu_us() - before;
    need(wait4(pid, &status, 0, &child) == pid && status == 0, "the far end");
    spent += (double)(child.ru_utime.tv_sec + child.ru_stime.tv_sec) * 1e6 +
             (double)(child.ru_utime.tv_usec + child.ru_stime.tv_usec);
    for (int i = 0; i < 2; i++) {
        close(ends[i].fd);
        close(ends[i].epoll);
        if (ends[i].in)
            munmap(ends[i].in, sizeof(struct ring));
    }
    return spent / EXCHANGES / many;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void show(const char *words, double *got, int rounds)
{
    qsort(got, (size_t)rounds, sizeof *got, by_size);
    printf("%-34s %7.2f us [%.2f-%.2f]\n", words, got[rounds / 2], got[rounds / 4],
           got[rounds * 3 / 4]);
}

int main(int argc, char **argv)
{
    static double got[4][ROUNDS_MAX], spared[2][ROUNDS_MAX];
    static const char *const words[4] = {"datagrams, one at a time", "ring, one at a time",
                                         "datagrams, sixteen together", "ring, sixteen together"};
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = ROUNDS;
    for (long r = 0; r < rounds; r++) {
        for (int i = 0; i < 4; i++)
            got[i][r] = once(i % 2, i < 2 ? 1 : 16);
        for (int i = 0; i < 2; i++)
            spared[i][r] = got[2 * i][r] - got[2 * i + 1][r];
    }
    printf("a question and its answer, processor time of both ends, %ld rounds\n", rounds);
    for (int i = 0; i < 4; i++)
        show(words[i], got[i], (int)rounds);
    show("the ring spares, one at a time", spared[0], (int)rounds);
    show("the ring spares, sixteen together", spared[1], (int)rounds);
    return 0;
}
