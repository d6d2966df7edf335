/* Listens where SSH_AUTH_SOCK points, and carries bytes between a client and port 22 of our gate,
 * in a child for each connection, so many at once. */
#define _GNU_SOURCE 1
#include "agent_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "command.h"
#include "compiler.h"
#include "synthetic.h"

enum { CLIENTS = 16, WAITING = 16, CHUNK = 16 * 1024, PORT = 22 };

static pid_t children[CLIENTS];

int agent_socket_listen(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = SSH_AGENT_SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)unlink(at.sun_path); /* of a root that was kept */
    mode_t before = umask(0177);
    int r = bind(fd, (struct sockaddr *)&at, sizeof at);
    umask(before);
    if (r == 0 && listen(fd, WAITING) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_gate(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char ip[4];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || synthetic_v4(NAMES_SELF, ip) < 0)
        return -1;
    memcpy(&in.sin_addr, ip, sizeof ip);
    return connect(fd, (struct sockaddr *)&in, sizeof in) < 0 ? -1 : fd;
}

/* One way, as much as there is now. False: that side has ended. */
static bool carry(int from, int to)
{
    char bytes[CHUNK];
    ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    for (ssize_t at = 0; at < n;) {
        ssize_t w = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        at += w;
    }
    return n > 0;
}

/* An agent's client that has ended its side waits for no answer. */
static NORETURN void serve(int client)
{
    int gate = connect_gate();
    struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.fd = gate, .events = POLLIN}};
    bool more = gate >= 0;
    while (more && (poll(p, 2, -1) > 0 || errno == EINTR)) {
        if (p[0].revents)
            more = carry(client, gate);
        if (p[1].revents && more)
            more = carry(gate, client);
    }
    _exit(0);
}

void agent_socket_accept(int listener, int control)
{
    sigset_t none;
    size_t i = 0;
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (i < CLIENTS && children[i] > 0)
        i++;
    pid_t pid = client >= 0 && i < CLIENTS ? fork() : -1;
    if (pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setsid();
        close(control);
        close(listener);
        serve(client);
    }
    if (pid > 0)
        children[i] = pid;
    if (client >= 0)
        close(client);
}

void agent_socket_reaped(pid_t pid)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (children[i] == pid)
            children[i] = 0;
}
