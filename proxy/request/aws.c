/* Reads the claim out of Authorization or a presigned query, and writes path, query and fields in
 * AWS's canonical form, in which S3 has the path in a way of its own. */
#include "aws.h"

#include "guard_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char algorithm[] = "AWS4-HMAC-SHA256";

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte from the downstream, its escape undone; a broken escape stands for itself. plus: for a
 * space.
 */
static unsigned char next_byte(struct slice *s, bool plus)
{
    unsigned char c = (unsigned char)s->p[0];
    size_t n = 1;
    if (c == '%' && s->n > 2 && hex_digit(s->p[1]) >= 0 && hex_digit(s->p[2]) >= 0) {
        c = (unsigned char)(hex_digit(s->p[1]) * 16 + hex_digit(s->p[2]));
        n = 3;
    } else if (c == '+' && plus) {
        c = ' ';
    }
    *s = (struct slice){s->p + n, s->n - n};
    return c;
}

static int put_encoded(struct buf *out, unsigned char c, bool slash)
{
    if (ascii_is_alnum((char)c) || (c && strchr("-._~", c)) || (c == '/' && slash))
        return buf_append(out, &c, 1);
    return buf_printf(out, "%%%02X", c);
}

/* ---- what the client claims ---- */

static int set_text(char *to, size_t size, struct slice s)
{
    if (s.n == 0 || s.n >= size)
        return -1;
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return 0;
}

/* "NAME=VALUE" of the list behind the algorithm. */
static struct slice part_of(struct slice list, struct slice name)
{
    while (list.n > 0) {
        ssize_t comma = slice_find(list, ',');
        size_t n = comma < 0 ? list.n : (size_t)comma;
        struct slice part = slice_trim((struct slice){list.p, n});
        if (slice_starts(part, name))
            return (struct slice){part.p + name.n, part.n - name.n};
        n += comma >= 0;
        list = (struct slice){list.p + n, list.n - n};
    }
    return (struct slice){"", 0};
}

/* ID/DAY/REGION/SERVICE/aws4_request; the ID may hold slashes in theory, so from the end. */
static int read_scope(struct slice credential, struct aws_claim *ret)
{
    struct slice at[4], rest = credential;
    for (int i = 3; i >= 0; i--) {
        size_t n = rest.n;
        while (n > 0 && rest.p[n - 1] != '/')
            n--;
        if (n == 0)
            return -1;
        at[i] = (struct slice){rest.p + n, rest.n - n};
        rest.n = n - 1;
    }
    ret->key_id = rest;
    return rest.n > 0 && slice_eq(at[3], SLICE("aws4_request")) && at[0].n == 8 &&
                   set_text(ret->region, sizeof ret->region, at[1]) == 0 &&
                   set_text(ret->service, sizeof ret->service, at[2]) == 0
               ? 0
               : -1;
}

static bool is_s3(const char *service)
{
    return strncmp(service, "s3", 2) == 0;
}

/* How much data there is, and the trailer's names. */
static const char *read_chunks(const struct head *h, bool trailer, struct aws_claim *ret)
{
    const struct field *length = http_head_find(h, "x-amz-decoded-content-length"),
                       *names = http_head_find(h, "x-amz-trailer");
    ret->payload = AWS_CHUNKS;
    if (h->body == BODY_NONE || http_head_count(h, "x-amz-decoded-content-length") != 1 ||
        slice_u64(length->value, INT64_MAX, &ret->decoded) < 0 ||
        http_head_count(h, "x-amz-trailer") != trailer)
        return "signature_streaming";
    if (trailer && set_text(ret->trailer, sizeof ret->trailer, names->value) < 0)
        return "signature_streaming";
    return NULL;
}

