/* Reads them as far as it takes to see a login: in XML an element that holds nothing else or an
 * attribute, in lines a URL with a password, or a name that ends as those of secrets do and has a
 * value. */
#include "shown_login.h"

#include "mounts.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 };

static const struct {
    const char *pattern, *name;
    enum shown_form form;
} places[] = {
    {"/etc/maven", "settings.xml", SHOWN_XML},  {"/etc/R", "Renviron.site", SHOWN_LINES},
    {"/etc/R", "Rprofile.site", SHOWN_LINES},   {"/etc/R", "repositories", SHOWN_LINES},
    {"/etc/lynx", "lynx.cfg", SHOWN_LINES},     {"/etc/lynx", "local.cfg", SHOWN_LINES},
    {"/etc/php/*/cli", "php.ini", SHOWN_LINES},
};

/* Below those directories, and in the host's /usr, which is seen whole: what package managers read
 * there, and all that an administrator keeps in a directory for configuration. glob(7). */
static const struct {
    const char *pattern;
    enum shown_form form;
} covered[] = {
    {"/etc/php/*/mods-available/*.ini", SHOWN_LINES},
    {"/etc/php/*/cli/conf.d/*.ini", SHOWN_LINES},
    {"/etc/mono/config", SHOWN_ATTRIBUTES},
    {"/etc/mono/*/*.config", SHOWN_ATTRIBUTES},
    {"/etc/java-[0-9]*/*.properties", SHOWN_LINES},
    {"/etc/java-[0-9]*/management/*.properties", SHOWN_LINES},
    {"/etc/java-[0-9]*/management/jmxremote.password", SHOWN_SECRETS},
    {"/usr/pip.conf", SHOWN_LINES},
    {"/usr/local/pip.conf", SHOWN_LINES},
    {"/usr/lib/go/go.env", SHOWN_LINES},
    {"/usr/local/go/go.env", SHOWN_LINES},
    {"/usr/lib/node_modules/npm/npmrc", SHOWN_LINES},
    {"/usr/local/lib/node_modules/npm/npmrc", SHOWN_LINES},
    {"/usr/share/nodejs/npm/npmrc", SHOWN_LINES},
    {"/usr/etc/*", SHOWN_ANY},
    {"/usr/etc/*/*", SHOWN_ANY},
    {"/usr/local/etc/*", SHOWN_ANY},
    {"/usr/local/etc/*/*", SHOWN_ANY},
};

/* ---- XML ---- */

static bool names_element(struct slice after, struct slice name)
{
    static const char ends[] = " \t\r\n>/";
    return slice_starts(after, name) && after.n > name.n && after.p[name.n] &&
           strchr(ends, after.p[name.n]);
}

static bool xml_login(struct slice s)
{
    static const struct slice names[] = {SLICE_INIT("server"), SLICE_INIT("password"),
                                         SLICE_INIT("passphrase")};
    for (ssize_t at; (at = slice_find(s, '<')) >= 0;) {
        s = (struct slice){s.p + at + 1, s.n - (size_t)at - 1};
        ssize_t end = slice_starts(s, SLICE("!--")) ? slice_find_slice(s, SLICE("-->")) : 0;
        if (end < 0)
            return false;
        s = (struct slice){s.p + end, s.n - (size_t)end};
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (names_element(s, names[i]))
                return true;
    }
    return false;
}

static bool names_attribute(struct slice before)
{
    static const char *const names[] = {"password", "pwd", "validationkey", "decryptionkey"};
    before = slice_trim(before);
    size_t n = 0;
    while (n < before.n &&
           (ascii_is_alnum(before.p[before.n - 1 - n]) || before.p[before.n - 1 - n] == '_'))
        n++;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_ieq_str((struct slice){before.p + before.n - n, n}, names[i]))
            return true;
    return false;
}

/* What a value begins with that is one, and is not made by the program itself. */
static bool begins_value(struct slice s)
{
    static const char ends[] = " \t\r\n\"';<>&";
    return s.n > 0 && s.p[0] && !strchr(ends, s.p[0]) && !slice_starts(s, SLICE("AutoGenerate"));
}

