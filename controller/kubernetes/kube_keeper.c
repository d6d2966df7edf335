/* Stands for process 1 of a pod: hands each message on to a process that does it. Who makes and
 * watches the pod is a child (kube_life.c), as are commands, so that nothing here waits for the
 * API server but the pod's deletion. */
#define _GNU_SOURCE 1
#include "kube_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "kube_confine.h"
#include "kube_life.h"
#include "kube_session.h"
#include "proc.h"
#include "program.h"
#include "wire.h"

enum { SLOTS = 256, PLAN_MAX = 64 * 1024, FAILED = 125 };

struct slot {
    pid_t pid; /* 0: free */
    uint32_t number;
    int control;
};

struct keeper {
    json_t *plan;
    struct kube kube;
    struct kube_place at;
    struct slot slots[SLOTS];
    struct kube_shared *shared; /* one for each slot */
    pid_t follower;             /* 0: it has ended, and the pod with it */
    int said;                   /* the follower's word that the pod runs; then -1 */
    int signals;
    int undertaker; /* a byte to it: the pod is gone */
};

/* ---- its rights ---- */

static int give_up_rights(struct err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0 ||
        prctl(PR_SET_DUMPABLE, SANITIZED) < 0)
        return err_sys(err, "cannot give up rights");
    return 0;
}

/* ---- answers ---- */

static int say(struct msg *m)
{
    int r = msg_send(CLUSTER_INIT, m);
    msg_done(m);
    return r < 0 ? -1 : 0;
}

static int say_exit(uint32_t number, const char *text)
{
    struct msg m;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, FAILED);
    msg_put_str(&m, text);
    return say(&m);
}

/* What durward-init has tried in the pod's first container; without it there is no second one. */
static int say_ready(void)
{
    static const char *const probes[] = {"gate", "policy"};
    char info[64];
    struct msg m;
    int n = snprintf(info, sizeof info, "{\"child-pid\": %d}\n", (int)getpid());
    if (write(CLUSTER_INFO, info, (size_t)n) != n)
        return -1;
    msg_init(&m, W_INIT_READY);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, ARRAY_LEN(probes));
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        msg_put_str(&m, probes[i]);
        msg_put_u8(&m, 1);
        msg_put_str(&m, "");
    }
    int r = say(&m);
    close(CLUSTER_INFO);
    close(CLUSTER_ERRORS); /* the builder has heard all that there is */
    return r;
}

/* ---- children ---- */

static pid_t fork_child(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    return 0;
}

static struct slot *find(struct keeper *k, uint32_t number)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (k->slots[i].pid > 0 && k->slots[i].number == number)
            return &k->slots[i];
    return NULL;
}

static int begin(struct keeper *k, struct msg *m)
{
    uint32_t number;
    unsigned i = 0;
    int p[2];
    if (msg_get_u32(m, &number) < 0)
        return -1;
    while (i < SLOTS && k->slots[i].pid > 0)
        i++;
    if (i == SLOTS)
        return say_exit(number, "too many commands run in this sandbox");
    if (pipe2(p, O_CLOEXEC) < 0)
        return say_exit(number, "too many files are open");
    k->shared[i] = (struct kube_shared){0};
    pid_t pid = fork_child();
    if (pid == 0) {
        close(p[1]);
        kube_session(&k->at, m, number, p[0], &k->shared[i]);
    }
    close(p[0]);
    if (pid < 0) {
        close(p[1]);
        return say_exit(number, "no process can be made for it");
    }
    (void)fcntl(p[1], F_SETFL, O_NONBLOCK); /* who takes no orders holds up nobody */
    k->slots[i] = (struct slot){pid, number, p[1]};
    return 0;
}

static int order(struct keeper *k, struct msg *m)
{
    struct kube_order o = {.type = m->type};
    uint32_t number, sig = 0;
    int bad = msg_get_u32(m, &number);
    if (m->type == W_INIT_SIGNAL)
        bad |= msg_get_u32(m, &sig);
    else
        bad |= msg_get_u32(m, &o.rows) | msg_get_u32(m, &o.cols);
    if (bad || msg_end(m) < 0)
        return -1;
    struct slot *s = find(k, number);
    if (s == NULL)
        return 0; /* it has ended meanwhile */
    if (sig > 0 && sig < NSIG)
        (void)__atomic_fetch_or(&k->shared[s - k->slots].signals, UINT64_C(1) << (sig - 1),
                                __ATOMIC_SEQ_CST);
    ssize_t n = write(s->control, &o, sizeof o);
    (void)n; /* where there is no room it is to look already */
    return 0;
}

