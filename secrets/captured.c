#include "captured.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* ---- what is kept ---- */

struct kept {
    char *owner, *secret;
    struct secret *value;
    TAILQ_ENTRY(kept) link;
};

struct captured {
    size_t n;
    TAILQ_HEAD(kept_list, kept) list; /* last used first */
};

struct captured *captured_new(void)
{
    struct captured *c = calloc(1, sizeof *c);
    if (c)
        TAILQ_INIT(&c->list);
    return c;
}

static void drop(struct captured *c, struct kept *k)
{
    TAILQ_REMOVE(&c->list, k, link);
    c->n--;
    secret_unref(k->value);
    free(k->owner);
    free(k->secret);
    free(k);
}

void captured_free(struct captured *c)
{
    if (c == NULL)
        return;
    while (!TAILQ_EMPTY(&c->list))
        drop(c, TAILQ_FIRST(&c->list));
    free(c);
}

void captured_forget(struct captured *c, const char *sandbox)
{
    struct kept *k, *next;
    for (k = TAILQ_FIRST(&c->list); k; k = next) {
        next = TAILQ_NEXT(k, link);
        const char *bar = strchr(k->owner, '|');
        if (bar && strcmp(bar + 1, sandbox) == 0)
            drop(c, k);
    }
}

static struct kept *find(struct captured *c, const char *owner, const char *secret)
{
    struct kept *k;
    TAILQ_FOREACH(k, &c->list, link)
    if (strcmp(k->owner, owner) == 0 && strcmp(k->secret, secret) == 0)
        break;
    if (k) {
        TAILQ_REMOVE(&c->list, k, link);
        TAILQ_INSERT_HEAD(&c->list, k, link);
    }
    return k;
}

struct secret *captured_get(struct captured *c, const char *owner, const char *secret)
{
    const struct kept *k = find(c, owner, secret);
    return k ? k->value : NULL;
}

int captured_put(struct captured *c, const char *owner, const char *secret, struct secret *value)
{
    struct kept *k = find(c, owner, secret);
    if (k) {
        secret_ref(value);
        secret_unref(k->value);
        k->value = value;
        return 0;
    }
    k = calloc(1, sizeof *k);
    if (k == NULL)
        return -1;
    k->owner = strdup(owner);
    k->secret = strdup(secret);
    k->value = secret_ref(value);
    TAILQ_INSERT_HEAD(&c->list, k, link);
    c->n++;
    if (k->owner == NULL || k->secret == NULL) {
        drop(c, k);
        return -1;
    }
    if (c->n > CAPTURED_MAX)
        drop(c, TAILQ_LAST(&c->list, kept_list));
    return 0;
}

/* ---- what is found ---- */

/* What can stand in a header field or a form. */
static bool value_ok(const char *s, size_t n)
{
    if (n > CAPTURED_VALUE_MAX || s[0] == ' ' || s[n - 1] == ' ')
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] < 0x20 || s[i] >= 0x7f)
            return false;
    return true;
}

static int take(struct captured_field *all, size_t n, struct captured_field *f, const json_t *v,
                struct err *err)
{
    const char *s = json_string_value(v);
    size_t len = json_string_length(v);
    if (json_is_null(v) || (s && len < CAPTURED_VALUE_MIN))
        return 0;
    if (s == NULL || !value_ok(s, len))
        return err_set(err, ERR_PARSE, "'%s' is not the text of a secret", f->path);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].secret, f->secret) == 0 && all[i].value &&
            !secret_eq(all[i].value, (struct slice){s, len}))
            return err_set(err, ERR_PARSE, "two values for '%s' in one reply", f->secret);
    if (f->value == NULL && (f->value = secret_new(s, len)) == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return 0;
}

struct search {
    struct captured_field *all, *field;
    size_t n;
    struct err *err;
};

static int look(const struct search *s, const json_t *v, const char *path)
{
    const char *key;
    json_t *item;
    size_t i, len = strcspn(path, ".");
    bool any = path[0] == '*';
    if (*path == 0)
        return take(s->all, s->n, s->field, v, s->err);
    const char *rest = path[len] ? path + len + 1 : path + len;
    if (json_is_object(v)) {
        json_object_foreach((json_t *)v, key, item) if ((any || (strlen(key) == len &&
                                                                 memcmp(key, path, len) == 0)) &&
                                                        look(s, item, rest) < 0) return -1;
        return 0;
    }
    if (any && json_is_array(v))
        json_array_foreach(v, i, item) if (look(s, item, rest) < 0) return -1;
    return 0;
}

/* ---- what is written ---- */

/* One value's placeholder in each place of a text. */
static int replace(struct buf *out, struct slice text, struct slice value, struct slice by)
{
    ssize_t at;
    while ((at = slice_find_slice(text, value)) >= 0) {
        size_t used = (size_t)at + value.n;
        if (buf_append(out, text.p, (size_t)at) < 0 || buf_append_slice(out, by) < 0)
            return -1;
        text = (struct slice){text.p + used, text.n - used};
    }
    return buf_append_slice(out, text);
}

static bool holds(const struct captured_field *f, struct slice text)
{
    return f->value && slice_find_slice(text, secret_slice(f->value)) >= 0;
}

/* Each value once, so that a placeholder that holds one is no endless work. The fields stand with
 * the longest value first: it may hold another. */
static int clean_text(json_t *v, const struct captured_field *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf text;
        struct slice whole = {json_string_value(v), json_string_length(v)};
        if (!holds(&f[i], whole))
            continue;
        buf_init_wiped(&text, CAPTURED_WRITTEN_MAX);
        int r = replace(&text, whole, secret_slice(f[i].value), slice_str(f[i].placeholder));
        r = r == 0 && json_string_setn(v, buf_slice(&text).p, buf_len(&text)) == 0 ? 0 : -1;
        buf_free(&text);
        if (r < 0)
            return -1;
    }
    return 0;
}

static bool key_holds(const struct captured_field *f, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (holds(&f[i], slice_str(key)))
            return true;
    return false;
}

static int longest_first(const void *a, const void *b)
{
    const struct captured_field *x = a, *y = b;
    size_t n = x->value ? secret_slice(x->value).n : 0, m = y->value ? secret_slice(y->value).n : 0;
    return n < m ? 1 : n > m ? -1 : 0;
}

static int clean(json_t *v, const struct captured_field *f, size_t n)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(v))
        return clean_text(v, f, n);
    if (json_is_object(v))
        json_object_foreach(v, key,
                            item) if (key_holds(f, n, key) || clean(item, f, n) < 0) return -1;
    if (json_is_array(v))
        json_array_foreach(v, i, item) if (clean(item, f, n) < 0) return -1;
    return 0;
}

static int append(const char *p, size_t n, void *arg)
{
    return buf_append(arg, p, n);
}

int captured_rewrite(struct slice json, struct captured_field *fields, size_t n, struct buf *out,
                     struct err *err)
{
    json_t *v = json_loadb(json.p, json.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    int r = v ? 0 : err_set(err, ERR_PARSE, "it is no JSON");
    for (size_t i = 0; i < n; i++)
        fields[i].value = NULL;
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct search s = {fields, &fields[i], n, err};
        r = look(&s, v, fields[i].path);
    }
    qsort(fields, n, sizeof *fields, longest_first);
    if (r == 0 && (clean(v, fields, n) < 0 ||
                   json_dump_callback(v, append, out, JSON_COMPACT | JSON_ENCODE_ANY) < 0))
        r = err_set(err, ERR_LIMIT, "it cannot be written with placeholders");
    json_decref(v);
    return r;
}
