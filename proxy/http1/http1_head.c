/* Reads a head line by line into its fields, target and framing; requests, replies and trailers
 * share one reading of fields. */
#include "http1_head.h"

#include "field_name.h"
#include "target.h"
#include "upgrade.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_DIGITS = 18 };

ssize_t http1_head_end(struct slice in, size_t max, size_t *scanned)
{
    for (size_t i = *scanned; i < in.n && i < max; i++) {
        bool first = i == 0 && (in.p[0] == '\r' || in.p[0] == '\n');
        if (in.p[i] == 0 || first || (in.p[i] == '\n' && in.p[i - 1] != '\r')) {
            *scanned = i;
            return HTTP1_BAD;
        }
        if (in.p[i] != '\n')
            continue;
        if (i >= 3 && in.p[i - 2] == '\n')
            return (ssize_t)(i + 1);
    }
    *scanned = in.n < max ? in.n : max;
    return in.n >= max ? HTTP1_LARGE : HTTP1_MORE;
}

struct refusal http1_head_refusal(ssize_t end, struct slice in, size_t scanned)
{
    if (end == HTTP1_LARGE)
        return (struct refusal){431, "too_many_headers"};
    bool later = slice_find((struct slice){in.p, scanned}, '\n') >= 0;
    return (struct refusal){400, later ? "bad_header" : "bad_request_line"};
}

/* RFC 9110 5.6.2; a bit for each byte, from 0. */
static bool is_tchar(unsigned char c)
{
    static const uint32_t bits[8] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};
    return bits[c >> 5] >> (c & 31) & 1;
}

bool http1_is_token(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_tchar((unsigned char)s.p[i]))
            return false;
    return s.n > 0;
}

