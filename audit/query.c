#include "query.h"

#include "sieve.h"
#include "stamp.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { BEGUN_SLOTS = 8192 };

/* Beginnings, by directory and id; a newer one takes the slot, so memory is bounded. */
struct begun {
    unsigned tag;
    uint32_t channel;
    uint64_t counter;
    json_t *json; /* NULL: empty */
};

struct query {
    struct query_filter f;
    struct sieve sieve;
    query_fn fn;
    void *arg;
    uint64_t bad, matched;
    struct begun begun[BEGUN_SLOTS];
};

struct query *query_new(const struct query_filter *f, query_fn fn, void *arg)
{
    struct query *q = calloc(1, sizeof *q);
    if (q) {
        q->f = *f;
        sieve_init(&q->sieve, f);
        q->fn = fn;
        q->arg = arg;
    }
    return q;
}

void query_free(struct query *q)
{
    if (q == NULL)
        return;
    for (size_t i = 0; i < BEGUN_SLOTS; i++)
        json_decref(q->begun[i].json);
    free(q);
}

uint64_t query_bad(const struct query *q)
{
    return q->bad;
}

uint64_t query_matched(const struct query *q)
{
    return q->matched;
}

unsigned query_kinds(const char *list)
{
    unsigned kinds = 0;
    struct slice s = slice_str(list);
    for (;;) {
        ssize_t comma = slice_find(s, ',');
        struct slice word = {s.p, comma < 0 ? s.n : (size_t)comma};
        enum record_kind k = slice_eq_str(word, "allow") || slice_eq_str(word, "allowed")
                                 ? RECORD_ADMITTED
                             : slice_eq_str(word, "deny") ? RECORD_DENIED
                                                          : render_kind(word);
        if (k == 0)
            return 0;
        kinds |= 1U << k;
        if (comma < 0)
            return kinds;
        s.p += comma + 1;
        s.n -= (size_t)comma + 1;
    }
}

static const char *text_of(const json_t *own, const json_t *begun, const char *key)
{
    const char *s = json_string_value(json_object_get(own, key));
    if (s == NULL)
        s = json_string_value(json_object_get(begun, key));
    return s ? s : "";
}

static int64_t number_of(const json_t *own, const char *key)
{
    const json_t *v = json_object_get(own, key);
    return json_is_integer(v) ? json_integer_value(v) : -1;
}

static void fill(struct query_row *r, const json_t *own, const json_t *begun)
{
    r->time = text_of(own, NULL, "time");
    r->received = text_of(own, NULL, "received");
    r->id = text_of(own, NULL, "id");
    r->role = text_of(own, NULL, "role");
    r->code = text_of(own, NULL, "code");
    r->target = text_of(own, NULL, "target");
    r->detail = text_of(own, NULL, "detail");
    r->event = text_of(own, NULL, "event");
    r->address = text_of(own, NULL, "address");
    r->sandbox = text_of(own, begun, "sandbox");
    r->policy = text_of(own, begun, "policy");
    r->method = text_of(own, begun, "method");
    r->scheme = text_of(own, begun, "scheme");
    r->authority = text_of(own, begun, "authority");
    r->path = text_of(own, begun, "path");
    r->rule = text_of(own, begun, "rule");
    r->credential = text_of(own, begun, "credential");
    r->status = number_of(own, "status");
    r->count = number_of(own, "count");
    r->ms = number_of(own, "ms");
    r->up = number_of(own, "bytes_up");
    r->down = number_of(own, "bytes_down");
}

static bool same(const char *want, const char *have)
{
    return want == NULL || strcmp(want, have) == 0;
}

/* The host of "host", "host:port", "[v6]:port". */
static struct slice host_of(const char *authority)
{
    struct slice s = slice_str(authority);
    if (s.n && s.p[0] == '[') {
        ssize_t end = slice_find(s, ']');
        return end > 0 ? (struct slice){s.p + 1, (size_t)end - 1} : s;
    }
    ssize_t colon = slice_find(s, ':');
    return colon >= 0 ? (struct slice){s.p, (size_t)colon} : s;
}

static bool is_host(const char *want, const char *authority)
{
    struct slice host = host_of(authority), w = slice_str(want);
    if (w.n && w.p[0] == '.')
        return host.n > w.n && slice_ieq((struct slice){host.p + (host.n - w.n), w.n}, w);
    return slice_ieq(host, w) || slice_ieq(slice_str(authority), w);
}

static bool contains(struct slice line, const char *text)
{
    struct slice t = slice_str(text);
    for (size_t i = 0; t.n <= line.n && i <= line.n - t.n; i++)
        if (slice_ieq((struct slice){line.p + i, t.n}, t))
            return true;
    return false;
}

static bool in_time(const struct query_filter *f, const char *received)
{
    uint64_t at;
    if (f->since == 0 && f->until == 0)
        return true;
    if (stamp_parse(received, 0, &at, NULL) < 0)
        return false;
    return at >= f->since && (f->until == 0 || at < f->until);
}

static bool matches(const struct query_filter *f, const struct query_row *r)
{
    if (f->kinds && !(f->kinds & 1U << r->kind))
        return false;
    if (f->status && f->status != r->status)
        return false;
    if (!same(f->sandbox, r->sandbox) || !same(f->policy, r->policy) || !same(f->role, r->role) ||
        !same(f->rule, r->rule) || !same(f->credential, r->credential) || !same(f->id, r->id) ||
        !same(f->code, r->code) || !same(f->method, r->method))
        return false;
    if (f->host && !is_host(f->host, r->authority) && !is_host(f->host, r->target))
        return false;
    return in_time(f, r->received) && (f->text == NULL || contains(r->line, f->text));
}

static struct begun *slot(struct query *q, unsigned tag, const struct render_head *h)
{
    uint64_t n = (h->counter ^ (uint64_t)h->channel << 40 ^ (uint64_t)tag << 56) *
                 UINT64_C(0x9e3779b97f4a7c15);
    return &q->begun[n >> 32 & (BEGUN_SLOTS - 1)];
}

/* The beginning of this record's id, if it is still remembered. */
static const json_t *begun_of(struct query *q, unsigned tag, const struct render_head *h)
{
    const struct begun *b = slot(q, tag, h);
    bool same_id = b->tag == tag && b->channel == h->channel && b->counter == h->counter;
    return same_id ? b->json : NULL;
}

static void remember(struct query *q, unsigned tag, const struct render_head *h, json_t *json)
{
    struct begun *b = slot(q, tag, h);
    json_decref(b->json);
    *b = (struct begun){tag, h->channel, h->counter, json_incref(json)};
}

void query_line(struct query *q, unsigned tag, struct slice line, bool quiet)
{
    struct query_row row = {.line = line};
    struct render_head h;
    if (render_parse(line, &h) < 0) {
        q->bad++;
        return;
    }
    bool is_end = h.kind == RECORD_COMPLETED || h.kind == RECORD_ABORTED;
    const json_t *begun = is_end ? begun_of(q, tag, &h) : NULL;
    if (!sieve_may(&q->sieve, line, h.kind, begun != NULL))
        return;
    json_t *json = json_loadb(line.p, line.n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    if (json == NULL) {
        q->bad++;
        return;
    }
    row.kind = h.kind;
    if (h.kind == RECORD_ADMITTED)
        remember(q, tag, &h, json);
    fill(&row, json, begun);
    if (!quiet && matches(&q->f, &row)) {
        q->matched++;
        q->fn(q->arg, &row);
    }
    json_decref(json);
}
