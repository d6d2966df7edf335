/* Makes a placeholder for each secret that a policy's rules use or its `env` names, and fills them
 * into the values of `env`; a template that cannot be filled is an error. */
#include "placeholders.h"

#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "buf.h"
#include "placeholder.h"

enum { VALUE_MAX = 32 * 1024 };

void placeholders_done(struct placeholders *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->list[i].placeholder);
        free(p->list[i].secret);
    }
    free(p->list);
    *p = (struct placeholders){0};
}

static const char *find(const struct placeholders *p, struct slice secret)
{
    for (size_t i = 0; i < p->n; i++)
        if (slice_eq_str(secret, p->list[i].secret))
            return p->list[i].placeholder;
    return NULL;
}

/* The next {{placeholder NAME}} of *in: *plain is what stands before it. Returns 1 and moves *in
 * behind it, 0 when there is none, -1 when it has no end. */
static int next_template(struct slice *in, struct slice *plain, struct slice *name)
{
    static const char open[] = "{{placeholder ";
    ssize_t at = slice_find_slice(*in, slice_str(open));
    *plain = (struct slice){in->p, at < 0 ? in->n : (size_t)at};
    *in = (struct slice){in->p + plain->n, in->n - plain->n};
    if (at < 0)
        return 0;
    ssize_t end = slice_find_slice(*in, SLICE("}}"));
    if (end < 0)
        return -1;
    size_t skip = sizeof open - 1;
    *name = slice_trim((struct slice){in->p + skip, (size_t)end - skip});
    *in = (struct slice){in->p + end + 2, in->n - (size_t)end - 2};
    return 1;
}

struct making {
    const struct config *config;
    struct placeholder_key *key;
    const unsigned char *seed;
    struct placeholders *list;
    size_t room;
};

static int add(struct making *k, const char *secret)
{
    const struct config_secret *s = config_secret(k->config, secret);
    struct placeholders *p = k->list;
    char text[PLACEHOLDER_MAX];
    if (find(p, slice_str(secret)))
        return 0;
    if (s == NULL || p->n == k->room ||
        placeholder_make(k->key, k->seed, secret, s->kind, text) < 0)
        return -1;
    struct sandbox_placeholder *e = &p->list[p->n++];
    e->placeholder = strdup(text);
    e->secret = strdup(secret);
    return e->placeholder && e->secret ? 0 : -1;
}

/* Secrets that the policy's `env` names, though no rule may use them (yet). */
static int add_named(struct making *k, const char *value)
{
    struct slice in = slice_str(value), plain, name;
    int r;
    while ((r = next_template(&in, &plain, &name)) == 1) {
        char *secret = slice_dup(name);
        int bad = secret ? add(k, secret) : -1;
        free(secret);
        if (bad)
            return -1;
    }
    return r;
}

int placeholders_make(const struct config *c, const char *policy, const unsigned char *seed,
                      const unsigned char *tag_key, struct placeholders *ret, struct err *err)
{
    size_t used = 0, n_env = 0, all = 0;
    const char *const *names = config_policy_secrets(c, policy, &used);
    const struct config_env *env = config_policy_env(c, policy, &n_env);
    config_secrets(c, &all);
    *ret = (struct placeholders){.list = calloc(all + 1, sizeof *ret->list)};
    struct making k = {c, placeholder_key_new(tag_key), seed, ret, all};
    int bad = k.key == NULL || ret->list == NULL;
    for (size_t i = 0; i < used && !bad; i++)
        bad = add(&k, names[i]);
    for (size_t i = 0; i < n_env && !bad; i++)
        bad = add_named(&k, env[i].value);
    placeholder_key_free(k.key);
    if (!bad)
        return 0;
    placeholders_done(ret);
    return err_set(err, ERR_INTERNAL, "cannot make the placeholders of policy %s", policy);
}

/* "NAME", or "NAME last N": the last N characters of it (enough to know it again). */
static const char *find_named(const struct placeholders *p, struct slice name)
{
    static const char last[] = " last ";
    ssize_t at = slice_find_slice(name, slice_str(last));
    uint64_t n;
    if (at < 0)
        return find(p, name);
    size_t skip = (size_t)at + sizeof last - 1;
    const char *text = find(p, (struct slice){name.p, (size_t)at});
    if (text == NULL ||
        slice_u64((struct slice){name.p + skip, name.n - skip}, PLACEHOLDER_MAX, &n) < 0)
        return NULL;
    size_t len = strlen(text);
    return text + (len > n ? len - n : 0);
}

/* "NAME basic USER": USER:PLACEHOLDER in base64, as files of Docker's hold a login. 1; 0: it is not
 * that; -1. */
static int fill_basic(const struct placeholders *p, struct slice name, struct buf *out)
{
    static const char basic[] = " basic ";
    ssize_t at = slice_find_slice(name, slice_str(basic));
    struct buf pair;
    if (at < 0)
        return 0;
    size_t skip = (size_t)at + sizeof basic - 1;
    const char *text = find(p, (struct slice){name.p, (size_t)at});
    buf_init(&pair, 1024);
    int bad = text == NULL || buf_append(&pair, name.p + skip, name.n - skip) < 0 ||
              buf_append_str(&pair, ":") < 0 || buf_append_str(&pair, text) < 0 ||
              base64_append(out, buf_slice(&pair)) < 0;
    buf_free(&pair);
    return bad ? -1 : 1;
}

/* Replace each {{placeholder NAME}}. What cannot be filled fails: an unfilled template must never
 * reach a sandbox (promise P8). */
static int fill(const struct placeholders *p, struct slice in, struct buf *out)
{
    struct slice plain, name;
    int r;
    while ((r = next_template(&in, &plain, &name)) == 1) {
        if (buf_append_slice(out, plain) < 0)
            return -1;
        int basic = fill_basic(p, name, out);
        const char *text = basic ? "" : find_named(p, name);
        if (basic < 0 || text == NULL || buf_append_str(out, text) < 0)
            return -1;
    }
    return r < 0 || buf_append_slice(out, plain) < 0 || buf_append(out, "", 1) < 0 ? -1 : 0;
}

char *placeholders_fill(const struct placeholders *p, const char *text)
{
    struct buf value;
    buf_init(&value, VALUE_MAX);
    char *filled =
        fill(p, slice_str(text), &value) < 0 ? NULL : strdup((const char *)buf_data(&value));
    buf_free(&value);
    return filled;
}

int placeholders_env(const struct config *c, const char *policy, const struct placeholders *p,
                     struct strlist *env, struct err *err)
{
    size_t n = 0;
    const struct config_env *e = config_policy_env(c, policy, &n);
    struct buf value;
    int bad = 0;
    buf_init(&value, VALUE_MAX);
    for (size_t i = 0; i < n && !bad; i++) {
        buf_clear(&value);
        if (fill(p, slice_str(e[i].value), &value) < 0)
            bad =
                err_set(err, ERR_PARSE, "policy %s: env %s cannot be filled in", policy, e[i].name);
        else if (strlist_set_env(env, e[i].name, (const char *)buf_data(&value)) < 0)
            bad = err_set(err, ERR_LIMIT, "policy %s: its env is too long", policy);
    }
    buf_free(&value);
    return bad;
}
