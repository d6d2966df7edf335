/* Replies that a proxy is to mend (RFC 9112 5.1, RFC 9110 8.6, 6.4.1): what comes out is judged as
 * strictly as what needed no mending. Never a request. */
#include "http1_head.h"

#include <stdio.h>
#include <string.h>

struct mending {
    struct buf *out;
    bool bodiless;       /* 204, 304: no coding says anything */
    struct slice length; /* of the first Content-Length that was kept */
    unsigned done;       /* enum repair */
    bool failed;
};

static void put(struct mending *r, struct slice name, struct slice value)
{
    r->failed |= buf_append_slice(r->out, name) < 0 || buf_append_str(r->out, ": ") < 0 ||
                 buf_append_slice(r->out, value) < 0 || buf_append_str(r->out, "\r\n") < 0;
}

/* The one number of "5", "5, 5", …; empty: there are several, or none. */
static struct slice one_number(struct slice v)
{
    struct slice first = {NULL, 0};
    uint64_t number;
    while (v.n > 0) {
        ssize_t comma = slice_find(v, ',');
        struct slice t = slice_trim((struct slice){v.p, comma < 0 ? v.n : (size_t)comma});
        if (slice_u64(t, INT64_MAX, &number) < 0 || (first.n > 0 && !slice_eq(t, first)))
            return (struct slice){NULL, 0};
        first = t;
        if (comma < 0)
            break;
        v = (struct slice){v.p + comma + 1, v.n - (size_t)comma - 1};
    }
    return first;
}

/* True: it stands there already, or as one number now. */
static bool length_kept(struct mending *r, struct slice name, struct slice value)
{
    struct slice one = one_number(value);
    if (one.n == 0 || (r->length.n > 0 && !slice_eq(one, r->length)))
        return false;
    if (r->length.n > 0 || one.n != value.n)
        r->done |= REPAIR_LENGTH;
    if (r->length.n == 0)
        put(r, name, one);
    r->length = one;
    return true;
}

static void field(struct mending *r, struct slice line)
{
    ssize_t colon = slice_find(line, ':');
    struct slice name = {line.p, colon < 0 ? 0 : (size_t)colon};
    while (name.n > 0 && (name.p[name.n - 1] == ' ' || name.p[name.n - 1] == '\t'))
        name.n--;
    if (name.n == 0 || line.p[0] == ' ' || line.p[0] == '\t') { /* nothing to mend: refused later */
        r->failed |= buf_append_slice(r->out, line) < 0 || buf_append_str(r->out, "\r\n") < 0;
        return;
    }
    if (name.n != (size_t)colon)
        r->done |= REPAIR_NAME;
    struct slice value = slice_trim((struct slice){line.p + colon + 1, line.n - (size_t)colon - 1});
    if (r->bodiless && slice_ieq_str(name, "transfer-encoding"))
        r->done |= REPAIR_CODING;
    else if (!slice_ieq_str(name, "content-length") || !length_kept(r, name, value))
        put(r, name, value);
}

/* Whether any line could need it; most replies are as they should be, and are not copied. */
static bool may_need(struct slice rest, bool bodiless)
{
    size_t lengths = 0;
    for (ssize_t lf; rest.n > 2 && (lf = slice_find(rest, '\n')) >= 1;) {
        struct slice line = {rest.p, (size_t)lf};
        ssize_t colon = slice_find(line, ':');
        if (colon < 1 || line.p[colon - 1] == ' ' || line.p[colon - 1] == '\t')
            return true;
        struct slice name = {line.p, (size_t)colon};
        if (slice_ieq(name, SLICE("content-length")))
            lengths += slice_find(line, ',') < 0 ? 1 : 2;
        if (lengths > 1 || (bodiless && slice_ieq(name, SLICE("transfer-encoding"))))
            return true;
        rest = (struct slice){rest.p + lf + 1, rest.n - (size_t)lf - 1};
    }
    return false;
}

int http1_repair_reply(struct slice raw, struct buf *out)
{
    ssize_t lf = slice_find(raw, '\n');
    if (lf < 13 || raw.n < 4)
        return 0;
    struct slice status = {raw.p + 9, 3}, rest = {raw.p + lf + 1, raw.n - (size_t)lf - 1};
    struct mending r = {
        .out = out, .bodiless = slice_eq(status, SLICE("204")) || slice_eq(status, SLICE("304"))};
    if (!may_need(rest, r.bodiless))
        return 0;
    r.failed = buf_append(out, raw.p, (size_t)lf + 1) < 0;
    while (rest.n > 2 && (lf = slice_find(rest, '\n')) >= 1) {
        field(&r, (struct slice){rest.p, (size_t)lf - 1});
        rest = (struct slice){rest.p + lf + 1, rest.n - (size_t)lf - 1};
    }
    r.failed |= buf_append_slice(out, rest) < 0;
    return r.failed ? -1 : (int)r.done;
}

const char *repair_text(unsigned repaired, char to[REPAIR_TEXT])
{
    snprintf(to, REPAIR_TEXT, "%s%s%s", repaired & REPAIR_NAME ? ", name" : "",
             repaired & REPAIR_LENGTH ? ", length" : "",
             repaired & REPAIR_CODING ? ", coding" : "");
    return to[0] ? to + 2 : to;
}
