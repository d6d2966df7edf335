/* A parent and a controller for the builder role, as far as a test needs them: they start it, have
 * one sandbox at a time built and run commands in it. */
#ifndef DURWARD_BUILDER_FIXTURE_H
#define DURWARD_BUILDER_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "archive_call.h"
#include "build.h"
#include "builder.h"
#include "ipc_msg.h"
#include "proc.h"
#include "sandbox_spec.h"
#include "tap_main.h"
#include "wire.h"

enum { START_WAIT_S = 30, OUT_MAX = 8192 };

struct rig {
    pid_t builder;
    int parent, controller;
    char dir[128], project[160], state[160], trust[160], home[160];
    /* the sandbox that was built last */
    int init;
    unsigned n;
    int fds[IPC_FDS_MAX];
    uint8_t kinds[IPC_FDS_MAX];
    uint32_t ports[IPC_FDS_MAX];
    bool ok;
    char text[9000];
    long ready_us;
    struct sandbox_spec sandbox_spec; /* what is asked for */
    bool bindless;                    /* a daemon's builder */
};

static struct rig rig;
static bool usable;

/* ---- the far sides ---- */

static void start_wait(int fd)
{
    struct timeval t = {.tv_sec = START_WAIT_S};
    CU_ASSERT_EQUAL_FATAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
}

static void send_msg(int fd, struct msg *m)
{
    CU_ASSERT_EQUAL_FATAL(msg_send(fd, m), 0);
    msg_done(m);
}

static bool recv_type(int fd, struct msg *m, uint16_t type)
{
    int r = msg_recv(fd, m);
    CU_ASSERT_EQUAL(r, 1);
    if (r != 1)
        return false;
    CU_ASSERT_EQUAL(m->type, type);
    if (m->type == type)
        return true;
    msg_done(m);
    return false;
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s/%s", rig.dir, name);
    CU_ASSERT_EQUAL_FATAL(mkdir(to, 0755), 0);
}

static void make_directories(void)
{
    char sub[256];
    snprintf(rig.dir, sizeof rig.dir, "/tmp/durward-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(rig.dir));
    make_dir(rig.project, sizeof rig.project, "project");
    make_dir(rig.state, sizeof rig.state, "state");
    make_dir(rig.trust, sizeof rig.trust, "trust");
    make_dir(rig.home, sizeof rig.home, "home");
    make_dir(sub, sizeof sub, "project/sub");
    write_file(rig.trust, "ca-certificates.crt", "the bundle\n");
    write_file(rig.trust, "java", "");
    write_file(rig.project, ".env", "SECRET=hunter2\n");
    write_file(rig.project, ".env.example", "SECRET=\n");
    write_file(sub, ".npmrc", "token=hunter2\n");
    write_file(sub, "server.pem", "-----BEGIN PRIVATE KEY-----\nhunter2\n");
    write_file(sub, "public.pem", "-----BEGIN CERTIFICATE-----\n");
    write_file(rig.project, "prod.txt", "hunter2\n");
    snprintf(sub, sizeof sub, "%s/.netrc", rig.project);
    CU_ASSERT_EQUAL(symlink("prod.txt", sub), 0);
}

static const char *init_program(void)
{
    static char path[PATH_MAX];
    const char *given = getenv("DURWARD_INIT");
    return realpath(given ? given : "controller/durward-init", path);
}

/* Beside durward-init, or in the build tree's folder of programs. */
static int archive_program(void)
{
    char path[PATH_MAX];
    const char *init = getenv("DURWARD_INIT"), *end = init ? strrchr(init, '/') : NULL;
    snprintf(path, sizeof path, "%.*s/" ARCHIVE_PROGRAM, end ? (int)(end - init) : 8,
             end ? init : "programs");
    int fd = open(path, O_PATH | O_CLOEXEC);
    CU_ASSERT(fd >= 0);
    return fd;
}

/* The parent wires another controller to it. */
static int next_controller(void)
{
    int channel[2];
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
    start_wait(channel[0]);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, ROLE_CONTROLLER);
    msg_put_u32(&m, 7);
    msg_put_str(&m, "");
    msg_put_str(&m, "");
    msg_put_u32(&m, 0);
    msg_put_u32(&m, 0); /* wire */
    msg_put_bytes(&m, "", 0);
    msg_put_fd(&m, channel[1]);
    send_msg(rig.parent, &m);
    return channel[0];
}

