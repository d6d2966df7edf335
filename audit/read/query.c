/* Matches lines with a filter: the line filter looks at their bytes first, and only what it leaves
 * is parsed as JSON. An end is judged with what its request's beginning said. */
#include "query.h"

#include "buf.h"
#include "ngrams.h"
#include "id_lines.h"
#include "line_filter.h"
#include "timestamp.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { BEGUN_SLOTS = 8192, BACKWARDS_SLOTS = 65536 };

struct query {
    struct query_filter f;
    struct line_filter line_filter;
    query_fn fn;
    void *arg;
    uint64_t bad, matched;
    struct id_lines *begun;   /* beginnings that an end may yet ask for */
    struct id_lines *waiting; /* backwards: ends whose beginning is still to come. Else NULL */
};

struct query *query_new(const struct query_filter *f, query_fn fn, void *arg)
{
    struct query *q = calloc(1, sizeof *q);
    if (q == NULL || (q->begun = id_lines_new(BEGUN_SLOTS)) == NULL) {
        free(q);
        return NULL;
    }
    q->f = *f;
    line_filter_init(&q->line_filter, f);
    q->fn = fn;
    q->arg = arg;
    return q;
}

struct query *query_backwards(const struct query_filter *f, query_fn fn, void *arg)
{
    struct query *q = query_new(f, fn, arg);
    if (q == NULL)
        return NULL;
    id_lines_free(q->begun);
    q->begun = id_lines_new(BACKWARDS_SLOTS);
    q->waiting = id_lines_new(BACKWARDS_SLOTS);
    if (q->begun && q->waiting)
        return q;
    query_free(q);
    return NULL;
}

void query_free(struct query *q)
{
    if (q == NULL)
        return;
    id_lines_free(q->begun);
    id_lines_free(q->waiting);
    free(q);
}

bool query_waits(const struct query *q)
{
    return q->waiting && id_lines_count(q->waiting) > 0;
}

void query_forget(struct query *q)
{
    id_lines_clear(q->waiting);
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

struct slice query_host(struct slice s)
{
    if (s.n && s.p[0] == '[') {
        ssize_t end = slice_find(s, ']');
        return end > 0 ? (struct slice){s.p + 1, (size_t)end - 1} : s;
    }
    ssize_t colon = slice_find(s, ':');
    return colon >= 0 ? (struct slice){s.p, (size_t)colon} : s;
}

static bool is_host(const char *want, const char *authority)
{
    struct slice host = query_host(slice_str(authority)), w = slice_str(want);
    if (w.n && w.p[0] == '.')
        return host.n > w.n && slice_ieq((struct slice){host.p + (host.n - w.n), w.n}, w);
    return slice_ieq(host, w) || slice_ieq(slice_str(authority), w);
}

static bool contains(struct slice line, const char *text)
{
    struct slice part[2];
    ngrams_parts(line, part);
    return line_filter_find(part[0], slice_str(text)) || line_filter_find(part[1], slice_str(text));
}

static bool in_time(const struct query_filter *f, const char *received)
{
    uint64_t at;
    if (f->since == 0 && f->until == 0)
        return true;
    if (timestamp_parse(received, 0, &at, NULL) < 0)
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

/* A value with a zero in it is no shorter one: the zero becomes what no filter's plain text is
 * (U+FFFD), and so it is compared whole, as the indexes and the line filter read it. */
static int show_zeros(json_t *line)
{
    static const char mark[] = "\xef\xbf\xbd";
    const char *key;
    json_t *v;
    json_object_foreach(line, key, v)
    {
        const char *s = json_string_value(v);
        size_t n = json_string_length(v);
        struct buf to;
        if (s == NULL || strlen(s) == n)
            continue;
        buf_init(&to, n * (sizeof mark - 1));
        int bad = 0;
        for (size_t i = 0; i < n; i++)
            bad |= s[i] ? buf_append(&to, s + i, 1) : buf_append_str(&to, mark);
        bad |= bad ? 0 : json_string_setn(v, (const char *)buf_data(&to), buf_len(&to));
        buf_free(&to);
        if (bad)
            return -1;
    }
    return 0;
}

static json_t *read_json(const char *p, size_t n)
{
    static const char zero[] = "\\u0000";
    json_t *line = json_loadb(p, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    if (line == NULL || memmem(p, n, zero, sizeof zero - 1) == NULL || show_zeros(line) == 0)
        return line;
    json_decref(line);
    return NULL;
}

/* A line that may match: the whole reading. */
static void judge(struct query *q, struct slice line, enum record_kind kind, struct slice beginning)
{
    struct query_row row = {.line = line, .kind = kind, .beginning = beginning};
    json_t *json = read_json(line.p, line.n);
    json_t *begun = beginning.n ? read_json(beginning.p, beginning.n) : NULL;
    if (json == NULL) {
        q->bad++;
    } else {
        fill(&row, json, begun);
        if (matches(&q->f, &row) && (!q->f.wanted || q->f.wanted(q->f.wanted_arg, &row))) {
            q->matched++;
            q->fn(q->arg, &row);
        }
    }
    json_decref(json);
    json_decref(begun);
}

static void read_end(struct query *q, struct slice line, const struct line_id *id,
                     enum record_kind kind, bool quiet)
{
    struct slice beginning = {"", 0};
    bool known = id_lines_get(q->begun, id, &beginning), begun = known && beginning.n > 0;
    if (!known && q->waiting && line_filter_waits(&q->line_filter, line, kind)) {
        id_lines_put(q->waiting, id, line);
        return;
    }
    if (!quiet && line_filter_may(&q->line_filter, line, kind, begun) &&
        line_filter_itself(&q->line_filter, line, kind))
        judge(q, line, kind, beginning);
}

/* The end that was met before its beginning is judged now. */
static void take_waiting(struct query *q, const struct line_id *id, struct slice line, bool wanted)
{
    struct slice end;
    struct render_head h;
    if (q->waiting == NULL || !id_lines_get(q->waiting, id, &end))
        return;
    if (wanted && render_parse(end, &h) == 0)
        judge(q, end, h.kind, line);
    id_lines_drop(q->waiting, id);
}

void query_line(struct query *q, unsigned tag, struct slice line, bool quiet)
{
    struct render_head h;
    if (render_parse(line, &h) < 0) {
        q->bad++;
        return;
    }
    struct line_id id = {tag, h.channel, h.counter};
    if (h.kind == RECORD_COMPLETED || h.kind == RECORD_ABORTED) {
        read_end(q, line, &id, h.kind, quiet);
        return;
    }
    bool may = line_filter_may(&q->line_filter, line, h.kind, false);
    if (h.kind == RECORD_ADMITTED) {
        take_waiting(q, &id, line, may);
        if (may)
            id_lines_put(q->begun, &id, line);
        else if (q->waiting) /* its end need not wait for it */
            id_lines_put(q->begun, &id, (struct slice){"", 0});
    }
    if (may && !quiet && line_filter_itself(&q->line_filter, line, h.kind))
        judge(q, line, h.kind, (struct slice){"", 0});
}

void query_show(struct slice line, struct slice beginning, query_fn fn, void *arg)
{
    struct render_head h;
    json_t *json = read_json(line.p, line.n);
    json_t *begun = beginning.n ? read_json(beginning.p, beginning.n) : NULL;
    if (json && render_parse(line, &h) == 0) {
        struct query_row row = {.line = line, .kind = h.kind, .beginning = beginning};
        fill(&row, json, begun);
        fn(arg, &row);
    }
    json_decref(json);
    json_decref(begun);
}
