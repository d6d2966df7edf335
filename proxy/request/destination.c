/* The second resource that a request names. COPY and MOVE write where their Destination says (RFC
 * 4918, 10.3): that place is judged as a PUT there would be. Object stores read what a field names
 * as the source of a copy: that place is judged as a GET. Each by its rule's conditions, which has
 * to send the same credential. Who asks for neither names no second place. */
#include "guard_internal.h"

#include "field_name.h"

#include <stdio.h>
#include <string.h>

struct place {
    struct authority at; /* the request's own, or the URI's */
    struct slice path, query;
    bool has_query;
};

/* An absolute path, or a URI with an authority. */
static int read_place(struct slice v, const struct authority *own, struct place *ret)
{
    static const struct slice any = {"/", 1};
    static const enum scheme schemes[] = {SCHEME_HTTP, SCHEME_HTTPS};
    *ret = (struct place){.at = *own, .path = v};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        char prefix[16];
        size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s://", scheme_name(schemes[i]));
        if (!slice_istarts(v, slice_str(prefix)))
            continue;
        struct slice rest = {v.p + n, v.n - n};
        ssize_t slash = slice_find(rest, '/');
        struct slice name = {rest.p, slash < 0 ? rest.n : (size_t)slash};
        ret->path = slash < 0 ? any : (struct slice){rest.p + slash, rest.n - (size_t)slash};
        if (authority_parse(&ret->at, schemes[i], name) < 0)
            return -1;
    }
    ssize_t mark = slice_find(ret->path, '?');
    ret->has_query = mark >= 0;
    if (mark >= 0) {
        ret->query = (struct slice){ret->path.p + mark + 1, ret->path.n - (size_t)mark - 1};
        ret->path.n = (size_t)mark;
    }
    return ret->path.n > 0 && ret->path.p[0] == '/' ? 0 : -1;
}

static bool same_credential(const struct rule *a, const struct rule *b)
{
    if (a->credential == NULL || b->credential == NULL)
        return a->credential == b->credential;
    return strcmp(a->credential->secret, b->credential->secret) == 0;
}

/* Does the policy let this request do that there? */
static bool may(const struct policy *p, const struct place *to, struct slice method,
                const struct head *h, const struct rule *rule)
{
    struct guard_answer unused = {.where = ""};
    const char *why;
    struct decision d;
    if (path_check_asked(to->path, &why) < 0)
        return false;
    struct policy_request q = {&to->at, method, to->path};
    policy_decide(p, &q, &d);
    if (d.verdict == VERDICT_DENY || !same_credential(d.rule, rule) || d.rule->tunnel)
        return false;
    if ((d.rule->inspection || d.rule->kubernetes) && path_has_empty(to->path))
        return false; /* as of a request's own path */
    bool plain = d.verdict == VERDICT_ALLOW && d.rule->inspection == NULL &&
                 d.rule->budget == NULL && d.rule->n_captures == 0;
    return (plain || d.rule == rule) &&
           guard_conditions(h, d.rule, to->query, to->has_query, &unused) == NULL;
}

static bool may_write(const struct policy *p, const struct authority *a, const struct head *h,
                      const struct rule *rule)
{
    size_t n = http_head_count(h, "destination");
    struct place to;
    if (n == 0 || (!slice_eq_str(h->method, "COPY") && !slice_eq_str(h->method, "MOVE")))
        return true;
    if (n > 1 || read_place(http_head_find(h, "destination")->value, a, &to) < 0 ||
        !authority_eq(&to.at, a))
        return false;
    return may(p, &to, SLICE("PUT"), h, rule);
}

/* ---- the source of a copy ---- */

static bool ends_as(struct slice name, struct slice end)
{
    return name.n >= end.n && field_same((struct slice){name.p + name.n - end.n, end.n}, end);
}

enum source { SOURCE_NONE = 0, SOURCE_OF_HOST, SOURCE_OF_ACCOUNT, SOURCE_ELSEWHERE };

/* x-amz-copy-source, x-ms-copy-source, x-goog-copy-source, x-ms-rename-source, ...; and Swift's, of
 * which the latter two make an object that reads others whenever it is read. */
