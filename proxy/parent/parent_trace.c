/* Traces: the controller switches them on for a sandbox, its gate marks the requests, and what
 * roles say of those goes to the controller. */
#include "parent.h"

#include "trace.h"
#include "wire.h"

#include <string.h>
#include <time.h>

static uint64_t now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec;
}

void parent_tell_trace(const struct sandbox *s)
{
    uint64_t now = now_seconds();
    struct msg m;
    if (s->gate == NULL || s->gate->ch == NULL || now >= s->trace_until)
        return;
    msg_init(&m, W_TRACE);
    msg_put_str(&m, s->id);
    msg_put_u64(&m, s->trace);
    msg_put_u32(&m, (uint32_t)(s->trace_until - now));
    ipc_send(s->gate->ch, &m);
}

int parent_trace(struct child *controller, struct msg *m)
{
    char id[65];
    uint64_t session;
    uint32_t seconds;
    struct sandbox *s;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_u64(m, &session) < 0 ||
        msg_get_u32(m, &seconds) < 0 || msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(s, &controller->parent->sandboxes, link)
    if (id[0] && strcmp(s->id, id) == 0)
        break;
    if (s == NULL) /* it is gone, and so is what there was to trace */
        return 0;
    s->trace = session;
    s->trace_until = now_seconds() + seconds;
    parent_tell_trace(s);
    return 0;
}

/* A role bounds its own lines; one that was taken over does not. */
static bool may_say(struct child *c)
{
    uint64_t now = now_seconds();
    if (c->traced_second != now) {
        c->traced_second = now;
        c->traced = 0;
    }
    return c->traced++ <= TRACE_LINES_A_SECOND;
}

int parent_traced(struct child *c, struct msg *m)
{
    struct child *to = c->parent->controller;
    uint64_t session, begun, us;
    char step[TRACE_STEP_MAX], text[TRACE_TEXT_MAX];
    struct msg told;
    if (msg_get_u64(m, &session) < 0 || msg_get_u64(m, &begun) < 0 || msg_get_u64(m, &us) < 0 ||
        msg_get_str(m, step, sizeof step) < 0 || msg_get_str(m, text, sizeof text) < 0 ||
        msg_end(m) < 0)
        return -1;
    if (to == NULL || to->ch == NULL || !may_say(c))
        return 0;
    msg_init(&told, W_TRACED);
    msg_put_u8(&told, (uint8_t)c->role);
    msg_put_u64(&told, session);
    msg_put_u64(&told, begun);
    msg_put_u64(&told, us);
    msg_put_str(&told, step);
    msg_put_str(&told, text);
    ipc_send(to->ch, &told);
    return 0;
}