static const char *read_payload(const struct head *h, struct aws_claim *ret)
{
    const struct field *said = http_head_find(h, "x-amz-content-sha256");
    ret->payload = AWS_HASHED;
    if (said == NULL)
        return NULL;
    static const struct slice chunks = SLICE_INIT("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
                              trailer = SLICE_INIT("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER");
    struct slice v = said->value;
    if (http_head_count(h, "x-amz-content-sha256") > 1)
        return "signature";
    bool hex = v.n == AWS_HEX;
    for (size_t i = 0; hex && i < v.n; i++)
        hex = (v.p[i] >= '0' && v.p[i] <= '9') || (v.p[i] >= 'a' && v.p[i] <= 'f');
    if (hex) {
        ret->payload = AWS_CLAIMED;
    } else if (is_s3(ret->service) && (slice_eq(v, SLICE("UNSIGNED-PAYLOAD")) ||
                                       slice_eq(v, SLICE("STREAMING-UNSIGNED-PAYLOAD-TRAILER")))) {
        ret->payload = AWS_AS_SAID;
    } else if (is_s3(ret->service) && (slice_eq(v, chunks) || slice_eq(v, trailer))) {
        const char *bad = read_chunks(h, slice_eq(v, trailer), ret);
        if (bad)
            return bad;
    } else if (slice_starts(v, SLICE("STREAMING-"))) {
        return "signature_streaming"; /* signed in a way that we do not know */
    } else {
        return NULL; /* hashed by us */
    }
    return set_text(ret->hash, sizeof ret->hash, v) < 0 ? "signature" : NULL;
}

const char *aws_claim(const struct head *h, const struct credential *c, struct aws_claim *ret)
{
    const struct field *auth = http_head_find(h, "authorization");
    memset(ret, 0, sizeof *ret);
    if (http_head_count(h, "authorization") > 1)
        return "signature";
    if (auth == NULL) {
        if (!*c->region || !*c->service)
            return "signature_scope";
        snprintf(ret->region, sizeof ret->region, "%s", c->region);
        snprintf(ret->service, sizeof ret->service, "%s", c->service);
        return read_payload(h, ret);
    }
    struct slice list = auth->value;
    size_t n = sizeof algorithm - 1;
    if (!slice_starts(list, slice_str(algorithm)) || list.n <= n || list.p[n] != ' ')
        return "signature";
    list = (struct slice){list.p + n, list.n - n};
    struct slice names = part_of(list, SLICE("SignedHeaders="));
    if (read_scope(part_of(list, SLICE("Credential=")), ret) < 0 ||
        set_text(ret->signed_names, sizeof ret->signed_names, names) < 0)
        return "signature";
    if ((*c->region && strcmp(c->region, ret->region) != 0) ||
        (*c->service && strcmp(c->service, ret->service) != 0))
        return "signature_scope";
    return read_payload(h, ret);
}

void aws_strip(struct head *h)
{
    static const char *const own[] = {"authorization", "x-amz-date", "date", "x-amz-security-token",
                                      "x-amz-content-sha256"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        http_head_remove(h, own[i]);
}

/* ---- presigned ---- */

static int decoded(struct buf *out, struct slice v)
{
    while (v.n > 0) {
        unsigned char c = next_byte(&v, false);
        if (c <= 0x20 || c >= 0x7f || buf_append(out, &c, 1) < 0)
            return -1;
    }
    return 0;
}

static const char *const lifted[] = {
    "x-amz-algorithm",     "x-amz-credential", "x-amz-date",           "x-amz-expires",
    "x-amz-signedheaders", "x-amz-signature",  "x-amz-security-token", "x-amz-content-sha256"};
enum { L_ALGORITHM, L_CREDENTIAL, L_DATE, L_EXPIRES, L_NAMES, L_SIGNATURE, L_TOKEN, L_HASH, L_MAX };

/* The presigned parts, and the rest of the query. How many of them there were; -1 too many. */
static int take_query(const struct head *h, struct slice values[L_MAX], struct buf *rest)
{
    struct slice q = h->query;
    struct guard_part part;
    int seen = 0;
    while (guard_next_part(&q, false, &part)) {
        size_t i = 0;
        while (i < L_MAX && !guard_parameter_is(part.name, lifted[i]))
            i++;
        if (i < L_MAX) {
            if (values[i].p)
                return -1;
            values[i] = part.value;
            seen++;
        } else if ((buf_len(rest) > 0 && buf_append_str(rest, "&") < 0) ||
                   buf_append_slice(rest, part.whole) < 0) {
            return -1;
        }
    }
    return seen;
}

static int lift(struct head *h, struct slice values[L_MAX], struct buf *field)
{
    if (!values[L_CREDENTIAL].p || !values[L_NAMES].p || !values[L_SIGNATURE].p ||
        http_head_find(h, "authorization"))
        return -1;
    if (buf_printf(field, "%s Credential=", algorithm) < 0 ||
        decoded(field, values[L_CREDENTIAL]) < 0 || buf_append_str(field, ", SignedHeaders=") < 0 ||
        decoded(field, values[L_NAMES]) < 0 || buf_append_str(field, ", Signature=0") < 0 ||
        http_head_add(h, "authorization", buf_slice(field)) < 0)
        return -1;
    ssize_t s3 = slice_find_slice(buf_slice(field), SLICE("/s3/aws4_request"));
    if (s3 >= 0 && http_head_set(h, "x-amz-content-sha256", SLICE("UNSIGNED-PAYLOAD")) < 0)
        return -1;
    if (values[L_TOKEN].p == NULL)
        return 0;
    buf_clear(field);
    return decoded(field, values[L_TOKEN]) < 0
               ? -1
               : http_head_set(h, "x-amz-security-token", buf_slice(field));
}

const char *aws_lift(struct head *h)
{
    struct slice values[L_MAX] = {{NULL, 0}};
    struct buf rest, field;
    const char *bad = NULL;
    buf_init(&rest, h->query.n + 1);
    buf_init(&field, AWS_TOKEN_MAX + AWS_SIGNED_MAX);
    int seen = take_query(h, values, &rest);
    if (seen < 0 ||
        (seen > 0 && (lift(h, values, &field) < 0 ||
                      http_head_set_query(h, buf_slice(&rest), buf_len(&rest) > 0) < 0)))
        bad = "signature";
    buf_free(&rest);
    buf_free(&field);
    return bad;
}

/* ---- the canonical request ---- */

static int put_path(struct buf *out, struct slice path, const char *service)
{
    int r = 0;
    while (path.n > 0 && r == 0) {
        unsigned char c = (unsigned char)path.p[0];
        if (is_s3(service)) { /* encoded once, whatever it was */
            c = next_byte(&path, false);
            /* an escaped slash is not a separator */
            r = put_encoded(out, c, c == '/' && path.p[-1] == '/');
        } else { /* what was sent, encoded again */
            path = (struct slice){path.p + 1, path.n - 1};
            r = put_encoded(out, c, true);
        }
    }
    return r;
}

static int put_word(struct buf *out, struct slice s)
{
    int r = 0;
    while (s.n > 0 && r == 0)
        r = put_encoded(out, next_byte(&s, true), false);
    return r;
}

struct pair {
    struct slice name, value; /* encoded */
};

static int compare(struct slice a, struct slice b)
{
    int r = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return r ? r : (a.n > b.n) - (a.n < b.n);
}

static int by_name_then_value(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int r = compare(x->name, y->name);
    return r ? r : compare(x->value, y->value);
}

/* Encodes into `text`, which does not move: it has room for all at its birth. */
static size_t encode_query(struct slice q, struct buf *text, struct pair *pairs, size_t max)
{
    size_t n = 0;
    while (q.n > 0 && n < max) {
        ssize_t amp = slice_find(q, '&');
        struct slice part = {q.p, amp < 0 ? q.n : (size_t)amp};
        ssize_t eq = slice_find(part, '=');
        struct slice name = {part.p, eq < 0 ? part.n : (size_t)eq};
        struct slice value = eq < 0 ? (struct slice){"", 0}
                                    : (struct slice){part.p + eq + 1, part.n - (size_t)eq - 1};
        size_t skip = part.n + (amp >= 0);
        q = (struct slice){q.p + skip, q.n - skip};
        if (part.n == 0)
            continue;
        size_t at = buf_len(text), mid;
        if (put_word(text, name) < 0)
            return SIZE_MAX;
        mid = buf_len(text);
        if (put_word(text, value) < 0)
            return SIZE_MAX;
        struct slice all = buf_slice(text);
        pairs[n++] = (struct pair){{all.p + at, mid - at}, {all.p + mid, all.n - mid}};
    }
    return q.n > 0 ? SIZE_MAX : n;
}

static int put_query(struct buf *out, struct slice q)
{
    struct buf text;
    size_t parts = 1;
    for (size_t i = 0; i < q.n; i++)
        parts += q.p[i] == '&';
    struct pair *pairs = calloc(parts, sizeof *pairs);
    buf_init(&text, q.n * 3 + 1);
    size_t n =
        pairs && buf_reserve(&text, q.n * 3 + 1) ? encode_query(q, &text, pairs, parts) : SIZE_MAX;
    int r = n == SIZE_MAX ? -1 : 0;
    if (r == 0)
        qsort(pairs, n, sizeof *pairs, by_name_then_value);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = (i && buf_append_str(out, "&") < 0) || buf_append_slice(out, pairs[i].name) < 0 ||
                    buf_append_str(out, "=") < 0 || buf_append_slice(out, pairs[i].value) < 0
                ? -1
                : 0;
    buf_free(&text);
    free(pairs);
    return r;
}

static bool listed(const char *names, struct slice name)
{
    struct slice rest = slice_str(names);
    while (rest.n > 0) {
        ssize_t semicolon = slice_find(rest, ';');
        size_t n = semicolon < 0 ? rest.n : (size_t)semicolon;
        if (slice_ieq((struct slice){rest.p, n}, name))
            return true;
        n += semicolon >= 0;
        rest = (struct slice){rest.p + n, rest.n - n};
    }
    return false;
}

/* Blanks at the ends go, runs inside become one. */
static int put_value(struct buf *out, struct slice v)
{
    v = slice_trim(v);
    for (size_t i = 0; i < v.n; i++)
        if (!(v.p[i] == ' ' && i > 0 && v.p[i - 1] == ' ') && buf_append(out, v.p + i, 1) < 0)
            return -1;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return compare(((const struct field *)a)->name, ((const struct field *)b)->name);
}

/* Host, what the client signed and is still there, and every x-amz-*. */
static int put_fields(struct buf *out, const struct head *h, const struct authority *a,
                      const char *names, struct buf *list)
{
    struct field *fields = calloc(h->n + 1, sizeof *fields);
    char host[HOST_TEXT_MAX + 16];
    size_t n = 0;
    if (fields == NULL)
        return -1;
    fields[n++] = (struct field){SLICE("host"), slice_str(authority_text(a, host, sizeof host))};
    for (size_t i = 0; i < h->n; i++) {
        struct slice name = h->fields[i].name;
        bool first = true;
        for (size_t k = 0; first && k < i; k++)
            first = !slice_eq(h->fields[k].name, name);
        if (first && (slice_starts(name, SLICE("x-amz-")) || listed(names, name)))
            fields[n++] = h->fields[i];
    }
    qsort(fields, n, sizeof *fields, by_name);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        bool any = false, is_host = slice_eq(fields[i].name, SLICE("host"));
        r |= buf_append_slice(out, fields[i].name) | buf_append_str(out, ":");
        if (is_host)
            r |= put_value(out, fields[i].value);
        for (size_t k = 0; !is_host && k < h->n && r == 0; k++)
            if (slice_eq(h->fields[k].name, fields[i].name)) {
                r |= any ? buf_append_str(out, ",") : 0;
                r |= put_value(out, h->fields[k].value);
                any = true;
            }
        r |= buf_append_str(out, "\n") | (i ? buf_append_str(list, ";") : 0) |
             buf_append_slice(list, fields[i].name);
    }
    free(fields);
    return r ? -1 : 0;
}

int aws_canonical(struct buf *out, const struct head *h, const struct authority *a,
                  const char *service, const char *names, const char *payload,
                  char signed_names[AWS_SIGNED_MAX])
{
    struct buf list;
    buf_init(&list, AWS_SIGNED_MAX - 1);
    int r = buf_append_slice(out, h->method) | buf_append_str(out, "\n") |
            put_path(out, h->path, service) | buf_append_str(out, "\n") | put_query(out, h->query) |
            buf_append_str(out, "\n");
    r |= r ? -1 : put_fields(out, h, a, names, &list);
    r |= buf_append_str(out, "\n") | buf_append_slice(out, buf_slice(&list)) |
         buf_printf(out, "\n%s", payload);
    snprintf(signed_names, AWS_SIGNED_MAX, "%.*s", SL(buf_slice(&list)));
    buf_free(&list);
    return r ? -1 : 0;
}

int aws_prepare(struct head *h, const struct authority *a, const struct aws_claim *claim,
                struct slice body, struct slice token, int64_t now, struct aws_scope *ret,
                char signed_names[AWS_SIGNED_MAX])
{
    char hash[AWS_HEX + 1];
    struct tm tm;
    struct buf text;
    time_t t = (time_t)now;
    snprintf(hash, sizeof hash, "%s", claim->hash);
    if (gmtime_r(&t, &tm) == NULL || (claim->payload == AWS_HASHED && aws_hash(body, hash) < 0))
        return -1;
    strftime(ret->time, sizeof ret->time, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(ret->region, sizeof ret->region, "%s", claim->region);
    snprintf(ret->service, sizeof ret->service, "%s", claim->service);
    if (http_head_set(h, "x-amz-date", slice_str(ret->time)) < 0 ||
        (token.n > 0 && http_head_set(h, "x-amz-security-token", token) < 0) ||
        ((is_s3(claim->service) || claim->payload != AWS_HASHED) &&
         http_head_set(h, "x-amz-content-sha256", slice_str(hash)) < 0))
        return -1;
    buf_init_wiped(&text, 512 * 1024);
    int r = aws_canonical(&text, h, a, claim->service, claim->signed_names, hash, signed_names);
    if (r == 0)
        r = aws_hash(buf_slice(&text), ret->hash);
    buf_free(&text);
    return r;
}

int aws_finish(struct head *h, const struct aws_scope *s, const char *signed_names,
               struct slice key_id, struct slice signature)
{
    struct buf v;
    buf_init(&v, AWS_SIGNED_MAX + 1024);
    int r = buf_printf(&v,
                       "%s Credential=%.*s/%.8s/%s/%s/aws4_request, SignedHeaders=%s, "
                       "Signature=%.*s",
                       algorithm, SL(key_id), s->time, s->region, s->service, signed_names,
                       SL(signature));
    if (r == 0)
        r = http_head_set(h, "authorization", buf_slice(&v));
    buf_free(&v);
    return r;
}
