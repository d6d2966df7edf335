/* The builder role, played against by a parent and a controller: real namespaces, real bubblewrap,
 * real durward-init. Run as root and as an ordinary user. */
#define _GNU_SOURCE 1
#include <linux/keyctl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/un.h>

#include "builder_fixture.h"

/* ---- one sandbox for most tests ---- */

static bool ready(void)
{
    if (!usable)
        tap_skip("user namespaces are not available here");
    return usable;
}

static void test_build(void)
{
    if (init_program() == NULL) {
        CU_FAIL("durward-init was not built");
        return;
    }
    make_directories();
    start_builder();
    build("sb-first", rig.project, rig.project, 1);
    if (!rig.ok && strstr(rig.text, "user namespace")) {
        tap_skip("user namespaces are not available here");
        return;
    }
    CU_ASSERT_TRUE(rig.ok);
    if (!rig.ok)
        printf("# %s\n", rig.text);
    else
        printf("# ready after %ld us\n", rig.ready_us);
    usable = rig.ok;
}

static void test_listeners(void)
{
    if (!ready())
        return;
    CU_ASSERT_TRUE(listener(LISTENER_TCP4) >= 0);
    CU_ASSERT_TRUE(listener(LISTENER_DNS_UDP4) >= 0);
    CU_ASSERT_TRUE(listener(LISTENER_DNS_TCP4) >= 0);
    CU_ASSERT_EQUAL(rig.kinds[rig.n - 1], LISTENER_NFLOG);
    int on = 1;
    socklen_t len = sizeof on;
    CU_ASSERT_EQUAL(getsockopt(listener(LISTENER_TCP4), SOL_SOCKET, SO_REUSEADDR, &on, &len), 0);
    CU_ASSERT_EQUAL(on, 0);
}

/* The next connection of the sandbox; *at: where it wanted to go. The self-test's own waits there
 * too and is over. */
static int take_connection(int l, struct sockaddr_storage *at)
{
    for (;;) {
        socklen_t len = sizeof *at;
        struct pollfd p = {.fd = l, .events = POLLIN};
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, START_WAIT_S * 1000), 1);
        int c = accept(l, NULL, NULL);
        CU_ASSERT_TRUE_FATAL(c >= 0);
        CU_ASSERT_EQUAL(getsockname(c, (struct sockaddr *)at, &len), 0);
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)at;
        if (at->ss_family != AF_INET || v4->sin_addr.s_addr != htonl(WIRE_SELFTEST_ADDRESS))
            return c;
        close(c);
    }
}

/* curl inside reaches the listener outside, which sees where curl wanted to go. */
static void fetch(enum listener_kind kind, const char *url, struct sockaddr_storage *at)
{
    static const char reply[] = "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const char *const argv[] = {"curl", "-sS", "-g", "--noproxy", "*", url, NULL};
    char out[OUT_MAX], text[512], request[1024];
    int p[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    int fds[3] = {null, p[1], p[1]};
    post_exec(argv, "/", 0, fds);
    close(p[1]);
    close(null);
    take_started(NULL);
    int c = take_connection(listener(kind), at);
    CU_ASSERT_TRUE(read(c, request, sizeof request) > 0);
    CU_ASSERT_EQUAL(write(c, reply, sizeof reply - 1), (ssize_t)sizeof reply - 1);
    close(c);
    read_all(p[0], out, sizeof out);
    close(p[0]);
    CU_ASSERT_STRING_EQUAL(out, "hello");
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 0);
}

static void test_original_destination(void)
{
    struct sockaddr_storage at = {0};
    char text[INET6_ADDRSTRLEN];
    if (!ready())
        return;
    fetch(LISTENER_TCP4, "http://93.184.216.34:81/", &at);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
    CU_ASSERT_STRING_EQUAL(inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text), "93.184.216.34");
    CU_ASSERT_EQUAL(ntohs(v4->sin_port), 81);
    if (listener(LISTENER_TCP6) < 0)
        return; /* no IPv6 on this host */
    fetch(LISTENER_TCP6, "http://[2001:db8::5]:8080/", &at);
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
    CU_ASSERT_STRING_EQUAL(inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text), "2001:db8::5");
    CU_ASSERT_EQUAL(ntohs(v6->sin6_port), 8080);
}

