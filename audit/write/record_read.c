/* Decodes a record field by field and refuses what record.c never writes: unknown kinds and fields,
 * a field twice, a number with leading zeros, the logger's own kinds. */
#include "record_read.h"

#include <string.h>

enum { REST_MIN = 17 }; /* kind, wall clock, counter */

static uint64_t get_be(const unsigned char *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static bool is_canonical_number(struct slice s)
{
    uint64_t v;
    return slice_u64(s, INT64_MAX, &v) == 0 && (s.n == 1 || s.p[0] != '0');
}

/* One field at p; returns its size or -1. */
static ssize_t read_field(struct record_view *v, const unsigned char *p, size_t n, const char **why)
{
    if (n < 3) {
        *why = "a field is cut off";
        return -1;
    }
    unsigned f = p[0];
    size_t len = (size_t)get_be(p + 1, 2);
    if (f == 0 || f >= RF_FIELDS) {
        *why = "unknown field";
        return -1;
    }
    if (len == 0 || len > RECORD_FIELD_MAX || len > n - 3) {
        *why = "a field's length is out of bounds";
        return -1;
    }
    if (v->field[f].n) {
        *why = "a field is there twice";
        return -1;
    }
    struct slice s = {(const char *)p + 3, len};
    if (record_field_is_number((enum record_field)f) && !is_canonical_number(s)) {
        *why = "a number is not one";
        return -1;
    }
    v->field[f] = s;
    return (ssize_t)(3 + len);
}

ssize_t record_read(struct record_view *v, const unsigned char *p, size_t n, const char **why)
{
    *why = "";
    memset(v, 0, sizeof *v);
    if (n < 4)
        return 0;
    size_t rest = (size_t)get_be(p, 4);
    if (rest < REST_MIN || rest > RECORD_MAX - 4) {
        *why = "a record's length is out of bounds";
        return -1;
    }
    if (n - 4 < rest)
        return 0;
    unsigned kind = p[4] & 0x7fU;
    v->cut = (p[4] & 0x80U) != 0;
    v->wall_ns = get_be(p + 5, 8);
    v->counter = get_be(p + 13, 8);
    if (kind == 0 || kind >= RECORD_KINDS || kind == RECORD_CHECKPOINT || kind == RECORD_GAP) {
        *why = "unknown kind";
        return -1;
    }
    if (v->counter == 0) {
        *why = "no counter";
        return -1;
    }
    v->kind = (enum record_kind)kind;
    for (size_t at = 4 + REST_MIN; at < 4 + rest;) {
        ssize_t r = read_field(v, p + at, 4 + rest - at, why);
        if (r < 0)
            return -1;
        at += (size_t)r;
    }
    return (ssize_t)(4 + rest);
}
