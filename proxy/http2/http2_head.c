/* Gathers pseudo-fields and fields as nghttp2 names them, checks what RFC 9113 alone asks for, and
 * writes the HTTP/1.1 head that is then parsed. */
#include "http2_head.h"

#include "upgrade.h"

#include <string.h>

static const char *const pseudo_names[PSEUDO_COUNT] = {":method", ":scheme", ":authority", ":path",
                                                       ":protocol"};

enum { FIELD_OVERHEAD = 32 };

void http2_head_init(struct http2_head *b, const struct limits *l)
{
    memset(b, 0, sizeof *b);
    b->limits = l;
    for (size_t i = 0; i < PSEUDO_COUNT; i++)
        buf_init(&b->pseudo[i], l->head_bytes);
    buf_init(&b->fields, l->head_bytes);
    buf_init(&b->host, l->head_bytes);
    buf_init(&b->cookie, l->head_bytes);
}

void http2_head_free(struct http2_head *b)
{
    for (size_t i = 0; i < PSEUDO_COUNT; i++)
        buf_free(&b->pseudo[i]);
    buf_free(&b->fields);
    buf_free(&b->host);
    buf_free(&b->cookie);
}

void http2_head_begin(struct http2_head *b, bool trailers)
{
    for (size_t i = 0; i < PSEUDO_COUNT; i++) {
        buf_clear(&b->pseudo[i]);
        b->has[i] = false;
    }
    buf_clear(&b->fields);
    buf_clear(&b->host);
    buf_clear(&b->cookie);
    b->has_host = b->has_cookie = false;
    b->n = 0;
    b->bytes = 0;
    b->trailers = trailers;
    b->why = (struct refusal){0, NULL};
}

static void bad(struct http2_head *b, unsigned status, const char *code)
{
    if (b->why.code == NULL)
        b->why = (struct refusal){status, code};
}

bool http2_connection_field(struct slice name)
{
    static const char *const names[] = {"connection",        "proxy-connection", "keep-alive",
                                        "transfer-encoding", "upgrade",          "http2-settings"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq_str(name, names[i]))
            return true;
    return false;
}

static bool has_upper(struct slice name)
{
    for (size_t i = 0; i < name.n; i++)
        if (ascii_lower(name.p[i]) != name.p[i])
            return true;
    return false;
}

static void take_pseudo(struct http2_head *b, struct slice name, struct slice value)
{
    size_t i = 0;
    while (i < PSEUDO_COUNT && !slice_eq_str(name, pseudo_names[i]))
        i++;
    /* once each, known, and all in front (RFC 9113 8.3) */
    if (i == PSEUDO_COUNT || b->has[i] || b->n > 0 || b->trailers) {
        bad(b, 400, "pseudo_header");
        return;
    }
    b->has[i] = true;
    if (buf_append_slice(&b->pseudo[i], value) < 0)
        bad(b, 431, "too_many_headers");
}

static int append_line(struct buf *to, struct slice name, struct slice value)
{
    return buf_append_slice(to, name) < 0 || buf_append_str(to, ": ") < 0 ||
                   buf_append_slice(to, value) < 0 || buf_append_str(to, "\r\n") < 0
               ? -1
               : 0;
}

static int append_crumb(struct http2_head *b, struct slice value)
{
    if (b->has_cookie && buf_append_str(&b->cookie, "; ") < 0)
        return -1;
    b->has_cookie = true;
    return buf_append_slice(&b->cookie, value);
}

static void take_field(struct http2_head *b, struct slice name, struct slice value)
{
    int r;
    b->n++;
    value = slice_trim(value); /* as in HTTP/1: Go's client leaves blanks where they were */
    if (!http1_is_token(name) || has_upper(name) || !http1_is_value(value) ||
        http2_connection_field(name)) {
        bad(b, 400, "bad_header");
        return;
    }
    if (slice_eq(name, SLICE("te")) && !slice_ieq_str(value, "trailers")) {
        bad(b, 400, "bad_header");
        return;
    }
    if (slice_eq(name, SLICE("host")) && !b->trailers) {
        if (b->has_host)
            bad(b, 400, "host");
        b->has_host = true;
        r = buf_append_slice(&b->host, value);
    } else if (slice_eq(name, SLICE("cookie")) && !b->trailers) {
        r = append_crumb(b, value); /* RFC 9113 8.2.3 */
    } else {
        r = append_line(&b->fields, name, value);
    }
    if (r < 0)
        bad(b, 431, "too_many_headers");
}

int http2_head_field(struct http2_head *b, struct slice name, struct slice value)
{
    b->bytes += name.n + value.n + FIELD_OVERHEAD;
    if (b->bytes > (uint64_t)b->limits->head_bytes * HTTP2_LIST_FLOOD)
        return -1;
    if (b->bytes > b->limits->head_bytes) {
        bad(b, 431, "too_many_headers");
        return 0;
    }
    if (name.n > 0 && name.p[0] == ':')
        take_pseudo(b, name, value);
    else
        take_field(b, name, value);
    return 0;
}

static struct slice pseudo(const struct http2_head *b, enum http2_pseudo which)
{
    return buf_slice(&b->pseudo[which]);
}

/* A request line cannot be split, nor anything be put behind it, by what is in these. */
static bool is_word(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] == 0x7f)
            return false;
    return s.n > 0;
}

static int refuse(struct refusal *why, unsigned status, const char *code)
{
    *why = (struct refusal){status, code};
    return -1;
}

static bool is_connect(const struct http2_head *b)
{
    return slice_eq(pseudo(b, PSEUDO_METHOD), SLICE("CONNECT"));
}

