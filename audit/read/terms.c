/* Hashes keys with their values to numbers, for the lines that are indexed and for the filters that
 * look them up, so that both sides always agree. */
#include "terms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t terms_sum(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

uint64_t terms_hash(const char *key, struct slice value)
{
    uint64_t h = terms_sum(UINT64_C(14695981039346656037), key, strlen(key) + 1);
    h = terms_sum(h, value.p, value.n);
    return h ^ h >> 29;
}

/* Values hold no quote (audit/write/render.h). */
struct slice terms_value(struct slice line, const char *key)
{
    const char *at = memmem(line.p, line.n, key, strlen(key));
    if (at == NULL)
        return (struct slice){"", 0};
    at += strlen(key);
    bool quoted = at < line.p + line.n && *at == '"';
    at += quoted;
    struct slice rest = {at, (size_t)(line.p + line.n - at)};
    size_t n = 0;
    while (n < rest.n && (quoted ? rest.p[n] != '"' : rest.p[n] != ',' && rest.p[n] != '}'))
        n++;
    return (struct slice){rest.p, n};
}

/* From its last byte to its first, so that each domain above a host is a step on the way: whatever
 * its length, it is read once. domains: NULL, or who gets those, too. */
static uint64_t host_hash(struct slice host, terms_fn domains, void *arg)
{
    static const char key[] = "host";
    uint64_t h = terms_sum(UINT64_C(14695981039346656037), key, sizeof key);
    for (size_t i = host.n; i-- > 0;) {
        const char c = ascii_lower(host.p[i]);
        h = terms_sum(h, &c, 1);
        if (c == '.' && domains)
            domains(arg, h ^ h >> 29, true);
    }
    return h ^ h >> 29;
}

uint64_t terms_host(struct slice host)
{
    return host_hash(host, NULL, NULL);
}

bool terms_plain(const char *s)
{
    for (; *s; s++)
        if (*s < 0x20 || *s > 0x7e || *s == '"' || *s == '\\')
            return false;
    return true;
}

static void give_host(struct slice authority, terms_fn fn, void *arg)
{
    fn(arg, terms_host(authority), true);
    fn(arg, host_hash(query_host(authority), fn, arg), true);
}

/* The next field of a line, of which `rest` is left from the comma before it on (or the bracket).
 * Values hold no quote, and no other brackets. */
static bool next_field(struct slice *rest, struct slice *key, struct slice *value)
{
    const char *end = rest->p + rest->n, *p = rest->p + 2;
    if (rest->n < 6 || rest->p[1] != '"')
        return false;
    const char *quote = memchr(p, '"', (size_t)(end - p));
    if (quote == NULL || end - quote < 3 || quote[1] != ':')
        return false;
    *key = (struct slice){p, (size_t)(quote - p)};
    p = quote + 2;
    bool quoted = *p == '"';
    p += quoted;
    const char *to = p;
    if (quoted)
        to = memchr(p, '"', (size_t)(end - p));
    else
        while (to < end && *to != ',' && *to != '}')
            to++;
    if (to == NULL)
        return false;
    *value = (struct slice){p, (size_t)(to - p)};
    to += quoted;
    *rest = (struct slice){to, (size_t)(end - to)};
    return true;
}

static const struct {
    struct slice key;
    bool of_request;
} words[] = {
    {SLICE_INIT("sandbox"), true}, {SLICE_INIT("policy"), true},     {SLICE_INIT("rule"), true},
    {SLICE_INIT("method"), true},  {SLICE_INIT("credential"), true}, {SLICE_INIT("code"), false},
    {SLICE_INIT("role"), false},   {SLICE_INIT("status"), false},
};

static inline bool is(struct slice key, struct slice word)
{
    return key.n == word.n && memcmp(key.p, word.p, word.n) == 0;
}

static void give_word(struct slice key, struct slice value, terms_fn fn, void *arg)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (is(key, words[i].key)) {
            fn(arg, terms_hash(words[i].key.p, value), words[i].of_request);
            return;
        }
}

struct terms_marks terms_line(struct slice line, terms_fn fn, void *arg)
{
    struct terms_marks found = {{"", 0}, {"", 0}};
    struct slice key, value;
    while (next_field(&line, &key, &value)) {
        if (value.n == 0)
            continue;
        if (is(key, SLICE("authority")) || is(key, SLICE("target")))
            give_host(value, fn, arg);
        else if (is(key, SLICE("id")))
            found.id = value;
        else if (is(key, SLICE("received")))
            found.received = value;
        else
            give_word(key, value, fn, arg);
    }
    return found;
}

static void want(uint64_t *list, size_t *n, const char *key, const char *value)
{
    if (value && terms_plain(value))
        list[(*n)++] = terms_hash(key, slice_str(value));
}

void terms_filter(const struct query_filter *f, struct terms_wanted *w)
{
    char status[24];
    w->n_request = w->n_own = 0;
    want(w->request, &w->n_request, "id", f->id);
    want(w->request, &w->n_request, "sandbox", f->sandbox);
    want(w->request, &w->n_request, "policy", f->policy);
    want(w->request, &w->n_request, "rule", f->rule);
    want(w->request, &w->n_request, "credential", f->credential);
    want(w->request, &w->n_request, "method", f->method);
    if (f->host && terms_plain(f->host))
        w->request[w->n_request++] = terms_host(slice_str(f->host));
    want(w->own, &w->n_own, "code", f->code);
    want(w->own, &w->n_own, "role", f->role);
    snprintf(status, sizeof status, "%" PRId64, f->status);
    want(w->own, &w->n_own, "status", f->status ? status : NULL);
}
