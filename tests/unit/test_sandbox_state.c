/* The life of a sandbox: which step follows which, and what init and gates may not say. Parent,
 * builder, init, gate and client are socket ends held by the test. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox_internal.h"
#include "tap_main.h"
#include "wire.h"

void suite_sandbox_state(void);

struct world {
    struct sandbox_owner owner;
    struct sandbox *s;
    int parent, builder, client, init, gate; /* the far ends */
    bool gone;
    unsigned events;
};

static int on_client(struct ipc *ch, struct msg *m, void *arg)
{
    (void)ch;
    struct world *w = arg;
    return w->s ? sandbox_client_message(w->s, m) : -1;
}

static int ignore(struct ipc *ch, struct msg *m, void *arg)
{
    (void)ch;
    (void)m;
    (void)arg;
    return 0;
}

static void closed(struct ipc *ch, const char *why, void *arg)
{
    (void)ch;
    (void)why;
    (void)arg;
}

static void on_gone(void *arg, struct sandbox *s)
{
    struct world *w = arg;
    w->gone = true;
    CU_ASSERT_EQUAL(sandbox_state(s), SANDBOX_GONE);
    sandbox_free(s);
    w->s = NULL;
}

static void on_event(void *arg, const struct sandbox *s, const char *what, const char *detail)
{
    (void)s;
    (void)what;
    (void)detail;
    ((struct world *)arg)->events++;
}

static struct ipc *channel(struct world *w, int *far, ipc_message_fn fn)
{
    int p[2] = {-1, -1};
    CU_ASSERT_EQUAL_FATAL(ipc_pair(p, NULL), 0);
    *far = p[1];
    return ipc_new(w->owner.base, p[0], fn, closed, w);
}

static struct ipc *client_end;

static void make_plan(struct sandbox_plan *p, bool tty)
{
    memset(p, 0, sizeof *p);
    run_request_init(&p->request);
    snprintf(p->id, sizeof p->id, "sb-test");
    snprintf(p->request.policy, sizeof p->request.policy, "coder");
    snprintf(p->request.cwd, sizeof p->request.cwd, "/w");
    snprintf(p->request.home, sizeof p->request.home, "/root");
    snprintf(p->request.user, sizeof p->request.user, "root");
    CU_ASSERT_EQUAL(strlist_add(&p->request.argv, "true"), 0);
    CU_ASSERT_EQUAL(strlist_set_env(&p->env, "A", "b"), 0);
    p->request.tty = tty;
    for (int i = 0; i < 3 && !tty; i++)
        p->request.fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    p->names = 2;
}

static void world_begin(struct world *w, bool tty, bool builder)
{
    struct sandbox_plan plan;
    memset(w, 0, sizeof *w);
    w->init = w->gate = w->builder = -1;
    w->owner.base = event_base_new();
    w->owner.event = on_event;
    w->owner.gone = on_gone;
    w->owner.arg = w;
    w->owner.recording = true;
    w->owner.parent = channel(w, &w->parent, ignore);
    if (builder)
        w->owner.builder = channel(w, &w->builder, ignore);
    client_end = channel(w, &w->client, on_client);
    make_plan(&plan, tty);
    w->s = sandbox_new(&w->owner, &plan, client_end);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->s);
}

static void shut(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void world_end(struct world *w)
{
    sandbox_free(w->s);
    ipc_free(w->owner.parent);
    ipc_free(w->owner.builder);
    ipc_free(client_end);
    event_base_free(w->owner.base);
    shut(w->parent);
    shut(w->builder);
    shut(w->client);
    shut(w->init);
    shut(w->gate);
}

static void turn(struct world *w)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(w->owner.base, EVLOOP_NONBLOCK);
}

/* Wait for the next message of this type at a far end; the loop runs meanwhile. */
static bool expect(struct world *w, int fd, uint16_t type, struct msg *m)
{
    for (int i = 0; i < 200; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        event_base_loop(w->owner.base, EVLOOP_NONBLOCK);
        if (poll(&p, 1, 10) == 1) {
            bool right = msg_recv(fd, m) == 1 && m->type == type;
            if (!right)
                msg_done(m);
            return right;
        }
    }
    return false;
}

