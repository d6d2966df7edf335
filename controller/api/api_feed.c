/* GET /v1/audit/stream: the audit log as it is written, as server-sent events (WHATWG HTML 9.2).
 *
 *   event: lines    data: one line of the log each, as it stands in the file
 *   event: live     what was written before is told: from here on it is what happens
 *   event: state    each second: {"skipped": {kind: n}, "logger": bool, "key": hex}
 *
 * Whoever is slow is passed over and told how many records of which kind it was not shown. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "fleet_hosts.h"
#include "subscribers.h"
#include "journal.h"
#include "quota.h"
#include "wire.h"

enum { VIEWERS_MAX = 32, KEY_HEX = 129 };

struct viewer {
    struct quota_part part;
    struct feed *feed;
    struct stream *stream;
    uint64_t wants; /* number of the telling of what is kept that is for it */
    uint64_t skipped[RECORD_KINDS];
    LIST_ENTRY(viewer) link;
};

struct feed {
    struct api *api;
    LIST_HEAD(, viewer) viewers;
    struct quota quota;       /* of viewers, by token */
    uint64_t asked, answered; /* how often the logger was asked for what it keeps, and told it */
    uint64_t missed[RECORD_KINDS]; /* as the logger said last */
    char key[KEY_HEX];
    struct event *beat;
};

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                           "Connection: close\r\n\r\n";

/* ---- what is told ---- */

static json_t *skipped(const struct viewer *v)
{
    json_t *o = json_object();
    for (enum record_kind k = 1; k < RECORD_KINDS; k++)
        if (v->skipped[k])
            json_object_set_new(o, record_kind_name(k), json_integer((json_int_t)v->skipped[k]));
    return o;
}

static void tell_state(struct viewer *v)
{
    struct feed *f = v->feed;
    bool here = f->api->controller->owner.recording;
    json_t *o = json_pack("{s:o, s:b, s:s}", "skipped", skipped(v), "logger", here, "key", f->key);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (text)
        evbuffer_add_printf(stream_out(v->stream), "event: state\ndata: %s\n\n", text);
    free(text);
    json_decref(o);
}

static void on_beat(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct feed *f = arg;
    struct viewer *v;
    LIST_FOREACH(v, &f->viewers, link)
    if (!stream_full(v->stream))
        tell_state(v);
}

static void tell_lines(struct viewer *v, struct slice lines)
{
    struct evbuffer *out = stream_out(v->stream);
    ssize_t nl;
    if (lines.n == 0)
        return;
    if (stream_full(v->stream)) {
        subscribers_count(lines, v->skipped);
        return;
    }
    evbuffer_add_printf(out, "event: lines\n");
    while ((nl = slice_find(lines, '\n')) >= 0) {
        evbuffer_add(out, "data: ", 6);
        evbuffer_add(out, lines.p, (size_t)nl + 1);
        lines.p += nl + 1;
        lines.n -= (size_t)nl + 1;
    }
    evbuffer_add(out, "\n", 1);
}

/* ---- the logger ---- */

static void count_missed(struct feed *f, const struct watched *w)
{
    struct viewer *v;
    for (size_t k = 0; k < RECORD_KINDS; k++) {
        /* it counts from 0 again when another logger does */
        uint64_t more = w->skipped[k] - (w->skipped[k] < f->missed[k] ? 0 : f->missed[k]);
        f->missed[k] = w->skipped[k];
        LIST_FOREACH(v, &f->viewers, link)
        v->skipped[k] += f->answered >= v->wants ? more : 0;
    }
}

static void take_key(struct feed *f, struct slice key)
{
    for (size_t i = 0; i < key.n && 2 * i + 3 <= sizeof f->key; i++)
        snprintf(f->key + 2 * i, 3, "%02x", (unsigned)(unsigned char)key.p[i]);
}

const char *feed_key(const struct feed *f)
{
    return f->key;
}

