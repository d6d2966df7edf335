/* Looks at each component of a path. */
#include "sync_name.h"

#include <string.h>
#include <strings.h>

#include "slice.h"

/* The character at s, and how many bytes it has; 0: it is no UTF-8. */
static size_t character(const unsigned char *s, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80             ? 1
               : (s[0] & 0xe0) == 0xc0 ? 2
               : (s[0] & 0xf0) == 0xe0 ? 3
               : (s[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n == 0)
        return 0;
    *c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3fu);
    }
    bool wrong = *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000);
    return wrong ? 0 : n;
}

static bool is_shown(uint32_t c)
{
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
    bool turns = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                 (c >= 0x2066 && c <= 0x2069);
    return !control && !turns;
}

static bool component_ok(const char *s, size_t n)
{
    return n > 0 && n <= SYNC_NAME && !(n == 1 && s[0] == '.') &&
           !(n == 2 && s[0] == '.' && s[1] == '.');
}

bool sync_name_ok(const char *path)
{
    uint32_t c;
    unsigned depth = 0;
    if (strlen(path) >= SYNC_PATH)
        return false;
    for (const unsigned char *s = (const unsigned char *)path; *s;) {
        size_t n = character(s, &c);
        if (n == 0 || !is_shown(c))
            return false;
        s += n;
    }
    for (;; path++) {
        size_t n = strcspn(path, "/");
        if (!component_ok(path, n) || ++depth > SYNC_DEPTH)
            return false;
        path += n;
        if (*path == '\0')
            return true;
    }
}

/* NAME.conflict-ID-N */
static bool is_conflict(const char *name, size_t n)
{
    struct slice s = {name, n};
    ssize_t at = slice_find_slice(s, SLICE(".conflict-"));
    size_t digits = 0;
    while (digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9')
        digits++;
    return at > 0 && digits > 0 && digits < n && name[n - 1 - digits] == '-';
}

static bool is_own(const char *name, size_t n)
{
    struct slice s = {name, n};
    return slice_starts(s, SLICE(".durward-part-")) || slice_starts(s, SLICE(".durward-sync-")) ||
           is_conflict(name, n);
}

static bool is_word(const char *name, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(name, word, n) == 0;
}

static bool is_git(const char *name, size_t n)
{
    return is_word(name, n, ".git") || is_word(name, n, "HEAD");
}

static bool any(const char *path, bool (*is)(const char *name, size_t n))
{
    for (;; path++) {
        size_t n = strcspn(path, "/");
        if (is(path, n))
            return true;
        path += n;
        if (*path == '\0')
            return false;
    }
}

bool sync_name_own(const char *path)
{
    return any(path, is_own);
}

bool sync_name_git(const char *path)
{
    return any(path, is_git);
}

bool sync_name_ignore_file(const char *path)
{
    return strcasecmp(path, SYNC_IGNORE_FILE) == 0;
}