static bool got(struct world *w, int fd, uint16_t type)
{
    struct msg m;
    msg_init(&m, 0);
    bool r = expect(w, fd, type, &m);
    if (r)
        msg_done(&m);
    return r;
}

static void send_to(struct world *w, int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
    turn(w);
}

static void built(struct world *w, bool ok)
{
    int p[2];
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(p, NULL), 0);
    msg_init(&m, W_BUILT);
    msg_put_u8(&m, ok);
    msg_put_str(&m, ok ? "/w/.env\n" : "no user namespaces");
    if (ok)
        msg_put_fd(&m, p[0]);
    else
        close(p[0]);
    w->init = p[1];
    CU_ASSERT_EQUAL(sandbox_built(w->s, &m), 0);
    msg_done(&m);
}

static void self_test(struct world *w, bool all, bool probe)
{
    struct msg m;
    msg_init(&m, W_INIT_READY);
    msg_put_u8(&m, all);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "vsock");
    msg_put_u8(&m, probe);
    msg_put_str(&m, probe ? "" : "open");
    send_to(w, w->init, &m);
}

static void numbers(struct world *w, int fd, uint16_t type, uint32_t a)
{
    struct msg m;
    msg_init(&m, type);
    if (type == W_INIT_EXIT || type == W_INIT_STARTED)
        msg_put_u32(&m, 0);
    msg_put_u32(&m, a);
    if (type == W_INIT_EXIT)
        msg_put_str(&m, "");
    send_to(w, fd, &m);
}

static void to_running(struct world *w)
{
    struct msg m;
    built(w, true);
    self_test(w, true, true);
    CU_ASSERT_TRUE(got(w, w->init, W_INIT_EXEC));
    msg_init(&m, W_INIT_STARTED);
    msg_put_u32(&m, 0);
    msg_put_u32(&m, 0);
    send_to(w, w->init, &m);
    CU_ASSERT_EQUAL(sandbox_state(w->s), SANDBOX_RUNNING);
    CU_ASSERT_TRUE(got(w, w->client, W_RUN_STARTED));
}

/* From ENDING to the client's W_RUN_EXIT; returns its status. */
static uint32_t finish(struct world *w, struct denials *d)
{
    struct msg m;
    uint32_t status = 0;
    char text[8192], id[65];
    memset(d, 0, sizeof *d);
    CU_ASSERT_TRUE(got(w, w->builder, W_TEARDOWN));
    sandbox_torn(w->s);
    CU_ASSERT_TRUE(got(w, w->parent, W_SANDBOX_GONE));
    if (w->gate >= 0) {
        close(w->gate);
        w->gate = -1;
    }
    msg_init(&m, 0);
    CU_ASSERT_TRUE_FATAL(expect(w, w->client, W_RUN_EXIT, &m));
    CU_ASSERT_EQUAL(msg_get_u32(&m, &status), 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, text, sizeof text), 0);
    CU_ASSERT_EQUAL(denials_get(d, &m), 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, id, sizeof id), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT_STRING_EQUAL(id, "sb-test");
    msg_done(&m);
    CU_ASSERT_TRUE(w->gone);
    return status;
}

static void test_order_of_states(void)
{
    for (int from = SANDBOX_NEW; from <= SANDBOX_GONE; from++)
        for (int to = SANDBOX_NEW; to <= SANDBOX_GONE; to++) {
            bool next = to == from + 1, ending = to == SANDBOX_ENDING && from < SANDBOX_ENDING;
            CU_ASSERT_EQUAL(sandbox_state_may((enum sandbox_state)from, (enum sandbox_state)to),
                            next || ending);
        }
    CU_ASSERT_STRING_EQUAL(sandbox_state_name(SANDBOX_RUNNING), "running");
}

