/* POST /v1/sandboxes/{}/trace: the steps of one sandbox's requests through the roles, a line of
 * JSON each, for a bounded time. Lines are names, sizes and codes (lib/trace.h). */
#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proc.h"
#include "trace.h"
#include "wire.h"

enum { TRACERS_MAX = 8, TRACE_SECONDS = 60, TRACE_SECONDS_MAX = 600 };

struct tracer {
    struct api *api;
    struct stream *stream;
    struct event *until;
    uint64_t session; /* random: no other role's lines can be meant for it */
    uint64_t left_out;
    char sandbox[65];
    LIST_ENTRY(tracer) link;
};

static const char head[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                           "Upgrade: durward-trace\r\n\r\n";

static void tell_parent(const struct tracer *t, uint64_t session, uint32_t seconds)
{
    struct msg m;
    msg_init(&m, W_TRACE);
    msg_put_str(&m, t->sandbox);
    msg_put_u64(&m, session);
    msg_put_u32(&m, seconds);
    (void)ipc_send(t->api->controller->owner.parent, &m);
}

static void tracer_free(struct tracer *t)
{
    LIST_REMOVE(t, link);
    event_free(t->until);
    free(t);
}

static void on_read(void *arg UNUSED, struct evbuffer *in)
{
    evbuffer_drain(in, evbuffer_get_length(in)); /* it has nothing to say */
}

static void on_gone(void *arg)
{
    tell_parent(arg, 0, 0);
    tracer_free(arg);
}

static void on_until(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct tracer *t = arg;
    struct stream *s = t->stream;
    on_gone(t);
    stream_close(s);
}

static const struct stream_ops tracer_ops = {.read = on_read, .gone = on_gone};

static void tell_line(struct tracer *t, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text)
        evbuffer_add_printf(stream_out(t->stream), "%s\n", text);
    free(text);
    json_decref(line);
}

int api_traced(struct api *a, struct msg *m)
{
    uint8_t role;
    uint64_t session, begun, us;
    char step[TRACE_STEP_MAX], text[TRACE_TEXT_MAX];
    struct tracer *t;
    if (msg_get_u8(m, &role) < 0 || msg_get_u64(m, &session) < 0 || msg_get_u64(m, &begun) < 0 ||
        msg_get_u64(m, &us) < 0 || msg_get_str(m, step, sizeof step) < 0 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    LIST_FOREACH(t, &a->tracers, link)
    if (t->session == session)
        break;
    if (t == NULL) /* it is over */
        return 0;
    if (stream_full(t->stream)) {
        t->left_out++;
        return 0;
    }
    if (t->left_out)
        tell_line(t, json_pack("{s:I}", "left_out", (json_int_t)t->left_out));
    t->left_out = 0;
    tell_line(t, json_pack("{s:I, s:I, s:s, s:s, s:s}", "request", (json_int_t)(begun & INT64_MAX),
                           "us", (json_int_t)(us & INT64_MAX), "role", role_name((enum role)role),
                           "step", step, "text", text));
    return 0;
}

/* Is it being traced, or are too many? Else answers. */
static bool may_trace(struct api *a, struct evhttp_request *req, const char *sandbox)
{
    const struct tracer *t;
    size_t n = 0;
    LIST_FOREACH(t, &a->tracers, link)
    {
        n++;
        if (strcmp(t->sandbox, sandbox) == 0) {
            api_refuse(req, 409, "conflict", "this sandbox is being traced already");
            return false;
        }
    }
    if (n >= TRACERS_MAX)
        api_refuse(req, 503, "unavailable", "too many sandboxes are being traced");
    return n < TRACERS_MAX;
}

static struct tracer *tracer_new(struct api *a, const char *sandbox)
{
    struct tracer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->api = a;
    snprintf(t->sandbox, sizeof t->sandbox, "%s", sandbox);
    t->until = event_new(a->controller->base, -1, 0, on_until, t);
    if (t->until == NULL || getrandom(&t->session, sizeof t->session, 0) != sizeof t->session) {
        if (t->until)
            event_free(t->until);
        free(t);
        return NULL;
    }
    t->session |= UINT64_C(1) << 63; /* small ones mean something else to roles */
    LIST_INSERT_HEAD(&a->tracers, t, link);
    return t;
}

HANDLER_IN(api_trace)
{
    struct err err = {0};
    int64_t seconds;
    if (asked_number(q, "seconds", 1, TRACE_SECONDS_MAX, TRACE_SECONDS, &seconds, &err) == 0 &&
        !stream_wanted(req, "durward-trace"))
        err_set(&err, ERR_PARSE, "this needs `Upgrade: durward-trace`");
    if (err.code != ERR_NONE) {
        api_refuse_err(req, &err);
        return;
    }
    if (!may_trace(a, req, r->id))
        return;
    struct tracer *t = tracer_new(a, r->id);
    if (t)
        t->stream = stream_take(a, req, head, &tracer_ops, t);
    if (t == NULL || t->stream == NULL) {
        if (t)
            tracer_free(t);
        api_refuse(req, 500, "internal", "out of memory");
        return;
    }
    struct timeval tv = {(time_t)seconds, 0};
    event_add(t->until, &tv);
    tell_parent(t, t->session, (uint32_t)seconds);
}
