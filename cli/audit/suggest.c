/* Collects denials, makes equal ones one, and puts '*' where more than three paths of a host differ
 * in one segment only. */
#include "suggest.h"

#include <stdlib.h>
#include <string.h>

#include "audit_read.h"
#include "authority.h"
#include "method.h"
#include "suggest_broker.h"

enum { SEGMENTS_MAX = 64, SIMILAR = 3 /* so many paths may differ in a segment and stay apart */ };

/* One distinct denial. host: as a rule writes it; path "": only the name is known. */
struct wish {
    char *policy, *host, *path;
    uint32_t methods; /* bits of rules/policy/method.h */
    json_t *more;     /* of what is not HTTP: what its rule says beside */
    uint64_t count;
    bool gone; /* merged into another */
    bool rest; /* the path went on with an empty segment, which a rule names by "**" alone */
};

struct suggest {
    bool exact;
    struct wish *at;
    size_t n, room;
    uint64_t left_out;
};

struct suggest *suggest_new(bool exact)
{
    struct suggest *s = calloc(1, sizeof *s);
    if (s)
        s->exact = exact;
    return s;
}

static void wish_done(struct wish *w)
{
    free(w->policy);
    free(w->host);
    free(w->path);
    json_decref(w->more);
}

void suggest_free(struct suggest *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        wish_done(&s->at[i]);
    if (s)
        free(s->at);
    free(s);
}

uint64_t suggest_left_out(const struct suggest *s)
{
    return s->left_out;
}

/* "https" and port 443 go without saying. false: not an authority that a rule can name. */
static bool host_text(const char *scheme, const char *authority, char *to, size_t size)
{
    struct authority a;
    char text[HOST_TEXT_MAX + 16];
    bool clear = strcmp(scheme, "http") == 0;
    if (authority_parse(&a, clear ? SCHEME_HTTP : SCHEME_HTTPS, slice_str(authority)) < 0)
        return false;
    snprintf(to, size, "%s%s", clear ? "http://" : "", authority_text(&a, text, sizeof text));
    return true;
}

/* more is taken over. */
static void add(struct suggest *s, const struct query_row *r, const char *host, const char *path,
                uint32_t method, json_t *more)
{
    if (s->n == SUGGEST_MAX) {
        s->left_out++;
        json_decref(more);
        return;
    }
    if (s->n == s->room) {
        size_t room = s->room ? s->room * 2 : 256;
        struct wish *grown = realloc(s->at, room * sizeof *grown);
        if (grown == NULL) {
            s->left_out++;
            json_decref(more);
            return;
        }
        s->at = grown;
        s->room = room;
    }
    struct wish w = {.policy = strdup(r->policy),
                     .host = strdup(host),
                     .path = strdup(path),
                     .methods = method,
                     .more = more,
                     .count = r->count > 0 ? (uint64_t)r->count : 1};
    if (w.policy && w.host && w.path)
        s->at[s->n++] = w;
    else
        wish_done(&w);
}

void suggest_add(struct suggest *s, const struct query_row *r)
{
    char host[HOST_TEXT_MAX + 32];
    bool rule_missing = strcmp(r->code, "no_rule") == 0 || strcmp(r->code, "method") == 0;
    if (audit_is_probe(r))
        return;
    if (r->kind == RECORD_DNS && strcmp(r->code, "dns_denied") == 0) {
        if (host_text("https", r->target, host, sizeof host))
            add(s, r, host, "", 0, NULL);
        return;
    }
    const char *path;
    json_t *more;
    bool http = strncmp(r->scheme, "http", 4) == 0 || r->scheme[0] == 0;
    if (r->kind == RECORD_DENIED && !http) {
        if (suggest_broker(r, host, sizeof host, &path, &more))
            add(s, r, host, path, 0, more);
        return;
    }
    if (r->kind != RECORD_DENIED || !rule_missing)
        return;
    bool whole = r->path[0] == '/' && r->authority[0];
    if (host_text(r->scheme, r->authority[0] ? r->authority : r->target, host, sizeof host))
        add(s, r, host, whole ? r->path : "", whole ? method_bit(slice_str(r->method)) : 0, NULL);
}

/* ---- merging ---- */

static int by_place(const void *pa, const void *pb)
{
    const struct wish *a = pa, *b = pb;
    int r = strcmp(a->policy, b->policy);
    r = r ? r : strcmp(a->host, b->host);
    return r ? r : strcmp(a->path, b->path);
}

static bool same_host(const struct wish *a, const struct wish *b)
{
    return strcmp(a->policy, b->policy) == 0 && strcmp(a->host, b->host) == 0;
}