static void release(struct keeper *k, struct slot *s)
{
    close(s->control);
    s->pid = 0;
    (void)k;
}

/* Nobody waits for what runs now: it is ended, and nothing that it says is heard. */
static int reset(struct keeper *k, struct msg *asked)
{
    struct msg m;
    if (msg_end(asked) < 0)
        return -1;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &k->slots[i];
        if (s->pid == 0)
            continue;
        kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0); /* it was killed: this does not take long */
        int32_t inside = k->shared[i].inside;
        struct err err = {0};
        if (inside > 0 && fork_child() == 0)
            _exit(kube_confine(k->kube.token, -1, &err) < 0 ||
                  kube_session_signal(&k->at, inside, SIGKILL, &err) < 0);
        release(k, s);
    }
    msg_init(&m, W_INIT_RESET);
    return say(&m);
}

/* False: the pod is over. */
static bool reap(struct keeper *k)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == k->follower)
            k->follower = 0;
        for (unsigned i = 0; i < SLOTS; i++) {
            struct slot *s = &k->slots[i];
            if (s->pid != pid)
                continue;
            if (!k->shared[i].ended)
                (void)say_exit(s->number, "the connection to the pod broke");
            release(k, s);
        }
    }
    return k->follower != 0;
}

/* ---- its loop ---- */

static int on_asked(struct keeper *k)
{
    struct msg m;
    int r = msg_recv(CLUSTER_INIT, &m);
    if (r <= 0)
        return r < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    switch (m.type) {
    case W_INIT_EXEC:
    case W_INIT_FILE:
    case W_INIT_WATCH:
    case W_INIT_CONNECT:
        r = begin(k, &m);
        break;
    case W_INIT_SIGNAL:
    case W_INIT_WINSIZE:
        r = order(k, &m);
        break;
    case W_INIT_RESET:
        r = reset(k, &m);
        break;
    default:
        r = -1;
    }
    msg_done(&m);
    return r;
}

static bool on_signals(struct keeper *k)
{
    struct signalfd_siginfo info;
    bool end = false;
    while (read(k->signals, &info, sizeof info) == sizeof info)
        end = end || info.ssi_signo == SIGTERM;
    return reap(k) && !end;
}

static bool on_said(struct keeper *k)
{
    char word;
    bool ready = read(k->said, &word, 1) == 1;
    close(k->said);
    k->said = -1;
    return !ready || say_ready() == 0; /* else its end is told as a child's */
}

/* False: it is over. */
static bool turn(struct keeper *k)
{
    struct pollfd p[4] = {{.fd = k->said < 0 ? CLUSTER_INIT : -1, .events = POLLIN},
                          {.fd = k->signals, .events = POLLIN},
                          {.fd = CLUSTER_CHANNEL, .events = POLLIN},
                          {.fd = k->said, .events = POLLIN}};
    if (poll(p, 4, -1) < 0)
        return errno == EINTR;
    if (p[2].revents || (p[1].revents && !on_signals(k)))
        return false;
    if (p[3].revents && !on_said(k))
        return false;
    return p[0].revents == 0 || on_asked(k) == 0;
}

/* ---- from birth to death ---- */

static json_t *read_plan(struct err *err)
{
    static char text[PLAN_MAX];
    ssize_t n = pread(CLUSTER_PLAN, text, sizeof text, 0);
    json_t *v = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    close(CLUSTER_PLAN);
    if (v == NULL)
        err_set(err, ERR_INTERNAL, "what pod it is to be is not said");
    return v;
}

static const char *of_plan(const struct keeper *k, const char *key)
{
    const char *text = json_string_value(json_object_get(k->plan, key));
    return text ? text : "";
}

