/* The first process of a guest: /init of its first files. Its end is the machine's. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "guest_internal.h"
#include "program.h"

enum { BEFORE = 5 /* words that are not durward-init's */ };

int guest_fail(const char *what)
{
    fprintf(stderr, "durward-guest: %s: %s\n", what, strerror(errno));
    return -1;
}

/* The words are in text, a NUL after each. */
static int words_read(struct guest_words *w)
{
    char *word[GUEST_WORDS_MAX];
    unsigned n = 0;
    int fd = open("/" GUEST_WORDS, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, w->text, sizeof w->text - 1);
    if (fd >= 0)
        close(fd);
    for (ssize_t at = 0; at < got && n < GUEST_WORDS_MAX; at += (ssize_t)strlen(w->text + at) + 1)
        word[n++] = w->text + at;
    if (n <= BEFORE)
        return guest_fail(GUEST_WORDS);
    w->hostname = word[0];
    w->pids = (unsigned)strtoul(word[1], NULL, 10);
    w->known = strtoul(word[2], NULL, 10);
    w->shared = strtoul(word[3], NULL, 10);
    w->build = word[4];
    for (unsigned i = BEFORE; i < n; i++)
        w->init[i - BEFORE] = word[i];
    return 0;
}

/* Nobody else is started from here, and nobody is told of an end: what is reaped are orphans. */
static void serve(const struct guest_net *net, struct guest_files *known, struct trunk *t)
{
    static struct pollfd p[TRUNK_POLLED + GUEST_LISTENERS];
    for (;;) {
        unsigned n = trunk_watch(t, p), more = guest_net_watch(net, p + n);
        if (poll(p, n + more, guest_files_turn(known)) < 0 && errno != EINTR)
            return;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        guest_net_turn(net, p + n, more, t);
        if (trunk_turn(t, p, n) < 0)
            return;
    }
}

static int run(void)
{
    static struct guest_words w;
    static struct guest_net net;
    struct guest_files known;
    int control[2];
    if (words_read(&w) < 0)
        return -1;
    if (strcmp(w.build, program_build) != 0)
        return guest_fail("it is of another build");
    if (guest_place_make(&w) < 0)
        return -1;
    int line = open(GUEST_PORT, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (line < 0)
        return guest_fail(GUEST_PORT);
    if (guest_net_make(&net) < 0 || guest_files_open(&known, w.known) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0 ||
        guest_place_start(&w, &net, control[1]) < 0)
        return guest_fail("durward-init");
    close(control[1]);
    struct trunk *t =
        fcntl(control[0], F_SETFL, O_NONBLOCK) < 0 ? NULL : trunk_new(line, control[0], NULL);
    if (t)
        serve(&net, &known, t);
    return 0;
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (getpid() != 1)
        return 1;
    (void)run();
    (void)reboot(RB_AUTOBOOT);
    return 1;
}