static void start_builder(void)
{
    int pair[2];
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    rig.builder = fork();
    if (rig.builder == 0) {
        if (pair[1] != PROC_CONTROL_FD)
            dup2(pair[1], PROC_CONTROL_FD);
        syscall(SYS_close_range, PROC_CONTROL_FD + 1, ~0U, 0);
        _exit(builder_main());
    }
    close(pair[1]);
    rig.parent = pair[0];
    start_wait(rig.parent);
    msg_init(&m, W_INIT);
    msg_put_str(&m, rig.state);
    msg_put_str(&m, rig.trust);
    msg_put_str(&m, init_program());
    msg_put_u8(&m, !rig.bindless);
    msg_put_u32(&m, 0);  /* files of MCP servers */
    msg_put_str(&m, ""); /* no node's pods */
    msg_put_str(&m, "");
    msg_put_u32(&m, 0);
    for (int i = 0; i < 4; i++)
        msg_put_str(&m, ""); /* no cluster */
    msg_put_fd(&m, archive_program());
    send_msg(rig.parent, &m);
    CU_ASSERT_FATAL(recv_type(rig.parent, &m, W_READY));
    msg_done(&m);
    rig.controller = next_controller();
}

static void ask(const char *id, const char *source, const char *target, uint8_t writable)
{
    struct msg m;
    msg_init(&m, W_BUILD);
    msg_put_str(&m, id);
    msg_put_str(&m, "policy");
    msg_put_str(&m, "box");
    msg_put_u32(&m, getuid());
    msg_put_u32(&m, getgid());
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 8443);
    msg_put_u32(&m, source ? 1 : 0);
    if (source) {
        msg_put_str(&m, source);
        msg_put_str(&m, target);
        msg_put_u8(&m, writable);
    }
    msg_put_str(&m, rig.home);
    msg_put_str(&m, getuid() ? "agent" : "root");
    msg_put_u32(&m, 1);
    msg_put_str(&m, "git.example.com");
    msg_put_u32(&m, 1);
    msg_put_str(&m, "[ssh.example.com]:2222");
    msg_put_str(&m,
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl");
    msg_put_str(&m, "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAAA=");
    msg_put_u8(&m, 0); /* no SSH agent */
    sandbox_spec_put(&rig.sandbox_spec, &m);
    send_msg(rig.controller, &m);
}

static void close_sandbox(void)
{
    for (unsigned i = 0; i < rig.n; i++)
        close(rig.fds[i]);
    rig.n = 0;
    if (rig.init >= 0)
        close(rig.init);
    rig.init = -1;
}

/* As the signer says it of a CA. */
static void send_root(const char *id)
{
    struct msg m, root;
    msg_init(&root, 0);
    msg_put_str(&root, "one\n");
    msg_put_str(&root, "12345678.0");
    msg_put_str(&root, "");
    msg_init(&m, W_ROOT);
    msg_put_str(&m, id);
    msg_put_bytes(&m, buf_data(&root.body), buf_len(&root.body));
    msg_done(&root);
    send_msg(rig.parent, &m);
}

static void take_listeners(const char *id, uint8_t consent)
{
    struct msg m;
    char name[65];
    uint32_t n = 0;
    if (!recv_type(rig.parent, &m, W_LISTENERS))
        return;
    CU_ASSERT_EQUAL(msg_get_str(&m, name, sizeof name), 0);
    CU_ASSERT_STRING_EQUAL(name, id);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &n), 0);
    for (rig.n = 0; rig.n < n; rig.n++) {
        CU_ASSERT_EQUAL(msg_get_u8(&m, &rig.kinds[rig.n]), 0);
        CU_ASSERT_EQUAL(msg_get_u32(&m, &rig.ports[rig.n]), 0);
        CU_ASSERT_EQUAL(msg_get_fd(&m, &rig.fds[rig.n]), 0);
    }
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    send_root(id);
    msg_init(&m, W_LISTENERS_OK);
    msg_put_str(&m, id);
    msg_put_u8(&m, consent);
    msg_put_str(&m, "no thanks");
    send_msg(rig.parent, &m);
}