static bool fits_scheme(enum http2_schemes may, struct slice said)
{
    switch (may) {
    case HTTP2_IN_TLS:
        return slice_eq(said, SLICE("https"));
    case HTTP2_IN_CLEAR:
        return slice_eq(said, SLICE("http"));
    case HTTP2_EITHER:
        return slice_eq(said, SLICE("https")) || slice_eq(said, SLICE("http"));
    }
    return false;
}

/* The rules of RFC 9113 8.3.1 and 8.5. */
static int check_pseudo(const struct http2_head *b, struct refusal *why)
{
    struct slice path = pseudo(b, PSEUDO_PATH), host = buf_slice(&b->host);
    bool plain_connect = is_connect(b) && !b->has[PSEUDO_PROTOCOL];
    if (!b->has[PSEUDO_METHOD] || (b->has[PSEUDO_PROTOCOL] && !is_connect(b)))
        return refuse(why, 400, "pseudo_header");
    if (b->has[PSEUDO_SCHEME] == plain_connect || b->has[PSEUDO_PATH] == plain_connect)
        return refuse(why, 400, "pseudo_header");
    if (!http1_is_token(pseudo(b, PSEUDO_METHOD)))
        return refuse(why, 400, "bad_request_line");
    if (!b->has[PSEUDO_AUTHORITY] && (plain_connect || !b->has_host))
        return refuse(why, 400, "host");
    if (b->has[PSEUDO_AUTHORITY] && !is_word(pseudo(b, PSEUDO_AUTHORITY)))
        return refuse(why, 400, "host");
    if (b->has[PSEUDO_AUTHORITY] && b->has_host && !slice_ieq(host, pseudo(b, PSEUDO_AUTHORITY)))
        return refuse(why, 400, "authority_mismatch");
    if (plain_connect)
        return 0;
    if (!fits_scheme(b->schemes, pseudo(b, PSEUDO_SCHEME)))
        return refuse(why, 400, "scheme");
    if (!is_word(path) || (path.p[0] != '/' && !slice_eq(path, SLICE("*"))))
        return refuse(why, 400, "bad_target");
    return 0;
}

/* The HTTP/1.1 head that says the same. */
static int write_head(const struct http2_head *b, struct slice method, struct slice target,
                      struct buf *out)
{
    struct slice host =
        b->has[PSEUDO_AUTHORITY] ? pseudo(b, PSEUDO_AUTHORITY) : buf_slice(&b->host);
    if (buf_append_slice(out, method) < 0 || buf_append_str(out, " ") < 0 ||
        buf_append_slice(out, target) < 0 || buf_append_str(out, " HTTP/1.1\r\n") < 0 ||
        append_line(out, SLICE("host"), host) < 0 ||
        buf_append_slice(out, buf_slice(&b->fields)) < 0)
        return -1;
    if (b->has_cookie && append_line(out, SLICE("cookie"), buf_slice(&b->cookie)) < 0)
        return -1;
    return buf_append_str(out, "\r\n");
}

/* For the record of a refusal: what was asked for, as far as it is known and harmless. */
static void show(const struct http2_head *b, struct head *h)
{
    struct head said;
    http_head_init(&said);
    if (http1_is_token(pseudo(b, PSEUDO_METHOD)))
        said.method = pseudo(b, PSEUDO_METHOD);
    if (is_word(pseudo(b, PSEUDO_PATH))) {
        struct slice t = pseudo(b, PSEUDO_PATH);
        ssize_t q = slice_find(t, '?');
        said.path = (struct slice){t.p, q < 0 ? t.n : (size_t)q};
    }
    if (http_head_copy(h, &said) < 0)
        http_head_init(h);
}

static int parse(const struct http2_head *b, bool end, struct head *h, struct refusal *why)
{
    struct buf text;
    bool socket = b->has[PSEUDO_PROTOCOL];
    struct slice method = socket ? SLICE("GET") : pseudo(b, PSEUDO_METHOD);
    struct slice target = pseudo(b, is_connect(b) && !socket ? PSEUDO_AUTHORITY : PSEUDO_PATH);
    /* room for what the two forms differ in; the list itself was measured */
    buf_init(&text, (size_t)b->limits->head_bytes * 2 + 64);
    int r = write_head(b, method, target, &text) < 0
                ? refuse(why, 431, "too_many_headers")
                : http1_parse_request(h, buf_slice(&text), b->limits, why);
    buf_free(&text);
    if (r < 0)
        return -1;
    if (!slice_eq(h->method, method) || !slice_eq(h->target, target))
        return refuse(why, 400, "parsers_disagree");
    if (end && h->body == BODY_LENGTH)
        return refuse(why, 400, "framing");
    if (!end && http_head_find(h, "content-length") == NULL)
        h->body = BODY_CHUNKED; /* its end is END_STREAM */
    h->expect_continue = !end && http_head_find(h, "expect") != NULL;
    h->te_trailers = true; /* everyone can take them here */
    return 0;
}

int http2_head_finish(struct http2_head *b, bool end, struct head *h, struct refusal *why)
{
    http_head_init(h);
    int r = b->why.code ? refuse(why, b->why.status, b->why.code) : check_pseudo(b, why);
    if (r == 0) {
        r = parse(b, end, h, why);
        if (r < 0)
            http_head_free(h);
    }
    if (r < 0) {
        show(b, h);
        return -1;
    }
    if (b->has[PSEUDO_PROTOCOL])
        return upgrade_check_connect(h, pseudo(b, PSEUDO_PROTOCOL), end, why);
    return 0;
}

int http2_head_trailers(struct http2_head *b, struct buf *out, struct refusal *why)
{
    if (b->why.code)
        return refuse(why, b->why.status, b->why.code);
    if (buf_append_slice(out, buf_slice(&b->fields)) < 0 || buf_append_str(out, "\r\n") < 0)
        return refuse(why, 431, "too_many_headers");
    return 0;
}
