/* The wires between roles: made anew once when a channel ends, whoever tells it and however late;
 * and a dialer that is started late. */
#include "parent.h"
#include "loop_bed.h"
#include "peer.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PID = 1 << 30 }; /* none has it */

struct bed {
    struct parent p;
    struct child gate, logger, dialer;
    int gate_far, logger_far, dialer_far; /* the roles' ends of their control channels */
};

static int none(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void ended(struct ipc *ch, const char *why UNUSED, void *arg UNUSED)
{
    ipc_free(ch);
}

static void child_open(struct bed *b, struct child *c, enum role role, int *far)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    c->parent = &b->p;
    c->role = role;
    c->state = CHILD_READY;
    c->ch = ipc_new(base, fds[0], none, ended, NULL);
    *far = fds[1];
    TAILQ_INSERT_TAIL(&b->p.children, c, link);
}

static void child_close(struct child *c, int far)
{
    ipc_free(c->ch);
    if (c->again)
        event_free(c->again);
    close(far);
}

/* Its process ended. The parent means to start another in a moment, which is the test's to be. */
static void dies(struct bed *b, struct child *c, int *far)
{
    c->pid = PID;
    clock_gettime(CLOCK_MONOTONIC, &c->started);
    parent_reaped(&b->p, PID, 0);
    CU_ASSERT(c->state == CHILD_DEAD && c->pid == 0 && c->ch == NULL);
    CU_ASSERT_FATAL(c->again && event_pending(c->again, EV_TIMEOUT, NULL));
    child_close(c, *far);
    c->again = NULL;
    TAILQ_REMOVE(&b->p.children, c, link);
    child_open(b, c, c->role, far);
    c->state = CHILD_DEAD;
}

static void bed_open(struct bed *b)
{
    memset(b, 0, sizeof *b);
    b->p.base = base;
    b->p.told_ready = true;
    TAILQ_INIT(&b->p.wires);
    TAILQ_INIT(&b->p.children);
    child_open(b, &b->gate, ROLE_GATE, &b->gate_far);
    child_open(b, &b->logger, ROLE_LOGGER, &b->logger_far);
    child_open(b, &b->dialer, ROLE_DIALER, &b->dialer_far);
    parent_wire(&b->p, &b->gate, &b->logger, "box", "", false);
}

static void bed_close(struct bed *b)
{
    parent_unwire(&b->gate);
    child_close(&b->gate, b->gate_far);
    child_close(&b->logger, b->logger_far);
    child_close(&b->dialer, b->dialer_far);
    if (b->p.lost_timer)
        event_free(b->p.lost_timer);
}

/* The channel that this role is told of now; 0: none. */
static uint32_t told(int far)
{
    struct msg m;
    struct peer p;
    if (msg_recv(far, &m) <= 0)
        return 0;
    CU_ASSERT_EQUAL(m.type, W_PEER);
    CU_ASSERT_EQUAL_FATAL(peer_get(&m, &p), 0);
    close(p.fd);
    msg_done(&m);
    return p.channel;
}

static int lost(struct child *c, uint32_t channel)
{
    struct msg m;
    msg_init(&m, W_LOST);
    msg_put_u32(&m, channel);
    int r = parent_lost(c, &m);
    msg_done(&m);
    return r;
}

/* Until the timer of lost wires has run, if it was set. */
static void pass(struct bed *b)
{
    while (b->p.lost_timer && event_pending(b->p.lost_timer, EV_TIMEOUT, NULL))
        event_base_loop(base, EVLOOP_ONCE);
}

static void test_once(void)
{
    struct bed b;
    bed_open(&b);
    CU_ASSERT(told(b.gate_far) == 1 && told(b.logger_far) == 1);
    CU_ASSERT_EQUAL(lost(&b.gate, 1), 0);
    CU_ASSERT_EQUAL(told(b.gate_far), 0); /* not at once: the other may be dying */
    CU_ASSERT_EQUAL(lost(&b.logger, 1), 0);
    pass(&b);
    CU_ASSERT(told(b.gate_far) == 2 && told(b.logger_far) == 2);
    CU_ASSERT(told(b.gate_far) == 0 && told(b.logger_far) == 0);
    CU_ASSERT(lost(&b.gate, 1) == 0 && lost(&b.gate, 0) == 0 &&
              lost(&b.gate, 9) == 0); /* late, or made up */
    pass(&b);
    CU_ASSERT(told(b.gate_far) == 0 && told(b.logger_far) == 0);
    bed_close(&b);
}

