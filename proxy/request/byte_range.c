/* Reads Range, widens it, and cuts the reply to what was asked for. */
#include "byte_range.h"

#include "field_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RANGE_TEXT = 64 };

/* Azure's own field, and it counts where both are there. */
static const char *const names[] = {"x-ms-range", "range"};

static const uint64_t most = INT64_MAX;

static bool number(struct slice s, uint64_t *ret)
{
    return s.n > 0 && slice_u64(s, most, ret) == 0;
}

static bool read_value(struct slice v, struct byte_range *r)
{
    static const struct slice unit = SLICE_INIT("bytes=");
    if (!slice_istarts(v, unit))
        return false;
    v = (struct slice){v.p + unit.n, v.n - unit.n};
    ssize_t dash = slice_find(v, '-');
    if (dash < 0)
        return false;
    struct slice first = {v.p, (size_t)dash}, last = {v.p + dash + 1, v.n - (size_t)dash - 1};
    r->suffix = 0;
    r->last = UINT64_MAX;
    if (first.n == 0)
        return number(last, &r->suffix) && r->suffix > 0;
    return number(first, &r->first) &&
           (last.n == 0 || (number(last, &r->last) && r->last >= r->first));
}

void byte_range_read(const struct head *h, struct byte_range *ret)
{
    *ret = (struct byte_range){.name = NULL};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = http_head_count(h, names[i]);
        if (n == 0)
            continue;
        if (n == 1 && slice_eq_str(h->method, "GET") &&
            read_value(http_head_find(h, names[i])->value, ret))
            ret->name = names[i];
        return;
    }
}

/* Apache's httpd and old Jetty read Request-Range where there is no Range, and what hands fields on
 * as CGI variables reads "x_ms_range". */
static bool is_twin(struct slice name)
{
    if (field_same(name, SLICE("request-range")))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (field_same(name, slice_str(names[i])) && !slice_eq_str(name, names[i]))
            return true;
    return false;
}

void byte_range_drop_twins(struct head *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!is_twin(h->fields[i].name))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
}

/* What asks for a sum of the part: it would be one of other bytes than the client gets. Azure
 * refuses it where there is no part. */
static void drop_sums(struct head *h)
{
    static const char *const sums[] = {"x-ms-range-get-content-md5", "x-ms-range-get-content-crc64",
                                       "x-amz-checksum-mode"};
    for (size_t i = 0; i < ARRAY_LEN(sums); i++)
        http_head_remove(h, sums[i]);
}

void byte_range_drop(struct head *h)
{
    byte_range_drop_twins(h);
    drop_sums(h);
    http_head_remove(h, "range");
    http_head_remove(h, "if-range");
    if (slice_eq_str(h->method, "GET")) /* what is written at has one, too */
        http_head_remove(h, names[0]);
}

int byte_range_widen(const struct byte_range *r, struct head *h, uint64_t margin)
{
    char text[RANGE_TEXT];
    uint64_t first = r->first > margin ? r->first - margin : 0;
    if (r->suffix)
        snprintf(text, sizeof text, "bytes=-%" PRIu64,
                 r->suffix > most - margin ? most : r->suffix + margin);
    else if (r->last > most - margin)
        snprintf(text, sizeof text, "bytes=%" PRIu64 "-", first);
    else
        snprintf(text, sizeof text, "bytes=%" PRIu64 "-%" PRIu64, first, r->last + margin);
    byte_range_drop_twins(h);
    drop_sums(h);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        http_head_remove(h, names[i]);
    return http_head_add(h, r->name, slice_str(text));
}

/* ---- the reply ---- */

struct content_range {
    uint64_t first, last, total; /* total: UINT64_MAX where it is not said */
};

static bool read_content_range(const struct head *h, struct content_range *ret)
{
    static const struct slice unit = SLICE_INIT("bytes ");
    const struct field *f = http_head_find(h, "content-range");
    if (f == NULL || http_head_count(h, "content-range") != 1 || !slice_istarts(f->value, unit))
        return false;
    struct slice v = {f->value.p + unit.n, f->value.n - unit.n};
    ssize_t dash = slice_find(v, '-'), slash = slice_find(v, '/');
    if (dash < 0 || slash < dash)
        return false;
    struct slice total = {v.p + slash + 1, v.n - (size_t)slash - 1};
    ret->total = UINT64_MAX;
    return number((struct slice){v.p, (size_t)dash}, &ret->first) &&
           number((struct slice){v.p + dash + 1, (size_t)(slash - dash) - 1}, &ret->last) &&
           ret->last >= ret->first &&
           (slice_eq_str(total, "*") || (number(total, &ret->total) && ret->total > ret->last));
}

