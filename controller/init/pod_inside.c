/* durward-init in a pod of a cluster: what its words do. */
#define _GNU_SOURCE 1
#include "pod_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "stdio_program.h"
#include "synthetic.h"

enum {
    FAILED = 125,
    NOT_EXECUTABLE = 126,
    NOT_FOUND = 127,
    SIGNAL_STATUS = 128,
    ENV_MAX = 512 * 1024,
    PAGE_MAX = 64 * 1024,
    GATE_S = 5,
};

#define ENV_FILE "/etc/durward/env"

/* A whole number of decimal digits; -1: it is none, or beyond. */
static long number(const char *text, int base, long most)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, base);
    return errno == 0 && end != text && *end == '\0' && v >= 0 && v <= most ? v : -1;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* ---- how far it came ---- */

static int PRINTF(2, 3) fail(int status, const char *fmt, ...)
{
    char text[300];
    int n = snprintf(text, sizeof text, "%c%d%c", POD_INSIDE_FAILED, status, POD_INSIDE_ENDS);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    (void)write_all(STDOUT_FILENO, text, strlen(text));
    return status;
}

/* A session and a group of its own, so that a signal reaches what it starts. */
static int say_started(void)
{
    char text[32];
    if (getpgrp() != getpid() && setsid() < 0)
        return -1;
    int n =
        snprintf(text, sizeof text, "%c%d%c", POD_INSIDE_STARTED, (int)getpid(), POD_INSIDE_ENDS);
    return write_all(STDOUT_FILENO, text, (size_t)n);
}

/* ---- commands ---- */