static int on_logger(void *arg, struct msg *m)
{
    struct feed *f = arg;
    struct viewer *v;
    struct watched w;
    struct slice key;
    if (m->type == W_FLEET_KNOWN)
        return fleet_hosts_log(f->api->controller->fleet_hosts, m);
    if (subscribers_get(m, &w, &key) < 0)
        return -1;
    count_missed(f, &w);
    if (w.part == SUBSCRIBERS_KEPT_END)
        take_key(f, key);
    LIST_FOREACH(v, &f->viewers, link)
    {
        bool its_turn =
            w.part == SUBSCRIBERS_LIVE ? f->answered >= v->wants : f->answered + 1 == v->wants;
        if (!its_turn)
            continue;
        tell_lines(v, w.lines);
        if (w.part == SUBSCRIBERS_KEPT_END) {
            tell_state(v);
            evbuffer_add_printf(stream_out(v->stream), "event: live\ndata:\n\n");
        }
    }
    if (w.part == SUBSCRIBERS_KEPT_END) {
        f->answered++;
        if (LIST_EMPTY(&f->viewers)) /* the key was all we wanted */
            journal_watch(f->api->controller->journal, false);
    }
    return 0;
}

/* Asked at once, whoever watches or nobody: with what is kept comes its key, which the log on the
 * disk is compared with. */
void api_logger_here(struct api *a)
{
    struct feed *f = a->feed;
    struct viewer *v;
    f->key[0] = 0;
    f->answered = f->asked; /* what the dead one owed does not come any more */
    memset(f->missed, 0, sizeof f->missed);
    if (journal_watch(a->controller->journal, true) < 0)
        return;
    f->asked++;
    LIST_FOREACH(v, &f->viewers, link)
    v->wants = f->asked;
}

/* ---- viewers ---- */

static void on_read(void *arg UNUSED, struct evbuffer *in)
{
    evbuffer_drain(in, evbuffer_get_length(in)); /* it has nothing to say */
}

static void on_gone(void *arg)
{
    struct viewer *v = arg;
    struct feed *f = v->feed;
    LIST_REMOVE(v, link);
    quota_leave(&v->part);
    free(v);
    if (!LIST_EMPTY(&f->viewers))
        return;
    evtimer_del(f->beat);
    journal_watch(f->api->controller->journal, false);
}

static const struct stream_ops viewer_ops = {.read = on_read, .gone = on_gone};

void api_watch(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    struct feed *f = a->feed;
    struct timeval second = {1, 0};
    struct viewer *v = calloc(1, sizeof *v);
    const char *who = a->bearer ? a->bearer->id : "";
    if (v == NULL || quota_take(&f->quota, &v->part, slice_str(who), 1) != QUOTA_TAKEN) {
        free(v);
        api_refuse(req, 503, "unavailable", "too many watch already");
        return;
    }
    v->feed = f;
    v->wants = f->asked + 1;
    v->stream = stream_take(a, req, head, &viewer_ops, v);
    if (v->stream == NULL) {
        quota_leave(&v->part);
        free(v);
        api_refuse(req, 500, "internal", "out of memory");
        return;
    }
    if (LIST_EMPTY(&f->viewers))
        event_add(f->beat, &second);
    LIST_INSERT_HEAD(&f->viewers, v, link);
    tell_state(v);
    if (journal_watch(a->controller->journal, true) == 0)
        f->asked++; /* else when a logger is here */
}

struct feed *feed_new(struct api *a)
{
    struct feed *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->api = a;
    f->quota = (struct quota){.total = VIEWERS_MAX, .each = VIEWERS_MAX};
    LIST_INIT(&f->viewers);
    f->beat = event_new(a->controller->base, -1, EV_PERSIST, on_beat, f);
    if (f->beat == NULL) {
        free(f);
        return NULL;
    }
    journal_on_other(a->controller->journal, on_logger, f);
    return f;
}

void feed_free(struct feed *f)
{
    if (f == NULL)
        return;
    journal_on_other(f->api->controller->journal, NULL, NULL);
    event_free(f->beat);
    free(f);
}
