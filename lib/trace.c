/* Steps of traced requests: bounded, cleaned of control characters, and sent to the parent or
 * written into the daemon's log. */
#include "trace.h"

#include "meter.h"
#include "proc.h"
#include "wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of a request that nobody but the daemon's log wants: no session has this number. */
enum { SESSION_LOG = 1 };

static struct {
    struct ipc *parent;
    bool to_log;
    uint64_t second, left_out;
    unsigned lines; /* in it */
} own;

void trace_to_log(bool on)
{
    own.to_log = on;
}

void trace_report(struct ipc *parent)
{
    own.parent = parent;
}

static void line_send(const struct trace *t, uint64_t us, const char *step, const char *text)
{
    struct msg m;
    if (t->session == SESSION_LOG || own.parent == NULL)
        return;
    msg_init(&m, W_TRACED);
    msg_put_u64(&m, t->session);
    msg_put_u64(&m, t->begun);
    msg_put_u64(&m, us);
    msg_put_str(&m, step);
    msg_put_str(&m, text);
    (void)ipc_send(own.parent, &m); /* a dead channel says so by its closed callback */
}

static void line_say(const struct trace *t, uint64_t us, const char *step, const char *text)
{
    line_send(t, us, step, text);
    if (own.to_log)
        proc_log("request %" PRIu64 " +%" PRIu64 " us: %s%s%s", t->begun, us, step,
                 text[0] ? ": " : "", text);
}

/* May one more be said? Says first how many could not be. */
static bool line_may(const struct trace *t, uint64_t now, uint64_t us)
{
    char text[64];
    if (now / 1000000 != own.second) {
        uint64_t left_out = own.left_out;
        own.second = now / 1000000;
        own.lines = 0;
        own.left_out = 0;
        if (left_out) {
            snprintf(text, sizeof text, "%" PRIu64 " lines", left_out);
            line_say(t, us, "left out", text);
        }
    }
    if (own.lines < TRACE_LINES_A_SECOND) {
        own.lines++;
        return true;
    }
    own.left_out++;
    return false;
}

void trace_step(const struct trace *t, const char *step, const char *fmt, ...)
{
    char text[TRACE_TEXT_MAX];
    uint64_t now = meter_now(), us = now > t->begun ? now - t->begun : 0;
    if ((t->session == SESSION_LOG && !own.to_log) || !line_may(t, now, us))
        return;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0)
        text[0] = 0;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    line_say(t, us, step, text);
}

struct trace trace_begin(uint64_t session, uint64_t begun)
{
    return (struct trace){session ? session : own.to_log ? SESSION_LOG : 0, begun};
}

void trace_send(struct ipc *ch, uint32_t req, const struct trace *t)
{
    struct msg m;
    if (t->session == 0 || ch == NULL)
        return;
    msg_init(&m, W_TRACING);
    msg_put_u32(&m, req);
    msg_put_u64(&m, t->session);
    msg_put_u64(&m, t->begun);
    (void)ipc_send(ch, &m);
}

int trace_get(struct msg *m, struct tracing *ret)
{
    if (msg_get_u32(m, &ret->req) < 0 || msg_get_u64(m, &ret->trace.session) < 0 ||
        msg_get_u64(m, &ret->trace.begun) < 0)
        return -1;
    return msg_end(m);
}

struct trace trace_take(struct tracing *next, uint32_t req, uint64_t begun)
{
    struct trace t = next->trace;
    bool its = t.session != 0 && next->req == req;
    next->trace.session = 0;
    return its ? t : trace_begin(0, begun);
}
