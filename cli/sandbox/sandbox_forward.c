/* durward sandbox forward: a port of this host's loopback that leads to one inside. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_client.h"
#include "commands.h"
#include "exec_session.h"
#include "out.h"
#include "which.h"

enum { CHUNK = 64 * 1024, CONNECTIONS_MAX = 256 };

static int pass(int from, int to)
{
    static unsigned char room[CHUNK];
    ssize_t n = read(from, room, sizeof room);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return -1;
    struct err err;
    return api_push(to, room, (size_t)n, &err);
}

/* One connection, in a process of its own. */
static int relay(const char *socket, const char *path, int client)
{
    struct err err = {0};
    struct buf ahead;
    int inside = exec_upgrade(socket, path, "durward-forward", NULL, &ahead, &err);
    if (inside < 0) {
        out_error("%s", err.text);
        return EXIT_NO;
    }
    struct timeval none = {0};
    setsockopt(inside, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    setsockopt(inside, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    int bad = buf_len(&ahead) ? api_push(client, buf_data(&ahead), buf_len(&ahead), &err) : 0;
    buf_free(&ahead);
    while (!bad) {
        struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.fd = inside, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        if (p[0].revents)
            bad = pass(client, inside);
        if (!bad && p[1].revents)
            bad = pass(inside, client);
    }
    return EXIT_OK;
}

static int open_listener(unsigned port, unsigned *ret, struct err *err)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t n = sizeof sa;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return err_sys(err, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &n) < 0) {
        err_sys(err, "cannot listen on 127.0.0.1:%u", port);
        close(fd);
        return -1;
    }
    *ret = ntohs(sa.sin_port);
    return fd;
}

static int serve(const char *socket, const char *path, int listener)
{
    unsigned running = 0;
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        while (running && waitpid(-1, NULL, running < CONNECTIONS_MAX ? WNOHANG : 0) > 0)
            running--;
        if (client < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EMFILE))
            continue;
        pid_t pid = client < 0 ? -1 : fork();
        if (pid == 0) {
            close(listener);
            _exit(relay(socket, path, client));
        }
        if (client < 0)
            return EXIT_NO;
        running += pid > 0;
        close(client);
    }
}

static int port_of(const char *text, unsigned least, unsigned *ret)
{
    uint64_t v;
    if (slice_u64(slice_str(text), 65535, &v) < 0 || v < least)
        return -1;
    *ret = (unsigned)v;
    return 0;
}

int verb_forward(int argc, char **argv)
{
    struct args a = {.argc = argc, .argv = argv};
    struct err err = {0};
    char path[160], id[WHICH_ID_MAX + 1];
    unsigned port, local;
    for (const struct command *v = sandbox_verbs; v->name; v++)
        if (v->run == verb_forward)
            a.cmd = v;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    int n = argc - a.next;
    if (n < 2 || n > 3)
        return args_usage(a.cmd, "an id and a port are needed");
    if (port_of(argv[a.next + 1], 1, &port) < 0 ||
        port_of(argv[n == 3 ? a.next + 2 : a.next + 1], 0, &local) < 0)
        return args_usage(a.cmd, "a port is a number up to 65535");
    if (which_one(a.socket, WHICH_SANDBOX, argv[a.next], id, &err) < 0)
        return out_fail(&err);
    snprintf(path, sizeof path, "/v1/sandboxes/%.64s", id);
    json_t *reply;
    int fd = api_call(a.socket, "GET", path, NULL, &reply, &err) < 0
                 ? -1
                 : open_listener(local, &local, &err);
    if (fd < 0)
        return out_fail(&err);
    json_decref(reply);
    printf("127.0.0.1:%u\n", local);
    if (out_flush() < 0)
        return EXIT_NO;
    snprintf(path, sizeof path, "/v1/sandboxes/%.64s/forward?port=%u", id, port);
    return serve(a.socket, path, fd);
}
