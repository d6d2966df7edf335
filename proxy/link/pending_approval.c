/* Keeps each held request's summary until it is answered, its time is over or it is given up; a
 * controller that comes later is told all of them again. */
#include "pending_approval.h"

#include "ipc.h"
#include "quota.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

struct pending_approval {
    struct pending_approvals *of;
    uint32_t req;
    int64_t until;      /* monotonic seconds */
    struct buf summary; /* the message's fields after the first two */
    struct event *timer;
    struct quota_part part;
    pending_approval_fn fn;
    void *arg;
    LIST_ENTRY(pending_approval) link;
};

struct pending_approvals {
    struct event_base *base;
    unsigned seconds;
    struct ipc *ch; /* NULL: no controller at the moment */
    uint32_t last;
    struct quota quota;
    LIST_HEAD(, pending_approval) list;
};

static int64_t now_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

struct pending_approvals *pending_approvals_new(struct event_base *base, unsigned seconds,
                                                unsigned each)
{
    struct pending_approvals *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->base = base;
    h->seconds = seconds;
    h->quota = (struct quota){.total = PENDING_APPROVALS_MAX, .each = each};
    LIST_INIT(&h->list);
    return h;
}

static void drop(struct pending_approval *k)
{
    LIST_REMOVE(k, link);
    quota_leave(&k->part);
    if (k->timer)
        event_free(k->timer);
    buf_free(&k->summary);
    free(k);
}

void pending_approvals_free(struct pending_approvals *h)
{
    struct pending_approval *k;
    if (h == NULL)
        return;
    while ((k = LIST_FIRST(&h->list)) != NULL)
        drop(k);
    ipc_free(h->ch);
    free(h);
}

static void tell(const struct pending_approval *k)
{
    struct msg m;
    int64_t left = k->until - now_seconds();
    if (k->of->ch == NULL)
        return;
    msg_init(&m, W_PENDING_APPROVAL);
    msg_put_u32(&m, k->req);
    msg_put_u32(&m, left > 0 ? (uint32_t)left : 0);
    if (buf_append_slice(&m.body, buf_slice(&k->summary)) < 0) {
        msg_done(&m);
        return; /* nobody hears of it, and it is denied in time */
    }
    (void)ipc_send(k->of->ch, &m);
}

static void tell_over(const struct pending_approval *k)
{
    struct msg m;
    if (k->of->ch == NULL)
        return;
    msg_init(&m, W_PENDING_APPROVAL_OVER);
    msg_put_u32(&m, k->req);
    (void)ipc_send(k->of->ch, &m);
}

static void end(struct pending_approval *k, enum pending_approval_end e, const char *who)
{
    pending_approval_fn fn = k->fn;
    void *arg = k->arg;
    drop(k);
    fn(arg, e, who);
}

static void on_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    tell_over(arg);
    end(arg, PENDING_APPROVAL_TIMEOUT, "");
}

void pending_approval_cancel(struct pending_approval *k)
{
    if (k == NULL)
        return;
    tell_over(k);
    drop(k);
}

static struct slice cut(struct slice s, size_t max)
{
    return s.n > max ? (struct slice){s.p, max} : s;
}

static int summarise(struct buf *to, const struct pending_approval_summary *s)
{
    struct msg m; /* borrowed for its encoding */
    msg_init(&m, W_PENDING_APPROVAL);
    msg_put_str(&m, s->sandbox);
    msg_put_slice(&m, cut(s->method, 32));
    msg_put_str(&m, s->scheme);
    msg_put_str(&m, s->authority);
    msg_put_slice(&m, cut(s->path, PENDING_APPROVAL_PATH_MAX));
    msg_put_slice(&m, cut(s->query, PENDING_APPROVAL_TEXT_MAX));
    msg_put_slice(&m, cut(slice_str(s->rule), PENDING_APPROVAL_TEXT_MAX));
    msg_put_str(&m, s->credential);
    msg_put_slice(&m, cut(s->type, PENDING_APPROVAL_TEXT_MAX));
    msg_put_u64(&m, s->length);
    msg_put_u8(&m, s->path.n > PENDING_APPROVAL_PATH_MAX);
    int r = m.bad ? -1 : buf_append(to, buf_data(&m.body), buf_len(&m.body));
    msg_done(&m);
    return r;
}

struct pending_approval *pending_approval_new(struct pending_approvals *h,
                                              const struct pending_approval_summary *s,
                                              pending_approval_fn fn, void *arg)
{
    struct timeval tv = {(time_t)h->seconds, 0};
    struct pending_approval *k = calloc(1, sizeof *k);
    struct quota_part part = {.n = 0};
    if (k == NULL || quota_take(&h->quota, &part, slice_str(s->sandbox), 1) != QUOTA_TAKEN) {
        free(k);
        return NULL;
    }
    *k = (struct pending_approval){.part = part, .of = h, .req = ++h->last, .fn = fn, .arg = arg};
    k->until = now_seconds() + h->seconds;
    buf_init(&k->summary, 4 * PENDING_APPROVAL_PATH_MAX);
    LIST_INSERT_HEAD(&h->list, k, link);
    k->timer = event_new(h->base, -1, 0, on_timeout, k);
    if (k->timer == NULL || event_add(k->timer, &tv) < 0 || summarise(&k->summary, s) < 0) {
        drop(k);
        return NULL;
    }
    tell(k);
    return k;
}

static int on_answer(struct pending_approvals *h, struct msg *m)
{
    struct pending_approval *k;
    uint32_t req;
    uint8_t what;
    char who[PENDING_APPROVAL_WHO_MAX];
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &what) < 0 ||
        msg_get_str(m, who, sizeof who) < 0 || msg_end(m) < 0 || what > PENDING_APPROVAL_FULL)
        return -1;
    LIST_FOREACH(k, &h->list, link)
    if (k->req == req) {
        end(k, (enum pending_approval_end)what, who);
        break; /* else it ended meanwhile */
    }
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    return m->type == W_PENDING_APPROVAL_ANSWER ? on_answer(arg, m) : -1;
}

static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct pending_approvals *h = arg;
    ipc_free(ch);
    h->ch = NULL;
}

void pending_approvals_attach(struct pending_approvals *h, int fd)
{
    const struct pending_approval *k;
    ipc_free(h->ch);
    h->ch = ipc_new(h->base, fd, on_message, on_closed, h);
    LIST_FOREACH(k, &h->list, link)
    tell(k);
}

void pending_approvals_kill(struct pending_approvals *h, const char *sandbox, const char *why)
{
    struct msg m;
    if (h->ch == NULL)
        return;
    msg_init(&m, W_KILL);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, why);
    (void)ipc_send(h->ch, &m);
}

void pending_approvals_called(struct pending_approvals *h, const char *sandbox, uint64_t tokens_in,
                              uint64_t tokens_out, uint64_t cost)
{
    struct msg m;
    if (h->ch == NULL)
        return;
    msg_init(&m, W_CALLED);
    msg_put_str(&m, sandbox);
    msg_put_u64(&m, tokens_in);
    msg_put_u64(&m, tokens_out);
    msg_put_u64(&m, cost);
    (void)ipc_send(h->ch, &m);
}