/* A file, NUL-terminated; malloc'd. */
static char *read_file(const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char *text = fd < 0 ? NULL : malloc(max + 1);
    size_t n = 0;
    ssize_t got = 0;
    while (text && n < max && (got = read(fd, text + n, max - n)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    if (text == NULL || got < 0 || n == max) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

/* Past "export NAME='VALUE'" and its line's end, a quote of the value being '\'': the variable is
 * set. NULL: it is no such line. */
static char *take_variable(char *at)
{
    if (strncmp(at, "export ", 7) != 0)
        return NULL;
    char *name = at + 7, *is = strchr(name, '=');
    if (is == NULL || is[1] != '\'')
        return NULL;
    char *from = is + 2, *to = is + 1;
    for (;; from++) {
        if (*from == '\0')
            return NULL;
        if (*from == '\'' && strncmp(from, "'\\''", 4) == 0)
            from += 3;
        else if (*from == '\'')
            break;
        *to++ = *from;
    }
    char *next = from[1] == '\n' ? from + 2 : NULL;
    *to = *is = '\0';
    return next && setenv(name, is + 1, 1) == 0 ? next : NULL;
}

/* What the node has laid, and above it what whoever starts the command says. */
static int set_environment(char **pairs, long n)
{
    char *text = read_file(ENV_FILE, ENV_MAX);
    clearenv();
    for (char *at = text; at && *at;)
        at = take_variable(at);
    free(text);
    for (long i = 0; i < n; i++) {
        char *is = strchr(pairs[i], '=');
        if (is == NULL || is == pairs[i])
            return -1;
        *is = '\0';
        if (setenv(pairs[i], is + 1, 1) < 0)
            return -1;
    }
    return 0;
}

/* Can it be started? 0, or an errno. */
static int startable(const char *program)
{
    char path[PATH_MAX];
    const char *dirs = getenv("PATH");
    struct stat st;
    int why = ENOENT;
    if (strchr(program, '/'))
        return stat(program, &st) < 0      ? errno
               : !S_ISREG(st.st_mode)      ? EACCES
               : access(program, X_OK) < 0 ? errno
                                           : 0;
    while (dirs && *dirs) {
        size_t n = strcspn(dirs, ":");
        if (n > 0 && n + strlen(program) + 2 <= sizeof path) {
            snprintf(path, sizeof path, "%.*s/%s", (int)n, dirs, program);
            if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
                if (access(path, X_OK) == 0)
                    return 0;
                why = EACCES;
            }
        }
        dirs += n + (dirs[n] == ':');
    }
    return why;
}

/* Where the second output becomes the first, its own pipe has to stay open: containerd takes the
 * end of either for the end of the input, too. So this process keeps it and waits for the command.
 * -1: in the child, which is to become it; else the command's status. */
static int stand_behind(void)
{
    sigset_t all, own;
    int status;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &own); /* what is sent to the group is the command's */
    pid_t pid = fork();
    if (pid <= 0) {
        sigprocmask(SIG_SETMASK, &own, NULL);
        return pid < 0 ? FAILED : -1;
    }
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    while (waitpid(pid, &status, 0) != pid) {
    }
    return WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
}

/* "m33x77": the terminal, if there is one, has its size before anybody looks. */
static void set_size(const char *how)
{
    struct winsize size = {0};
    if (sscanf(how + 1, "%hux%hu", &size.ws_row, &size.ws_col) == 2 && size.ws_row && size.ws_col)
        (void)ioctl(STDIN_FILENO, TIOCSWINSZ, &size); /* without a terminal there is none to set */
}

static int do_exec(int argc, char **argv)
{
    long n = argc > 3 ? number(argv[2], 10, argc - 4) : -1;
    if (n < 0)
        return fail(FAILED, "no command");
    char **words = argv + 3 + n;
    if (set_environment(argv + 3, n) < 0)
        return fail(FAILED, "the environment is malformed");
    if (chdir(argv[0]) < 0)
        return fail(FAILED, "cannot change to %.150s: %s", argv[0], strerror(errno));
    int e = startable(words[0]);
    if (e)
        return fail(e == ENOENT ? NOT_FOUND : NOT_EXECUTABLE, "%.150s: %s", words[0], strerror(e));
    set_size(argv[1]);
    if (say_started() < 0)
        return FAILED;
    if (argv[1][0] == 'm') {
        int status = stand_behind();
        if (status >= 0)
            return status;
        if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
            return FAILED;
    }
    execvp(words[0], words);
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    return errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

/* ---- files and connections ---- */

static int do_file(int argc, char **argv)
{
    long op = argc == 4 ? number(argv[0], 10, INSIDE_END - 1) : -1;
    long mode = op > 0 ? number(argv[2], 8, 0777) : -1;
    if (mode < 0 || op == INSIDE_WATCH)
        return EINVAL;
    bool in = op == INSIDE_WRITE || op == INSIDE_WRITE_NEW;
    if (say_started() < 0)
        return EIO;
    umask(022);
    return inside_do((enum inside_op)op, argv[1], (unsigned)mode, argv[3],
                     in ? STDIN_FILENO : STDOUT_FILENO);
}

static int do_watch(int argc, char **argv)
{
    if (argc < 1 || argc > INSIDE_SKIPPED + 1)
        return EINVAL;
    return say_started() < 0 ? EIO
                             : inside_watch(argv[0], argv + 1, (unsigned)argc - 1, STDOUT_FILENO);
}

static void carry(int from, int to)
{
    static char room[64 * 1024];
    for (;;) {
        ssize_t n = read(from, room, sizeof room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || write_all(to, room, (size_t)n) < 0)
            return;
    }
}

static int do_connect(int argc, char **argv)
{
    long port = argc == 1 ? number(argv[0], 10, 65535) : -1;
    int fd = port > 0 ? inside_connect((unsigned)port) : -1;
    if (port <= 0)
        errno = EINVAL;
    if (fd < 0)
        return fail(errno, "%s", strerror(errno));
    (void)signal(SIGPIPE, SIG_IGN);
    if (say_started() < 0)
        return EIO;
    pid_t in = fork();
    if (in == 0) {
        carry(STDIN_FILENO, fd);
        (void)shutdown(fd, SHUT_WR);
        _exit(0);
    }
    carry(fd, STDOUT_FILENO);
    if (in > 0)
        (void)kill(in, SIGKILL); /* who listened there is done */
    return 0;
}

/* The group in the foreground of its terminal, if it has one; -1: it is not there. */
static pid_t front_of(pid_t pid)
{
    char path[64], text[512];
    int tty, front;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *after = strrchr(text, ')'); /* its name may hold anything */
    if (after == NULL || sscanf(after + 1, " %*c %*d %*d %*d %d %d", &tty, &front) != 2)
        return -1;
    return tty != 0 && front > 0 ? front : 0;
}

static int do_signal(int argc, char **argv)
{
    long pid = argc == 2 ? number(argv[0], 10, INT_MAX) : -1;
    long sig = pid > 1 ? number(argv[1], 10, NSIG - 1) : -1;
    if (sig <= 0)
        return EINVAL;
    pid_t front = front_of((pid_t)pid);
    if (front > 0 && front != (pid_t)pid)
        (void)kill(-front, (int)sig);
    if (front <= 0 || front == (pid_t)pid || sig == SIGKILL)
        (void)kill(-(pid_t)pid, (int)sig);
    return 0;
}

/* ---- what the pod begins with ---- */

/* What the gate of this network says at its own name, by the address that the name always has. */
static ssize_t ask_gate(char *to, size_t size)
{
    static const char ask[] = "GET / HTTP/1.1\r\nHost: durward.internal\r\nAccept: application/json"
                              "\r\nConnection: close\r\n\r\n";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct timeval limit = {GATE_S, 0};
    unsigned char ip[4];
    size_t n = 0;
    ssize_t got = -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || synthetic_v4(NAMES_SELF, ip) < 0)
        return -1;
    memcpy(&at.sin_addr, ip, sizeof ip);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        write_all(fd, ask, sizeof ask - 1) == 0)
        while (n < size - 1 && (got = recv(fd, to + n, size - 1 - n, 0)) > 0)
            n += (size_t)got;
    close(fd);
    to[n] = '\0';
    return got < 0 ? -1 : (ssize_t)n;
}

