/* Parses and folds patterns, matches them with requests, and compares them with one another:
 * containment, intersection, order. segment.c does it for one segment. */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "buf.h"
#include "mcp_host.h"
#include "segment.h"

static int bad(struct err *err, const char *text, const char *what)
{
    return err_set(err, ERR_PARSE, "'%.200s': %s", text, what);
}

static int parse_scheme(struct slice *rest, struct pattern *ret, struct err *err)
{
    ssize_t mark = slice_find_slice(*rest, SLICE("://"));
    ret->scheme = SCHEME_HTTPS;
    if (mark < 0)
        return 0;
    struct slice scheme = {rest->p, (size_t)mark};
    if (slice_eq_str(scheme, "http"))
        ret->scheme = SCHEME_HTTP;
    else if (slice_eq_str(scheme, "ssh"))
        ret->scheme = SCHEME_SSH;
    else if (slice_eq_str(scheme, "postgres"))
        ret->scheme = SCHEME_POSTGRES;
    else if (slice_eq_str(scheme, "redis") || slice_eq_str(scheme, "rediss"))
        ret->scheme = SCHEME_REDIS;
    else if (slice_eq_str(scheme, "mysql"))
        ret->scheme = SCHEME_MYSQL;
    else if (slice_eq_str(scheme, "smtp") || slice_eq_str(scheme, "smtps"))
        ret->scheme = SCHEME_SMTP;
    else if (slice_eq_str(scheme, "imap") || slice_eq_str(scheme, "imaps"))
        ret->scheme = SCHEME_IMAP;
    else if (!slice_eq_str(scheme, "https"))
        return bad(err, ret->text,
                   "the scheme must be https (or none), http, ssh, postgres, redis, rediss, mysql, "
                   "smtp, smtps, imap or imaps");
    *rest = (struct slice){rest->p + mark + 3, rest->n - (size_t)mark - 3};
    return 0;
}

static int parse_host(struct arena *a, struct slice host, struct pattern *ret, struct err *err)
{
    struct authority at;
    if (host.n == 0)
        return bad(err, ret->text, "a host is missing");
    if (slice_find(host, '*') >= 0)
        return bad(err, ret->text,
                   "no '*' in a host; a leading dot, '.example.com', is any name "
                   "below it (and not itself)");
    if (slice_find(host, '@') >= 0)
        return bad(err, ret->text, "no user name in a pattern; credentials go under 'with'");
    ret->subdomains = host.p[0] == '.';
    if (ret->subdomains)
        host = (struct slice){host.p + 1, host.n - 1};
    for (size_t i = 0; i < host.n; i++)
        if ((unsigned char)host.p[i] >= 0x80)
            return bad(err, ret->text,
                       "a host's name is written in ASCII; one with other letters in its xn-- "
                       "form");
    if (authority_parse(&at, ret->scheme, host) < 0)
        return bad(err, ret->text,
                   "this is not HOST or HOST:PORT in its plain form (ASCII letters, "
                   "digits, - and _; IPv6 in brackets; port 1 to 65535)");
    if (at.kind == HOST_IPV6 &&
        (host.n < strlen(at.host) + 2 || memcmp(host.p + 1, at.host, strlen(at.host)) != 0 ||
         host.p[strlen(at.host) + 1] != ']')) {
        err_set(err, ERR_PARSE, "'%.200s': write this address as [%s]", ret->text, at.host);
        return -1;
    }
    if (ret->subdomains && at.kind != HOST_NAME)
        return bad(err, ret->text, "an address has no subdomains; leave the leading dot out");
    if (ret->subdomains && strlen(at.host) > HOST_MAX - 2)
        return bad(err, ret->text, "no name below this one would be short enough");
    ret->kind = at.kind;
    ret->port = at.port;
    ret->host = slice_str(arena_str(a, at.host));
    return 0;
}

static void finish_segment(struct segment *s)
{
    bool wild = memchr(s->text.p, PATTERN_WILD, s->text.n) != NULL;
    s->kind = !wild ? SEGMENT_LITERAL : s->text.n == 1 ? SEGMENT_ANY : SEGMENT_GLOB;
}

static void count(struct pattern *p)
{
    p->units = p->literals = p->stars = 0;
    for (unsigned i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        unsigned stars = 0;
        for (size_t j = 0; j < s->text.n; j++)
            stars += s->text.p[j] == PATTERN_WILD;
        unsigned bytes = (unsigned)s->text.n - stars;
        p->literals += 1 + bytes;
        p->units += 1 + bytes + (s->kind == SEGMENT_ANY);
        p->stars += stars;
    }
    p->any_path = p->tail && p->n_segments == 0;
}

/* Split "/a/b" (stars already WILD) into segments. -1 when there are too many. */
static int split(struct arena *a, struct slice path, struct pattern *ret)
{
    size_t i = 0, slashes = 0;
    unsigned n = 0;
    for (size_t k = 0; k < path.n; k++)
        slashes += path.p[k] == '/';
    if (slashes > PATTERN_SEGMENTS)
        return -1;
    struct segment *s = arena_zalloc(a, slashes, sizeof *s);
    while (i < path.n) { /* at a slash */
        size_t end = ++i;
        while (end < path.n && path.p[end] != '/')
            end++;
        s[n].text = (struct slice){path.p + i, end - i};
        finish_segment(&s[n++]);
        i = end;
    }
    ret->segments = s;
    ret->n_segments = n;
    count(ret);
    return 0;
}