/* A datagram to 8.8.8.8:443 is refused inside and seen on the log outside; nothing else is there.
 */
static void test_refused_packet(void)
{
    if (!ready())
        return;
    char out[OUT_MAX];
    unsigned char packet[2048];
    int log = listener(LISTENER_NFLOG);
    CU_ASSERT_EQUAL(read(log, packet, sizeof packet), -1); /* the self-test leaves no trace */
    sh("exec 3<>/dev/udp/8.8.8.8/443 && echo hi >&3; true", out);
    const char *argv[] = {"bash", "-c", "exec 3<>/dev/udp/8.8.8.8/443 && echo hi >&3", NULL};
    CU_ASSERT_NOT_EQUAL(run_argv(argv, out), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "not permitted"));
    struct pollfd told = {.fd = log, .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&told, 1, START_WAIT_S * 1000), 1);
    ssize_t n = recv(log, packet, sizeof packet, 0);
    static const unsigned char to[] = {8, 8, 8, 8};
    CU_ASSERT_TRUE_FATAL(n > 0);
    CU_ASSERT_PTR_NOT_NULL(memmem(packet, (size_t)n, to, sizeof to));
    CU_ASSERT_PTR_NOT_NULL(memmem(packet, (size_t)n, "hi\n", 3));
}

static void test_loopback_stays_inside(void)
{
    if (!ready())
        return;
    char out[OUT_MAX];
    CU_ASSERT_EQUAL(sh("curl -sS --noproxy '*' -m 2 http://127.0.0.1:3000/", out), 7);
    CU_ASSERT_EQUAL(sh("curl -sS --noproxy '*' -m 2 http://127.0.0.1:901/", out), 7);
}

static void test_dns_reaches_the_listener(void)
{
    if (!ready())
        return;
    char out[OUT_MAX], room[600];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    const char *argv[] = {"bash", "-c",
                          "exec 3<>/dev/udp/9.9.9.9/53; echo question >&3; "
                          "echo got $(head -n 1 <&3)", /* read takes a byte a time */
                          NULL};
    int udp = listener(LISTENER_DNS_UDP4), p[2];
    while (recv(udp, room, sizeof room, MSG_DONTWAIT) > 0) /* the self-test's question */
        continue;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    int fds[3] = {null, p[1], p[1]};
    post_exec(argv, "/", 0, fds);
    close(p[1]);
    close(null);
    take_started(NULL);
    struct pollfd pl = {.fd = udp, .events = POLLIN};
    CU_ASSERT_EQUAL_FATAL(poll(&pl, 1, 5000), 1);
    char control[256];
    struct iovec iov = {room, sizeof room};
    struct msghdr mh = {.msg_name = &from,
                        .msg_namelen = len,
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof control};
    ssize_t n = recvmsg(udp, &mh, 0);
    CU_ASSERT_EQUAL(n, 9);
    struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cm);
    struct in_pktinfo info;
    CU_ASSERT_EQUAL(cm->cmsg_type, IP_PKTINFO);
    memcpy(&info, CMSG_DATA(cm), sizeof info);
    CU_ASSERT_STRING_EQUAL(inet_ntoa(info.ipi_addr), "9.9.9.9");
    /* the same control data sends the answer from that address */
    info.ipi_ifindex = 0;
    info.ipi_spec_dst = info.ipi_addr;
    memcpy(CMSG_DATA(cm), &info, sizeof info);
    iov = (struct iovec){(void *)"answer\n", 7};
    CU_ASSERT_EQUAL(sendmsg(udp, &mh, 0), 7);
    read_all(p[0], out, sizeof out);
    close(p[0]);
    CU_ASSERT_STRING_EQUAL(out, "got answer\n");
    char text[256];
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 0);
}

/* ---- statuses ---- */

