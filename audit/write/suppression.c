/* Which findings a suppression is about, and its way from the controller to the logger. */
#include "suppression.h"

#include <string.h>

static bool is_finding(const struct record_view *v)
{
    switch (v->kind) {
    case RECORD_DENIED:
    case RECORD_PACKET:
    case RECORD_TLS_REFUSED:
        return true;
    case RECORD_DNS:
        return v->field[RF_CODE].n > 0 && !slice_eq_str(v->field[RF_CODE], "ok");
    default:
        return false;
    }
}

/* ---- checked ---- */

static bool printable(const char *s, char least)
{
    for (; *s; s++)
        if (*s < least || *s > '~')
            return false;
    return true;
}

/* As it is compared: without the usual port, and without the dot at the end. */
static struct slice plain_host(struct slice s)
{
    if (slice_ends(s, SLICE(":443")))
        s.n -= strlen(":443");
    else if (slice_ends(s, SLICE(":80")))
        s.n -= strlen(":80");
    if (s.n && s.p[s.n - 1] == '.')
        s.n--;
    return s;
}

/* A name below which there are others: "*.example.com", never "*.com". */
static bool host_ok(const char *s)
{
    struct slice plain = plain_host(slice_str(s));
    if (plain.n == 0 || *s == ' ' || !printable(s, ' '))
        return false;
    const char *star = strchr(s, '*');
    return star == NULL || (star == s && strncmp(s, "*.", 2) == 0 && strchr(s + 1, '*') == NULL &&
                            plain.n > 3 && s[2] != '.' && memchr(s + 2, '.', plain.n - 2) != NULL);
}

static bool path_ok(const char *s)
{
    const char *star = strchr(s, '*');
    if (*s == 0)
        return true;
    return *s == '/' && printable(s, '!') &&
           (star == NULL || (strcmp(star, "**") == 0 && star[-1] == '/'));
}

int suppression_check(const struct suppression *s, struct err *err)
{
    size_t n = strspn(s->code, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (n == 0 || s->code[n] || strcmp(s->code, "ok") == 0)
        return err_set(err, ERR_PARSE, "'code' is that of the findings, as 'no_rule'");
    if (!host_ok(s->host))
        return err_set(err, ERR_PARSE,
                       "'host' is the name or address in the findings, or '*.NAME' for those below "
                       "a name of two labels or more");
    if (!path_ok(s->path))
        return err_set(err, ERR_PARSE, "'path' begins with '/'; at its end '/**' is all below it");
    if (s->policy[0] == 0 || !printable(s->method, '!') || !printable(s->policy, '!') ||
        !printable(s->sandbox, '!'))
        return err_set(err, ERR_PARSE, "'policy', 'method' and 'sandbox' are words");
    return 0;
}

/* ---- fitted ---- */

static bool host_fits(const char *pattern, struct slice host)
{
    struct slice want = slice_str(pattern);
    if (strncmp(pattern, "*.", 2) != 0)
        return slice_ieq(plain_host(want), host);
    want = plain_host((struct slice){want.p + 1, want.n - 1}); /* ".example.com" */
    return host.n > want.n && slice_ieq(want, (struct slice){host.p + host.n - want.n, want.n});
}

static bool path_fits(const char *pattern, struct slice path)
{
    size_t n = strlen(pattern);
    if (n >= 2 && strcmp(pattern + n - 2, "**") == 0)
        return slice_starts(path, (struct slice){pattern, n - 2});
    return n == 0 || slice_eq_str(path, pattern);
}

static bool name_fits(const char *want, const char *channel, struct slice said)
{
    return channel[0] ? strcmp(want, channel) == 0 : slice_eq_str(said, want);
}

static bool fits(const struct suppression *s, const struct record_view *v,
                 const struct render_source *from)
{
    struct slice code = v->field[RF_CODE], host = v->field[RF_AUTHORITY];
    if (code.n == 0)
        code = slice_str(record_kind_name(v->kind));
    if (host.n == 0)
        host = v->field[RF_TARGET];
    return slice_eq_str(code, s->code) && name_fits(s->policy, from->policy, v->field[RF_POLICY]) &&
           host_fits(s->host, plain_host(host)) &&
           (s->method[0] == 0 || slice_eq_str(v->field[RF_METHOD], s->method)) &&
           path_fits(s->path, v->field[RF_PATH]) &&
           (s->sandbox[0] == 0 || name_fits(s->sandbox, from->sandbox, v->field[RF_SANDBOX]));
}

bool suppressions_fit(const struct suppressions *all, const struct record_view *v,
                      const struct render_source *from, int64_t now)
{
    if (all->n == 0 || !is_finding(v))
        return false;
    for (size_t i = 0; i < all->n; i++)
        if (now < all->list[i].expires && fits(&all->list[i], v, from))
            return true;
    return false;
}

/* ---- told ---- */

void suppressions_put(const struct suppressions *all, struct msg *m)
{
    msg_put_u32(m, (uint32_t)all->n);
    for (size_t i = 0; i < all->n; i++) {
        const struct suppression *s = &all->list[i];
        msg_put_str(m, s->policy);
        msg_put_str(m, s->code);
        msg_put_str(m, s->host);
        msg_put_str(m, s->method);
        msg_put_str(m, s->path);
        msg_put_str(m, s->sandbox);
        msg_put_u64(m, (uint64_t)s->expires);
    }
}

static int get_one(struct suppression *s, struct msg *m)
{
    struct err err = {0};
    uint64_t expires;
    if (msg_get_str(m, s->policy, sizeof s->policy) < 0 ||
        msg_get_str(m, s->code, sizeof s->code) < 0 ||
        msg_get_str(m, s->host, sizeof s->host) < 0 ||
        msg_get_str(m, s->method, sizeof s->method) < 0 ||
        msg_get_str(m, s->path, sizeof s->path) < 0 ||
        msg_get_str(m, s->sandbox, sizeof s->sandbox) < 0 || msg_get_u64(m, &expires) < 0 ||
        expires > INT64_MAX)
        return -1;
    s->expires = (int64_t)expires;
    return suppression_check(s, &err);
}

int suppressions_get(struct suppressions *all, struct msg *m)
{
    uint32_t n;
    memset(all, 0, sizeof *all);
    if (msg_get_u32(m, &n) < 0 || n > SUPPRESSIONS_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (get_one(&all->list[i], m) < 0)
            return -1;
    all->n = n;
    return msg_end(m);
}
