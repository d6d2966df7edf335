/* store_read: the blocking way, for the command line. The daemon's is the vault's. */
#include "secret_value.h"
#include "store.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A file, or a running command and what says that it ended. */
struct source {
    struct store_result opened;
    int pidfd; /* -1 for a file */
    int64_t until;
};

/* Wait for more bytes, or for the command's end. 1: its end; 0: bytes, or the end of the file. */
static int wait_more(const struct source *s, struct err *err)
{
    struct pollfd p[2] = {{.fd = s->opened.fd, .events = POLLIN},
                          {.fd = s->pidfd, .events = POLLIN}};
    int64_t left = s->until - now_ms();
    int r = left > 0 ? poll(p, 2, (int)left) : 0;
    if (r < 0 && errno == EINTR)
        return 0;
    if (r < 0)
        return err_sys(err, "poll");
    if (r == 0)
        return err_set(err, ERR_UPSTREAM, "its command did not end within %d s", STORE_SECONDS);
    return p[0].revents == 0 && p[1].revents != 0;
}

/* Read to the end, at most SECRET_MAX bytes. `raw` has that many. Returns the length or -1. What a
 * command wrote is in the pipe when it ends, whoever else may hold the other end open (an agent
 * that it started, say). */
static ssize_t read_all(const struct source *s, struct secret *raw, struct err *err)
{
    size_t got = 0;
    int ended = 0;
    for (;;) {
        unsigned char over;
        bool full = got == SECRET_MAX;
        ssize_t n =
            read(s->opened.fd, full ? &over : secret_bytes(raw) + got, full ? 1 : SECRET_MAX - got);
        if (n == 0 || (n < 0 && errno == EAGAIN && ended))
            return (ssize_t)got;
        if (n > 0 && full)
            return err_set(err, ERR_LIMIT, "its value is longer than %d bytes", SECRET_MAX);
        if (n > 0)
            got += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            return err_sys(err, "reading it");
        else if (errno == EAGAIN && (ended = wait_more(s, err)) < 0)
            return -1;
    }
}

static int check_status(int status, struct err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status))
        return err_set(err, ERR_UPSTREAM, "its command ended with status %d", WEXITSTATUS(status));
    return err_set(err, ERR_UPSTREAM, "its command was ended by signal %d", WTERMSIG(status));
}

/* A command that closed its stdout and lives on has until then, too. */
static int reap(const struct source *s, struct err *err)
{
    int status;
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    int64_t left = s->until - now_ms();
    if (poll(&p, 1, left > 0 ? (int)left : 0) != 1)
        store_kill(&s->opened);
    if (waitpid(s->opened.pid, &status, 0) < 0)
        return err_sys(err, "waiting for its command");
    if (p.revents == 0)
        return err_set(err, ERR_UPSTREAM, "its command did not end within %d s", STORE_SECONDS);
    return check_status(status, err);
}

static ssize_t read_and_reap(struct source *s, struct secret *raw, struct err *err)
{
    bool command = s->opened.pid > 0;
    s->pidfd = command ? (int)syscall(SYS_pidfd_open, s->opened.pid, 0) : -1;
    ssize_t n = command && s->pidfd < 0 ? err_sys(err, "pidfd_open") : read_all(s, raw, err);
    if (n < 0)
        store_kill(&s->opened);
    close(s->opened.fd);
    if (command && reap(s, n < 0 ? NULL : err) < 0)
        n = -1;
    if (s->pidfd >= 0)
        close(s->pidfd);
    return n;
}

static struct secret *read_opened(const struct config_secret *s, struct err *err)
{
    struct source src = {.until = now_ms() + STORE_SECONDS * 1000};
    struct secret *raw = secret_alloc(SECRET_MAX);
    if (raw == NULL) {
        err_set(err, ERR_INTERNAL, "no memory for a secret");
        return NULL;
    }
    ssize_t n = store_open(s, &src.opened, err);
    if (n == 0)
        n = read_and_reap(&src, raw, err);
    if (n <= 0) {
        secret_unref(raw);
        if (n == 0)
            err_set(err, ERR_DENIED, "its value is empty");
        return NULL;
    }
    secret_shorten(raw, (size_t)n);
    return secret_value_of(raw, s->lines, err);
}

struct secret *store_read(const struct config_secret *s, struct err *err)
{
    if (s->store == STORE_MINT) {
        err_set(err, ERR_UNREADY, "it is made of other secrets when it is first used");
        return NULL;
    }
    if (s->store != STORE_ENV)
        return read_opened(s, err);
    const char *value = getenv(s->source);
    if (value == NULL) {
        err_set(err, ERR_UNREADY, "the environment variable %s is not set", s->source);
        return NULL;
    }
    if (secret_value_check(slice_str(value), s->lines, err) < 0)
        return NULL;
    struct secret *v = secret_new(value, slice_str(value).n);
    if (v == NULL)
        err_set(err, ERR_INTERNAL, "no memory for a secret");
    return v;
}