static uint32_t fails_to_start(const char *program, const char *cwd, char *text, size_t size)
{
    const char *argv[] = {program, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fds[3] = {null, null, null};
    post_exec(argv, cwd, 0, fds);
    close(null);
    return take_exit(text, size);
}

static void test_statuses(void)
{
    if (!ready())
        return;
    char out[OUT_MAX], text[512];
    CU_ASSERT_EQUAL(sh("exit 0", out), 0);
    CU_ASSERT_EQUAL(sh("exit 7", out), 7);
    CU_ASSERT_EQUAL(sh("kill -TERM $$", out), 128 + SIGTERM);
    CU_ASSERT_EQUAL(sh("kill -INT $$", out), 128 + SIGINT); /* not ignored from the builder's */
    CU_ASSERT_EQUAL(fails_to_start("no-such-program", "/", text, sizeof text), 127);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "no-such-program"));
    CU_ASSERT_EQUAL(fails_to_start("/etc/passwd", "/", text, sizeof text), 126);
    CU_ASSERT_EQUAL(fails_to_start("/usr/bin/true", "/nowhere", text, sizeof text), 125);
    CU_ASSERT_EQUAL(sh("exit 3", out), 3); /* a failure leaves it usable */
}

static void test_signal(void)
{
    if (!ready())
        return;
    const char *argv[] = {"sh", "-c", "echo up; sleep 60", NULL};
    char text[512], c;
    struct msg m;
    int p[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    int fds[3] = {null, p[1], p[1]};
    post_exec(argv, "/", 0, fds);
    close(p[1]);
    close(null);
    take_started(NULL);
    CU_ASSERT_EQUAL(read(p[0], &c, 1), 1);
    msg_init(&m, W_INIT_SIGNAL);
    msg_put_u32(&m, 7);
    msg_put_u32(&m, SIGTERM);
    send_msg(rig.init, &m);
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 128 + SIGTERM);
    close(p[0]);
}

static void test_sockets_are_not_handed_in(void)
{
    if (!ready())
        return;
    const char *argv[] = {"true", NULL};
    char text[512];
    int pair[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), null = open("/dev/null", O_RDWR);
    int with_socket[3] = {pair[0], null, null}, with_directory[3] = {dir, null, null};
    post_exec(argv, "/", 0, with_socket);
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 125);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "stdin"));
    post_exec(argv, "/", 0, with_directory);
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 125);
    close(pair[0]);
    close(pair[1]);
    close(dir);
    close(null);
}

/* ---- terminal ---- */

static void await_text(int fd, char *out, const char *what)
{
    size_t n = 0;
    out[0] = '\0';
    while (n < OUT_MAX - 1 && strstr(out, what) == NULL) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 10000) <= 0)
            break;
        ssize_t r = read(fd, out + n, OUT_MAX - 1 - n);
        if (r <= 0)
            break;
        n += (size_t)r;
        out[n] = '\0';
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(out, what));
}

/* A new size comes by another way than what is written to the terminal. */
static void await_size(int master, unsigned rows, unsigned cols)
{
    struct winsize w = {0};
    for (int i = 0; i < 1000 && (w.ws_row != rows || w.ws_col != cols); i++) {
        CU_ASSERT_EQUAL_FATAL(ioctl(master, TIOCGWINSZ, &w), 0);
        poll(NULL, 0, 5);
    }
}

static void test_terminal(void)
{
    if (!ready())
        return;
    const char *argv[] = {"bash", "--norc", "-c",
                          "tty; stty size; read x; echo got-$x; stty size; echo up; exec sleep 60",
                          NULL};
    char out[OUT_MAX], text[512];
    struct msg m;
    int master = -1;
    post_exec(argv, "/", 1, NULL);
    take_started(&master);
    CU_ASSERT_TRUE_FATAL(master >= 0);
    await_text(master, out, "24 80");
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "/dev/pts/"));
    msg_init(&m, W_INIT_WINSIZE);
    msg_put_u32(&m, 7);
    msg_put_u32(&m, 50);
    msg_put_u32(&m, 132);
    send_msg(rig.init, &m);
    await_size(master, 50, 132);
    CU_ASSERT_EQUAL(write(master, "word\n", 5), 5);
    await_text(master, out, "up\r\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "got-word"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "50 132"));
    CU_ASSERT_EQUAL(write(master, "\003", 1), 1); /* ^C by the line discipline */
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 128 + SIGINT);
    close(master);
    post_exec((const char *const[]){"sh", "-c", "echo up; sleep 60", NULL}, "/", 1, NULL);
    take_started(&master);
    await_text(master, out, "up");
    msg_init(&m, W_INIT_SIGNAL);
    msg_put_u32(&m, 7);
    msg_put_u32(&m, SIGHUP);
    send_msg(rig.init, &m);
    CU_ASSERT_EQUAL(take_exit(text, sizeof text), 128 + SIGHUP);
    close(master);
}

