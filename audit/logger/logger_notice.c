/* Thresholds: what was reached goes into the log, and to the parent, which sees that it is told and
 * that what is to follow does. */
#include "logger_internal.h"

#include "timestamp.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

int logger_take_thresholds(struct logger *l, struct msg *m)
{
    struct config_threshold list[NOTIFY_MAX];
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > NOTIFY_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t measure, then;
        uint32_t seconds;
        if ((msg_get_u8(m, &measure) | msg_get_u64(m, &list[i].limit) | msg_get_u32(m, &seconds) |
             msg_get_u8(m, &then)) < 0 ||
            measure == 0 || measure >= NOTIFY_MEASURES || then > NOTIFY_KILL || seconds == 0 ||
            list[i].limit == 0 || (measure == NOTIFY_HOSTS && list[i].limit > NOTIFY_HOSTS_MAX))
            return -1;
        list[i].measure = (enum notify_measure)measure;
        list[i].then = (enum notify_then)then;
        list[i].seconds = seconds;
    }
    if (n)
        l->thresholds = thresholds_new(list, n);
    return n == 0 || l->thresholds ? 0 : -1;
}

int logger_take_suppressions(struct logger *l, struct msg *m)
{
    struct suppressions *list = malloc(sizeof *list);
    int r = list ? suppressions_get(list, m) : -1;
    if (r == 0 && l->thresholds)
        thresholds_suppress(l->thresholds, list);
    free(list);
    return r;
}

/* The line's seq; 0 when it found no room. */
static uint64_t record(struct logger *l, const struct crossing *x)
{
    const struct config_threshold *c = thresholds_at(l->thresholds, x->index);
    char count[24], detail[128];
    struct render_source from = {
        .role = role_name(ROLE_LOGGER), .sandbox = x->sandbox, .policy = x->policy};
    struct record_view v = {
        .kind = RECORD_LIFECYCLE, .wall_ns = timestamp_now(), .counter = log_file_seq(l->log) + 1};
    int n = snprintf(count, sizeof count, "%llu", (unsigned long long)x->value);
    snprintf(detail, sizeof detail, "limit %llu within %u s; then %s", (unsigned long long)c->limit,
             c->seconds, config_notify_then(c->then));
    v.field[RF_EVENT] = SLICE("threshold");
    v.field[RF_CODE] = slice_str(config_notify_measure(c->measure));
    v.field[RF_COUNT] = (struct slice){count, (size_t)n};
    v.field[RF_DETAIL] = slice_str(detail);
    v.field[RF_REQUEST] = slice_str(x->request);
    if (log_file_put(l->log, &v, &from, 0, v.wall_ns) < 0)
        return 0;
    counts_note(&l->counts, &v, &from);
    return log_file_seq(l->log);
}

void logger_notice(struct logger *l)
{
    struct crossing x;
    struct msg m;
    while (l->thresholds && log_file_room(l->log) && thresholds_take(l->thresholds, &x)) {
        uint64_t seq = record(l, &x);
        if (seq == 0)
            logger_warn(l, "a reached threshold found no room in the log");
        if (l->control == NULL)
            continue;
        msg_init(&m, W_NOTICE);
        msg_put_u32(&m, (uint32_t)x.index);
        msg_put_u64(&m, x.value);
        msg_put_u64(&m, seq);
        msg_put_str(&m, x.request);
        msg_put_str(&m, x.sandbox);
        msg_put_str(&m, x.policy);
        ipc_send(l->control, &m);
    }
}