/* One end dies: it loses its channels first. The next one of it is wired once. */
static void test_death(void)
{
    struct bed b;
    bed_open(&b);
    CU_ASSERT(told(b.gate_far) == 1 && told(b.logger_far) == 1);
    CU_ASSERT_EQUAL(lost(&b.gate, 1), 0);
    b.logger.state = CHILD_DEAD;
    pass(&b);
    CU_ASSERT_EQUAL(told(b.gate_far), 0);
    b.logger.state = CHILD_INITED;
    parent_rewire(&b.logger);
    CU_ASSERT(told(b.gate_far) == 2 && told(b.logger_far) == 2);
    CU_ASSERT_EQUAL(lost(&b.gate, 1), 0); /* told late */
    pass(&b);
    CU_ASSERT(told(b.gate_far) == 0 && told(b.logger_far) == 0);
    bed_close(&b);
}

/* What a gate that died kept for a dialer that sleeps is nobody's: the next one's channel is its
 * own, and the dialer is told of that one, whichever of them comes first. */
static void test_asleep(void)
{
    for (int k = 0; k < 2; k++) {
        struct bed b;
        uint32_t at, gate = 0;
        bed_open(&b);
        CU_ASSERT(told(b.gate_far) == 1 && told(b.logger_far) == 1);
        b.dialer.state = CHILD_ASLEEP;
        parent_wire(&b.p, &b.gate, &b.dialer, "box", "", false);
        CU_ASSERT(told(b.gate_far) == 2 && told(b.dialer_far) == 0);
        dies(&b, &b.gate, &b.gate_far);
        struct child *first = k ? &b.gate : &b.dialer, *second = k ? &b.dialer : &b.gate;
        first->state = CHILD_INITED;
        parent_rewire(first);
        second->state = CHILD_INITED;
        parent_rewire(second);
        while ((at = told(b.gate_far)) != 0)
            gate = at; /* the logger's, and after it the dialer's */
        CU_ASSERT_EQUAL(gate, 4);
        CU_ASSERT_EQUAL(told(b.dialer_far), gate);
        CU_ASSERT_EQUAL(told(b.dialer_far), 0);
        bed_close(&b);
    }
}

/* A dialer that sleeps is woken by a question, not by the end of who might have asked one. */
static void test_woken(void)
{
    for (int asks = 0; asks < 2; asks++) {
        struct bed b;
        struct msg m;
        struct peer p;
        bed_open(&b);
        CU_ASSERT(told(b.gate_far) == 1);
        ipc_free(b.dialer.ch);
        b.dialer.ch = NULL;
        b.p.programs[ROLE_DIALER] = -1; /* what is started ends at once */
        b.dialer.state = CHILD_ASLEEP;
        parent_wire(&b.p, &b.gate, &b.dialer, "box", "", false);
        CU_ASSERT_EQUAL_FATAL(msg_recv(b.gate_far, &m), 1);
        CU_ASSERT_EQUAL_FATAL(peer_get(&m, &p), 0);
        msg_done(&m);
        if (asks)
            CU_ASSERT_EQUAL(write(p.fd, "?", 1), 1);
        close(p.fd);
        event_base_loop(base, EVLOOP_ONCE);
        CU_ASSERT_EQUAL(b.dialer.state != CHILD_ASLEEP, asks);
        if (asks)
            CU_ASSERT_EQUAL(waitpid(b.dialer.pid, NULL, 0), b.dialer.pid);
        bed_close(&b);
    }
}