/* ---- what is visible ---- */

static void test_masks(void)
{
    if (!ready())
        return;
    char out[OUT_MAX], script[512];
    snprintf(script, sizeof script, "cd %s && grep -rs hunter2 . ; cat .env sub/public.pem",
             rig.project);
    CU_ASSERT_EQUAL(sh(script, out), 0);
    CU_ASSERT_STRING_EQUAL(out, "-----BEGIN CERTIFICATE-----\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "/.env\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "/sub/.npmrc\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "/sub/server.pem\n"));
    CU_ASSERT_PTR_NULL(strstr(rig.text, "example"));
    snprintf(script, sizeof script,
             "cd %s; rm -f .env; echo x > .env; mv sub/.npmrc x; : > new && test -f new",
             rig.project);
    CU_ASSERT_EQUAL(sh(script, out), 0);
    snprintf(script, sizeof script, "%s/.env", rig.project);
    int fd = open(script, O_RDONLY);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    read_all(fd, out, sizeof out);
    close(fd);
    CU_ASSERT_STRING_EQUAL(out, "SECRET=hunter2\n");
}

static void test_files(void)
{
    if (!ready())
        return;
    char out[OUT_MAX], script[1024];
    CU_ASSERT_EQUAL(sh("ls -A /", out), 0);
    CU_ASSERT_PTR_NULL(strstr(out, "sys\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "usr\n"));
    CU_ASSERT_EQUAL(sh("cat /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/12345678.0 "
                       "/etc/durward/durward-ca.pem",
                       out),
                    0);
    CU_ASSERT_STRING_EQUAL(out, "the bundle\none\none\none\n");
    CU_ASSERT_EQUAL(sh("cat /etc/yt-dlp.conf", out), 0);
    CU_ASSERT_STRING_EQUAL(out, "--compat-options no-certifi\n");
    CU_ASSERT_EQUAL(sh("find /etc/durward | while read f; do test -w $f && echo $f; done", out), 1);
    CU_ASSERT_STRING_EQUAL(out, "");
    CU_ASSERT_EQUAL(sh("touch /etc/x || touch /usr/x || touch /x || touch /run/durward/x", out), 1);
    CU_ASSERT_EQUAL(sh("for d in /tmp /var/tmp /run /dev/shm ~; do : > $d/x || exit 1; done", out),
                    0);
    CU_ASSERT_EQUAL(sh("hostname; id -un; cat /proc/1/environ 2>&1", out), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, getuid() ? "box\nagent\n" : "box\nroot\n"));
    CU_ASSERT_EQUAL(sh("git config --system --get-all url.https://git.example.com/.insteadOf", out),
                    0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "git@git.example.com:\n"));
    snprintf(script, sizeof script, "ls -A %s %s", rig.state, rig.trust);
    CU_ASSERT_NOT_EQUAL(sh(script, out), 0);
    CU_ASSERT_EQUAL(sh("mv /run/durward /run/x; rm -f /run/durward/init; rmdir /run/durward; "
                       "test -x /run/durward/init && ls /proc | grep -c '^[0-9]'",
                       out),
                    0);
}

static void test_descriptors_and_environment(void)
{
    if (!ready())
        return;
    char out[OUT_MAX];
    CU_ASSERT_EQUAL(
        sh("for f in /proc/self/fd/*; do echo ${f##*/}; done | sort -n | tr '\\n' ' '", out), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "0 1 2"));
    CU_ASSERT_EQUAL(sh("env | sort | cut -d= -f1 | tr '\\n' ' '", out), 0);
    CU_ASSERT_STRING_EQUAL(out, "HOME PATH PWD TERM ");
    CU_ASSERT_EQUAL(sh("ls -l /proc/self/fd | grep -c socket", out), 1);
}

