/* The keeper of a sandbox under gVisor, with the controller before it and a sandbox behind it that
 * says what it likes. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "gvisor.h"
#include "gvisor_terminal.h"
#include "ipc_msg.h"
#include "launcher_internal.h"
#include "rootfs.h"
#include "tap_main.h"
#include "wire.h"

enum { SOON_MS = 4000, SLOTS = 256, LAST_MOST = 3 << 20 };

struct bed {
    pid_t keeper;
    int controller, guest;
};

static NORETURN void keep(const int init[2], const int inner[2])
{
    int in = fcntl(init[1], F_DUPFD_CLOEXEC, 64), at = fcntl(inner[1], F_DUPFD_CLOEXEC, 64);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = LAUNCHER_INIT; fd < LAUNCHER_FDS; fd++)
        if (dup2(fd == LAUNCHER_INIT ? in : null, fd) < 0)
            _exit(99);
    syscall(SYS_close_range, LAUNCHER_FDS, 63, 0);
    close(in);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t sandbox = fork();
    if (sandbox == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    struct keeper_children children = {.sandbox = sandbox};
    int status = gvisor_keep(&children, at);
    kill(sandbox, SIGKILL);
    _exit(status);
}

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

/* Of this type, or the test fails; m is then empty. */
static bool hears(int fd, uint16_t type, struct msg *m)
{
    if (readable(fd, SOON_MS) && msg_recv(fd, m) > 0) {
        if (m->type == type)
            return true;
        printf("# type %u, not %u\n", (unsigned)m->type, (unsigned)type);
        msg_done(m);
    }
    msg_init(m, type);
    return false;
}

static void says(int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
}

static void says_number(int fd, uint16_t type, uint32_t number)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u32(&m, number);
    if (type == W_INIT_STARTED || type == W_INIT_EXIT)
        msg_put_u32(&m, 0);
    if (type == W_INIT_EXIT)
        msg_put_str(&m, "");
    says(fd, &m);
}

static void says_reset(int fd)
{
    struct msg m;
    msg_init(&m, W_INIT_RESET);
    says(fd, &m);
}

static void bed_begin(struct bed *b)
{
    int init[2], inner[2];
    struct msg m;
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, init) == 0);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, inner) == 0);
    b->keeper = fork();
    if (b->keeper == 0)
        keep(init, inner);
    close(init[1]);
    close(inner[1]);
    b->controller = init[0];
    b->guest = inner[0];
    CU_ASSERT(hears(b->guest, W_INIT_HANDOVER, &m));
    msg_done(&m);
}

static bool ends(struct bed *b)
{
    int n = 0;
    while (waitpid(b->keeper, NULL, WNOHANG) == 0)
        if (poll(NULL, 0, 10), ++n == SOON_MS / 10)
            return false;
    b->keeper = 0;
    return true;
}

static void bed_end(struct bed *b)
{
    close(b->controller);
    close(b->guest);
    CU_ASSERT(b->keeper == 0 || ends(b));
    if (b->keeper > 0)
        kill(b->keeper, SIGKILL);
}

/* What came in with it; -1: nothing. */
static int asks(struct bed *b, uint32_t number, uint8_t stdio)
{
    struct msg m;
    int fd = -1;
    msg_init(&m, W_INIT_EXEC);
    msg_put_u32(&m, number);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "true");
    msg_put_u32(&m, 0);
    msg_put_str(&m, "/");
    msg_put_u8(&m, stdio);
    msg_put_u32(&m, 24);
    msg_put_u32(&m, 80);
    msg_put_u8(&m, 0);
    says(b->controller, &m);
    CU_ASSERT(hears(b->guest, W_INIT_EXEC, &m));
    if (m.nfds > 0)
        fd = fcntl(m.fds[0], F_DUPFD_CLOEXEC, 64);
    msg_done(&m);
    return fd;
}