/* A wire has one number, however often its channel is made anew; the far end cannot change it. */
static void test_number(void)
{
    struct bed b;
    struct msg m;
    struct peer p;
    uint32_t first = 0;
    bed_open(&b);
    for (uint32_t channel = 1; channel <= 3; channel++) {
        CU_ASSERT_EQUAL_FATAL(msg_recv(b.logger_far, &m), 1);
        CU_ASSERT_EQUAL_FATAL(peer_get(&m, &p), 0);
        close(p.fd);
        msg_done(&m);
        CU_ASSERT_EQUAL(p.channel, channel);
        first = first ? first : p.wire;
        CU_ASSERT(p.wire != 0 && p.wire == first);
        if (channel < 3)
            CU_ASSERT_EQUAL(lost(&b.gate, channel), 0);
        pass(&b);
    }
    parent_wire(&b.p, &b.dialer, &b.logger, "", "", false);
    CU_ASSERT_EQUAL(told(b.logger_far), 4);
    CU_ASSERT_EQUAL_FATAL(msg_recv(b.dialer_far, &m), 1);
    CU_ASSERT_EQUAL_FATAL(peer_get(&m, &p), 0);
    close(p.fd);
    msg_done(&m);
    CU_ASSERT(p.wire != 0 && p.wire != first);
    parent_unwire(&b.dialer);
    bed_close(&b);
}

/* `run` starts its dialer when somebody needs it: one that cannot start ends nobody's run, and is
 * started again. Before everything is there, and of another role, it is the end. */
static void test_late(void)
{
    static const struct {
        enum role role;
        bool told_ready, stops;
    } rows[] = {{ROLE_DIALER, true, false}, {ROLE_DIALER, false, true}, {ROLE_LOGGER, true, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed b;
        struct msg m;
        bed_open(&b);
        b.p.told_ready = rows[i].told_ready;
        b.dialer.role = rows[i].role;
        b.dialer.state = CHILD_INITED;
        msg_init(&m, W_FAILED);
        msg_put_str(&m, "the resolver library does not start");
        CU_ASSERT_EQUAL(parent_message(b.dialer.ch, &m, &b.dialer), 0);
        msg_done(&m);
        CU_ASSERT_EQUAL(b.p.stopping, rows[i].stops);
        CU_ASSERT_EQUAL(b.p.exit_status, rows[i].stops);
        if (!rows[i].stops)
            dies(&b, &b.dialer, &b.dialer_far);
        CU_ASSERT_EQUAL(b.p.stopping, rows[i].stops);
        bed_close(&b);
    }
}

static void test_bad(void)
{
    struct bed b;
    struct msg m;
    bed_open(&b);
    msg_init(&m, W_LOST);
    msg_put_u8(&m, ROLE_LOGGER);
    CU_ASSERT_EQUAL(parent_lost(&b.gate, &m), -1);
    msg_done(&m);
    bed_close(&b);
}

/* What a dialer asks of a controller that is busy waits for it so far, and no further: the channel
 * is others' too. */
static void test_mcp_bound(void)
{
    struct bed b;
    struct child controller = {.pid = 0};
    struct msg m;
    unsigned refused = 0;
    int far;
    bed_open(&b);
    child_open(&b, &controller, ROLE_CONTROLLER, &far);
    b.p.controller = &controller;
    for (uint32_t i = 0; i < 4000; i++) {
        msg_init(&m, W_MCP_DIAL);
        msg_put_u32(&m, i);
        msg_put_str(&m, "box");
        msg_put_str(&m, "coder");
        msg_put_str(&m, "demo");
        CU_ASSERT_EQUAL(parent_message(b.dialer.ch, &m, &b.dialer), 0);
        msg_done(&m);
        while (msg_recv(b.dialer_far, &m) > 0) {
            refused += m.type == W_MCP_DIALED;
            msg_done(&m);
        }
    }
    CU_ASSERT(refused > 0 && refused < 4000);
    CU_ASSERT(ipc_queued(controller.ch) < 512 * 1024);
    b.p.controller = NULL;
    child_close(&controller, far);
    bed_close(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("parent_wire", setup, teardown);
    CU_add_test(s, "a channel that ended is made anew once", test_once);
    CU_add_test(s, "an end that died", test_death);
    CU_add_test(s, "a gate that died while the dialer slept", test_asleep);
    CU_add_test(s, "what wakes a dialer that sleeps", test_woken);
    CU_add_test(s, "a wire keeps its number", test_number);
    CU_add_test(s, "a late dialer that cannot start", test_late);
    CU_add_test(s, "MCP dials of a busy controller", test_mcp_bound);
    CU_add_test(s, "a bad report", test_bad);
}
