/* Two lanes, log records and spans: each gathers items while its last batch is under way, and waits
 * longer after each try that failed. */
#include "otlp.h"

#include "subscribers.h"
#include "meter.h"
#include "otlp_record.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

enum { WAITING_MAX = 1 << 20, BATCH = 256 << 10, TURN_MS = 1000, TRIES = 5, PAUSE_MS = 1000 };

enum sort { LOGS, SPANS, SORTS };

/* Log records, or spans. */
struct lane {
    struct otlp *otlp;
    const char *url; /* borrowed; NULL: none of these */
    const char *head, *tail;
    struct buf waiting, batch; /* items, with commas between */
    size_t n_waiting, n_batch;
    unsigned tries;
    uint64_t not_before; /* us */
    void *fetch;         /* NULL: none is under way */
};

struct otlp {
    struct fetch_means *means;
    struct otlp_ids ids;
    struct lane lanes[SORTS];
    struct event *timer;
    uint64_t skipped; /* records that the logger did not show us, so far */
};

/* ---- sending ---- */

static void sent(struct lane *l, bool taken)
{
    meter_add(taken ? METER_EXPORTED : METER_EXPORT_DROPPED, l->n_batch);
    buf_clear(&l->batch);
    l->n_batch = 0;
    l->tries = 0;
}

