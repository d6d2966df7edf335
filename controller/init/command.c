/* Starts W_INIT_EXEC's command: reads the message, makes its pipes or terminal, forks, and learns
 * from a pipe that exec closes how far the child came. */
#define _GNU_SOURCE 1
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "terminal_relay.h"

enum {
    WORDS_MAX = 8192, /* of argv and of env; the message's size bounds their length */
    FAILED = 125,
    NOT_EXECUTABLE = 126,
    NOT_FOUND = 127,
};

/* A W_INIT_EXEC, read. The strings live in one allocation each. */
struct spec {
    char **argv, **env;
    char cwd[PATH_MAX];
    uint8_t stdio; /* enum command_stdio */
    uint32_t rows, cols;
    int fds[3], script;
    int ends[3]; /* COMMAND_RELAYED: of what is asked for; -1: taken */
    unsigned n_ends;
    int master; /* of its terminal; the command's */
};

static bool relayed;

void command_relay(void)
{
    relayed = true;
}

/* How far a child came, sent back on a pipe that exec closes. */
struct word {
    enum { AT_SESSION, AT_DIRECTORY, AT_EXEC } at;
    int error;
};

static void free_words(char **words)
{
    if (words == NULL)
        return;
    for (char **w = words; *w; w++)
        free(*w);
    free(words);
}

static char **read_words(struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > WORDS_MAX)
        return NULL;
    char **words = calloc(n + 1, sizeof *words);
    for (uint32_t i = 0; words && i < n; i++) {
        struct slice s;
        if (msg_get_slice(m, IPC_MSG_MAX, &s) < 0 || (words[i] = slice_dup(s)) == NULL) {
            free_words(words);
            return NULL;
        }
    }
    return words;
}

static void spec_free(struct spec *s)
{
    free_words(s->argv);
    free_words(s->env);
    for (int i = 0; i < 3; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    if (s->script >= 0)
        close(s->script);
    for (unsigned i = 0; i < s->n_ends; i++)
        if (s->ends[i] >= 0)
            close(s->ends[i]);
}

static int read_ends(struct msg *m, struct spec *s)
{
    unsigned n = s->stdio & COMMAND_PIPES
                     ? 1u + !!(s->stdio & COMMAND_INPUT) + !!(s->stdio & COMMAND_SPLIT)
                     : s->stdio == COMMAND_TERMINAL;
    while (s->n_ends < n)
        if (msg_get_fd(m, &s->ends[s->n_ends++]) < 0)
            return -1;
    return 0;
}

static int spec_read(struct msg *m, struct spec *s)
{
    uint8_t script;
    s->argv = read_words(m);
    s->env = s->argv ? read_words(m) : NULL;
    if (s->env == NULL || s->argv[0] == NULL || msg_get_str(m, s->cwd, sizeof s->cwd) < 0 ||
        msg_get_u8(m, &s->stdio) < 0 || s->stdio >= COMMAND_STDIO_END ||
        msg_get_u32(m, &s->rows) < 0 || msg_get_u32(m, &s->cols) < 0 ||
        msg_get_u8(m, &script) < 0 || script > 1)
        return -1;
    for (int i = 0; i < 3 && s->stdio == COMMAND_GIVEN; i++)
        if (msg_get_fd(m, &s->fds[i]) < 0)
            return -1;
    if ((script && msg_get_fd(m, &s->script) < 0) || (relayed && read_ends(m, s) < 0))
        return -1;
    return msg_end(m);
}

static int PRINTF(3, 4) refuse(struct command_failure *why, uint32_t status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, ap);
    va_end(ap);
    why->status = status;
    return 1;
}

/* Only pipes, regular files and /dev/null (whose number gVisor does not show; the keeper looked)
 * come in as they are: a socket, a directory, a device of
 * the host in the sandbox's hands would be a way out, so whoever sends one must relay it. */
static bool harmless(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    return S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) ||
           (S_ISCHR(st.st_mode) && (relayed || st.st_rdev == makedev(1, 3)));
}

