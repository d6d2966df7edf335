/* What a role counts about its own work, and how it tells the parent.
 *
 * Counters belong to the process, as its diagnostics do: they are added to from every layer and
 * read by nothing but the report, so they are the one thing here that is not passed around. A
 * report goes to the parent at most once a second, and only after something has changed: an idle
 * role says nothing. What a role counted in its last second before it ended may be missing. */
#ifndef DURWARD_METER_H
#define DURWARD_METER_H

#include "ipc.h"

enum meter {
    METER_SESSIONS,
    METER_SESSIONS_OPEN, /* gauge */
    METER_HANDSHAKES,
    METER_HANDSHAKES_REFUSED,
    METER_LEAVES_CACHED,
    METER_MINTS,
    METER_MINTS_REFUSED,
    METER_DIALS,
    METER_DIALS_FAILED,
    METER_DIALS_QUEUED,
    METER_ORIGIN_HANDSHAKES,
    METER_ORIGIN_RESUMED,
    METER_POOL_REUSED,
    METER_POOL_FRESH,
    METER_POOL_IDLE, /* gauge */
    METER_SECRETS,
    METER_SECRETS_FAILED,
    METER_SECRETS_DOWN, /* gauge */
    METER_SCRUBBED_BYTES,
    METER_SCRUB_HITS,
    METER_RECORDS,
    METER_RECORD_BYTES,
    METER_LOG_FAILURES,
    METER_LOG_FAILING, /* gauge: 1 while the audit log cannot be written */
    METER_LOG_PACED,
    METER_WATCH_SKIPPED,
    METER_NOTICES,
    METER_DELIVERED,
    METER_DELIVERY_RETRIES,
    METER_DELIVERIES_LOST,
    METER_ACTIONS,
    METER_EXPORTED,
    METER_EXPORT_DROPPED,
    METER_CAPTURE_LOST,
    METER_MODEL_CALLS,
    METER_TOKENS_IN,
    METER_TOKENS_CACHED,
    METER_TOKENS_OUT,
    METER_USAGE_UNKNOWN,
    METER_COST,
    METER_VOLUMES,      /* gauge */
    METER_VOLUME_BYTES, /* gauge */
    METER_COUNT
};

enum meter_span { SPAN_REQUEST, SPAN_MINT, SPAN_DIAL, SPAN_AUDIT_LAG, SPAN_COUNT };

enum { METER_BUCKETS = 16 }; /* the last one has no upper bound */

struct meter_times { /* a histogram */
    uint64_t bucket[METER_BUCKETS];
    uint64_t us; /* the sum */
};

struct meters {
    uint64_t count[METER_COUNT];
    struct meter_times span[SPAN_COUNT];
};

struct meter_about {
    const char *name, *help; /* as Prometheus has it, without "durward_" */
    bool gauge;
};

extern const struct meter_about meter_about[METER_COUNT];
extern const struct meter_about meter_span_about[SPAN_COUNT];
extern const uint32_t meter_bound_us[METER_BUCKETS - 1];

void meter_add(enum meter m, uint64_t n);
void meter_set(enum meter m, uint64_t n); /* a gauge */
void meter_down(enum meter m);            /* a gauge, by one */
void meter_time(enum meter_span s, uint64_t us);
uint64_t meter_now(void); /* us, monotonic; for differences */

/* From here on this process reports on this channel. -1: out of memory. */
int meter_report(struct event_base *base, struct ipc *parent);
void meter_report_end(void); /* before the channel or the loop goes */

/* ---- the parent's side ---- */

void meters_put(struct msg *m, const struct meters *v);
int meters_get(struct msg *m, struct meters *v); /* -1: malformed */
/* to += from, each value kept from turning over. past: of a process that ended, so no gauges. */
const struct meters *meters_own(void); /* of this process */
void meters_sum(struct meters *to, const struct meters *from, bool past);

#endif