/* Names of policies need no escapes in JSON. */
static bool says_policy(const char *page, const char *policy)
{
    const char *at = strstr(page, "\"policy\"");
    size_t n = strlen(policy);
    if (at == NULL)
        return false;
    at += strlen("\"policy\"");
    at += strspn(at, " \t\r\n:");
    return at[0] == '"' && strncmp(at + 1, policy, n) == 0 && at[1 + n] == '"';
}

static int lay_program(void)
{
    struct stat st;
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(POD_INSIDE_PROGRAM, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    int r = from < 0 || to < 0 || fstat(from, &st) < 0 || fchmod(to, 0755) < 0 ? -1 : 0;
    for (off_t at = 0; r == 0 && at < st.st_size;)
        if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
            r = -1;
    if (to >= 0 && close(to) < 0)
        r = -1;
    if (from >= 0)
        close(from);
    return r == 0 ? symlink(HANDOVER_INIT, HANDOVER_DIR "/" STDIO_PROGRAM) : -1;
}

static int PRINTF(1, 2) complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vdprintf(STDERR_FILENO, fmt, ap);
    va_end(ap);
    return 1;
}

/* A network that a node has made a gate for has its variables in the volume and the gate at its
 * name. Where that is not so, or it is another policy's, nothing of the pod's own ever runs. */
static int do_install(int argc, char **argv)
{
    static char page[PAGE_MAX];
    if (argc != 1)
        return complain("no policy is named\n");
    if (access(ENV_FILE, R_OK) < 0)
        return complain("this pod has no gate of Durward's (" ENV_FILE ": %s)\n", strerror(errno));
    if (ask_gate(page, sizeof page) <= 0)
        return complain("no gate of Durward's answers in this pod\n");
    if (!says_policy(page, argv[0]))
        return complain("the gate of this pod is not of the policy %.64s\n", argv[0]);
    return lay_program() < 0 ? complain("cannot lay %s: %s\n", POD_INSIDE_PROGRAM, strerror(errno))
                             : 0;
}

static int do_wait(void)
{
    sigset_t set;
    int sig;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return 1;
    while (sigwait(&set, &sig) == 0 && sig != SIGTERM)
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    return 0;
}

static int do_word(const char *word, int argc, char **argv)
{
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return FAILED;
    if (strcmp(word, "exec") == 0)
        return do_exec(argc, argv);
    if (strcmp(word, "file") == 0)
        return do_file(argc, argv);
    if (strcmp(word, "watch") == 0)
        return do_watch(argc, argv);
    if (strcmp(word, "connect") == 0)
        return do_connect(argc, argv);
    if (strcmp(word, "signal") == 0)
        return do_signal(argc, argv);
    if (strcmp(word, "install") == 0)
        return do_install(argc, argv);
    return strcmp(word, "wait") == 0 && argc == 0 ? do_wait() : complain("no such word\n");
}

bool pod_inside_main(int argc, char **argv, int *status)
{
    if (argc < 3 || strcmp(argv[1], POD_INSIDE_WORD) != 0)
        return false;
    *status = do_word(argv[2], argc - 3, argv + 3);
    return true;
}