static enum source source_named(struct slice name)
{
    if (ends_as(name, SLICE("-copy-source")) || ends_as(name, SLICE("-rename-source")))
        return SOURCE_OF_HOST;
    if (field_same(name, SLICE("x-copy-from")) || field_same(name, SLICE("x-object-manifest")) ||
        field_same(name, SLICE("x-symlink-target")))
        return SOURCE_OF_ACCOUNT;
    bool other = field_same(name, SLICE("x-copy-from-account")) ||
                 field_same(name, SLICE("x-symlink-target-account"));
    return other ? SOURCE_ELSEWHERE : SOURCE_NONE;
}

/* "/v1/account" of the request's own path: Swift's "container/object" is below it. */
static struct slice account_of(struct slice path)
{
    size_t n = 0;
    for (unsigned slashes = 0; n < path.n; n++)
        if (path.p[n] == '/' && ++slashes == 3)
            return (struct slice){path.p, n};
    return SLICE("");
}

/* Where the name of a bucket ends that the host begins with; 0: it begins with none. */
static size_t bucket_end(struct slice host)
{
    static const char *const behind[] = {".s3.", ".s3-", ".storage.googleapis.com"};
    size_t found = 0;
    for (size_t i = 1; i < host.n; i++)
        for (size_t k = 0; k < ARRAY_LEN(behind); k++)
            if (slice_starts((struct slice){host.p + i, host.n - i}, slice_str(behind[k])))
                found = i;
    return found;
}

/* "/bucket/key" asked of a bucket's own host is the key at that bucket's host. */
static int at_bucket(const struct authority *own, struct place *of)
{
    struct slice host = slice_str(own->host), name = {of->path.p + 1, of->path.n - 1};
    size_t end = bucket_end(host);
    char text[HOST_TEXT_MAX];
    if (end == 0)
        return 0;
    ssize_t slash = slice_find(name, '/');
    int n = slash <= 0 ? -1
                       : snprintf(text, sizeof text, "%.*s%.*s", (int)slash, name.p,
                                  (int)(host.n - end), host.p + end);
    if (n < 0 || (size_t)n >= sizeof text ||
        authority_parse(&of->at, own->scheme, (struct slice){text, (size_t)n}) < 0)
        return -1;
    of->at.port = own->port;
    of->path = (struct slice){name.p + slash, name.n - (size_t)slash};
    return 0;
}

/* A URI, or "bucket/key" with or without a slash before it. */
static bool may_read(const struct policy *p, const struct authority *a, const struct head *h,
                     enum source kind, struct slice source, const struct rule *rule)
{
    struct place of;
    struct buf text;
    struct slice account = kind == SOURCE_OF_ACCOUNT ? account_of(h->path) : SLICE("");
    bool uri = read_place(source, a, &of) == 0 && of.path.p != source.p;
    if (uri)
        return kind == SOURCE_OF_HOST && may(p, &of, SLICE("GET"), h, rule);
    bool ok = kind == SOURCE_OF_HOST || account.n > 0;
    buf_init(&text, account.n + source.n + 1);
    ok = ok && buf_append_slice(&text, account) == 0 &&
         ((source.n && source.p[0] == '/') || buf_append(&text, "/", 1) == 0) &&
         buf_append_slice(&text, source) == 0 && read_place(buf_slice(&text), a, &of) == 0 &&
         (kind != SOURCE_OF_HOST || at_bucket(a, &of) == 0) && may(p, &of, SLICE("GET"), h, rule);
    buf_free(&text);
    return ok;
}

static bool may_copy(const struct policy *p, const struct authority *a, const struct head *h,
                     const struct rule *rule)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        enum source kind = source_named(h->fields[i].name);
        if (kind && (n++ > 0 || !may_read(p, a, h, kind, h->fields[i].value, rule)))
            return false;
    }
    return true;
}

bool guard_destination(const struct policy *p, const struct authority *a, const struct head *h,
                       const struct rule *rule)
{
    return may_write(p, a, h, rule) && may_copy(p, a, h, rule);
}
