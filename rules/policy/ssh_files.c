/* Holds what is asked of a server's files against a rule's patterns. What gives a file or a folder
 * another name may give nobody more than its old name gave. */
#include "ssh_files.h"

#include <string.h>

/* What one pattern says of a path. */
enum { MATCHES = 1, ABOVE = 2 /* it may match something below */, COVERS = 4 /* all of that */ };

/* Bits by right: of patterns that match, that cover, and that match something deeper only. */
struct found {
    unsigned matches, covers, deep;
};

const char *ssh_file_verb_name(enum ssh_file_verb v)
{
    static const char *const names[SSH_FILE_VERBS] = {
        "see",        "list",  "read",   "write", "update", "link-target",
        "attributes", "mkdir", "remove", "rmdir", "rename", "link"};
    return (unsigned)v < SSH_FILE_VERBS ? names[v] : "";
}

bool ssh_file_path_ok(struct slice path)
{
    if (path.n == 0 || path.n > SSH_FILE_PATH_MAX || path.p[0] != '/' ||
        memchr(path.p, 0, path.n) != NULL || memchr(path.p, '\\', path.n) != NULL)
        return false;
    for (size_t i = 0, part = 1; path.n > 1 && i < path.n; i = part, part = i + 1) {
        while (part < path.n && path.p[part] != '/')
            part++;
        struct slice name = {path.p + i + 1, part - i - 1};
        if (name.n == 0 || slice_eq_str(name, ".") || slice_eq_str(name, ".."))
            return false;
    }
    return true;
}

bool ssh_file_pattern_ok(struct slice pattern)
{
    struct slice path = pattern;
    if (pattern.n > SSH_FILE_PATTERN_MAX)
        return false;
    if (slice_starts(path, SLICE("~/")))
        path = (struct slice){path.p + 1, path.n - 1};
    for (size_t i = 0; i < path.n; i++)
        if ((unsigned char)path.p[i] < ' ' || path.p[i] == '\\' || path.p[i] == 0x7f)
            return false;
    ssize_t stars = slice_find_slice(path, SLICE("**"));
    return path.n > 1 && ssh_file_path_ok(path) &&
           (stars < 0 || ((size_t)stars + 2 == path.n && path.p[stars - 1] == '/'));
}

/* ---- one pattern ---- */

/* The next "/name" of *s; n 0: there is none. */
static struct slice next(struct slice *s)
{
    struct slice name = {"", 0};
    if (s->n < 2)
        return name;
    const char *end = memchr(s->p + 1, '/', s->n - 1);
    size_t n = end ? (size_t)(end - s->p) : s->n;
    name = (struct slice){s->p + 1, n - 1};
    *s = (struct slice){s->p + n, s->n - n};
    return name;
}

static bool name_matches(struct slice p, struct slice s, bool hidden)
{
    size_t i = 0, k = 0, star = p.n, taken = 0;
    if (s.p[0] == '.' && p.p[0] == '*' && !hidden)
        return false;
    while (k < s.n) {
        if (i < p.n && p.p[i] == '*') {
            star = i++;
            taken = k;
        } else if (i < p.n && p.p[i] == s.p[k]) {
            i++;
            k++;
        } else if (star < p.n) {
            i = star + 1;
            k = ++taken;
        } else {
            return false;
        }
    }
    while (i < p.n && p.p[i] == '*')
        i++;
    return i == p.n;
}

static bool any_hidden(struct slice s)
{
    struct slice name;
    while ((name = next(&s)).n > 0)
        if (name.p[0] == '.')
            return true;
    return false;
}

static unsigned walk(struct slice p, struct slice s, bool hidden)
{
    for (;;) {
        bool ends = s.n < 2;
        if (slice_eq_str(p, "/**"))
            return ends ? ABOVE | COVERS : !hidden && any_hidden(s) ? 0 : MATCHES | ABOVE | COVERS;
        if (p.n == 0)
            return ends ? MATCHES : 0;
        if (ends)
            return ABOVE;
        struct slice want = next(&p), name = next(&s);
        if (!name_matches(want, name, hidden))
            return 0;
    }
}

