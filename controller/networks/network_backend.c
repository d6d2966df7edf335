/* The end that podman starts: carries what it writes to the keeper, and the answer back. */
#define _GNU_SOURCE 1
#include "network_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network_keeper.h"
#include "network_message.h"
#include "network_program.h"

enum { TRIES = 8 };

static char text[NETWORK_REQUEST_MAX + 2], answer[NETWORK_KEEPER_ANSWER + 1];

/* As the real one says it to podman. */
static int fail(const char *why)
{
    printf("{\"error\":\"");
    for (; *why; why++)
        putchar(*why == '"' || *why == '\\' || (unsigned char)*why < ' ' ? '\'' : *why);
    printf("\"}\n");
    return 1;
}

/* What podman writes, behind the first byte. -1: it is too long, or cannot be read. */
static ssize_t read_request(void)
{
    size_t n = 1;
    for (;;) {
        ssize_t k = read(STDIN_FILENO, text + n, sizeof text - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? -1 : (ssize_t)n;
        n += (size_t)k;
        if (n == sizeof text)
            return -1;
    }
}

/* The answer's length; 0: whoever listened has ended meanwhile. Takes fd. */
static ssize_t ask(int fd, size_t n, int netns)
{
    ssize_t got =
        network_message_send(fd, text, n, netns) < 0 ? 0 : recv(fd, answer, sizeof answer - 1, 0);
    close(fd);
    return got < 0 ? 0 : got;
}

/* A keeper that ends with its last container may do so now. */
static int set_up(size_t n, int netns)
{
    struct err err = {0};
    for (int i = 0; i < TRIES; i++) {
        int fd = network_keeper_reach(&err);
        if (fd < 0)
            return fail(err.text);
        ssize_t got = ask(fd, n, netns);
        if (got == 0)
            continue;
        answer[got] = '\0';
        if (answer[0] != NETWORK_KEEPER_DONE)
            return fail(answer + 1);
        puts(answer + 1);
        return 0;
    }
    return fail("the process of the networks ends again and again");
}

/* Where nobody keeps anything, nothing is to be done. */
static int tear_down(size_t n)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = network_keeper_find();
        if (fd < 0)
            return 0;
        ssize_t got = ask(fd, n, -1);
        if (got == 0)
            continue;
        answer[got] = '\0';
        return answer[0] == NETWORK_KEEPER_DONE ? 0 : fail(answer + 1);
    }
    return 0;
}

static int serve(bool sets_up, const char *path)
{
    text[0] = sets_up ? NETWORK_KEEPER_SETUP : NETWORK_KEEPER_TEARDOWN;
    ssize_t n = read_request();
    if (n < 0)
        return fail("what is asked cannot be read, or is too long");
    if (!sets_up)
        return tear_down((size_t)n);
    int netns = open(path, O_RDONLY | O_CLOEXEC);
    return netns < 0 ? fail("the container's network namespace cannot be opened")
                     : set_up((size_t)n, netns);
}

bool network_main(int argc, char **argv, int *status)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = argc > 0 ? slash ? slash + 1 : argv[0] : "";
    if (strcmp(name, NETWORK_PROGRAM) != 0 && strcmp(name, NETWORK_NAMES) != 0)
        return false;
    *status = 0;
    for (int i = 1; i < argc; i++) {
        bool sets_up = strcmp(argv[i], "setup") == 0;
        if (strcmp(argv[i], "--config") == 0 || strcmp(argv[i], "-c") == 0)
            i++;
        else if ((sets_up || strcmp(argv[i], "teardown") == 0) && i + 1 < argc) {
            *status = serve(sets_up, argv[i + 1]);
            return true;
        } else if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "update") == 0) {
            puts(NETWORK_PROGRAM " 1.4.0");
            return true;
        }
    }
    *status = fail("netavark of a sandbox knows setup and teardown");
    return true;
}