/* It speaks of the wider part's bytes. Azure's x-ms-content-md5 is one of the whole file. */
static bool is_sum(struct slice name)
{
    static const char *const sums[] = {"content-md5", "content-digest", "digest",
                                       "x-ms-content-crc64"};
    for (size_t i = 0; i < ARRAY_LEN(sums); i++)
        if (slice_eq_str(name, sums[i]))
            return true;
    return slice_starts(name, SLICE("x-amz-checksum-"));
}

static int say(struct head *h, const char *content_range, uint64_t n)
{
    char length[24];
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!is_sum(h->fields[i].name))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
    snprintf(length, sizeof length, "%" PRIu64, n);
    if (http_head_find(h, "content-length") &&
        http_head_set(h, "content-length", slice_str(length)) < 0)
        return -1;
    if (h->body == BODY_LENGTH)
        h->length = n;
    return http_head_set(h, "content-range", slice_str(content_range));
}

/* The margin begins behind the file's end, and the part does not. */
static int cut_none(struct head *h, uint64_t total, struct byte_cut *ret)
{
    char text[RANGE_TEXT];
    snprintf(text, sizeof text, "bytes */%" PRIu64, total);
    *ret = (struct byte_cut){.on = true, .skip = UINT64_MAX};
    if (say(h, text, 0) < 0)
        return -1;
    h->status = 416;
    h->body = BODY_NONE;
    h->length = 0;
    return 0;
}

int byte_range_cut(const struct byte_range *r, uint64_t margin, struct head *h,
                   struct byte_cut *ret)
{
    struct content_range got;
    char text[RANGE_TEXT], total[24] = "*";
    *ret = (struct byte_cut){.on = false};
    if (r->name == NULL || h->status != 206)
        return 0;
    if (!read_content_range(h, &got) || h->body == BODY_NONE ||
        (h->body == BODY_LENGTH && h->length != got.last - got.first + 1))
        return -1;
    bool to_end = got.total != UINT64_MAX && got.last == got.total - 1;
    uint64_t first = r->first, last = r->last, asked = r->first > margin ? r->first - margin : 0;
    if (r->suffix) {
        if (!to_end)
            return -1;
        first = got.total > r->suffix ? got.total - r->suffix : 0;
        asked = first > margin ? first - margin : 0;
        last = got.last;
    }
    if (got.first != asked ||
        (r->suffix == 0 && r->last != UINT64_MAX && got.last > r->last + margin))
        return -1;
    if (first > got.last)
        return to_end ? cut_none(h, got.total, ret) : -1;
    if (!to_end) { /* what follows is not here, so there is no margin but this */
        uint64_t seen = got.last > margin ? got.last - margin : 0;
        last = last < seen ? last : seen;
    }
    last = last < got.last ? last : got.last;
    if (last < first)
        return -1;
    if (got.total != UINT64_MAX)
        snprintf(total, sizeof total, "%" PRIu64, got.total);
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%s", first, last, total);
    *ret = (struct byte_cut){.on = true,
                             .skip = first - got.first,
                             .take = last - first + 1,
                             .rest = got.last - got.first + 1};
    return say(h, text, ret->take);
}

struct slice byte_cut_take(struct byte_cut *c, struct slice s)
{
    if (!c->on)
        return s;
    if (c->skip == UINT64_MAX)
        return (struct slice){s.p, 0};
    c->bad = c->bad || s.n > c->rest;
    c->rest -= c->bad ? c->rest : s.n;
    size_t skipped = s.n < c->skip ? s.n : (size_t)c->skip;
    c->skip -= skipped;
    s = (struct slice){s.p + skipped, s.n - skipped};
    if (s.n > c->take)
        s.n = (size_t)c->take;
    c->take -= s.n;
    if (s.n > 0 && c->take == 0) {
        c->last[0] = s.p[--s.n];
        c->held = true;
    }
    return s;
}

bool byte_cut_close(struct byte_cut *c, size_t n)
{
    c->bad = c->bad || (c->on && c->skip != UINT64_MAX && n != c->rest);
    return !c->bad;
}

struct slice byte_cut_end(struct byte_cut *c)
{
    struct slice s = {c->last, c->held};
    c->held = false;
    return s;
}