static void take_built(const char *id)
{
    struct msg m;
    char name[65];
    uint8_t ok = 0;
    rig.init = -1;
    rig.ok = false;
    if (!recv_type(rig.controller, &m, W_BUILT))
        return;
    CU_ASSERT_EQUAL(msg_get_str(&m, name, sizeof name), 0);
    CU_ASSERT_STRING_EQUAL(name, id);
    CU_ASSERT_EQUAL(msg_get_u8(&m, &ok), 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, rig.text, sizeof rig.text), 0);
    if (ok)
        CU_ASSERT_EQUAL(msg_get_fd(&m, &rig.init), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    rig.ok = ok;
    if (!ok)
        return;
    start_wait(rig.init);
    if (recv_type(rig.init, &m, W_INIT_READY)) /* left there for the controller */
        msg_done(&m);
}

static long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void build(const char *id, const char *source, const char *target, uint8_t writable)
{
    long start = now_us();
    ask(id, source, target, writable);
    take_listeners(id, 1);
    take_built(id);
    rig.ready_us = now_us() - start;
}

static void expect_torn(const char *id)
{
    struct msg m;
    char name[65];
    if (!recv_type(rig.controller, &m, W_TORN))
        return;
    CU_ASSERT_EQUAL(msg_get_str(&m, name, sizeof name), 0);
    CU_ASSERT_STRING_EQUAL(name, id);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
}

static void teardown(const char *id)
{
    struct msg m;
    msg_init(&m, W_TEARDOWN);
    msg_put_str(&m, id);
    send_msg(rig.controller, &m);
    expect_torn(id);
    close_sandbox();
}

/* ---- commands ---- */

static void post_exec(const char *const *argv, const char *cwd, uint8_t tty, const int fds[3])
{
    struct msg m;
    char home[256];
    uint32_t n = 0;
    while (argv[n])
        n++;
    snprintf(home, sizeof home, "HOME=%s", rig.home);
    msg_init(&m, W_INIT_EXEC);
    msg_put_u32(&m, 7);
    msg_put_u32(&m, n);
    for (uint32_t i = 0; i < n; i++)
        msg_put_str(&m, argv[i]);
    msg_put_u32(&m, 3);
    msg_put_str(&m, "PATH=/usr/local/bin:/usr/bin:/bin");
    msg_put_str(&m, home);
    msg_put_str(&m, "TERM=xterm");
    msg_put_str(&m, cwd);
    msg_put_u8(&m, tty);
    msg_put_u32(&m, 24);
    msg_put_u32(&m, 80);
    msg_put_u8(&m, 0);
    for (int i = 0; i < 3 && !tty; i++)
        msg_put_fd_dup(&m, fds[i]);
    send_msg(rig.init, &m);
}

/* The exit status; 1000 when the sandbox says something else. */
static uint32_t take_exit(char *text, size_t size)
{
    struct msg m;
    uint32_t status = 1000, number = 0;
    if (!recv_type(rig.init, &m, W_INIT_EXIT))
        return status;
    CU_ASSERT_EQUAL(msg_get_u32(&m, &number), 0);
    CU_ASSERT_EQUAL(number, 7);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &status), 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, text, size), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    return status;
}

static void take_started(int *master)
{
    struct msg m;
    uint32_t number = 0, n = 9;
    if (!recv_type(rig.init, &m, W_INIT_STARTED))
        return;
    CU_ASSERT_EQUAL(msg_get_u32(&m, &number), 0);
    CU_ASSERT_EQUAL(number, 7);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &n), 0);
    CU_ASSERT_EQUAL(n, master ? 1 : 0);
    if (master)
        CU_ASSERT_EQUAL(msg_get_fd(&m, master), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
}

static void read_all(int fd, char *out, size_t size)
{
    size_t n = 0;
    for (ssize_t r; n < size - 1 && (r = read(fd, out + n, size - 1 - n)) > 0;)
        n += (size_t)r;
    out[n] = '\0';
}

/* Runs argv without input; what it writes is in out. */
static uint32_t run_argv(const char *const *argv, char *out)
{
    char text[512];
    int p[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    int fds[3] = {null, p[1], p[1]};
    post_exec(argv, "/", 0, fds);
    close(p[1]);
    close(null);
    take_started(NULL);
    read_all(p[0], out, OUT_MAX);
    close(p[0]);
    return take_exit(text, sizeof text);
}

static uint32_t sh(const char *script, char *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return run_argv(argv, out);
}

static int listener(enum listener_kind kind)
{
    for (unsigned i = 0; i < rig.n; i++)
        if (rig.kinds[i] == kind)
            return rig.fds[i];
    return -1;
}

#endif