static void test_whole_life(void)
{
    struct world w;
    struct denials d;
    world_begin(&w, false, true);
    CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_BUILDING);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX));
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD));
    to_running(&w);
    numbers(&w, w.init, W_INIT_EXIT, 7);
    CU_ASSERT_EQUAL(finish(&w, &d), 7);
    CU_ASSERT_EQUAL(d.n, 0);
    CU_ASSERT_EQUAL(w.events, 3);
    world_end(&w);
}

/* The command must never be sent before the self-test passed (promise P10). */
static void test_failed_self_test(void)
{
    static const bool cases[][2] = {{false, false}, {true, false}, {false, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        struct denials d;
        struct msg m;
        world_begin(&w, false, true);
        CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX));
        CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD));
        built(&w, true);
        self_test(&w, cases[i][0], cases[i][1]);
        CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_ENDING);
        CU_ASSERT_NOT_EQUAL(msg_recv(w.init, &m), 1); /* end of file, no W_INIT_EXEC */
        CU_ASSERT_EQUAL(finish(&w, &d), EXIT_DURWARD_FAILED);
        world_end(&w);
    }
}

/* STARTED and EXIT before the test, a second READY, foreign types: the channel ends, the sandbox
 * with it. */
static void test_init_out_of_order(void)
{
    static const uint16_t types[] = {W_INIT_STARTED, W_INIT_EXIT, W_RUN, W_DENIED};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct world w;
        struct denials d;
        world_begin(&w, false, true);
        CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
        built(&w, true);
        numbers(&w, w.init, types[i], 0);
        CU_ASSERT_EQUAL(finish(&w, &d), EXIT_DURWARD_FAILED);
        world_end(&w);
    }
}

/* One step after the other, then the command. A file that is there already ends its writer before
 * the text is read; another number, or a failed step, ends the sandbox. */
static void step_said(struct world *w, uint32_t number, bool reads, uint32_t status)
{
    struct msg m;
    int p[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    if (!reads)
        shut(p[0]);
    msg_init(&m, W_INIT_STARTED);
    msg_put_u32(&m, number);
    msg_put_u32(&m, 1);
    msg_put_fd(&m, p[1]);
    send_to(w, w->init, &m);
    if (reads) {
        char text[8] = "";
        CU_ASSERT_EQUAL(read(p[0], text, sizeof text), 4);
        CU_ASSERT_NSTRING_EQUAL(text, "text", 4);
        shut(p[0]);
    }
    if (number != 1)
        return; /* the channel has ended */
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, status);
    msg_put_str(&m, "");
    send_to(w, w->init, &m);
}

static void test_steps(void)
{
    static const struct {
        uint32_t number, status;
        bool good;
    } cases[] = {{1, 0, true}, {1, EEXIST, true}, {1, EACCES, false}, {2, 0, false}};
    signal(SIGPIPE, SIG_IGN); /* as the roles do */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        struct denials d;
        world_begin(&w, false, true);
        CU_ASSERT_EQUAL(run_request_step(&w.s->plan.request, INSIDE_WRITE_NEW, "/root/a", "text"),
                        0);
        CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
        built(&w, true);
        self_test(&w, true, true);
        CU_ASSERT_TRUE(got(&w, w.init, W_INIT_FILE));
        step_said(&w, cases[i].number, i == 0, cases[i].status);
        if (cases[i].good)
            CU_ASSERT_TRUE(got(&w, w.init, W_INIT_EXEC));
        CU_ASSERT_EQUAL(sandbox_state(w.s), cases[i].good ? SANDBOX_READY : SANDBOX_ENDING);
        if (!cases[i].good)
            CU_ASSERT_EQUAL(finish(&w, &d), EXIT_DURWARD_FAILED);
        world_end(&w);
    }
}

