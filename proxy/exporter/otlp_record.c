/* Makes OTLP's JSON of a record, and spans when a request's end is on record. The start of a
 * request is kept in a table of fixed size: where another one took its place, the span has less to
 * say. */
#include "otlp_record.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRACE_HEX = 33, SPAN_HEX = 17, KIND_INTERNAL = 1, KIND_SERVER = 2, KIND_CLIENT = 3 };
enum { SEVERITY_INFO = 9, SEVERITY_WARN = 13, SEVERITY_ERROR = 17, STATUS_ERROR = 2 };

int otlp_ids_init(struct otlp_ids *ids)
{
    memset(ids, 0, sizeof *ids);
    ids->begun = calloc(OTLP_OPEN, sizeof(json_t *));
    return ids->begun ? 0 : -1;
}

void otlp_ids_done(struct otlp_ids *ids)
{
    for (size_t i = 0; ids->begun && i < OTLP_OPEN; i++)
        json_decref(ids->begun[i]);
    free(ids->begun);
    ids->begun = NULL;
}

/* ---- parts ---- */

static const char *text(const json_t *r, const char *key)
{
    const char *s = r ? json_string_value(json_object_get(r, key)) : NULL;
    return s ? s : "";
}

static uint64_t number(const json_t *r, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(r, key));
    return n > 0 ? (uint64_t)n : 0;
}

/* "2026-01-02T03:04:05.000000006Z", as the logger wrote it. */
static uint64_t nanoseconds(const char *s)
{
    struct tm tm = {0};
    unsigned long ns = 0;
    if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d.%9luZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ns) != 7)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    time_t t = timegm(&tm);
    return t < 0 ? 0 : (uint64_t)t * 1000000000 + ns;
}

/* 64-bit numbers are text in OTLP's JSON. */
static json_t *wide(uint64_t n)
{
    return json_sprintf("%" PRIu64, n);
}

static void add(json_t *list, const char *key, json_t *value)
{
    if (value)
        json_array_append_new(list, json_pack("{s:s, s:o}", "key", key, "value", value));
}

static void add_text(json_t *list, const char *key, const char *value)
{
    if (value[0])
        add(list, key, json_pack("{s:s}", "stringValue", value));
}

static void add_number(json_t *list, const char *key, const json_t *r, const char *of)
{
    const json_t *n = json_object_get(r, of);
    if (json_is_integer(n))
        add(list, key, json_pack("{s:o}", "intValue", wide((uint64_t)json_integer_value(n))));
}

/* ---- numbers of traces ---- */

static void hash(const struct otlp_ids *ids, const char *id, const char *part,
                 unsigned char out[SHA256_DIGEST_LENGTH])
{
    unsigned char all[sizeof ids->key + 128];
    memcpy(all, ids->key, sizeof ids->key);
    int n = snprintf((char *)all + sizeof ids->key, 128, "%.60s %.40s", id, part);
    SHA256(all, sizeof ids->key + (size_t)n, out);
}

static void hex(const unsigned char *p, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", p[i]);
}

static void trace_of(const struct otlp_ids *ids, const char *id, char trace[TRACE_HEX])
{
    unsigned char h[SHA256_DIGEST_LENGTH];
    hash(ids, id, "trace", h);
    hex(h, 16, trace);
}

static void span_of(const struct otlp_ids *ids, const char *id, const char *part,
                    char span[SPAN_HEX])
{
    unsigned char h[SHA256_DIGEST_LENGTH];
    hash(ids, id, part, h);
    hex(h, 8, span);
}

/* ---- logs ---- */

static bool is(const json_t *r, const char *kind)
{
    return strcmp(text(r, "kind"), kind) == 0;
}

static bool about_request(const json_t *r)
{
    return is(r, "admitted") || is(r, "denied") || is(r, "completed") || is(r, "aborted") ||
           is(r, "opened") || is(r, "progress");
}

static int severity(const json_t *r)
{
    if (is(r, "lifecycle") && strcmp(text(r, "event"), "threshold") == 0)
        return SEVERITY_ERROR;
    bool bad = is(r, "denied") || is(r, "aborted") || is(r, "tls_refused") || is(r, "packet") ||
               (is(r, "dns") && strcmp(text(r, "code"), "ok") != 0);
    return bad ? SEVERITY_WARN : SEVERITY_INFO;
}

static json_t *body_of(const json_t *r)
{
    const char *what = text(r, "event")[0] ? text(r, "event") : text(r, "code");
    const char *where = text(r, "authority")[0] ? text(r, "authority") : text(r, "target");
    const char *method = text(r, "method");
    return json_pack("{s:o}", "stringValue",
                     json_sprintf("%s%s%s%s%s%s%s%s", text(r, "kind"), what[0] ? " " : "", what,
                                  method[0] ? " " : "", method, where[0] ? " " : "", where,
                                  text(r, "path")));
}

static json_t *all_of(const json_t *r)
{
    json_t *list = json_array(), *value;
    const char *key;
    char name[80];
    json_object_foreach((json_t *)(uintptr_t)r, key, value)
    {
        snprintf(name, sizeof name, "durward.%.64s", key);
        if (json_is_string(value))
            add_text(list, name, json_string_value(value));
        else if (json_is_integer(value))
            add_number(list, name, r, key);
        else if (json_is_boolean(value))
            add(list, name, json_pack("{s:b}", "boolValue", json_is_true(value)));
    }
    return list;
}