/* Is `path` `top`, or below it? *rest: what is behind. */
static bool is_below(struct slice path, struct slice top, struct slice *rest)
{
    if (top.n == 1)
        top.n = 0;
    if (!slice_starts(path, top) || (path.n > top.n && path.p[top.n] != '/'))
        return false;
    *rest = (struct slice){path.p + top.n, path.n - top.n};
    return true;
}

static unsigned look_at(const char *pattern, struct slice home, struct slice path, bool hidden)
{
    struct slice p = slice_str(pattern), rest;
    if (pattern[0] != '~')
        return walk(p, path, hidden);
    if (home.n == 0)
        return 0;
    if (is_below(path, home, &rest))
        return walk((struct slice){p.p + 1, p.n - 1}, rest, hidden);
    return is_below(home, path, &rest) ? ABOVE : 0;
}

/* ---- all of them ---- */

static struct found look(const struct ssh_files *f, struct slice home, struct slice path)
{
    struct found ret = {0};
    for (unsigned r = 0; r < SSH_FILE_RIGHTS; r++)
        for (size_t i = 0; i < f->n[r]; i++) {
            unsigned of = look_at(f->patterns[r][i], home, path, f->hidden);
            ret.matches |= of & MATCHES ? 1u << r : 0;
            ret.covers |= of & COVERS ? 1u << r : 0;
            ret.deep |= (of & ABOVE) && !(of & COVERS) ? 1u << r : 0;
        }
    return ret;
}

/* Is anything allowed under the new name, or below it where it is a folder, that was not under the
 * old one? */
static bool gains(const struct found *from, const struct found *to)
{
    return to->deep || (to->matches & ~from->matches) || (to->covers & ~from->covers);
}

static bool may(const struct found *f, unsigned right)
{
    return (f->matches >> right & 1) != 0;
}

static bool allowed(enum ssh_file_verb verb, const struct found *of, const struct found *to)
{
    switch (verb) {
    case SSH_FILE_SEE:
        return of->matches || of->covers || of->deep;
    case SSH_FILE_LIST:
        return ((of->matches | of->covers | of->deep) >> SSH_FILE_READ & 1) != 0;
    case SSH_FILE_GET:
    case SSH_FILE_READ_LINK:
        return may(of, SSH_FILE_READ);
    case SSH_FILE_PUT:
    case SSH_FILE_SET:
    case SSH_FILE_MAKE_DIRECTORY:
        return may(of, SSH_FILE_WRITE);
    case SSH_FILE_GET_PUT:
        return may(of, SSH_FILE_READ) && may(of, SSH_FILE_WRITE);
    case SSH_FILE_DELETE:
    case SSH_FILE_DELETE_DIRECTORY:
        return may(of, SSH_FILE_REMOVE);
    case SSH_FILE_RENAME:
        return may(of, SSH_FILE_REMOVE) && may(to, SSH_FILE_WRITE) && !gains(of, to);
    case SSH_FILE_LINK:
        return may(to, SSH_FILE_WRITE) && !gains(of, to);
    default:
        return false;
    }
}

const char *ssh_files_refused(const struct ssh_files *f, struct slice home,
                              const struct ssh_file_asked *asked)
{
    bool two = asked->verb == SSH_FILE_RENAME || asked->verb == SSH_FILE_LINK;
    if (!ssh_file_path_ok(asked->path) || (two && !ssh_file_path_ok(asked->to)))
        return "file_path";
    struct found of = look(f, home, asked->path), to = {0};
    if (two)
        to = look(f, home, asked->to);
    return allowed(asked->verb, &of, &to) ? NULL : "file";
}

bool ssh_files_covered(const struct ssh_files *f, struct slice home,
                       const struct ssh_file_asked *asked)
{
    struct found of = look(f, home, asked->path), to = look(f, home, asked->to);
    return (of.covers >> SSH_FILE_REMOVE & 1) && (to.covers >> SSH_FILE_WRITE & 1);
}