static int parse_path(struct arena *a, struct slice path, struct pattern *ret, struct err *err)
{
    const char *why;
    ret->tail = path.n == 0;
    if (path.n == 0)
        return split(a, path, ret);
    if (slice_find(path, '?') >= 0)
        return bad(err, ret->text, "the query is never part of a pattern; leave it out");
    if (path_check(path, &why) < 0)
        return err_set(err, ERR_PARSE, "'%.200s': no request can match: %s", ret->text, why);
    if (slice_ends(path, SLICE("/**"))) {
        ret->tail = true;
        path.n -= 3;
    }
    if (slice_find_slice(path, SLICE("**")) >= 0)
        return bad(err, ret->text,
                   "'**' stands for the whole rest: only as the last segment, alone; "
                   "'*' is one segment");
    char *own = arena_slice(a, path);
    path.n = path_normal(path, own);
    for (size_t i = 0; i < path.n; i++)
        if (own[i] == '*')
            own[i] = PATTERN_WILD;
    if (split(a, (struct slice){own, path.n}, ret) < 0)
        return bad(err, ret->text, "more than 64 segments");
    return 0;
}

/* http://durward.internal/mcp/NAME is what a client inside asks; the origin has a name of its own.
 */
static void spell_server(struct arena *a, struct slice *rest, struct pattern *ret)
{
    static const struct slice before = SLICE_INIT("durward.internal/mcp/");
    struct slice name = {rest->p + before.n, rest->n - before.n};
    struct authority at;
    if (!slice_starts(*rest, before) || !mcp_host_name_ok(name))
        return;
    mcp_host_authority(name, &at);
    struct buf b;
    buf_init(&b, HOST_TEXT_MAX + 8);
    if (buf_printf(&b, "%s%s", at.host, MCP_HOST_PATH) == 0)
        *rest = slice_str(arena_slice(a, buf_slice(&b)));
    ret->scheme = SCHEME_HTTP;
    buf_free(&b);
}

int pattern_parse(struct arena *a, const char *text, struct pattern *ret, struct err *err)
{
    struct slice rest = slice_str(text);
    *ret = (struct pattern){.text = text};
    if (rest.n > PATTERN_MAX)
        return bad(err, text, "longer than 2048 bytes");
    ret->text = arena_str(a, text);
    if (parse_scheme(&rest, ret, err) < 0)
        return -1;
    spell_server(a, &rest, ret);
    ssize_t slash = slice_find(rest, '/');
    size_t host = slash < 0 ? rest.n : (size_t)slash;
    if (parse_host(a, (struct slice){rest.p, host}, ret, err) < 0)
        return -1;
    return parse_path(a, (struct slice){rest.p + host, rest.n - host}, ret, err);
}

int pattern_with_path(struct arena *a, const struct pattern *p, struct slice path,
                      struct pattern *ret, struct err *err)
{
    *ret = *p;
    return parse_path(a, path, ret, err);
}

int pattern_fold(struct arena *a, const struct pattern *p, int reading, bool trim,
                 struct pattern *ret)
{
    size_t n = 0, used = 0;
    *ret = *p;
    for (unsigned i = 0; i < p->n_segments; i++)
        n += 1 + p->segments[i].text.n;
    char *path = arena_zalloc(a, n + 1, 1), *folded = arena_zalloc(a, n + 1, 1);
    for (unsigned i = 0; i < p->n_segments; i++) {
        struct slice t = p->segments[i].text;
        path[used++] = '/';
        if (t.n)
            memcpy(path + used, t.p, t.n);
        used += t.n;
    }
    n = path_fold((struct slice){path, used}, (enum path_reading)reading, folded);
    if (trim)
        n = path_trim(folded, n, false);
    return split(a, (struct slice){folded, n}, ret);
}

bool pattern_same_path(const struct pattern *a, const struct pattern *b)
{
    if (a->n_segments != b->n_segments || a->tail != b->tail)
        return false;
    for (unsigned i = 0; i < a->n_segments; i++)
        if (!slice_eq(a->segments[i].text, b->segments[i].text))
            return false;
    return true;
}

void pattern_pack(struct arena *a, struct pattern *p)
{
    size_t n = p->n_segments * sizeof(struct segment), size = n + p->host.n + 1;
    for (unsigned i = 0; i < p->n_segments; i++)
        size += p->segments[i].text.n;
    struct segment *s = arena_zalloc(a, size, 1);
    char *text = (char *)s + n;
    memcpy(text, p->host.p, p->host.n);
    p->host.p = text;
    text += p->host.n + 1; /* the host stays NUL-terminated */
    for (unsigned i = 0; i < p->n_segments; i++) {
        struct slice t = p->segments[i].text;
        if (t.n)
            memcpy(text, t.p, t.n);
        s[i] = (struct segment){{text, t.n}, p->segments[i].kind};
        text += t.n;
    }
    p->segments = s;
}