/* Only the master of a pty may come back from inside. */
static void test_descriptor_that_is_no_pty(void)
{
    int pty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int fds[] = {open("/dev/null", O_RDWR | O_CLOEXEC), open("/", O_RDONLY | O_CLOEXEC), pty};
    CU_ASSERT_TRUE_FATAL(pty >= 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        struct world w;
        struct denials d;
        struct msg m;
        world_begin(&w, true, true);
        CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
        built(&w, true);
        self_test(&w, true, true);
        CU_ASSERT_TRUE(got(&w, w.init, W_INIT_EXEC));
        msg_init(&m, W_INIT_STARTED);
        msg_put_u32(&m, 0);
        msg_put_u32(&m, 1);
        msg_put_fd(&m, fds[i]);
        send_to(&w, w.init, &m);
        if (fds[i] == pty) {
            CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_RUNNING);
            CU_ASSERT_TRUE(got(&w, w.client, W_RUN_STARTED));
            sandbox_end(w.s, 0, "");
            CU_ASSERT_EQUAL(finish(&w, &d), 0);
        } else {
            CU_ASSERT_EQUAL(finish(&w, &d), EXIT_DURWARD_FAILED);
        }
        world_end(&w);
    }
}

static void test_build_fails(void)
{
    struct world w;
    struct denials d;
    world_begin(&w, false, true);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
    built(&w, false);
    CU_ASSERT_EQUAL(finish(&w, &d), EXIT_DURWARD_FAILED);
    world_end(&w);
}

static void test_waits_for_builder_and_journal(void)
{
    struct world w;
    struct denials d;
    world_begin(&w, false, false);
    CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_NEW);
    w.owner.builder = channel(&w, &w.builder, ignore);
    w.owner.recording = false;
    sandbox_begin(w.s);
    CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_NEW);
    w.owner.recording = true;
    sandbox_begin(w.s);
    CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_BUILDING);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
    sandbox_builder_down(w.s);
    CU_ASSERT_EQUAL(finish(&w, &d), EXIT_DURWARD_FAILED);
    world_end(&w);
}

static void test_signals(void)
{
    struct world w;
    struct denials d;
    struct msg m;
    uint32_t sig;
    world_begin(&w, false, true);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
    to_running(&w);
    numbers(&w, w.client, W_RUN_SIGNAL, SIGTERM);
    msg_init(&m, 0);
    CU_ASSERT_TRUE_FATAL(expect(&w, w.init, W_INIT_SIGNAL, &m));
    CU_ASSERT_EQUAL(msg_get_u32(&m, &sig), 0);
    CU_ASSERT_EQUAL(sig, 0); /* the command's number */
    CU_ASSERT_EQUAL(msg_get_u32(&m, &sig), 0);
    CU_ASSERT_EQUAL(sig, SIGTERM);
    msg_done(&m);
    numbers(&w, w.client, W_RUN_SIGNAL, SIGKILL); /* the whole sandbox, not one process group */
    CU_ASSERT_EQUAL(finish(&w, &d), 128 + SIGKILL);
    world_end(&w);
}

static void test_client_leaves(void)
{
    struct world w;
    world_begin(&w, false, true);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
    to_running(&w);
    sandbox_client_gone(w.s);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.s);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX_GONE));
    for (int i = 0; i < 100 && !w.gone; i++)
        turn(&w);
    CU_ASSERT_TRUE(w.gone);
    world_end(&w);
}

/* ---- gates ---- */

static void new_gate(struct world *w)
{
    int p[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(p, NULL), 0);
    shut(w->gate);
    w->gate = p[1];
    sandbox_gate(w->s, p[0]);
}

static void ask_name(struct world *w, const char *host)
{
    struct msg m;
    msg_init(&m, W_NAME);
    msg_put_u32(&m, 5);
    msg_put_str(&m, host);
    send_to(w, w->gate, &m);
}

static uint32_t name_answer(struct world *w, char host[256])
{
    struct msg m;
    uint32_t req, index = 0;
    msg_init(&m, 0);
    if (!expect(w, w->gate, W_NAME, &m))
        return UINT32_MAX;
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, host, 256), 0);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &index), 0);
    msg_done(&m);
    return index;
}

static void deny(struct world *w, const char *code, const char *target, uint32_t count)
{
    struct msg m;
    msg_init(&m, W_DENIED);
    msg_put_str(&m, code);
    msg_put_str(&m, target);
    msg_put_u32(&m, count);
    msg_put_u8(&m, 0);
    send_to(w, w->gate, &m);
}