bool http1_is_value(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static int refuse(struct refusal *why, unsigned status, const char *code)
{
    *why = (struct refusal){status, code};
    return -1;
}

/* The next line without its CRLF; the caller knows that every LF follows a CR. */
static bool next_line(struct slice *rest, struct slice *line)
{
    ssize_t lf = slice_find(*rest, '\n');
    if (lf < 1)
        return false;
    *line = (struct slice){rest->p, (size_t)lf - 1};
    rest->p += lf + 1;
    rest->n -= (size_t)lf + 1;
    return slice_find(*line, '\r') < 0; /* a bare CR */
}

static int parse_fields(struct head *h, struct slice rest, size_t most, struct refusal *why)
{
    struct slice line;
    while (rest.n > 0) {
        if (!next_line(&rest, &line))
            return refuse(why, 400, "bad_header");
        if (line.n == 0)
            return rest.n == 0 ? 0 : refuse(why, 400, "bad_header");
        ssize_t colon = slice_find(line, ':');
        if (colon < 0 || line.p[0] == ' ' || line.p[0] == '\t')
            return refuse(why, 400, "bad_header");
        struct slice name = {line.p, (size_t)colon};
        struct slice value =
            slice_trim((struct slice){line.p + colon + 1, line.n - (size_t)colon - 1});
        if (!http1_is_token(name) || !http1_is_value(value))
            return refuse(why, 400, "bad_header");
        if (h->n >= most || h->n >= HEAD_FIELDS_MAX)
            return refuse(why, 431, "too_many_headers");
        char *lower = h->raw + (name.p - h->raw);
        for (size_t i = 0; i < name.n; i++)
            lower[i] = ascii_lower(lower[i]);
        if (field_is_twin(name))
            return refuse(why, 400, "bad_header");
        h->fields[h->n++] = (struct field){name, value};
    }
    return refuse(why, 400, "bad_header");
}

static int parse_version(struct slice v, unsigned *minor, struct refusal *why)
{
    if (slice_eq(v, SLICE("HTTP/1.1"))) {
        *minor = 1;
        return 0;
    }
    if (slice_eq(v, SLICE("HTTP/1.0"))) {
        *minor = 0;
        return 0;
    }
    bool named = slice_starts(v, SLICE("HTTP/")) && v.n == 8 && v.p[6] == '.' && v.p[5] >= '1' &&
                 v.p[5] <= '9' && v.p[7] >= '0' && v.p[7] <= '9';
    if (named)
        return refuse(why, 505, "version");
    return refuse(why, 400, "bad_version");
}

static int split_query(struct head *h, struct slice t, const struct limits *l, struct refusal *why)
{
    ssize_t q = slice_find(t, '?');
    h->path = t;
    if (q >= 0) {
        h->path.n = (size_t)q;
        h->query = (struct slice){t.p + q + 1, t.n - (size_t)q - 1};
        h->has_query = true;
    }
    return target_spell(h, l->target_bytes, why);
}

/* absolute-form: http or https, an authority, and perhaps a path. Whether that may be asked for on
 * this connection the session knows. */
static int parse_absolute(struct head *h, const struct limits *l, struct refusal *why)
{
    struct slice t = h->target;
    h->target_https = slice_istarts(t, SLICE("https://"));
    if (!h->target_https && !slice_istarts(t, SLICE("http://")))
        return refuse(why, 400, "bad_target");
    t.p += h->target_https ? 8 : 7;
    t.n -= h->target_https ? 8 : 7;
    size_t end = 0;
    while (end < t.n && t.p[end] != '/' && t.p[end] != '?')
        end++;
    h->form = TARGET_ABSOLUTE;
    h->target_authority = (struct slice){t.p, end};
    struct slice rest = {t.p + end, t.n - end};
    if (slice_find(h->target_authority, '@') >= 0 || !target_authority_ok(h->target_authority))
        return refuse(why, 400, "bad_target");
    if (split_query(h, rest, l, why) < 0)
        return -1;
    if (h->path.n > 0)
        return 0;
    /* none is "/" (RFC 9110 4.2.3), but for OPTIONS, whose "*" it may stand for */
    if (slice_eq(h->method, SLICE("OPTIONS")))
        return refuse(why, 400, "bad_target");
    return http_head_set_path(h, SLICE("/")) < 0 ? refuse(why, 503, "memory") : 0;
}

static int parse_target(struct head *h, const struct limits *l, struct refusal *why)
{
    if (h->target.n > l->target_bytes)
        return refuse(why, 414, "target_too_long");
    if (slice_eq(h->method, SLICE("CONNECT"))) {
        if (!target_authority_ok(h->target))
            return refuse(why, 400, "bad_target");
        h->form = TARGET_AUTHORITY;
        h->target_authority = h->target;
        return 0;
    }
    if (slice_eq(h->target, SLICE("*"))) {
        h->form = TARGET_ASTERISK;
        if (!slice_eq(h->method, SLICE("OPTIONS")))
            return refuse(why, 400, "bad_target");
        h->path = h->target;
        return 0;
    }
    if (h->target.p[0] == '/') {
        h->form = TARGET_ORIGIN;
        return split_query(h, h->target, l, why);
    }
    return parse_absolute(h, l, why);
}

int http1_retarget(struct head *h, struct slice text, const struct limits *l, struct refusal *why)
{
    if (text.n == 0 || text.p[0] != '/' || slice_eq(h->method, SLICE("CONNECT")))
        return refuse(why, 400, "bad_target");
    h->target = text;
    h->has_query = false;
    h->query = (struct slice){0};
    return parse_target(h, l, why);
}

static int parse_request_line(struct head *h, struct slice line, const struct limits *l,
                              struct refusal *why)
{
    ssize_t a = slice_find(line, ' ');
    if (slice_eq(line, SLICE("PRI * HTTP/2.0"))) /* HTTP/2 with prior knowledge (attack B17) */
        return refuse(why, 400, "h2c");
    if (a <= 0)
        return refuse(why, 400, "bad_request_line");
    h->method = (struct slice){line.p, (size_t)a};
    struct slice rest = {line.p + a + 1, line.n - (size_t)a - 1};
    ssize_t b = slice_find(rest, ' ');
    if (b <= 0 || !http1_is_token(h->method))
        return refuse(why, 400, "bad_request_line");
    h->target = (struct slice){rest.p, (size_t)b};
    struct slice version = {rest.p + b + 1, rest.n - (size_t)b - 1};
    if (parse_version(version, &h->minor, why) < 0)
        return -1;
    return parse_target(h, l, why);
}

static int store(struct head *h, struct slice raw, struct slice *own)
{
    h->raw = malloc(raw.n + 1);
    if (h->raw == NULL)
        return -1;
    memcpy(h->raw, raw.p, raw.n);
    h->raw[raw.n] = 0;
    h->raw_n = raw.n;
    *own = (struct slice){h->raw, raw.n};
    return 0;
}

/* Connection: only close, keep-alive, upgrade count; any other token is dropped with its field
 * never removed by it (attack B20). */
/* A comma-separated list holds this member, any case. */
static bool list_has(struct slice v, const char *member)
{
    while (v.n > 0) {
        ssize_t comma = slice_find(v, ',');
        struct slice t = slice_trim((struct slice){v.p, comma < 0 ? v.n : (size_t)comma});
        if (slice_ieq_str(t, member))
            return true;
        if (comma < 0)
            break;
        v = (struct slice){v.p + comma + 1, v.n - (size_t)comma - 1};
    }
    return false;
}

static void connection_options(struct head *h, bool *upgrade)
{
    h->keep_alive = h->minor >= 1;
    *upgrade = false;
    for (size_t i = 0; i < h->n; i++) {
        struct slice v = h->fields[i].value;
        if (slice_eq_str(h->fields[i].name, "te"))
            h->te_trailers |= h->minor >= 1 && list_has(v, "trailers");
        if (!slice_eq_str(h->fields[i].name, "connection"))
            continue;
        h->keep_alive &= !list_has(v, "close");
        *upgrade |= list_has(v, "upgrade");
    }
}

/* Framing by our own rules: one exact "chunked", or one Content-Length of digits, never both. */
static int framing(struct head *h, bool request, struct refusal *why)
{
    size_t te = http_head_count(h, "transfer-encoding"), cl = http_head_count(h, "content-length");
    unsigned bad = request ? 400 : 502;
    if (te && cl)
        return refuse(why, bad, "framing");
    if (te > 1 || cl > 1)
        return refuse(why, bad, "framing");
    if (te) {
        if (h->minor == 0)
            return refuse(why, bad, "framing");
        if (!slice_ieq_str(http_head_find(h, "transfer-encoding")->value, "chunked"))
            return refuse(why, request ? 501 : 502, "transfer_coding");
        h->body = BODY_CHUNKED;
        return 0;
    }
    if (cl) {
        struct slice v = http_head_find(h, "content-length")->value;
        if ((request && v.n > 1 && v.p[0] == '0') || v.n > LENGTH_DIGITS ||
            slice_u64(v, INT64_MAX, &h->length) < 0)
            return refuse(why, bad, "framing");
        h->body = h->length ? BODY_LENGTH : BODY_NONE;
    }
    return 0;
}

static int expectations(struct head *h, struct refusal *why)
{
    size_t n = http_head_count(h, "expect");
    if (n == 0)
        return 0;
    if (n > 1 || !slice_ieq_str(http_head_find(h, "expect")->value, "100-continue"))
        return refuse(why, 417, "expect");
    h->expect_continue = h->minor >= 1 && h->body != BODY_NONE;
    return 0;
}

/* One host at most, and of bytes that an authority can have; which it is, the session checks. A
 * CONNECT says its authority in its target, and some clients (lftp) say it there alone. */
static int host(const struct head *h, struct refusal *why)
{
    size_t n = http_head_count(h, "host");
    if (n > 1 || (n == 0 && h->minor >= 1 && h->form != TARGET_AUTHORITY))
        return refuse(why, 400, "host");
    if (n == 0)
        return 0;
    struct slice v = http_head_find(h, "host")->value;
    for (size_t i = 0; i < v.n; i++)
        if (!ascii_is_alnum(v.p[i]) && !strchr("-._:[]", v.p[i]))
            return refuse(why, 400, "host");
    return 0;
}

int http1_parse_request(struct head *h, struct slice raw, const struct limits *l,
                        struct refusal *why)
{
    struct slice own, line;
    bool upgrade;
    http_head_init(h);
    if (store(h, raw, &own) < 0)
        return refuse(why, 503, "memory");
    struct slice rest = own;
    if (!next_line(&rest, &line))
        return refuse(why, 400, "bad_request_line");
    if (parse_request_line(h, line, l, why) < 0 || parse_fields(h, rest, l->headers, why) < 0 ||
        framing(h, true, why) < 0 || expectations(h, why) < 0)
        return -1;
    connection_options(h, &upgrade);
    if (host(h, why) < 0)
        return -1;
    if (upgrade_check_request(h, upgrade, why) < 0)
        return -1;
    if (!http1_parser_knows(h->method))
        return refuse(why, 405, "method");
    if (!http1_parser_agrees_request(h, raw))
        return refuse(why, 400, "parsers_disagree");
    return 0;
}

static int parse_status_line(struct head *h, struct slice line, struct refusal *why)
{
    uint64_t status;
    if (line.n < 12 || line.p[8] != ' ' || (line.n > 12 && line.p[12] != ' '))
        return refuse(why, 502, "upstream_protocol");
    if (parse_version((struct slice){line.p, 8}, &h->minor, why) < 0 ||
        slice_u64((struct slice){line.p + 9, 3}, 999, &status) < 0 || status < 100 ||
        !http1_is_value(line))
        return refuse(why, 502, "upstream_protocol");
    h->status = (unsigned)status;
    return 0;
}

static int reply_body(struct head *h, struct slice method, struct refusal *why)
{
    if (framing(h, false, why) < 0)
        return -1;
    bool none =
        slice_eq(method, SLICE("HEAD")) || h->status < 200 || h->status == 204 || h->status == 304;
    if ((h->status < 200 || h->status == 204) && (h->body == BODY_CHUNKED || h->length))
        return refuse(why, 502, "upstream_protocol");
    if (none) {
        h->body = BODY_NONE;
        return 0;
    }
    if (h->body == BODY_NONE && http_head_count(h, "content-length") == 0) {
        h->body = BODY_CLOSE;
        h->keep_alive = false;
    }
    return 0;
}

static int parse_mended(struct head *h, struct slice raw, struct slice method, const char *accept,
                        struct refusal *why)
{
    struct slice own, line;
    bool upgrade;
    http_head_init(h);
    if (store(h, raw, &own) < 0)
        return refuse(why, 503, "memory");
    struct slice rest = own;
    if (!next_line(&rest, &line) || parse_status_line(h, line, why) < 0)
        return refuse(why, 502, "upstream_protocol");
    /* many cookies are no fault: what there may be of them is bounded by bytes */
    if (parse_fields(h, rest, HEAD_FIELDS_MAX, why) < 0)
        return refuse(why, 502, "upstream_protocol");
    connection_options(h, &upgrade);
    if (h->status == 101 && (accept == NULL || !upgrade_reply_fits(h, upgrade, accept)))
        return refuse(why, 502, "upstream_protocol");
    if (reply_body(h, method, why) < 0)
        return -1;
    if (h->status == 101) {
        h->body = BODY_TUNNEL;
        h->upgrade = UPGRADE_WEBSOCKET;
        h->keep_alive = false;
    }
    if (!http1_parser_agrees_reply(h, raw, method))
        return refuse(why, 502, "upstream_protocol");
    return 0;
}

int http1_parse_reply(struct head *h, struct slice raw, struct slice method, const char *accept,
                      const struct limits *l, struct refusal *why)
{
    struct buf mended;
    buf_init(&mended, (size_t)l->head_bytes * 2);
    mended.wipe = true;
    int fixed = http1_repair_reply(raw, &mended);
    http_head_init(h);
    int r = fixed < 0 ? refuse(why, 503, "memory")
                      : parse_mended(h, fixed ? buf_slice(&mended) : raw, method, accept, why);
    buf_free(&mended);
    if (r == 0 && fixed) {
        h->repaired = (unsigned)fixed;
        h->keep_alive = h->body == BODY_TUNNEL;
    }
    return r;
}

int http1_parse_trailers(struct head *h, struct slice raw, const struct limits *l)
{
    struct slice own;
    struct refusal why;
    http_head_init(h);
    return store(h, raw, &own) < 0 ? -1 : parse_fields(h, own, l->headers, &why);
}