/* gVisor knows no TIOCGPTPEER; /dev/pts is its own. */
static int open_peer(int master)
{
    char path[32];
    unsigned number;
    if (ioctl(master, TIOCGPTN, &number) < 0)
        return -1;
    snprintf(path, sizeof path, "/dev/pts/%u", number);
    return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* A pair of our own devpts; the slave takes the place of the three descriptors. */
static int open_terminal(struct command *c, struct spec *s)
{
    int zero = 0;
    struct winsize size = {.ws_row = (unsigned short)s->rows, .ws_col = (unsigned short)s->cols};
    c->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (c->master < 0 || ioctl(c->master, TIOCSPTLCK, &zero) < 0)
        return -1;
    s->fds[0] = relayed ? open_peer(c->master)
                        : ioctl(c->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->fds[0] < 0)
        return -1;
    for (int i = 1; i < 3; i++)
        if ((s->fds[i] = fcntl(s->fds[0], F_DUPFD_CLOEXEC, 3)) < 0)
            return -1;
    s->master = c->master;
    return size.ws_row && size.ws_col ? ioctl(c->master, TIOCSWINSZ, &size) : 0;
}

static int take_end(struct spec *s, unsigned *at)
{
    int fd = s->ends[*at];
    s->ends[(*at)++] = -1;
    return fd;
}

/* Pipes whose inner ends came in. */
static int take_pipes(struct spec *s)
{
    unsigned at = 0;
    s->fds[0] =
        s->stdio & COMMAND_INPUT ? take_end(s, &at) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->fds[1] = take_end(s, &at);
    s->fds[2] = s->stdio & COMMAND_SPLIT ? take_end(s, &at) : fcntl(s->fds[1], F_DUPFD_CLOEXEC, 3);
    return s->fds[0] >= 0 && s->fds[2] >= 0 ? 0 : -1;
}

/* Pipes whose outer ends go back in W_INIT_STARTED. Made here, and not handed in, so that they are
 * the sandbox's user's: /dev/stdout can be opened. */
static int open_pipes(struct command *c, struct spec *s)
{
    int p[2];
    s->fds[0] = s->stdio & COMMAND_INPUT ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->stdio & COMMAND_INPUT) {
        if (pipe2(p, O_CLOEXEC) < 0)
            return -1;
        s->fds[0] = p[0];
        c->outer[c->n_outer++] = p[1];
    }
    for (int i = 1; i < 3; i++) {
        if (i == 2 && !(s->stdio & COMMAND_SPLIT)) {
            s->fds[2] = fcntl(s->fds[1], F_DUPFD_CLOEXEC, 3);
            break;
        }
        if (pipe2(p, O_CLOEXEC) < 0)
            return -1;
        s->fds[i] = p[1];
        c->outer[c->n_outer++] = p[0];
    }
    return s->fds[0] >= 0 && s->fds[2] >= 0 ? 0 : -1;
}

static NORETURN void child_fails(int report, struct word w)
{
    w.error = errno;
    ssize_t n = write(report, &w, sizeof w);
    _exit(n == sizeof w ? NOT_FOUND : FAILED);
}

/* Where memory is bounded, what runs in the sandbox goes before durward-init, whose end would be
 * the sandbox's. A process may always raise its own score; where /proc is not there, all are alike.
 */
static void die_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = write(fd, "500", 3);
    (void)n;
    close(fd);
}

static struct rlimit files; /* of commands; rlim_max 0: not said */

int command_files(unsigned long most)
{
    struct rlimit own;
    if (getrlimit(RLIMIT_NOFILE, &own) < 0)
        return -1;
    files.rlim_max = own.rlim_max / 2;
    if (most > 0 && files.rlim_max > most)
        files.rlim_max = most;
    files.rlim_cur = own.rlim_cur < files.rlim_max ? own.rlim_cur : files.rlim_max;
    own.rlim_cur = own.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &own);
}