static bool gate_is_cut(struct world *w)
{
    struct msg m;
    turn(w);
    return msg_recv(w->gate, &m) == 0;
}

static void test_names_survive_a_gate(void)
{
    struct world w;
    char host[256];
    world_begin(&w, false, true);
    new_gate(&w);
    ask_name(&w, "a.example");
    CU_ASSERT_EQUAL(name_answer(&w, host), 2);
    ask_name(&w, "b.example");
    CU_ASSERT_EQUAL(name_answer(&w, host), 3);
    ask_name(&w, "c.example"); /* the plan allows two */
    CU_ASSERT_EQUAL(name_answer(&w, host), 0);
    ask_name(&w, "a.example");
    CU_ASSERT_EQUAL(name_answer(&w, host), 2);
    new_gate(&w);
    ask_name(&w, ""); /* the next gate hears of both */
    uint32_t first = name_answer(&w, host), second = name_answer(&w, host);
    CU_ASSERT_EQUAL(first + second, 5);
    ask_name(&w, "b.example");
    CU_ASSERT_EQUAL(name_answer(&w, host), 3);
    world_end(&w);
}

static void test_bad_gate_is_cut_off_alone(void)
{
    static const char *const hosts[] = {"A.example", "a.example.", "192.0.2.1", "a b", "-%"};
    struct world w;
    world_begin(&w, false, true);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        new_gate(&w);
        ask_name(&w, hosts[i]);
        CU_ASSERT_TRUE(gate_is_cut(&w));
    }
    new_gate(&w);
    deny(&w, "NOT A CODE", "x", 1);
    CU_ASSERT_TRUE(gate_is_cut(&w));
    new_gate(&w);
    deny(&w, "no_rule", "x", 0);
    CU_ASSERT_TRUE(gate_is_cut(&w));
    CU_ASSERT_EQUAL(sandbox_state(w.s), SANDBOX_BUILDING);
    world_end(&w);
}

static void test_denials_reach_the_client(void)
{
    struct world w;
    struct denials d;
    world_begin(&w, false, true);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX) && got(&w, w.builder, W_BUILD));
    new_gate(&w);
    to_running(&w);
    deny(&w, "no_rule", "evil.example\033[2J", 2);
    numbers(&w, w.init, W_INIT_EXIT, 0);
    deny(&w, "no_rule", "late.example", 1); /* between the command's end and the gate's */
    CU_ASSERT_EQUAL(finish(&w, &d), 0);
    CU_ASSERT_EQUAL_FATAL(d.n, 2);
    CU_ASSERT_STRING_EQUAL(d.list[0].target, "evil.example?[2J");
    CU_ASSERT_EQUAL(d.list[0].count, 2);
    CU_ASSERT_STRING_EQUAL(d.list[1].target, "late.example");
    world_end(&w);
}

void suite_sandbox_state(void)
{
    CU_pSuite s = CU_add_suite("sandbox", NULL, NULL);
    CU_add_test(s, "order of states", test_order_of_states);
    CU_add_test(s, "whole life", test_whole_life);
    CU_add_test(s, "a failed self-test runs nothing", test_failed_self_test);
    CU_add_test(s, "init out of order", test_init_out_of_order);
    CU_add_test(s, "steps", test_steps);
    CU_add_test(s, "a descriptor that is no pty", test_descriptor_that_is_no_pty);
    CU_add_test(s, "build fails", test_build_fails);
    CU_add_test(s, "waits for builder and journal", test_waits_for_builder_and_journal);
    CU_add_test(s, "signals", test_signals);
    CU_add_test(s, "client leaves", test_client_leaves);
    CU_add_test(s, "names survive a gate", test_names_survive_a_gate);
    CU_add_test(s, "a bad gate is cut off alone", test_bad_gate_is_cut_off_alone);
    CU_add_test(s, "denials reach the client", test_denials_reach_the_client);
}

void tap_suites(void)
{
    suite_sandbox_state();
}
