/* Adds, replaces and finds strings, and carries the list in a message. Each string is wiped before
 * it is freed. */
#include "strlist.h"

#include <stdlib.h>
#include <string.h>

static void drop(char *s)
{
    explicit_bzero(s, strlen(s));
    free(s);
}

void strlist_done(struct strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        drop(l->v[i]);
    free(l->v);
    *l = (struct strlist){0};
}

/* Takes over s, also on failure. */
static int add_owned(struct strlist *l, char *s)
{
    if (s == NULL)
        return -1;
    size_t n = strlen(s) + 1;
    if (l->n >= STRLIST_MAX || l->bytes + n > STRLIST_BYTES) {
        drop(s);
        return -1;
    }
    char **v = reallocarray(l->v, l->n + 2, sizeof *v);
    if (v == NULL) {
        drop(s);
        return -1;
    }
    l->v = v;
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
    l->bytes += n;
    return 0;
}

int strlist_add(struct strlist *l, const char *s)
{
    return add_owned(l, strdup(s));
}

static ssize_t find_env(const struct strlist *l, const char *name, size_t n)
{
    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->v[i], name, n) == 0 && l->v[i][n] == '=')
            return (ssize_t)i;
    return -1;
}

static void remove_at(struct strlist *l, size_t i)
{
    l->bytes -= strlen(l->v[i]) + 1;
    drop(l->v[i]);
    memmove(l->v + i, l->v + i + 1, (l->n - i) * sizeof *l->v);
    l->n--;
}

int strlist_put_env(struct strlist *l, const char *pair)
{
    const char *eq = strchr(pair, '=');
    if (eq == NULL || eq == pair)
        return -1;
    ssize_t at = find_env(l, pair, (size_t)(eq - pair));
    if (at >= 0)
        remove_at(l, (size_t)at);
    return strlist_add(l, pair);
}

int strlist_set_env(struct strlist *l, const char *name, const char *value)
{
    size_t n = strlen(name), m = strlen(value);
    char *pair = malloc(n + m + 2);
    if (pair == NULL)
        return -1;
    memcpy(pair, name, n);
    pair[n] = '=';
    memcpy(pair + n + 1, value, m + 1);
    int r = strlist_put_env(l, pair);
    drop(pair);
    return r;
}

const char *strlist_get_env(const struct strlist *l, const char *name)
{
    size_t n = strlen(name);
    ssize_t at = find_env(l, name, n);
    return at < 0 ? NULL : l->v[at] + n + 1;
}

void strlist_put(const struct strlist *l, struct msg *m)
{
    msg_put_u32(m, (uint32_t)l->n);
    for (size_t i = 0; i < l->n; i++)
        msg_put_str(m, l->v[i]);
}

int strlist_get(struct strlist *l, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > STRLIST_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct slice s;
        if (msg_get_slice(m, STRLIST_BYTES, &s) < 0 || add_owned(l, slice_dup(s)) < 0)
            return -1;
    }
    return 0;
}