static void test_keyring(void)
{
    if (!ready())
        return;
    char out[OUT_MAX];
    /* the filter refuses keyctl; the list of what a process possesses would be here */
    sh("cat /proc/keys", out);
    CU_ASSERT_PTR_NULL(strstr(out, "durward-test-key"));
}

static void test_capabilities(void)
{
    if (!ready())
        return;
    char out[OUT_MAX];
    CU_ASSERT_EQUAL(sh("grep -c '^Cap.*:\t0000000000000000$' /proc/self/status", out), 0);
    CU_ASSERT_STRING_EQUAL(out, "5\n");
    CU_ASSERT_EQUAL(sh("unshare -U true", out), 1);
    CU_ASSERT_EQUAL(sh("ip link add dummy0 type dummy", out), 2);
}

/* ---- the sandbox's end ---- */

static void test_teardown(void)
{
    if (!ready())
        return;
    const char *argv[] = {"sh", "-c", "(setsid sleep 600 &) ; sleep 600", NULL};
    int p[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char out[OUT_MAX];
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    int fds[3] = {null, p[1], p[1]};
    post_exec(argv, "/", 0, fds);
    close(p[1]);
    close(null);
    take_started(NULL);
    teardown("sb-first");
    /* everything that held the pipe is gone by now: this does not wait */
    struct pollfd pl = {.fd = p[0], .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&pl, 1, 0), 1);
    read_all(p[0], out, sizeof out);
    close(p[0]);
    teardown("sb-first"); /* once more is answered too */
}

/* No longer wanted while it is made: that it is gone is told, too, not only that it was not made.
 */
static void test_teardown_before_it_runs(void)
{
    struct msg m;
    if (!ready())
        return;
    ask("sb-early", NULL, NULL, 0);
    if (recv_type(rig.parent, &m, W_LISTENERS)) /* which gets no answer */
        msg_done(&m);
    msg_init(&m, W_TEARDOWN);
    msg_put_str(&m, "sb-early");
    send_msg(rig.controller, &m);
    take_built("sb-early");
    CU_ASSERT_FALSE(rig.ok);
    expect_torn("sb-early");
}

static void test_ends_by_itself(void)
{
    if (!ready())
        return;
    build("sb-second", NULL, NULL, 0);
    CU_ASSERT_TRUE_FATAL(rig.ok);
    printf("# without binds ready after %ld us\n", rig.ready_us);
    close(rig.init); /* the controller lets go: durward-init ends */
    rig.init = -1;
    expect_torn("sb-second");
    close_sandbox();
}

static void refused_source(const char *source, const char *target, const char *why)
{
    ask("sb-refused", source, target, 1);
    take_listeners("sb-refused", 1);
    take_built("sb-refused");
    CU_ASSERT_FALSE(rig.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, why));
    if (strstr(rig.text, why) == NULL)
        printf("# %s: %s\n", source, rig.text);
    close_sandbox();
}

static void test_refused_binds(void)
{
    if (!ready())
        return;
    char path[300];
    refused_source("/", "/host", "cannot be bound");
    refused_source("/proc/self", "/x", "cannot be bound");
    refused_source(rig.home, rig.home, "home");
    refused_source(rig.dir, "/x", "cannot be bound");
    refused_source(rig.state, "/x", "own state");
    refused_source(rig.project, "/etc", "nothing can be bound");
    refused_source(rig.project, "/dev/x", "nothing can be bound");
    refused_source("/no/such/place", "/x", "No such file");
    snprintf(path, sizeof path, "%s/link", rig.dir);
    CU_ASSERT_EQUAL(symlink(rig.project, path), 0);
    refused_source(path, "/x", "symbolic link");
    snprintf(path, sizeof path, "%s/link/sub", rig.dir);
    refused_source(path, "/x", "symbolic link");
    /* a message that is no plan at all is answered as well */
    ask("sb-refused", "relative", "/x", 1);
    take_built("sb-refused");
    CU_ASSERT_FALSE(rig.ok);
}

static void test_parent_refuses(void)
{
    if (!ready())
        return;
    ask("sb-third", NULL, NULL, 0);
    take_listeners("sb-third", 0);
    take_built("sb-third");
    CU_ASSERT_FALSE(rig.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "no thanks"));
    close_sandbox();
}

