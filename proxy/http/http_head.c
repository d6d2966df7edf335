/* Finds, adds, replaces and removes fields, and copies a head into storage of its own, to which
 * each of its slices is moved. */
#include "http_head.h"

#include <stdlib.h>
#include <string.h>

void http_head_init(struct head *h)
{
    memset(h, 0, offsetof(struct head, fields));
}

void http_head_move(struct head *to, struct head *from)
{
    memcpy(to, from, offsetof(struct head, fields) + from->n * sizeof from->fields[0]);
    http_head_init(from);
}

void http_head_free(struct head *h)
{
    if (h->raw) {
        explicit_bzero(h->raw, h->raw_n);
        free(h->raw);
    }
    for (size_t i = 0; i < h->n_extra; i++) {
        explicit_bzero(h->extra[i], strlen(h->extra[i]));
        free(h->extra[i]);
    }
    free(h->extra);
    http_head_init(h);
}

const struct field *http_head_find(const struct head *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (slice_eq_str(h->fields[i].name, name))
            return &h->fields[i];
    return NULL;
}

size_t http_head_count(const struct head *h, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += slice_eq_str(h->fields[i].name, name);
    return n;
}

size_t http_head_remove(struct head *h, const char *name)
{
    size_t kept = 0, before = h->n;
    for (size_t i = 0; i < h->n; i++)
        if (!slice_eq_str(h->fields[i].name, name))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
    return before - kept;
}

/* A copy kept until http_head_free; values may hold no NUL (the field grammar excludes it). */
static const char *keep(struct head *h, struct slice v)
{
    char **grown = realloc(h->extra, (h->n_extra + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    h->extra = grown;
    char *copy = slice_dup(v);
    if (copy == NULL)
        return NULL;
    h->extra[h->n_extra++] = copy;
    return copy;
}

int http_head_add(struct head *h, const char *name, struct slice value)
{
    if (h->n >= HEAD_FIELDS_MAX)
        return -1;
    const char *v = keep(h, value);
    if (v == NULL)
        return -1;
    h->fields[h->n++] = (struct field){slice_str(name), {v, value.n}};
    return 0;
}

int http_head_set(struct head *h, const char *name, struct slice value)
{
    http_head_remove(h, name);
    return http_head_add(h, name, value);
}

int http_head_set_path(struct head *h, struct slice path)
{
    const char *v = keep(h, path);
    if (v == NULL)
        return -1;
    h->path = (struct slice){v, path.n};
    return 0;
}

int http_head_set_query(struct head *h, struct slice query, bool has)
{
    const char *v = keep(h, query);
    if (v == NULL)
        return -1;
    h->query = (struct slice){v, query.n};
    h->has_query = has;
    return 0;
}

static struct slice moved(struct slice s, char **at)
{
    if (s.n)
        memcpy(*at, s.p, s.n);
    struct slice r = {*at, s.n};
    *at += s.n;
    return r;
}

int http_head_copy(struct head *to, const struct head *from)
{
    size_t n =
        from->method.n + from->target.n + from->path.n + from->query.n + from->target_authority.n;
    for (size_t i = 0; i < from->n; i++)
        n += from->fields[i].name.n + from->fields[i].value.n;
    http_head_init(to);
    to->raw = malloc(n + 1);
    if (to->raw == NULL)
        return -1;
    to->raw_n = n;
    char *at = to->raw;
    to->method = moved(from->method, &at);
    to->target = moved(from->target, &at);
    to->path = moved(from->path, &at);
    to->query = moved(from->query, &at);
    to->target_authority = moved(from->target_authority, &at);
    to->form = from->form;
    to->target_https = from->target_https;
    to->has_query = from->has_query;
    to->respelled = from->respelled;
    to->status = from->status;
    to->minor = from->minor;
    to->body = from->body;
    to->length = from->length;
    to->keep_alive = from->keep_alive;
    to->repaired = from->repaired;
    to->expect_continue = from->expect_continue;
    to->te_trailers = from->te_trailers;
    to->knows_http2 = from->knows_http2;
    to->upgrade = from->upgrade;
    for (size_t i = 0; i < from->n; i++) {
        to->fields[i].name = moved(from->fields[i].name, &at);
        to->fields[i].value = moved(from->fields[i].value, &at);
    }
    to->n = from->n;
    return 0;
}