/* Somebody listens and takes nobody: whoever connects waits. The port. */
static unsigned stuck(int held[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    held[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    held[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(bind(held[0], (struct sockaddr *)&at, n) == 0 && listen(held[0], 0) == 0 &&
                    getsockname(held[0], (struct sockaddr *)&at, &n) == 0 &&
                    connect(held[1], (struct sockaddr *)&at, n) == 0);
    return ntohs(at.sin_port);
}

static void connects(struct bed *b, uint32_t number, unsigned port)
{
    struct msg m;
    msg_init(&m, W_INIT_CONNECT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, port);
    says(b->controller, &m);
}

static unsigned children(pid_t pid)
{
    char path[64], text[4096];
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
    for (ssize_t i = 0; i < got; i++)
        n += text[i] == ' ';
    close(fd);
    return n;
}

static bool comes_to_have(pid_t pid, unsigned n)
{
    for (int i = 0; i < SOON_MS / 10; i++) {
        if (children(pid) == n)
            return true;
        poll(NULL, 0, 10);
    }
    return false;
}

/* A controller died: what was asked for it, and what the sandbox says of that, is nobody's. */
static void test_reset(void)
{
    struct bed b;
    struct msg m;
    int held[2];
    bed_begin(&b);
    connects(&b, 1, stuck(held));
    close(asks(&b, 2, COMMAND_PIPES | COMMAND_INPUT));
    CU_ASSERT(comes_to_have(b.keeper, 2));
    says_reset(b.controller);
    CU_ASSERT(hears(b.guest, W_INIT_RESET, &m));
    msg_done(&m);
    says_number(b.guest, W_INIT_STARTED, 2); /* as one that has not read that yet */
    says_number(b.guest, W_INIT_EXIT, 2);
    says_reset(b.guest);
    CU_ASSERT(hears(b.controller, W_INIT_RESET, &m));
    msg_done(&m);
    CU_ASSERT_EQUAL(children(b.keeper), 1); /* whom nobody waits for says nothing later */
    close(asks(&b, 1, COMMAND_PIPES));
    says_number(b.guest, W_INIT_STARTED, 1);
    CU_ASSERT(hears(b.controller, W_INIT_STARTED, &m));
    msg_done(&m);
    close(held[0]);
    close(held[1]);
    bed_end(&b);
}

/* Two that died one after the other: the second answer is that of the last. */
static void test_resets(void)
{
    struct bed b;
    struct msg m;
    bed_begin(&b);
    says_reset(b.controller);
    says_reset(b.controller);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT(hears(b.guest, W_INIT_RESET, &m));
        msg_done(&m);
    }
    says_reset(b.guest);
    CU_ASSERT_FALSE(readable(b.controller, 100));
    says_reset(b.guest);
    CU_ASSERT(hears(b.controller, W_INIT_RESET, &m));
    msg_done(&m);
    bed_end(&b);
}

static void test_connection(void)
{
    struct bed b;
    struct msg m;
    int held[2], inner;
    bed_begin(&b);
    inner = asks(&b, 1, COMMAND_PIPES | COMMAND_INPUT);
    connects(&b, 2, stuck(held));
    CU_ASSERT(comes_to_have(b.keeper, 2));
    says_number(b.guest, W_INIT_STARTED, 1);
    CU_ASSERT(hears(b.controller, W_INIT_STARTED, &m));
    msg_done(&m);                         /* the controller closes the command's input */
    CU_ASSERT(readable(inner, 1000));     /* and who connects has it not */
    says_number(b.guest, W_INIT_EXIT, 2); /* of what the sandbox has nothing to say of */
    CU_ASSERT(ends(&b));
    close(inner);
    close(held[0]);
    close(held[1]);
    bed_end(&b);
}

/* Connections are counted with commands. */
static void test_bound(void)
{
    struct bed b;
    struct msg m;
    uint32_t number = 0;
    bed_begin(&b);
    for (uint32_t i = 1; i <= SLOTS; i++)
        (void)asks(&b, i, COMMAND_GIVEN);
    connects(&b, SLOTS + 1, 1);
    CU_ASSERT(hears(b.controller, W_INIT_EXIT, &m));
    CU_ASSERT(msg_get_u32(&m, &number) == 0 && number == SLOTS + 1);
    CU_ASSERT(msg_get_u32(&m, &number) == 0 && number == EMFILE);
    msg_done(&m);
    bed_end(&b);
}

static void test_orders(void)
{
    struct bed b;
    struct msg m;
    bed_begin(&b);
    msg_init(&m, W_INIT_SIGNAL);
    msg_put_u32(&m, 1);
    msg_put_u32(&m, SIGTERM);
    says(b.controller, &m);
    CU_ASSERT(hears(b.guest, W_INIT_SIGNAL, &m));
    msg_done(&m);
    msg_init(&m, W_INIT_SIGNAL);
    msg_put_u32(&m, 1);
    msg_put_u32(&m, SIGTERM);
    msg_put_fd(&m, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); /* a way to the host's files */
    says(b.controller, &m);
    CU_ASSERT(ends(&b));
    CU_ASSERT(!readable(b.guest, 0) || msg_recv(b.guest, &m) == 0);
    bed_end(&b);
}

/* ---- a terminal that somebody goes on to write to ---- */

static NORETURN void flood(int sock, unsigned pause_ms)
{
    static char y[1024];
    memset(y, 'y', sizeof y);
    while (send(sock, y, pause_ms ? 1 : sizeof y, MSG_NOSIGNAL) > 0)
        if (pause_ms)
            poll(NULL, 0, (int)pause_ms);
    _exit(0);
}

/* And carries no more of a flood than can have been on its way. */
static bool ends_while_read(int master, pid_t carrier)
{
    char text[4096];
    size_t all = 0;
    struct pollfd p = {.fd = master, .events = POLLIN};
    for (int i = 0; i < 2000000; i++) {
        if (waitpid(carrier, NULL, WNOHANG) == carrier)
            return all < LAST_MOST;
        if (poll(&p, 1, SOON_MS) <= 0)
            return false;
        ssize_t n = read(master, text, sizeof text);
        all += n > 0 ? (size_t)n : 0;
        if (n < 0)
            poll(NULL, 0, 1); /* its other end is gone */
    }
    return false;
}

/* Where a sandbox's terminals are while it is laid out (rootfs.h). */
static bool own_terminals(void)
{
    return unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/tmp", "tmpfs", 0, NULL) == 0 && mkdir(ROOTFS_PTS, 0755) == 0 &&
           mount("none", ROOTFS_PTS, "devpts", 0, "newinstance,ptmxmode=0666") == 0;
}

enum { ENDED, GOES_ON, NO_TERMINAL };

static NORETURN void carries(unsigned pause_ms)
{
    int master = -1, inner;
    pid_t carrier = own_terminals() ? gvisor_terminal_start(24, 80, &master, &inner) : -1;
    if (carrier < 0)
        _exit(NO_TERMINAL);
    pid_t writer = fork();
    if (writer == 0)
        flood(inner, pause_ms);
    close(inner);
    bool begun = readable(master, SOON_MS);
    kill(carrier, SIGTERM);
    bool ended = begun && ends_while_read(master, carrier);
    kill(carrier, SIGKILL);
    kill(writer, SIGKILL);
    _exit(ended ? ENDED : GOES_ON);
}

static void terminal_ends(unsigned pause_ms)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        carries(pause_ms);
    CU_ASSERT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_TERMINAL)
        tap_skip("no terminals of one's own can be made here");
    else
        CU_ASSERT_EQUAL(WEXITSTATUS(status), ENDED);
}

static void test_flood(void)
{
    terminal_ends(0);
}

static void test_trickle(void)
{
    terminal_ends(20);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("gvisor keeper", NULL, NULL);
    CU_add_test(s, "reset", test_reset);
    CU_add_test(s, "two resets", test_resets);
    CU_add_test(s, "connection", test_connection);
    CU_add_test(s, "bound", test_bound);
    CU_add_test(s, "orders", test_orders);
    CU_add_test(s, "a flood behind the end", test_flood);
    CU_add_test(s, "a trickle behind the end", test_trickle);
}