static void test_socket_below_bind(void)
{
    if (!ready())
        return;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char out[OUT_MAX], script[300];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%.90s/agent.sock", rig.project);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    CU_ASSERT_EQUAL(listen(fd, 1), 0);
    build("sb-fourth", rig.project, "/work", 0);
    CU_ASSERT_TRUE_FATAL(rig.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(rig.text, "agent.sock\n"));
    snprintf(script, sizeof script, "curl -sS --unix-socket /work/agent.sock http://x/");
    CU_ASSERT_EQUAL(sh(script, out), 7);
    CU_ASSERT_NOT_EQUAL(sh("touch /work/x", out), 0); /* read-only was asked for */
    close(fd);
    teardown("sb-fourth");
}

/* When the builder is killed, sandboxes go with it: their listeners' namespace has no process left.
 */
static void test_builder_killed(void)
{
    if (!ready())
        return;
    build("sb-last", NULL, NULL, 0);
    CU_ASSERT_TRUE_FATAL(rig.ok);
    const char *argv[] = {"sh", "-c", "echo up; sleep 600", NULL};
    char c;
    struct msg m;
    int p[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    int fds[3] = {null, p[1], p[1]};
    post_exec(argv, "/", 0, fds);
    close(p[1]);
    close(null);
    take_started(NULL);
    CU_ASSERT_EQUAL(read(p[0], &c, 1), 1);
    kill(rig.builder, SIGKILL);
    waitpid(rig.builder, NULL, 0);
    struct pollfd pl = {.fd = rig.init, .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&pl, 1, 5000), 1);
    CU_ASSERT_EQUAL(msg_recv(rig.init, &m), 0); /* end of file: process 1 is dead */
    char out[OUT_MAX];
    read_all(p[0], out, sizeof out); /* ends when the last holder of the pipe is dead */
    close(p[0]);
    close_sandbox();
    close(rig.parent);
    close(rig.controller);
    rig.builder = 0;
}

static int clean(void)
{
    pid_t pid = rig.dir[0] ? fork() : -1;
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", rig.dir, (char *)NULL);
        _exit(1);
    }
    return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : 1;
}

static int put_key(void)
{
    /* on the session keyring of the tests, which the builder inherits */
    (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    (void)syscall(SYS_add_key, "user", "durward-test-key", "hunter2", 7, KEY_SPEC_SESSION_KEYRING);
    return 0;
}

static void suite_builder(void)
{
    CU_pSuite s = CU_add_suite("builder", put_key, clean);
    CU_add_test(s, "builds a sandbox", test_build);
    CU_add_test(s, "hands out its listeners", test_listeners);
    CU_add_test(s, "original destination", test_original_destination);
    CU_add_test(s, "a refused packet is logged", test_refused_packet);
    CU_add_test(s, "loopback stays inside", test_loopback_stays_inside);
    CU_add_test(s, "DNS arrives with its destination", test_dns_reaches_the_listener);
    CU_add_test(s, "exit statuses", test_statuses);
    CU_add_test(s, "signals", test_signal);
    CU_add_test(s, "sockets and directories are not handed in", test_sockets_are_not_handed_in);
    CU_add_test(s, "terminal", test_terminal);
    CU_add_test(s, "credential files are masked", test_masks);
    CU_add_test(s, "file system", test_files);
    CU_add_test(s, "descriptors and environment", test_descriptors_and_environment);
    CU_add_test(s, "keyring", test_keyring);
    CU_add_test(s, "capabilities", test_capabilities);
    CU_add_test(s, "teardown", test_teardown);
    CU_add_test(s, "teardown before it runs", test_teardown_before_it_runs);
    CU_add_test(s, "a sandbox that ends by itself", test_ends_by_itself);
    CU_add_test(s, "binds that are refused", test_refused_binds);
    CU_add_test(s, "a parent that refuses", test_parent_refuses);
    CU_add_test(s, "sockets below a bind", test_socket_below_bind);
    CU_add_test(s, "the builder is killed", test_builder_killed);
}

void tap_suites(void)
{
    suite_builder();
}
