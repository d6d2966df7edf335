/* Holds the names of all counters and the values of this process, and sends the values to the
 * parent when they have changed, at most once a second. */
#include "meter.h"

#include "wire.h"

#include <event2/event.h>
#include <string.h>
#include <time.h>

enum { REPORT_SECONDS = 1 };

const struct meter_about meter_about[METER_COUNT] = {
    [METER_SESSIONS] = {"sessions_total", "Connections of sandboxes that were taken", false},
    [METER_SESSIONS_OPEN] = {"sessions", "Connections of sandboxes open now", true},
    [METER_HANDSHAKES] = {"handshakes_total", "TLS handshakes with sandboxes", false},
    [METER_HANDSHAKES_REFUSED] = {"handshakes_refused_total",
                                  "TLS handshakes with sandboxes that failed", false},
    [METER_LEAVES_CACHED] = {"leaf_cache_hits_total", "Leaf certificates found at hand", false},
    [METER_MINTS] = {"mints_total", "Leaf certificates minted", false},
    [METER_MINTS_REFUSED] = {"mints_refused_total", "Leaf certificates refused by the signer",
                             false},
    [METER_DIALS] = {"dials_total", "Connections to origins asked for", false},
    [METER_DIALS_FAILED] = {"dials_failed_total", "Connections to origins that could not be made",
                            false},
    [METER_DIALS_QUEUED] = {"dials_queued_total", "Connections to origins that waited to be begun",
                            false},
    [METER_ORIGIN_HANDSHAKES] = {"origin_handshakes_total", "TLS handshakes with origins", false},
    [METER_ORIGIN_RESUMED] = {"origin_resumed_total", "of these, resumed sessions", false},
    [METER_POOL_REUSED] = {"pool_reused_total", "Requests that took a pooled connection", false},
    [METER_POOL_FRESH] = {"pool_fresh_total", "Requests that found no pooled connection", false},
    [METER_POOL_IDLE] = {"pool_idle", "Idle connections to origins", true},
    [METER_SECRETS] = {"secrets_released_total", "Values the vault released to injectors", false},
    [METER_SECRETS_FAILED] = {"secrets_failed_total", "Values the vault could not release", false},
    [METER_SECRETS_DOWN] = {"secrets_unreadable", "Secrets whose store failed the last time", true},
    [METER_SCRUBBED_BYTES] = {"scrubbed_bytes_total",
                              "Bytes of replies that were searched for secrets", false},
    [METER_SCRUB_HITS] = {"scrub_hits_total", "Secrets found in replies and taken out", false},
    [METER_RECORDS] = {"audit_records_total", "Records written to the audit log", false},
    [METER_RECORD_BYTES] = {"audit_bytes_total", "Bytes written to the audit log", false},
    [METER_LOG_FAILURES] = {"audit_failures_total", "Times the audit log became unwritable", false},
    [METER_LOG_FAILING] = {"audit_failing", "1 while the audit log cannot be written", true},
    [METER_LOG_PACED] =
        {"audit_paced_total",
         "Times a sandbox had used up its share of the log, at most one a minute and writer",
         false},
    [METER_WATCH_SKIPPED] = {"watch_skipped_total",
                             "Records that a slow watcher was not shown (they are in the log)",
                             false},
    [METER_NOTICES] = {"notices_total", "Thresholds of audit.notify that were reached", false},
    [METER_DELIVERED] = {"deliveries_total", "Notices and checkpoints that were delivered", false},
    [METER_DELIVERY_RETRIES] = {"delivery_retries_total", "Deliveries that were tried again",
                                false},
    [METER_DELIVERIES_LOST] = {"deliveries_lost_total",
                               "Notices and checkpoints that could not be delivered", false},
    [METER_ACTIONS] = {"threshold_actions_total",
                       "Sandboxes that were to be paused or ended because of a threshold", false},
    [METER_EXPORTED] = {"otlp_exported_total", "Log records and spans that the OTLP receiver took",
                        false},
    [METER_EXPORT_DROPPED] =
        {"otlp_dropped_total",
         "Log records and spans that were not exported (the records are in the log)", false},
    [METER_CAPTURE_LOST] = {"capture_lost_total",
                            "Pieces of bodies (capture_body) that found no room in a journal",
                            false},
    [METER_MODEL_CALLS] = {"model_calls_total", "Calls to models that went (rules with llm)",
                           false},
    [METER_TOKENS_IN] = {"model_tokens_in_total",
                         "Tokens that calls to models sent, as the replies say", false},
    [METER_TOKENS_CACHED] = {"model_tokens_cached_total",
                             "of these, read from the provider's cache", false},
    [METER_TOKENS_OUT] = {"model_tokens_out_total",
                          "Tokens that models answered, as the replies say", false},
    [METER_USAGE_UNKNOWN] = {"model_usage_unknown_total",
                             "Calls to models whose reply did not say what they took", false},
    [METER_COST] = {"model_cost_millionths_total",
                    "What calls to models cost, by the table of prices, in millionths", false},
    [METER_VOLUMES] = {"volumes", "Volumes and snapshots of volumes that there are", true},
    [METER_VOLUME_BYTES] = {"volume_bytes", "Bytes that they may have together", true},
};

