/* Up to when the parent knows what a fleet has revoked, on a host that sleeps meanwhile: the clock
 * of timers stands still then, and that of what is known goes on. */
#include "config_fixture.h"
#include "loop_bed.h"
#include "parent.h"
#include "revoked.h"
#include "wire.h"

#include <CUnit/CUnit.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char text[] = V "secrets:\n"
                             "  p: { env: P }\n"
                             "  l: { postgres_login: { user: fleet, password: p } }\n"
                             "fleet: { postgres: 'postgres://db.example/fleet', login: l, "
                             "revocations: 10m }\n"
                             "policies: { coder: { rules: [ { allow: a.example } ] } }\n";

static long slept; /* seconds */

/* In place of libc's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    long r = syscall(SYS_clock_gettime, id, ts);
    if (r == 0 && id == CLOCK_BOOTTIME)
        ts->tv_sec += slept;
    return (int)r;
}

static int none(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void ended(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static uint64_t boot_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

struct bed {
    struct parent p;
    struct child gate;
    int far;
};

static void open_bed(struct bed *b)
{
    int fds[2];
    memset(b, 0, sizeof *b);
    b->p.base = base;
    b->p.mode = PARENT_SERVE;
    b->p.config = good(text);
    TAILQ_INIT(&b->p.children);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    b->gate = (struct child){.parent = &b->p, .role = ROLE_GATE, .state = CHILD_READY};
    b->gate.ch = ipc_new(base, fds[0], none, ended, NULL);
    b->far = fds[1];
    TAILQ_INSERT_TAIL(&b->p.children, &b->gate, link);
    CU_ASSERT_EQUAL(parent_revoked_begin(&b->p), 0);
}

static void close_bed(struct bed *b)
{
    ipc_free(b->gate.ch);
    close(b->far);
    event_free(b->p.until_timer);
    revoked_free(b->p.revoked);
    config_unref(b->p.config);
}

/* The gate was told; false: nothing for so long. */
static bool is_told(struct bed *b, unsigned ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    struct msg m;
    (void)event_base_loopexit(base, &tv);
    event_base_dispatch(base);
    bool any = false;
    while (msg_recv(b->far, &m) == 1) {
        any |= m.type == W_REVOKED_UNTIL;
        msg_done(&m);
    }
    return any;
}

static void test_slept(void)
{
    struct bed b;
    struct msg m;
    open_bed(&b);
    msg_init(&m, W_REVOKED_UNTIL);
    msg_put_u64(&m, boot_us() + 600000000);
    CU_ASSERT_EQUAL(parent_revoked_until(&b.p, &m), 0);
    msg_done(&m);
    CU_ASSERT_TRUE(is_told(&b, 50));
    CU_ASSERT_FALSE(revoked_stale(b.p.revoked));
    slept = 599; /* not so long */
    CU_ASSERT_FALSE(revoked_stale(b.p.revoked));
    slept = 602;
    CU_ASSERT_TRUE(revoked_stale(b.p.revoked));
    CU_ASSERT_TRUE(is_told(&b, 2500)); /* soon, and not when ten minutes of waking are over */
    slept = 0;
    close_bed(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("parent_revoked", setup, teardown);
    CU_add_test(s, "a host that slept", test_slept);
}