json_t *otlp_log(const struct otlp_ids *ids, const json_t *r)
{
    int level = severity(r);
    const char *id = about_request(r) ? text(r, "id") : text(r, "request");
    json_t *log =
        json_pack("{s:o, s:o, s:i, s:s, s:o, s:o, s:o}", "timeUnixNano",
                  wide(nanoseconds(text(r, "time"))), "observedTimeUnixNano",
                  wide(nanoseconds(text(r, "received"))), "severityNumber", level, "severityText",
                  level == SEVERITY_INFO   ? "INFO"
                  : level == SEVERITY_WARN ? "WARN"
                                           : "ERROR",
                  "eventName", json_sprintf("durward.%s", text(r, "kind")), "body", body_of(r),
                  "attributes", all_of(r));
    if (log && id[0]) {
        char trace[TRACE_HEX], span[SPAN_HEX];
        trace_of(ids, id, trace);
        span_of(ids, id, "request", span);
        json_object_set_new(log, "traceId", json_string(trace));
        json_object_set_new(log, "spanId", json_string(span));
    }
    return log;
}

/* ---- spans ---- */

struct times {
    uint64_t begin, end; /* ns */
};

static json_t *span(const struct otlp_ids *ids, const char *id, const char *part, const char *name,
                    int kind, struct times t, json_t *attributes)
{
    char trace[TRACE_HEX], own[SPAN_HEX], parent[SPAN_HEX];
    trace_of(ids, id, trace);
    span_of(ids, id, part, own);
    json_t *s = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "traceId", trace, "spanId", own,
                          "name", name, "kind", kind, "startTimeUnixNano", wide(t.begin),
                          "endTimeUnixNano", wide(t.end), "attributes", attributes);
    if (s && strcmp(part, "request") != 0) {
        span_of(ids, id, "request", parent);
        json_object_set_new(s, "parentSpanId", json_string(parent));
    }
    return s;
}

/* The semantic conventions' names where there are some. */
static json_t *request_attributes(const json_t *begun, const json_t *end)
{
    json_t *list = json_array();
    const json_t *from = begun ? begun : end;
    add_text(list, "http.request.method", text(from, "method"));
    add_text(list, "url.scheme", text(from, "scheme"));
    add_text(list, "server.address", text(from, "authority"));
    add_text(list, "url.path", text(from, "path"));
    add_number(list, "http.response.status_code", end, "status");
    add_number(list, "http.request.body.size", end, "bytes_up");
    add_number(list, "http.response.body.size", end, "bytes_down");
    add_text(list, "network.peer.address", text(end, "address"));
    add_text(list, "network.protocol.name", text(end, "protocol"));
    add_text(list, "tls.protocol.version", text(end, "tls"));
    add_text(list, "durward.id", text(end, "id"));
    add_text(list, "durward.sandbox", text(end, "sandbox"));
    add_text(list, "durward.policy", text(end, "policy"));
    add_text(list, "durward.rule", text(from, "rule"));
    add_text(list, "durward.credential", text(from, "credential"));
    if (strcmp(text(end, "code"), "ok") != 0)
        add_text(list, "error.type", text(end, "code"));
    return list;
}

static json_t *request_span(const struct otlp_ids *ids, const json_t *begun, const json_t *end,
                            struct times t)
{
    char name[400];
    const char *method = text(begun, "method");
    snprintf(name, sizeof name, "%.40s %.300s", method[0] ? method : "request",
             text(begun, "authority"));
    json_t *s =
        span(ids, text(end, "id"), "request", name, KIND_SERVER, t, request_attributes(begun, end));
    bool failed = is(end, "aborted") || number(end, "status") >= 500;
    if (s && failed)
        json_object_set_new(
            s, "status",
            json_pack("{s:i, s:s}", "code", STATUS_ERROR, "message", text(end, "code")));
    return s;
}

static size_t step_spans(const struct otlp_ids *ids, const json_t *end, uint64_t at,
                         json_t *ret[OTLP_SPANS], size_t n)
{
    static const struct {
        const char *key, *name;
        int kind;
    } steps[] = {{"queue_ms", "queue", KIND_INTERNAL},
                 {"dial_ms", "dial", KIND_CLIENT},
                 {"tls_ms", "tls", KIND_CLIENT},
                 {"first_ms", "first byte", KIND_CLIENT}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && n < OTLP_SPANS; i++) {
        if (!json_object_get(end, steps[i].key))
            continue;
        struct times t = {at, at + number(end, steps[i].key) * 1000000};
        json_t *s = span(ids, text(end, "id"), steps[i].name, steps[i].name, steps[i].kind, t,
                         json_array());
        at = t.end;
        if (s)
            ret[n++] = s;
    }
    return n;
}

size_t otlp_spans(struct otlp_ids *ids, json_t *r, json_t *ret[OTLP_SPANS])
{
    unsigned char h[SHA256_DIGEST_LENGTH];
    uint32_t at;
    bool begins = is(r, "admitted");
    if (!begins && !is(r, "completed") && !is(r, "aborted"))
        return 0;
    hash(ids, text(r, "id"), "begun", h);
    memcpy(&at, h, sizeof at);
    json_t **slot = &ids->begun[at % OTLP_OPEN];
    bool its = *slot && strcmp(text(*slot, "id"), text(r, "id")) == 0;
    if (begins) {
        json_decref(*slot);
        *slot = json_incref(r);
        return 0;
    }
    struct times t = {.end = nanoseconds(text(r, "time"))};
    t.begin = json_object_get(r, "ms") ? t.end - number(r, "ms") * 1000000
              : its                    ? nanoseconds(text(*slot, "time"))
                                       : t.end;
    json_t *whole = request_span(ids, its ? *slot : NULL, r, t);
    size_t n = 0;
    if (whole)
        ret[n++] = whole;
    n = step_spans(ids, r, t.begin, ret, n);
    if (its) {
        json_decref(*slot);
        *slot = NULL;
    }
    return n;
}