/* Equal places become one; those merged away go to the end. */
static void unite(struct suggest *s)
{
    size_t kept = 0;
    if (s->n == 0)
        return;
    qsort(s->at, s->n, sizeof *s->at, by_place);
    for (size_t i = 1; i < s->n; i++) {
        struct wish *into = &s->at[kept], *w = &s->at[i];
        if (by_place(into, w) != 0) {
            struct wish swap = s->at[++kept];
            s->at[kept] = *w;
            *w = swap;
            continue;
        }
        into->methods |= w->methods;
        into->rest |= w->rest;
        into->count += w->count;
        if (into->more && w->more)
            suggest_broker_join(into->more, w->more);
        wish_done(w);
        *w = (struct wish){0};
    }
    s->n = kept + 1;
}

/* Where segment `k` (0-based) of a path begins and ends; false when there are fewer. */
static bool segment(const char *path, unsigned k, size_t *from, size_t *to)
{
    size_t at = 0;
    for (unsigned i = 0; path[at] == '/'; i++) {
        size_t end = at + 1 + strcspn(path + at + 1, "/");
        if (i == k) {
            *from = at + 1;
            *to = end;
            return true;
        }
        at = end;
    }
    return false;
}

/* The same but for segment k, which must not be empty in either. */
static bool alike(const char *a, const char *b, unsigned k)
{
    size_t af, at, bf, bt;
    return segment(a, k, &af, &at) && segment(b, k, &bf, &bt) && at > af && bt > bf && af == bf &&
           strncmp(a, b, af) == 0 && strcmp(a + at, b + bt) == 0;
}

static void star(struct wish *w, unsigned k)
{
    size_t from, to;
    if (!segment(w->path, k, &from, &to))
        return;
    w->path[from] = '*';
    memmove(w->path + from + 1, w->path + to, strlen(w->path + to) + 1);
}

/* Paths of one host that differ in segment k only, if there are many. */
static void widen(struct suggest *s, size_t from, size_t end, unsigned k)
{
    for (size_t i = from; i < end; i++) {
        size_t n = 0;
        for (size_t j = from; j < end; j++)
            n += alike(s->at[i].path, s->at[j].path, k);
        if (n <= SIMILAR)
            continue;
        for (size_t j = end; j-- > from;)
            if (j != i && alike(s->at[i].path, s->at[j].path, k))
                star(&s->at[j], k);
        star(&s->at[i], k);
    }
}

static bool literal_star(const struct wish *w)
{
    return strchr(w->path, '*') != NULL;
}

static void widen_all(struct suggest *s)
{
    for (unsigned k = SEGMENTS_MAX; k-- > 0;) {
        for (size_t from = 0, end; from < s->n; from = end) {
            for (end = from; end < s->n && same_host(&s->at[from], &s->at[end]);)
                end++;
            if (end - from > SIMILAR && end - from <= 2000)
                widen(s, from, end, k);
        }
        unite(s);
    }
}

/* ---- rules ---- */

static json_t *rule_of(const struct wish *w)
{
    json_t *rule = json_object(), *methods = json_array();
    json_object_set_new(rule, "allow",
                        json_sprintf("%s%s%s", w->host, w->path, w->rest ? "/**" : ""));
    for (unsigned i = 0; method_name(i); i++)
        if (w->methods & 1u << i)
            json_array_append_new(methods, json_string(method_name(i)));
    if (json_array_size(methods) > 0)
        json_object_set(rule, "methods", methods);
    json_object_update(rule, w->more);
    json_decref(methods);
    return rule;
}

/* A bare name is answered by any rule of its host. */
static bool covered(const struct suggest *s, size_t i)
{
    if (s->at[i].path[0] || s->at[i].more)
        return false;
    return (i > 0 && same_host(&s->at[i - 1], &s->at[i])) ||
           (i + 1 < s->n && same_host(&s->at[i + 1], &s->at[i]));
}

static void cut_empty(struct wish *w)
{
    char *empty = strstr(w->path, "//");
    if (empty)
        *empty = 0;
    w->rest = empty != NULL;
}

json_t *suggest_rules(struct suggest *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n; i++)
        cut_empty(&s->at[i]);
    unite(s);
    for (size_t i = 0; i < s->n; i++) /* a path with a '*' of its own cannot be written as a rule */
        if (literal_star(&s->at[i]))
            s->at[i].gone = true;
    if (!s->exact)
        widen_all(s);
    for (size_t i = 0; i < s->n; i++) {
        const struct wish *w = &s->at[i];
        if (w->gone || covered(s, i))
            continue;
        json_array_append_new(list, json_pack("{s:s, s:o, s:I, s:b}", "policy", w->policy, "rule",
                                              rule_of(w), "denied", (json_int_t)w->count,
                                              "name_only", w->path[0] == 0 && w->more == NULL));
    }
    return list;
}