const struct meter_about meter_span_about[SPAN_COUNT] = {
    [SPAN_REQUEST] = {"request_duration_seconds", "From a request's head to the end of its reply",
                      false},
    [SPAN_MINT] = {"mint_duration_seconds", "Waiting for a leaf certificate", false},
    [SPAN_DIAL] = {"dial_duration_seconds", "Resolving, checking and connecting, without TLS",
                   false},
    [SPAN_AUDIT_LAG] = {"audit_lag_seconds", "From the making of a record to its line in the log",
                        false},
};

const uint32_t meter_bound_us[METER_BUCKETS - 1] = {
    500,    1000,   2500,    5000,    10000,    25000,    50000,    100000,
    250000, 500000, 1000000, 2500000, 10000000, 60000000, 600000000};

static struct {
    struct meters now;
    struct ipc *parent;
    struct event *timer; /* NULL: this process does not report */
    bool due;
} own;

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
    struct msg m;
    own.due = false;
    msg_init(&m, W_METERS);
    meters_put(&m, &own.now);
    ipc_send(own.parent, &m); /* a dead channel says so by its closed callback */
}

static void changed(void)
{
    struct timeval tv = {REPORT_SECONDS, 0};
    if (own.due || own.timer == NULL)
        return;
    own.due = true;
    event_add(own.timer, &tv);
}

int meter_report(struct event_base *base, struct ipc *parent)
{
    own.parent = parent;
    own.timer = evtimer_new(base, on_timer, NULL);
    return own.timer ? 0 : -1;
}

void meter_report_end(void)
{
    if (own.timer)
        event_free(own.timer);
    own.timer = NULL;
    own.due = false;
}

void meter_add(enum meter m, uint64_t n)
{
    own.now.count[m] += n;
    changed();
}

void meter_set(enum meter m, uint64_t n)
{
    if (own.now.count[m] == n)
        return;
    own.now.count[m] = n;
    changed();
}

void meter_down(enum meter m)
{
    if (own.now.count[m])
        meter_set(m, own.now.count[m] - 1);
}

void meter_time(enum meter_span s, uint64_t us)
{
    size_t i = 0;
    while (i < METER_BUCKETS - 1 && us > meter_bound_us[i])
        i++;
    own.now.span[s].bucket[i]++;
    own.now.span[s].us += us;
    changed();
}

uint64_t meter_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

const struct meters *meters_own(void)
{
    return &own.now;
}

/* ---- reports ---- */

void meters_put(struct msg *m, const struct meters *v)
{
    for (size_t i = 0; i < METER_COUNT; i++)
        msg_put_u64(m, v->count[i]);
    for (size_t s = 0; s < SPAN_COUNT; s++) {
        for (size_t i = 0; i < METER_BUCKETS; i++)
            msg_put_u64(m, v->span[s].bucket[i]);
        msg_put_u64(m, v->span[s].us);
    }
}

int meters_get(struct msg *m, struct meters *v)
{
    int r = 0;
    for (size_t i = 0; i < METER_COUNT; i++)
        r |= msg_get_u64(m, &v->count[i]);
    for (size_t s = 0; s < SPAN_COUNT; s++) {
        for (size_t i = 0; i < METER_BUCKETS; i++)
            r |= msg_get_u64(m, &v->span[s].bucket[i]);
        r |= msg_get_u64(m, &v->span[s].us);
    }
    return r;
}

static void sum(uint64_t *to, uint64_t n)
{
    *to = *to > UINT64_MAX - n ? UINT64_MAX : *to + n;
}

void meters_sum(struct meters *to, const struct meters *from, bool past)
{
    for (size_t i = 0; i < METER_COUNT; i++)
        if (!past || !meter_about[i].gauge)
            sum(&to->count[i], from->count[i]);
    for (size_t s = 0; s < SPAN_COUNT; s++) {
        for (size_t i = 0; i < METER_BUCKETS; i++)
            sum(&to->span[s].bucket[i], from->span[s].bucket[i]);
        sum(&to->span[s].us, from->span[s].us);
    }
}
