/* Finds runsc, and by its version what it knows. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gvisor.h"

enum {
    VERSION_MS = 10000,
    NEWER = 20230601, /* releases since have systrap, and overlays that are to be said no to */
};

static const char *const places[] = {"/usr/local/bin/runsc", "/usr/bin/runsc"};

static NORETURN void say_version(const char *path, int out)
{
    char *const argv[] = {(char[]){"runsc"}, (char[]){"--version"}, NULL};
    char *const env[] = {NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(null, 2) == 2)
        execve(path, argv, env);
    _exit(127);
}

/* What it says of itself, at most size - 1 bytes, in time; "" if nothing. */
static void ask_version(const char *path, char *said, size_t size)
{
    int p[2], status;
    size_t n = 0;
    said[0] = '\0';
    if (pipe2(p, O_CLOEXEC) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        say_version(path, p[1]);
    close(p[1]);
    struct pollfd w = {.fd = p[0], .events = POLLIN};
    while (pid > 0 && n + 1 < size && poll(&w, 1, VERSION_MS) > 0) {
        ssize_t k = read(p[0], said + n, size - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    said[n] = '\0';
    close(p[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
}

/* "runsc version release-20240729.0", "runsc version 0.0~20221219.0": the date in it; 0: none. */
static unsigned date_of(const char *s)
{
    for (; *s; s++) {
        size_t n = strspn(s, "0123456789");
        if (n == 8 && (strncmp(s, "20", 2) == 0))
            return (unsigned)strtoul(s, NULL, 10);
        s += n ? n - 1 : 0;
    }
    return 0;
}

const char *gvisor_path(struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    err_set(err, ERR_UNREADY,
            "gVisor's runsc is not there: install it, for instance with apt install runsc, or as "
            "/usr/local/bin/runsc");
    return NULL;
}

int gvisor_find(struct gvisor_program *ret, struct err *err)
{
    char said[512];
    static const char key[] = "runsc version ";
    *ret = (struct gvisor_program){.platform = "ptrace", .path = gvisor_path(err)};
    if (ret->path == NULL)
        return -1;
    ask_version(ret->path, said, sizeof said);
    const char *at = strstr(said, key);
    if (at == NULL)
        return err_set(err, ERR_UNREADY, "%s does not say its version: install it anew", ret->path);
    at += sizeof key - 1;
    snprintf(ret->version, sizeof ret->version, "%.*s", (int)strcspn(at, "\n"), at);
    ret->newer = date_of(ret->version) >= NEWER;
    if (ret->newer)
        ret->platform = "systrap";
    return 0;
}