/* NAME="VALUE" in a tag, and NAME=VALUE; in such a value. */
static bool attribute_login(struct slice s)
{
    bool tag = false;
    char quote = 0; /* that a value is in */
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        struct slice rest = {s.p + i, s.n - i}, before = {s.p, i};
        ssize_t end = slice_starts(rest, SLICE("<!--")) && quote == 0
                          ? slice_find_slice(rest, SLICE("-->"))
                          : 0;
        if (end < 0)
            return false;
        i += (size_t)end;
        if (end > 0)
            continue;
        if (quote == 0 && (c == '<' || c == '>'))
            tag = c == '<';
        else if (tag && (c == quote || (quote == 0 && (c == '"' || c == '\''))))
            quote = quote ? 0 : c;
        if (!tag || c != '=' || !names_attribute(before))
            continue;
        rest = slice_trim((struct slice){rest.p + 1, rest.n - 1});
        if (quote == 0 && rest.n > 0)
            rest = (struct slice){rest.p + 1, rest.n - 1};
        if (begins_value(rest))
            return true;
    }
    return false;
}

/* ---- lines ---- */

/* scheme://user:password@host */
static bool has_password(struct slice line)
{
    ssize_t at = slice_find_slice(line, SLICE("://"));
    bool colon = false;
    for (size_t i = at < 0 ? line.n : (size_t)at + 3; i < line.n; i++) {
        char c = line.p[i];
        if (c == '@' && colon)
            return true;
        if (c == '/' || c == ' ' || c == '"' || c == '\'')
            break;
        colon |= c == ':';
    }
    return false;
}

static bool names_secret(struct slice name)
{
    static const char *const tails[] = {"password", "passwd",  "passphrase", "secret",
                                        "token",    "license", "_pat",       "_auth",
                                        "_pw",      "_key",    "_pass"};
    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        size_t n = strlen(tails[i]);
        if (name.n >= n && slice_ieq_str((struct slice){name.p + name.n - n, n}, tails[i]))
            return true;
    }
    return false;
}

/* A variable's name is no secret. */
static bool has_value(struct slice value)
{
    value = slice_trim(value);
    if (slice_starts(value, SLICE("${")) && value.p[value.n - 1] == '}')
        return false;
    return value.n > 0 && !slice_eq(value, SLICE("\"\"")) && !slice_eq(value, SLICE("''"));
}

/* scheme://host?auth=SECRET, and behind & */
static bool has_parameter(struct slice line)
{
    ssize_t at = slice_find_slice(line, SLICE("://"));
    for (size_t i = at < 0 ? line.n : (size_t)at; i < line.n; i++) {
        if (line.p[i] != '?' && line.p[i] != '&')
            continue;
        struct slice rest = {line.p + i + 1, line.n - i - 1};
        ssize_t equals = slice_find(rest, '=');
        struct slice name = {rest.p, equals < 0 ? 0 : (size_t)equals};
        if (equals >= 0 && (names_secret(name) || slice_ieq_str(name, "auth")) &&
            (size_t)equals + 1 < rest.n && ascii_is_alnum(rest.p[equals + 1]))
            return true;
    }
    return false;
}

/* The word at the front of a line, and what is behind it. */
static struct slice word_of(struct slice *line)
{
    size_t n = 0, from = 0;
    while (from < line->n && line->p[from] && strchr(" \t\"'{,:=", line->p[from]))
        from++;
    while (from + n < line->n && line->p[from + n] && !strchr(" \t\"'}:=", line->p[from + n]))
        n++;
    struct slice word = {line->p + from, n};
    *line = (struct slice){line->p + from + n, line->n - from - n};
    return word;
}

/* Of any program: a word that names a secret, and another behind it; Docker's "auth". */
static bool words_login(struct slice line)
{
    const char *from = line.p;
    for (struct slice word = word_of(&line); word.n > 0; word = word_of(&line)) {
        bool quoted = word.p > from && word.p[-1] == '"';
        struct slice rest = line, value = line;
        while (value.n > 0 && value.p[0] && strchr(" \t:=\"", value.p[0]))
            value = (struct slice){value.p + 1, value.n - 1};
        if ((names_secret(word) || (quoted && slice_eq_str(word, "auth"))) && has_value(value) &&
            word_of(&rest).n > 0)
            return true;
    }
    return false;
}