/* The new process. Descriptors 0 to 2 are open in init, so none of those in s is below 3. */
static NORETURN void child(const struct spec *s, int report)
{
    struct word w = {.at = AT_SESSION};
    sigset_t none;
    sigemptyset(&none);
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setsid() < 0 || (s->stdio == COMMAND_TERMINAL && ioctl(s->fds[0], TIOCSCTTY, 0) < 0))
        child_fails(report, w);
    if (relayed && s->stdio == COMMAND_TERMINAL &&
        terminal_relay(s->master, s->ends[0], s->fds[0]) < 0)
        child_fails(report, w);
    for (int i = 0; i < 3; i++)
        if (dup2(s->fds[i], i) < 0)
            child_fails(report, w);
    if (s->script >= 0 && dup2(s->script, COMMAND_SCRIPT_FD) < 0)
        child_fails(report, w);
    if (files.rlim_max > 0 && setrlimit(RLIMIT_NOFILE, &files) < 0)
        child_fails(report, w);
    die_first();
    w.at = AT_DIRECTORY;
    if (chdir(s->cwd) < 0)
        child_fails(report, w);
    w.at = AT_EXEC;
    environ = s->env; /* execvp looks for PATH there */
    execvp(s->argv[0], s->argv);
    child_fails(report, w);
}

static int judge(const struct spec *s, struct word w, struct command_failure *why)
{
    if (w.at == AT_EXEC)
        return refuse(why, w.error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE, "%.150s: %s%s",
                      s->argv[0], strerror(w.error),
                      w.error == ENOENT ? " (the sandbox has the host's /usr and what is bound)"
                                        : "");
    if (w.at == AT_DIRECTORY)
        return refuse(why, FAILED, "cannot change to %.150s: %s", s->cwd, strerror(w.error));
    return refuse(why, FAILED, "cannot make a session: %s", strerror(w.error));
}

static int run(struct command *c, const struct spec *s, struct command_failure *why)
{
    struct word w;
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return refuse(why, FAILED, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        child(s, report[1]);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return refuse(why, FAILED, "fork: %s", strerror(errno));
    }
    ssize_t n;
    do
        n = read(report[0], &w, sizeof w);
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == sizeof w)
        return judge(s, w, why); /* the child is reaped as any orphan */
    c->pid = pid;
    return 0;
}

void command_init(struct command *c)
{
    *c = (struct command){.master = -1, .outer = {-1, -1, -1}};
}

int command_start(struct command *c, struct msg *m, struct command_failure *why)
{
    static const char *const names[] = {"stdin", "stdout", "stderr"};
    struct spec s = {.fds = {-1, -1, -1}, .script = -1};
    int r = 0;
    if (spec_read(m, &s) < 0)
        r = -1;
    else if (s.stdio == COMMAND_TERMINAL && open_terminal(c, &s) < 0)
        r = refuse(why, FAILED, "cannot make a terminal: %s", strerror(errno));
    else if (s.stdio & COMMAND_PIPES && (relayed ? take_pipes(&s) : open_pipes(c, &s)) < 0)
        r = refuse(why, FAILED, "cannot make pipes: %s", strerror(errno));
    for (int i = 0; r == 0 && i < 3 && s.stdio == COMMAND_GIVEN; i++)
        if (!harmless(s.fds[i]))
            r = refuse(why, FAILED, "%s is neither a pipe nor a regular file", names[i]);
    if (r == 0 && s.script >= 0 && !harmless(s.script))
        r = refuse(why, FAILED, "the script is not a regular file");
    if (r == 0)
        r = run(c, &s, why);
    spec_free(&s);
    if (r != 0)
        command_reset(c);
    return r;
}

void command_signal(const struct command *c, int sig)
{
    pid_t group = c->pid;
    if (group == 0 || sig <= 0 || sig >= NSIG)
        return;
    if (c->master >= 0) {
        pid_t front = tcgetpgrp(c->master);
        if (front > 0)
            group = front;
    }
    kill(-group, sig);
    if (sig == SIGKILL && group != c->pid)
        kill(-c->pid, sig);
}

void command_winsize(const struct command *c, uint32_t rows, uint32_t cols)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    if (c->master >= 0)
        (void)ioctl(c->master, TIOCSWINSZ, &size); /* a terminal of our own takes any size */
}

void command_reset(struct command *c)
{
    if (c->master >= 0)
        close(c->master);
    for (unsigned i = 0; i < c->n_outer; i++)
        if (c->outer[i] >= 0)
            close(c->outer[i]);
    command_init(c);
}
