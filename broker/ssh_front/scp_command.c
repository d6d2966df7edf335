/* Reads what an old scp has its server run. */
#include "scp_session.h"

#include <string.h>

/* What stands for "*" and "?" in a path: bytes that no path has. */
enum { STAR = 1, ANY = 2 };

static bool is_special(char c)
{
    return c && strchr("$`;&|<>(){}[]#!~", c) != NULL;
}

static int put(struct scp_command *c, size_t *n, char byte)
{
    if (*n + 1 > SSH_TEXT_MAX)
        return -1;
    c->path[(*n)++] = byte;
    return 0;
}

/* Up to the closing quote, behind which *s begins then. */
static int read_quoted(struct slice *s, char quote, struct scp_command *c, size_t *n)
{
    size_t i = 1;
    for (; i < s->n && s->p[i] != quote; i++) {
        if (quote == '"' && (s->p[i] == '$' || s->p[i] == '`'))
            return -1;
        if (quote == '"' && s->p[i] == '\\' && i + 1 < s->n && strchr("\"\\$`", s->p[i + 1]))
            i++;
        if (put(c, n, s->p[i]) < 0)
            return -1;
    }
    if (i == s->n)
        return -1;
    *s = (struct slice){s->p + i + 1, s->n - i - 1};
    return 0;
}

static int read_plain(struct slice *s, struct scp_command *c, size_t *n)
{
    char b = s->p[0];
    size_t taken = 1;
    if (b == '\\' && s->n > 1) {
        b = s->p[1];
        taken = 2;
    } else if (b == '*' || b == '?') {
        b = b == '*' ? STAR : ANY;
        c->has_stars = true;
    } else if (b == '\\' || (is_special(b) && !(b == '~' && *n > 0))) {
        return -1;
    }
    *s = (struct slice){s->p + taken, s->n - taken};
    return put(c, n, b);
}

/* A word as a shell reads it, but for what would make a shell look things up. */
static int read_path(struct slice s, struct scp_command *c)
{
    size_t n = 0;
    if (slice_eq_str(s, "~") || slice_starts(s, SLICE("~/")))
        s = s.n > 2 ? (struct slice){s.p + 2, s.n - 2} : SLICE(".");
    while (s.n > 0) {
        int r = s.p[0] == '\'' || s.p[0] == '"' ? read_quoted(&s, s.p[0], c, &n)
                : s.p[0] == ' '                 ? -1
                                                : read_plain(&s, c, &n);
        if (r < 0)
            return -1;
    }
    if (n == 0 && put(c, &n, '.') < 0)
        return -1;
    c->path[n] = 0;
    const char *slash = strrchr(c->path, '/');
    c->name = slash ? (size_t)(slash + 1 - c->path) : 0;
    for (size_t i = 0; i < c->name; i++)
        if (c->path[i] == STAR || c->path[i] == ANY)
            return -1;
    return c->has_stars && !c->gives ? -1 : 0;
}

/* "-r", "-pf": letters that say nothing of files are passed over. */
static int read_flags(struct slice word, struct scp_command *c, bool *takes)
{
    for (size_t i = 1; i < word.n; i++)
        switch (word.p[i]) {
        case 'f':
            c->gives = true;
            break;
        case 't':
            *takes = true;
            break;
        case 'r':
            c->folders = true;
            break;
        case 'p':
            c->times = true;
            break;
        case 'd':
            c->into = true;
            break;
        case 'v':
        case 'q':
            break;
        default:
            return -1;
        }
    return word.n > 1 ? 0 : -1;
}

int scp_command_read(struct slice line, struct scp_command *ret)
{
    bool takes = false;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        if (c < ' ' || c == 0x7f)
            return -1;
    }
    if (!slice_starts(line, SLICE("scp ")))
        return -1;
    line = (struct slice){line.p + 4, line.n - 4};
    while (line.n > 0 && (line.p[0] == '-' || line.p[0] == ' ')) {
        ssize_t end = slice_find(line, ' ');
        struct slice word = {line.p, end < 0 ? line.n : (size_t)end};
        line = (struct slice){line.p + word.n + (end >= 0), line.n - word.n - (end >= 0)};
        if (slice_eq_str(word, "--"))
            break;
        if (word.n > 0 && read_flags(word, ret, &takes) < 0)
            return -1;
    }
    return takes == ret->gives || line.n == 0 ? -1 : read_path(line, ret);
}

/* Whatever an earlier star could take more, the last one takes. A name's first dot is written. */
bool scp_command_matches(const struct scp_command *c, struct slice name)
{
    const char *p = c->path + c->name, *star = NULL;
    size_t i = 0, taken = 0;
    if (name.n == 0 || (name.p[0] == '.' && *p != '.'))
        return false;
    while (i < name.n || *p) {
        if (*p == STAR) {
            star = ++p;
            taken = i;
        } else if (i < name.n && *p && (*p == ANY || *p == name.p[i])) {
            p++;
            i++;
        } else if (star && taken < name.n) {
            i = ++taken;
            p = star;
        } else {
            return false;
        }
    }
    return true;
}
