/* Reads URLs of a login, and makes and reads forms. */
#include "login_url.h"

#include <stdio.h>
#include <string.h>

static const char scheme[] = "https://";

int login_url_read(struct login_url *u, const char *text, const char *what, struct err *err)
{
    size_t n = text ? strlen(text) : 0;
    memset(u, 0, sizeof *u);
    if (n == 0 || n > LOGIN_URL_MAX)
        return err_set(err, ERR_PARSE, "%s is not a URL of at most %d bytes", what, LOGIN_URL_MAX);
    for (const char *p = text; *p; p++)
        if (*p <= 0x20 || *p >= 0x7f || strchr("\"<>\\^`{|}#", *p))
            return err_set(err, ERR_PARSE, "%s has a sign that no URL here may have", what);
    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return err_set(err, ERR_DENIED, "%s is not https: '%.200s'", what, text);
    memcpy(u->text, text, n + 1);
    const char *host = u->text + sizeof scheme - 1;
    size_t len = strcspn(host, "/?");
    if (authority_parse(&u->at, SCHEME_HTTPS, (struct slice){host, len}) < 0)
        return err_set(err, ERR_PARSE, "%s is not https://HOST[:PORT]/PATH: '%.200s'", what, text);
    u->path = (size_t)(host - u->text) + len;
    return 0;
}

const char *login_url_path(const struct login_url *u)
{
    return u->text + u->path;
}

bool login_url_plain(const struct login_url *u)
{
    static const char good[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@:/+~-";
    const char *path = login_url_path(u);
    return strlen(u->text) <= LOGIN_PLAIN_MAX && strspn(path, good) == strlen(path) &&
           strstr(path, "..") == NULL && strstr(path, "//") == NULL;
}

bool login_url_same_origin(const struct login_url *a, const struct login_url *b)
{
    return authority_eq(&a->at, &b->at);
}

/* Without a slash at its end. */
static struct slice trimmed(const char *path)
{
    struct slice s = slice_str(path);
    if (s.n > 0 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

bool login_url_covers(const struct login_url *a, const struct login_url *b)
{
    struct slice outer = trimmed(login_url_path(a)), inner = trimmed(login_url_path(b));
    return login_url_same_origin(a, b) && slice_starts(inner, outer) &&
           (inner.n == outer.n || inner.p[outer.n] == '/');
}

bool login_url_same(const char *a, const char *b)
{
    struct slice x = trimmed(a), y = trimmed(b);
    size_t head = sizeof scheme - 1;
    bool bare = x.n > head && memchr(x.p + head, '/', x.n - head) == NULL;
    return strcmp(a, b) == 0 || (bare && slice_eq(x, y));
}

int login_url_known(struct login_url *ret, const struct login_url *u, const char *name, bool behind,
                    struct err *err)
{
    char text[LOGIN_URL_MAX + 80];
    struct slice path = {login_url_path(u), strcspn(login_url_path(u), "?")};
    int origin = (int)u->path;
    if (path.n > 0 && path.p[path.n - 1] == '/')
        path.n--;
    if (behind)
        snprintf(text, sizeof text, "%.*s%.*s/.well-known/%s", origin, u->text, SL(path), name);
    else
        snprintf(text, sizeof text, "%.*s/.well-known/%s%.*s", origin, u->text, name, SL(path));
    return login_url_read(ret, text, "where a server's metadata lies", err);
}

/* ---- forms ---- */

int login_form(struct buf *to, const char *name, struct slice value)
{
    if (buf_printf(to, "%s%s=", buf_len(to) ? "&" : "", name) < 0)
        return -1;
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        int r = ascii_is_alnum(c) || (c && strchr("-._~", c))
                    ? buf_append(to, &c, 1)
                    : buf_printf(to, "%%%02X", (unsigned char)c);
        if (r < 0)
            return -1;
    }
    return 0;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Printable ASCII only: no value of these has more. */
static int decode(struct slice s, char *to, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++, n++) {
        int c = (unsigned char)s.p[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            int high = i + 2 < s.n ? digit(s.p[i + 1]) : -1,
                low = high < 0 ? -1 : digit(s.p[i + 2]);
            if (high < 0 || low < 0)
                return -1;
            c = high * 16 + low;
            i += 2;
        }
        if (n + 1 >= size || c < 0x20 || c >= 0x7f)
            return -1;
        to[n] = (char)c;
    }
    to[n] = 0;
    return 1;
}

int login_query(struct slice query, const char *name, char *to, size_t size)
{
    int found = 0;
    to[0] = 0;
    while (query.n > 0) {
        ssize_t and = slice_find(query, '&');
        struct slice one = {query.p, and < 0 ? query.n : (size_t) and };
        ssize_t eq = slice_find(one, '=');
        struct slice key = {one.p, eq < 0 ? one.n : (size_t)eq};
        query = and < 0 ? (struct slice){"", 0}
                        : (struct slice){one.p + one.n + 1, query.n - one.n - 1};
        if (!slice_eq_str(key, name))
            continue;
        if (found || eq < 0 ||
            decode((struct slice){one.p + eq + 1, one.n - (size_t)eq - 1}, to, size) < 0)
            return -1;
        found = 1;
    }
    return found;
}
