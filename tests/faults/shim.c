/* Stands before the C library in a test build of the program and lets one call fail: the call that
 * the plan names, of one process; and puts the wall clock of all of them where the plan says. The
 * plan is a file "faults.plan" beside the program, mapped before anything else runs (roles shut
 * themselves in later) and shared with the test that writes it. Without that file, and in a
 * sanitizer build, nothing is changed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef __SANITIZE_ADDRESS__

struct plan {
    uint32_t pid;     /* of the process whose calls count; 0: none */
    uint32_t memory;  /* allocations count */
    uint32_t system;  /* system calls count */
    uint32_t fail_at; /* this one fails, from 1; 0: none */
    uint32_t count;   /* calls so far */
    uint32_t fired;   /* 1 + enum what of the one that failed */
    int64_t clock_s;  /* the wall clock is put so far forward, in every process */
};

enum what { ALLOCATION, WRITING, READING, OPENING, WATCHING };

static volatile struct plan *plan;

static __attribute__((constructor)) void map_plan(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    if (slash == NULL)
        return;
    memcpy(slash, "/faults.plan", sizeof "/faults.plan");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *p =
        (void *)syscall(SYS_mmap, NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        plan = p;
}

/* True: this call is the one. Sets errno. */
static int fails(enum what what, int error)
{
    if (plan == NULL || plan->pid == 0 || plan->pid != (uint32_t)getpid())
        return 0;
    if (!(what == ALLOCATION ? plan->memory : plan->system))
        return 0;
    if (++plan->count != plan->fail_at)
        return 0;
    plan->fired = 1 + (uint32_t)what;
    errno = error;
    return 1;
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : __libc_realloc(p, n);
}

ssize_t write(int fd, const void *p, size_t n)
{
    return fails(WRITING, ENOSPC) ? -1 : syscall(SYS_write, fd, p, n);
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
    return fails(WRITING, ECONNRESET) ? -1 : syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return fails(WRITING, ENOBUFS) ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t recv(int fd, void *p, size_t n, int flags)
{
    return fails(READING, ECONNRESET) ? -1 : syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return fails(READING, ENOMEM) ? -1 : syscall(SYS_recvmsg, fd, m, flags);
}

ssize_t read(int fd, void *p, size_t n)
{
    return fails(READING, EIO) ? -1 : syscall(SYS_read, fd, p, n);
}

int accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
    return fails(OPENING, EMFILE) ? -1 : (int)syscall(SYS_accept4, fd, a, n, flags);
}

int socket(int domain, int type, int protocol)
{
    return fails(OPENING, EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int connect(int fd, const struct sockaddr *a, socklen_t n)
{
    return fails(OPENING, EADDRNOTAVAIL) ? -1 : (int)syscall(SYS_connect, fd, a, n);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fails(OPENING, ENOMEM))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, id, t);
    if (r == 0 && plan != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += plan->clock_s;
    return r;
}

time_t time(time_t *to)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    if (to != NULL)
        *to = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *to, void *zone)
{
    struct timespec t = {0};
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *to = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
    return fails(WATCHING, ENOMEM) ? -1 : (int)syscall(SYS_epoll_ctl, epoll, op, fd, e);
}

#endif
