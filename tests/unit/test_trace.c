/* Steps of requests: what is sent for a session, what is left out beyond the bound and told, that a
 * request which is not traced says nothing, and that what stands beside a request is of that one.
 */
#include "tap_main.h"

#include "ipc.h"
#include "meter.h"
#include "trace.h"
#include "wire.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

struct seen {
    unsigned lines, left_out;
    char step[TRACE_STEP_MAX], text[TRACE_TEXT_MAX];
    uint64_t session, begun;
    struct tracing tracing;
};

static int on_message(struct ipc *ch, struct msg *m, void *arg)
{
    struct seen *s = arg;
    uint64_t us;
    (void)ch;
    if (m->type == W_TRACING)
        return trace_get(m, &s->tracing);
    if (m->type != W_TRACED || msg_get_u64(m, &s->session) < 0 || msg_get_u64(m, &s->begun) < 0 ||
        msg_get_u64(m, &us) < 0 || msg_get_str(m, s->step, sizeof s->step) < 0 ||
        msg_get_str(m, s->text, sizeof s->text) < 0)
        return -1;
    if (strcmp(s->step, "left out") == 0)
        s->left_out++;
    else
        s->lines++;
    return msg_end(m);
}

static void on_closed(struct ipc *ch, const char *why, void *arg)
{
    (void)ch;
    (void)why;
    (void)arg;
}

struct bed {
    struct event_base *base;
    struct ipc *here, *there;
    struct seen seen;
};

static void begin(struct bed *b)
{
    int fds[2];
    struct err err;
    memset(b, 0, sizeof *b);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, &err), 0);
    b->base = event_base_new();
    b->here = ipc_new(b->base, fds[0], on_message, on_closed, &b->seen);
    b->there = ipc_new(b->base, fds[1], on_message, on_closed, &b->seen);
    CU_ASSERT_FATAL(b->here && b->there);
    trace_report(b->here);
}

static void end(struct bed *b)
{
    trace_report(NULL);
    ipc_free(b->here);
    ipc_free(b->there);
    event_base_free(b->base);
}

static void drain(struct bed *b)
{
    for (int i = 0; i < 200; i++)
        event_base_loop(b->base, EVLOOP_NONBLOCK);
}

static void test_steps(void)
{
    struct bed b;
    begin(&b);
    struct trace off = trace_begin(0, 5), on = trace_begin(77, meter_now());
    TRACE(&off, "not", "%d", 1);
    drain(&b);
    CU_ASSERT_EQUAL(b.seen.lines, 0);
    TRACE(&on, "said", "a\n%s", "b\x80");
    drain(&b);
    CU_ASSERT_EQUAL(b.seen.lines, 1);
    CU_ASSERT(b.seen.session == 77 && b.seen.begun == on.begun);
    CU_ASSERT_STRING_EQUAL(b.seen.step, "said");
    CU_ASSERT_STRING_EQUAL(b.seen.text, "a?b?");
    end(&b);
}

/* Whatever a sandbox does, a second has so many lines, and the next one says that some are missing.
 */
static void test_bound(void)
{
    struct bed b;
    begin(&b);
    struct trace on = trace_begin(77, meter_now());
    uint64_t until = meter_now() + 200000;
    unsigned long said = 0;
    while (meter_now() < until || said < 4 * TRACE_LINES_A_SECOND) {
        TRACE(&on, "step", "%lu", said++);
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    }
    drain(&b);
    /* the loop may have crossed into another second, once for each that it took */
    unsigned seconds = (unsigned)((meter_now() - on.begun) / 1000000) + 2;
    CU_ASSERT(b.seen.lines <= seconds * TRACE_LINES_A_SECOND);
    usleep(1000000);
    TRACE(&on, "step", "%s", "later");
    drain(&b);
    CU_ASSERT(b.seen.left_out >= 1);
    CU_ASSERT_STRING_EQUAL(b.seen.text, "later");
    end(&b);
}

static void test_beside(void)
{
    struct bed b;
    begin(&b);
    struct trace none = {0}, on = {77, 1234};
    trace_send(b.here, 9, &none);
    drain(&b);
    CU_ASSERT_EQUAL(b.seen.tracing.req, 0);
    trace_send(b.here, 9, &on);
    drain(&b);
    CU_ASSERT(b.seen.tracing.req == 9 && b.seen.tracing.trace.begun == 1234);
    struct tracing next = b.seen.tracing;
    struct trace t = trace_take(&next, 8, 5);
    CU_ASSERT(t.session == 0 && t.begun == 5); /* of another request */
    next = b.seen.tracing;
    t = trace_take(&next, 9, 5);
    CU_ASSERT(t.session == 77 && t.begun == 1234);
    t = trace_take(&next, 9, 6); /* once */
    CU_ASSERT(t.session == 0 && t.begun == 6);
    end(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("trace", NULL, NULL);
    CU_add_test(s, "steps of a session are sent, clean, and no others", test_steps);
    CU_add_test(s, "lines of a second are bounded, and what is left out is told", test_bound);
    CU_add_test(s, "what stands beside a request is of that request, once", test_beside);
}
