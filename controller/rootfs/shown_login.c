/* Reads them as far as it takes to see a login: in XML an element that holds nothing else, in lines
 * a URL with a password, or a name that ends as those of secrets do and has a value. */
#include "shown_login.h"

#include "mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 };

static const struct {
    const char *pattern, *name;
    bool xml;
} places[] = {
    {"/etc/maven", "settings.xml", true}, {"/etc/R", "Renviron.site", false},
    {"/etc/R", "Rprofile.site", false},   {"/etc/lynx", "lynx.cfg", false},
    {"/etc/lynx", "local.cfg", false},    {"/etc/php/*/cli", "php.ini", false},
};

/* Of the host's /usr, which is seen whole: what package managers read there, too. */
static const char *const in_usr[] = {
    "/usr/etc/npmrc",      "/usr/local/etc/npmrc", "/usr/pip.conf",
    "/usr/local/pip.conf", "/usr/lib/go/go.env",   "/usr/local/go/go.env",
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
    static const char *const tails[] = {"password", "passwd", "passphrase", "secret", "token",
                                        "_pat",     "_auth",  "_pw",        "_key"};
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

static bool line_login(struct slice line)
{
    line = slice_trim(line);
    if (line.n == 0 || strchr("#;!", line.p[0]))
        return false;
    ssize_t equals = slice_find(line, '=');
    struct slice name = {line.p, equals < 0 ? 0 : (size_t)equals};
    return has_password(line) ||
           (equals >= 0 && names_secret(slice_trim(name)) &&
            has_value((struct slice){line.p + equals + 1, line.n - (size_t)equals - 1}));
}

bool shown_login_in(struct slice text, bool xml)
{
    if (xml)
        return xml_login(text);
    while (text.n > 0) {
        ssize_t nl = slice_find(text, '\n');
        size_t n = nl < 0 ? text.n : (size_t)nl, next = n + (nl >= 0);
        n -= n > 0 && text.p[n - 1] == '\r';
        if (line_login((struct slice){text.p, n}))
            return true;
        text = (struct slice){text.p + next, text.n - next};
    }
    return false;
}

/* ---- files ---- */

static bool file_login(int from, const char *name, bool xml)
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
        found = shown_login_in(buf_slice(&text), xml);
    }
    buf_free(&text);
    close(fd);
    return found;
}

bool shown_login(const char *pattern, int from, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strcmp(places[i].pattern, pattern) == 0 && strcmp(places[i].name, name) == 0)
            return file_login(from, name, places[i].xml);
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

int shown_cover_logins(int root, int empty, struct buf *notes, struct err *err)
{
    char real[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(in_usr); i++) {
        if (realpath(in_usr[i], real) == NULL || strncmp(real, "/usr/", 5) != 0 ||
            !file_login(AT_FDCWD, real, false))
            continue;
        if (mounts_show(root, real, empty, false, err) < 0)
            return err_wrap(err, "cannot mask %s", real);
        (void)!buf_printf(notes, "masked: %s\n", real);
    }
    return 0;
}