static bool line_login(struct slice line, enum shown_form form)
{
    line = slice_trim(line);
    if (line.n == 0 || strchr("#;!", line.p[0]))
        return false;
    if (form == SHOWN_SECRETS || has_parameter(line))
        return true;
    if (form == SHOWN_ANY && words_login(line))
        return true;
    ssize_t equals = slice_find(line, '=');
    struct slice name = {line.p, equals < 0 ? 0 : (size_t)equals};
    return has_password(line) ||
           (equals >= 0 && names_secret(slice_trim(name)) &&
            has_value((struct slice){line.p + equals + 1, line.n - (size_t)equals - 1}));
}

bool shown_login_in(struct slice text, enum shown_form form)
{
    if (form == SHOWN_XML)
        return xml_login(text);
    if (form == SHOWN_ATTRIBUTES)
        return attribute_login(text);
    while (text.n > 0) {
        ssize_t nl = slice_find(text, '\n');
        size_t n = nl < 0 ? text.n : (size_t)nl, next = n + (nl >= 0);
        n -= n > 0 && text.p[n - 1] == '\r';
        if (line_login((struct slice){text.p, n}, form))
            return true;
        text = (struct slice){text.p + next, text.n - next};
    }
    return false;
}

/* ---- files ---- */

static bool file_login(int from, const char *name, enum shown_form form)
{
    struct stat st;
    struct buf text;
    int fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    buf_init_wiped(&text, TEXT_MAX);
    bool found = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    unsigned char *to =
        found && st.st_size <= TEXT_MAX ? buf_reserve(&text, (size_t)st.st_size) : NULL;
    ssize_t n = to ? pread(fd, to, (size_t)st.st_size, 0) : -1;
    if (n >= 0) {
        buf_commit(&text, (size_t)n);
        found = shown_login_in(buf_slice(&text), form);
    }
    buf_free(&text);
    close(fd);
    return found;
}

bool shown_login_at(int from, const char *name)
{
    return file_login(from, name, SHOWN_LINES);
}

bool shown_login(const char *pattern, int from, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strcmp(places[i].pattern, pattern) == 0 && strcmp(places[i].name, name) == 0)
            return file_login(from, name, places[i].form);
    return false;
}

bool shown_note_logins(const char *pattern, const char *path, int from, struct buf *notes)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (strcmp(places[i].pattern, pattern) != 0 || !shown_login(pattern, from, places[i].name))
            continue;
        any = true;
        (void)!buf_printf(notes, "masked: %s/%s\n", path, places[i].name);
    }
    return any;
}

/* Where it really is: a link's end is covered, or is nowhere that is seen. */
static int cover(int root, int empty, const char *path, enum shown_form form, struct buf *notes,
                 struct err *err)
{
    char real[PATH_MAX], note[PATH_MAX + 16];
    if (realpath(path, real) == NULL || strncmp(real, path, 5) != 0 ||
        !file_login(AT_FDCWD, real, form))
        return 0;
    snprintf(note, sizeof note, "masked: %s\n", real);
    if (slice_find_slice(buf_slice(notes), slice_str(note)) >= 0)
        return 0; /* by another of its names */
    if (mounts_show(root, real, empty, false, err) < 0)
        return err_wrap(err, "cannot mask %s", real);
    (void)!buf_append_str(notes, note);
    return 0;
}

int shown_cover_logins(int root, int empty, struct buf *notes, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(covered) && r == 0; i++) {
        glob_t found;
        int g = glob(covered[i].pattern, GLOB_NOSORT, NULL, &found);
        if (g == GLOB_NOMATCH)
            continue;
        if (g != 0)
            r = err_sys(err, "%s", covered[i].pattern);
        for (size_t k = 0; g == 0 && r == 0 && k < found.gl_pathc; k++)
            r = cover(root, empty, found.gl_pathv[k], covered[i].form, notes, err);
        globfree(&found);
    }
    return r;
}
