/* Matches component by component. A star, and `**`, is tried again at its last place only: the time
 * is at most pattern times path. */
#include "sync_ignore.h"

#include <stdlib.h>
#include <string.h>

struct sync_pattern {
    char *text; /* owned; without what stands for the rest */
    bool not, directory, anchored;
};

/* ---- reading ---- */

int sync_ignore_add(struct sync_ignore *g, const char *line, struct err *err)
{
    struct sync_pattern p = {0};
    size_t n = strlen(line);
    while (n && (line[n - 1] == '\r' || (line[n - 1] == ' ' && (n < 2 || line[n - 2] != '\\'))))
        n--;
    if (n == 0 || line[0] == '#')
        return 0;
    p.not = line[0] == '!';
    line += p.not ;
    n -= p.not ;
    p.directory = n && line[n - 1] == '/';
    n -= p.directory;
    p.anchored = n && memchr(line, '/', n) != NULL;
    bool slash = n && line[0] == '/';
    line += slash;
    n -= slash;
    if (n == 0)
        return err_set(err, ERR_PARSE, "a pattern says nothing: '%.100s'", line);
    if (g->n == SYNC_PATTERNS)
        return err_set(err, ERR_LIMIT, "more than %d patterns", SYNC_PATTERNS);
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 16;
        struct sync_pattern *v = reallocarray(g->v, room, sizeof *v);
        if (v == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
        g->v = v;
        g->room = room;
    }
    p.text = slice_dup((struct slice){line, n});
    if (p.text == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    g->v[g->n++] = p;
    return 0;
}

int sync_ignore_add_text(struct sync_ignore *g, const char *text, struct err *err)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = slice_dup((struct slice){text, n});
        int r = line ? sync_ignore_add(g, line, err) : err_set(err, ERR_INTERNAL, "out of memory");
        free(line);
        if (r < 0)
            return -1;
        text += n + (text[n] == '\n');
    }
    return 0;
}

void sync_ignore_free(struct sync_ignore *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i].text);
    free(g->v);
    *g = (struct sync_ignore){0};
}

/* ---- matching ---- */

/* "[a-z]", "[!x]": is c in it? *p goes behind it; one without an end is a plain '['. */
static bool in_set(const char **p, char c)
{
    const char *s = *p + 1;
    bool not = *s == '!' || *s == '^', in = false;
    s += not ;
    const char *first = s;
    for (; *s && *s != '/' && (*s != ']' || s == first); s++)
        if (s[1] == '-' && s[2] && s[2] != ']' && s[2] != '/') {
            in |=
                (unsigned char)c >= (unsigned char)s[0] && (unsigned char)c <= (unsigned char)s[2];
            s += 2;
        } else {
            in |= *s == c;
        }
    if (*s != ']') {
        ++*p;
        return c == '[';
    }
    *p = s + 1;
    return in != not ;
}

/* One of the pattern for one of the name. *p goes on; false: they differ. */
static bool one(const char **p, char c)
{
    if (**p == '[')
        return in_set(p, c);
    if (**p == '?')
        return ++*p, true;
    if (**p == '\\' && (*p)[1] && (*p)[1] != '/')
        ++*p;
    return *(*p)++ == c;
}

static bool at_end(const char *p)
{
    return *p == '\0' || *p == '/';
}

/* One component of each. */
static bool fits(const char *p, const char *s, size_t n)
{
    const char *star = NULL;
    size_t i = 0, from = 0;
    while (i < n) {
        const char *q = p;
        if (*p == '*') {
            star = ++p;
            from = i;
        } else if (!at_end(p) && one(&q, s[i])) {
            p = q;
            i++;
        } else if (star) {
            p = star;
            i = ++from;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return at_end(p);
}

static const char *next(const char *s)
{
    s += strcspn(s, "/");
    return *s ? s + 1 : s;
}

static bool is_any(const char *p)
{
    return p[0] == '*' && p[1] == '*' && at_end(p + 2);
}

/* A whole path, from its beginning. */
static bool fits_path(const char *p, const char *s)
{
    const char *star = NULL, *from = NULL;
    while (*s) {
        if (*p && is_any(p)) {
            p = next(p);
            if (*p == '\0')
                return true; /* all that lies in it */
            star = p;
            from = s;
        } else if (*p && fits(p, s, strcspn(s, "/"))) {
            p = next(p);
            s = next(s);
        } else if (star) {
            p = star;
            s = from = next(from);
        } else {
            return false;
        }
    }
    return *p == '\0';
}

static bool decided(const struct sync_ignore *g, const char *path, bool directory)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = g->n; i-- > 0;) {
        const struct sync_pattern *p = &g->v[i];
        if (p->directory && !directory)
            continue;
        if (p->anchored ? fits_path(p->text, path) : fits(p->text, name, strlen(name)))
            return !p->not ;
    }
    return false;
}

bool sync_ignored(const struct sync_ignore *g, const char *path, bool directory)
{
    char above[4096];
    size_t n = strlen(path);
    if (g->n == 0 || n >= sizeof above)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (path[i] == '/') {
            above[i] = '\0';
            if (decided(g, above, true))
                return true;
        }
        above[i] = path[i];
    }
    return decided(g, path, directory);
}

int sync_ignore_names(const struct sync_ignore *g, size_t max, struct strlist *ret)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].not )
            return 0; /* one of them may come back */
    for (size_t i = 0; i < g->n && ret->n < max; i++) {
        const struct sync_pattern *p = &g->v[i];
        if (p->anchored || p->directory || strpbrk(p->text, "*?[\\") || strlen(p->text) > 255)
            continue;
        if (strlist_add(ret, p->text) < 0)
            return -1;
    }
    return 0;
}