static bool worth_another(unsigned status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static void pump(struct lane *l);

static void on_answer(void *arg, unsigned status, struct slice body UNUSED, const char *why UNUSED)
{
    struct lane *l = arg;
    l->fetch = NULL;
    bool taken = status >= 200 && status < 300;
    if (!taken && worth_another(status) && ++l->tries < TRIES)
        l->not_before = meter_now() + ((uint64_t)PAUSE_MS * 1000 << l->tries);
    else
        sent(l, taken);
}

static int begin(struct lane *l)
{
    struct token_request r;
    token_request_init(&r, l->url);
    buf_free(&r.body);
    buf_init(&r.body, WAITING_MAX + 4096);
    struct buf *type = token_request_field(&r, "content-type");
    struct buf *agent = token_request_field(&r, "user-agent");
    bool ok = type && agent && buf_append_str(type, "application/json") == 0 &&
              buf_append_str(agent, "durward/" PACKAGE_VERSION) == 0 &&
              buf_append_str(&r.body, l->head) == 0 &&
              buf_append_slice(&r.body, buf_slice(&l->batch)) == 0 &&
              buf_append_str(&r.body, l->tail) == 0;
    l->fetch = ok ? fetch_start(l->otlp->means, &r, on_answer, l) : NULL;
    token_request_free(&r);
    return l->fetch ? 0 : -1;
}

static void pump(struct lane *l)
{
    if (l->url == NULL || l->fetch || meter_now() < l->not_before)
        return;
    if (l->n_batch == 0 && l->n_waiting) {
        struct buf empty = l->batch;
        l->batch = l->waiting;
        l->waiting = empty;
        l->n_batch = l->n_waiting;
        l->n_waiting = 0;
    }
    if (l->n_batch && begin(l) < 0)
        l->not_before = meter_now() + (uint64_t)PAUSE_MS * 1000;
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct otlp *o = arg;
    for (size_t i = 0; i < SORTS; i++)
        pump(&o->lanes[i]);
}

/* ---- taking ---- */

/* Takes the item. */
static void put(struct lane *l, json_t *item)
{
    char *text = item ? json_dumps(item, JSON_COMPACT) : NULL;
    size_t n = text ? strlen(text) : 0;
    json_decref(item);
    if (n == 0 || n + 1 > buf_room(&l->waiting) ||
        (l->n_waiting && buf_append_str(&l->waiting, ",") < 0) ||
        buf_append_str(&l->waiting, text) < 0)
        meter_add(METER_EXPORT_DROPPED, 1);
    else
        l->n_waiting++;
    free(text);
    if (buf_len(&l->waiting) > BATCH)
        pump(l);
}

static void line(struct otlp *o, struct slice s)
{
    json_t *record = json_loadb(s.p, s.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    json_t *spans[OTLP_SPANS];
    if (!json_is_object(record)) {
        meter_add(METER_EXPORT_DROPPED, 1);
        json_decref(record);
        return;
    }
    if (o->lanes[LOGS].url)
        put(&o->lanes[LOGS], otlp_log(&o->ids, record));
    size_t n = o->lanes[SPANS].url ? otlp_spans(&o->ids, record, spans) : 0;
    for (size_t i = 0; i < n; i++)
        put(&o->lanes[SPANS], spans[i]);
    json_decref(record);
}

void otlp_watched(struct otlp *o, const struct watched *w, struct slice key)
{
    struct slice lines = w->lines;
    uint64_t skipped = 0;
    ssize_t nl;
    if (w->part != SUBSCRIBERS_LIVE && key.n == sizeof o->ids.key)
        memcpy(o->ids.key, key.p, key.n);
    for (size_t i = 0; i < RECORD_KINDS; i++)
        skipped += w->skipped[i];
    if (skipped > o->skipped)
        meter_add(METER_EXPORT_DROPPED, skipped - o->skipped);
    o->skipped = skipped;
    while ((nl = slice_find(lines, '\n')) >= 0) {
        line(o, (struct slice){lines.p, (size_t)nl});
        lines.p += nl + 1;
        lines.n -= (size_t)nl + 1;
    }
}

/* ---- birth and death ---- */

/* What every batch begins with: who speaks. */
static char *head_of(const char *resources, const char *scopes, const char *items)
{
    char host[256] = "unknown";
    if (gethostname(host, sizeof host - 1) < 0)
        host[0] = 0;
    json_t *name = json_sprintf("%s", host);
    json_t *attributes = json_pack(
        "[{s:s, s:{s:s}}, {s:s, s:{s:s}}, {s:s, s:{s:o}}]", "key", "service.name", "value",
        "stringValue", "durward", "key", "service.version", "value", "stringValue", PACKAGE_VERSION,
        "key", "host.name", "value", "stringValue", name ? name : json_string("unknown"));
    char *own = attributes ? json_dumps(attributes, JSON_COMPACT) : NULL;
    json_t *all = json_sprintf("{\"%s\":[{\"resource\":{\"attributes\":%s},\"%s\":[{\"scope\":"
                               "{\"name\":\"durward.audit\"},\"%s\":[",
                               resources, own ? own : "[]", scopes, items);
    char *text = all ? strdup(json_string_value(all)) : NULL;
    json_decref(attributes);
    json_decref(all);
    free(own);
    return text;
}

static int lane_init(struct otlp *o, enum sort s, const char *url, char *head)
{
    o->lanes[s] = (struct lane){.otlp = o, .url = url, .head = head, .tail = "]}]}]}"};
    buf_init(&o->lanes[s].waiting, WAITING_MAX);
    buf_init(&o->lanes[s].batch, WAITING_MAX);
    return head ? 0 : -1;
}

struct otlp *otlp_new(struct event_base *base, struct fetch_means *means, const char *logs,
                      const char *spans)
{
    struct timeval every = {TURN_MS / 1000, 0};
    struct otlp *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->means = means;
    o->timer = event_new(base, -1, EV_PERSIST, on_timer, o);
    int bad = otlp_ids_init(&o->ids);
    bad |= lane_init(o, LOGS, logs, head_of("resourceLogs", "scopeLogs", "logRecords"));
    bad |= lane_init(o, SPANS, spans, head_of("resourceSpans", "scopeSpans", "spans"));
    if (bad == 0 && o->timer && event_add(o->timer, &every) == 0)
        return o;
    otlp_free(o);
    return NULL;
}

void otlp_free(struct otlp *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < SORTS; i++) {
        struct lane *l = &o->lanes[i];
        if (l->fetch)
            fetch_cancel(l->fetch);
        buf_free(&l->waiting);
        buf_free(&l->batch);
        free((char *)(uintptr_t)l->head);
    }
    if (o->timer)
        event_free(o->timer);
    otlp_ids_done(&o->ids);
    free(o);
}