static bool under(struct slice host, struct slice suffix)
{
    return host.n > suffix.n && host.p[host.n - suffix.n - 1] == '.' && slice_ends(host, suffix);
}

bool pattern_matches_host(const struct pattern *p, const struct authority *a)
{
    struct slice host = slice_str(a->host);
    if (p->kind != a->kind)
        return false;
    return p->subdomains ? under(host, p->host) : slice_eq(host, p->host);
}

bool pattern_matches_path(const struct pattern *p, struct slice path)
{
    size_t i = 0;
    for (unsigned k = 0; k < p->n_segments; k++) {
        if (i >= path.n || path.p[i] != '/')
            return false;
        size_t end = ++i;
        while (end < path.n && path.p[end] != '/')
            end++;
        if (!segment_matches(&p->segments[k], (struct slice){path.p + i, end - i}))
            return false;
        i = end;
    }
    return i == path.n || p->tail;
}

bool pattern_matches(const struct pattern *p, const struct authority *a, struct slice path)
{
    return p->scheme == a->scheme && p->port == a->port && pattern_matches_host(p, a) &&
           pattern_matches_path(p, path);
}

static bool host_contains(const struct pattern *outer, const struct pattern *inner)
{
    if (outer->scheme != inner->scheme || outer->port != inner->port || outer->kind != inner->kind)
        return false;
    if (outer->subdomains)
        return under(inner->host, outer->host) ||
               (inner->subdomains && slice_eq(inner->host, outer->host));
    return !inner->subdomains && slice_eq(inner->host, outer->host);
}

bool pattern_contains(const struct pattern *outer, const struct pattern *inner)
{
    if (!host_contains(outer, inner))
        return false;
    /* A tail has texts of every number of segments from its own upwards. */
    if (outer->tail ? inner->n_segments < outer->n_segments
                    : inner->tail || inner->n_segments != outer->n_segments)
        return false;
    for (unsigned i = 0; i < outer->n_segments; i++)
        if (!segment_contains(&outer->segments[i], &inner->segments[i]))
            return false;
    return true;
}

static void add(char *url, size_t size, const char *fmt, const char *s)
{
    size_t used = strlen(url);
    if (used + 1 < size)
        snprintf(url + used, size - used, fmt[0] ? "/%s" : "%s", s);
}

static void add_host(char *url, size_t size, const struct pattern *p)
{
    struct authority a = {.scheme = p->scheme, .kind = p->kind, .port = p->port};
    char text[HOST_TEXT_MAX + 16];
    snprintf(a.host, sizeof a.host, "%s%.*s", p->subdomains ? "x." : "", SL(p->host));
    add(url, size, "", scheme_name(p->scheme));
    add(url, size, "", "://");
    add(url, size, "", authority_text(&a, text, sizeof text));
}

bool pattern_intersects(const struct pattern *a, const struct pattern *b, char *url, size_t size)
{
    char text[PATTERN_MAX * 2 + 2], unused[1];
    bool a_in_b = host_contains(b, a);
    if (url == NULL || size == 0) {
        url = unused;
        size = sizeof unused;
    }
    url[0] = 0;
    if (!a_in_b && !host_contains(a, b))
        return false;
    const struct pattern *longer = a->n_segments >= b->n_segments ? a : b;
    const struct pattern *shorter = longer == a ? b : a;
    if (longer->n_segments != shorter->n_segments && !shorter->tail)
        return false;
    add_host(url, size, a_in_b ? a : b);
    for (unsigned i = 0; i < longer->n_segments; i++) {
        if (i >= shorter->n_segments)
            segment_example(&longer->segments[i], text, sizeof text);
        else if (!segment_intersects(&longer->segments[i], &shorter->segments[i], text,
                                     sizeof text))
            return false;
        add(url, size, "/", text);
    }
    if (longer->n_segments == 0)
        add(url, size, "", "/");
    return true;
}

static int larger_first(size_t a, size_t b)
{
    return a > b ? -1 : a < b;
}

/* Why this agrees with containment: let b contain a strictly. Put a byte that b does not have into
 * each star of a: each of b's literals then stands on one of a's own, so literals do not fall from
 * b to a. The shortest texts of a are texts of b, so units do not fall either; where both are
 * equal, a star of a must stand where b has one (put a byte there that neither pattern has), so a
 * has no more stars, and no tail that b lacks. */
int pattern_order(const struct pattern *a, const struct pattern *b)
{
    int r = larger_first(b->subdomains, a->subdomains);
    if (r == 0 && a->subdomains)
        r = larger_first(a->host.n, b->host.n);
    if (r == 0)
        r = larger_first(a->literals, b->literals);
    if (r == 0)
        r = larger_first(a->units, b->units);
    if (r == 0)
        r = larger_first(b->stars, a->stars);
    return r ? r : larger_first(b->tail, a->tail);
}
