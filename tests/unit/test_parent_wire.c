/* The wires between roles: made anew once when a channel ends, whoever tells it and however late.
 */
#include "parent.h"
#include "loop_bed.h"
#include "peer.h"
#include "tap_main.h"
#include "wire.h"

#include <stdlib.h>
#include <unistd.h>

struct bed {
    struct parent p;
    struct child gate, logger;
    int gate_far, logger_far; /* the roles' ends of their control channels */
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
}

static void bed_open(struct bed *b)
{
    memset(b, 0, sizeof *b);
    b->p.base = base;
    TAILQ_INIT(&b->p.wires);
    child_open(b, &b->gate, ROLE_GATE, &b->gate_far);
    child_open(b, &b->logger, ROLE_LOGGER, &b->logger_far);
    parent_wire(&b->p, &b->gate, &b->logger, "box", "", false);
}

static void bed_close(struct bed *b)
{
    parent_unwire(&b->gate);
    ipc_free(b->gate.ch);
    ipc_free(b->logger.ch);
    if (b->p.lost_timer)
        event_free(b->p.lost_timer);
    close(b->gate_far);
    close(b->logger_far);
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

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("parent_wire", setup, teardown);
    CU_add_test(s, "a channel that ended is made anew once", test_once);
    CU_add_test(s, "an end that died", test_death);
    CU_add_test(s, "a bad report", test_bad);
}