static int heed_signals(struct keeper *k, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
        (k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return err_sys(err, "signalfd");
    return 0;
}

static int start_follower(struct keeper *k, struct err *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    k->follower = fork_child();
    if (k->follower == 0) {
        close(p[0]);
        if (kube_confine(k->kube.token, CLUSTER_LOCKS, err) < 0 ||
            kube_make(&k->at, k->plan, p[1], err) < 0)
            dprintf(CLUSTER_ERRORS, "%s", err->text);
        _exit(0);
    }
    close(p[1]);
    k->said = p[0];
    return k->follower < 0 ? err_sys(err, "fork") : 0;
}

/* ---- who buries what a killed keeper leaves ---- */

static int hold_little(int heard)
{
    if (dup2(heard, STDIN_FILENO) < 0 ||
        syscall(SYS_close_range, STDERR_FILENO + 1, CLUSTER_LOCKS - 1, 0) < 0 ||
        syscall(SYS_close_range, CLUSTER_LOCKS + 1, ~0U, 0) < 0)
        return -1;
    return prctl(PR_SET_NAME, "durward-clend");
}

static NORETURN void be_undertaker(const struct keeper *k, int heard)
{
    struct err err = {0};
    char word;
    (void)setsid(); /* what ends the keeper's group is not to end this */
    if (hold_little(heard) < 0 || kube_confine(k->kube.token, CLUSTER_LOCKS, &err) < 0)
        _exit(1);
    ssize_t n;
    while ((n = read(STDIN_FILENO, &word, 1)) < 0 && errno == EINTR) {
    }
    if (n == 0 && kube_unmake(&k->at, &err) < 0)
        proc_log("%s: %s", k->at.pod, err.text);
    if (n == 0)
        (void)unlinkat(CLUSTER_LOCKS, k->at.pod, 0);
    _exit(0);
}

/* A pod runs on without its keeper, with its gate and what that puts in. So one process more waits
 * for the keeper's end, does nothing else, and deletes the pod where the keeper has not. */
static int start_undertaker(struct keeper *k, struct err *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        be_undertaker(k, p[0]);
    close(p[0]);
    k->undertaker = p[1];
    return pid < 0 ? err_sys(err, "fork") : 0;
}

static int prepare(struct keeper *k, struct err *err)
{
    for (int fd = CLUSTER_INIT; fd < CLUSTER_FDS; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return err_sys(err, "a descriptor is missing");
    if (heed_signals(k, err) < 0 || (k->plan = read_plan(err)) == NULL)
        return -1;
    k->at = (struct kube_place){&k->kube, of_plan(k, "namespace"), of_plan(k, "sandbox"),
                                of_plan(k, "daemon")};
    k->shared = mmap(NULL, SLOTS * sizeof *k->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k->shared == MAP_FAILED)
        return err_sys(err, "mmap");
    return give_up_rights(err) < 0 ||
                   kube_init(&k->kube, of_plan(k, "api"), of_plan(k, "ca"), of_plan(k, "token"),
                             err) < 0 ||
                   start_undertaker(k, err) < 0
               ? -1
               : start_follower(k, err);
}

static void end_children(const struct keeper *k)
{
    if (k->follower > 0)
        kill(k->follower, SIGKILL);
    for (unsigned i = 0; i < SLOTS; i++)
        if (k->slots[i].pid > 0)
            kill(k->slots[i].pid, SIGKILL);
}

int kube_keeper_main(int argc, char **argv)
{
    static struct keeper k;
    struct err err = {0};
    if (!program_is_ours(argc - 1, argv))
        return EXIT_STRANGER;
    k.said = k.signals = k.undertaker = -1;
    prctl(PR_SET_NAME, "durward-cluster");
    if (prepare(&k, &err) < 0) {
        dprintf(CLUSTER_ERRORS, "%s", err.text);
        return 1;
    }
    while (turn(&k)) {
    }
    end_children(&k);
    (void)on_signals(&k); /* who ends now says so to nobody */
    if (kube_unmake(&k.at, &err) < 0)
        proc_log("%s: %s", k.at.pod, err.text);
    else if (write(k.undertaker, "", 1) != 1)
        proc_log("%s: the process that waits for its end is gone", k.at.pod);
    (void)unlinkat(CLUSTER_LOCKS, k.at.pod, 0);
    return 0;
}
