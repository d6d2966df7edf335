/* Decides which standard descriptors go into the sandbox as they are, and relays the others through
 * pipes with pumps (cli/pump.h). */
#include "run_stdio.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

bool run_stdio_is_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static bool may_pass(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    return S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) ||
           (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

/* The kernel makes a pipe whoever's who asked for it, and lets nobody else open it by its name in
 * /proc. A fifo of a directory stays as it is. */
static void give(int fd, uid_t to)
{
    struct stat st;
    struct statfs fs;
    if (to != 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_uid == 0 &&
        fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
        (void)!fchown(fd, to, (gid_t)-1); /* else it is read and written all the same */
}

static void on_in_done(void *arg, struct pump *p)
{
    struct run_stdio *s = arg;
    s->in = NULL;
    pump_free(p);
}

static void on_out_done(void *arg, struct pump *p)
{
    struct run_stdio *s = arg;
    for (int i = 0; i < 2; i++)
        if (s->out[i] == p) {
            s->out[i] = NULL;
            s->pending[i] = false;
        }
    pump_free(p);
    if (run_stdio_drained(s) && s->drained)
        s->drained(s->arg);
}

bool run_stdio_drained(const struct run_stdio *s)
{
    return !s->pending[0] && !s->pending[1];
}

/* A pipe whose far end goes into the sandbox and whose near end, non-blocking, is ours. */
static int relay(struct run_stdio *s, struct event_base *base, struct run_request *r, int fd,
                 struct err *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    bool input = fd == STDIN_FILENO;
    int near = p[input], far = p[!input];
    fcntl(near, F_SETFL, fcntl(near, F_GETFL) | O_NONBLOCK);
    struct pump *pump = input ? pump_new(base, fd, false, near, true, on_in_done, s)
                              : pump_new(base, near, true, fd, false, on_out_done, s);
    if (pump == NULL) {
        close(near);
        close(far);
        return err_set(err, ERR_INTERNAL, "cannot relay descriptor %d", fd);
    }
    if (input) {
        s->in = pump;
    } else {
        s->out[fd - 1] = pump;
        s->pending[fd - 1] = true;
    }
    r->fds[fd] = far;
    give(far, r->outside);
    return 0;
}

int run_stdio_pass(struct run_stdio *s, struct event_base *base, struct run_request *r,
                   struct err *err)
{
    for (int fd = 0; fd < 3; fd++) {
        if (!may_pass(fd)) {
            if (relay(s, base, r, fd, err) < 0)
                return -1;
            continue;
        }
        r->fds[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (r->fds[fd] < 0)
            return err_sys(err, "descriptor %d", fd);
        give(fd, r->outside);
    }
    return 0;
}

int run_stdio_terminal(struct run_stdio *s, struct event_base *base, int pty, struct err *err)
{
    int in = fcntl(pty, F_DUPFD_CLOEXEC, 3);
    fcntl(pty, F_SETFL, fcntl(pty, F_GETFL) | O_NONBLOCK);
    s->out[0] = pump_new(base, pty, true, STDOUT_FILENO, false, on_out_done, s);
    if (s->out[0] == NULL)
        close(pty);
    else
        s->pending[0] = true;
    if (in >= 0)
        s->in = pump_new(base, STDIN_FILENO, false, in, true, on_in_done, s);
    if (in >= 0 && s->in == NULL)
        close(in);
    return s->in && s->out[0] ? 0 : err_set(err, ERR_INTERNAL, "cannot relay the terminal");
}

void run_stdio_pause(struct run_stdio *s)
{
    pump_pause(s->in);
    pump_pause(s->out[0]);
    pump_pause(s->out[1]);
}

void run_stdio_resume(struct run_stdio *s)
{
    pump_resume(s->in);
    pump_resume(s->out[0]);
    pump_resume(s->out[1]);
}

void run_stdio_done(struct run_stdio *s)
{
    pump_free(s->in);
    pump_free(s->out[0]);
    pump_free(s->out[1]);
    *s = (struct run_stdio){0};
}
