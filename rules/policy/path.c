/* Folds, trims and normalizes paths, lists the readings of one, and refuses the ambiguous ones
 * (path_check, declared in policy.h). */
#include "path.h"

#include <stdlib.h>
#include <string.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of "%XY" at p, or -1. */
static int escape(const char *p)
{
    int high = p[0] == '%' ? hex(p[1]) : -1, low = high < 0 ? -1 : hex(p[2]);
    return low < 0 ? -1 : high * 16 + low;
}

/* Over-long UTF-8 that stands for one ASCII byte at the end of what was written: its length, with
 * the byte in *c; else 0. Two bytes: C0 or C1 and one; three: E0 80; four: F0 80 80. */
static size_t overlong(const unsigned char *end, size_t n, char *c)
{
    if (n >= 2 && (end[-2] & 0xfe) == 0xc0 && (end[-1] & 0xc0) == 0x80) {
        *c = (char)((end[-2] & 1) << 6 | (end[-1] & 0x3f));
        return 2;
    }
    bool low = n >= 3 && (end[-1] & 0xc0) == 0x80 && (end[-2] == 0x80 || end[-2] == 0x81);
    if (!low)
        return 0;
    *c = (char)((end[-2] & 1) << 6 | (end[-1] & 0x3f));
    if (end[-3] == 0xe0)
        return 3;
    return n >= 4 && end[-3] == 0x80 && end[-4] == 0xf0 ? 4 : 0;
}

/* The small letter of a common capital, in blocks where they stand in pairs or apart by the same
 * distance. Four fold to one of ASCII's in many servers. */
static unsigned small_letter(unsigned c)
{
    static const struct {
        unsigned short first, last;
        short distance; /* 0: the one behind it, of those that stand as `first` does */
    } blocks[] = {
        {0xc0, 0xd6, 32},
        {0xd8, 0xde, 32},
        {0x100, 0x12e, 0},
        {0x130, 0x130, 'i' - 0x130},
        {0x131, 0x131, 'i' - 0x131},
        {0x132, 0x136, 0},
        {0x139, 0x147, 0},
        {0x14a, 0x176, 0},
        {0x178, 0x178, 0xff - 0x178},
        {0x179, 0x17d, 0},
        {0x17f, 0x17f, 's' - 0x17f},
        {0x1cd, 0x1db, 0},
        {0x1de, 0x1ee, 0},
        {0x1f8, 0x21e, 0},
        {0x222, 0x232, 0},
        {0x386, 0x386, 38},
        {0x388, 0x38a, 37},
        {0x38c, 0x38c, 64},
        {0x38e, 0x38f, 63},
        {0x391, 0x3a1, 32},
        {0x3a3, 0x3ab, 32},
        {0x3c2, 0x3c2, 1},
        {0x400, 0x40f, 80},
        {0x410, 0x42f, 32},
        {0x460, 0x480, 0},
        {0x48a, 0x4be, 0},
        {0x4c0, 0x4c0, 15},
        {0x4c1, 0x4cd, 0},
        {0x4d0, 0x52e, 0},
        {0x531, 0x556, 48},
        {0x1e00, 0x1e94, 0},
        {0x1ea0, 0x1efe, 0},
        {0x212a, 0x212a, 'k' - 0x212a},
        {0x212b, 0x212b, 0xe5 - 0x212b},
        {0xff21, 0xff3a, 32},
    };
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        if (c >= blocks[i].first && c <= blocks[i].last)
            return blocks[i].distance ? (unsigned)((int)c + blocks[i].distance)
                                      : c + ((c - blocks[i].first) % 2 == 0);
    return c;
}

/* A capital of two or three bytes at the end of the output becomes small; it grows by no byte. */
static size_t fold_letter(unsigned char *to, size_t n)
{
    size_t size = n >= 2 && to[n - 2] >= 0xc2 && to[n - 2] < 0xe0 ? 2
                  : n >= 3 && (to[n - 3] & 0xf0) == 0xe0          ? 3
                                                                  : 0;
    if (size == 0 || (to[n - 1] & 0xc0) != 0x80 || (size == 3 && (to[n - 2] & 0xc0) != 0x80))
        return n;
    unsigned char *at = to + n - size;
    unsigned c = size == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                           : (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    unsigned small = small_letter(c);
    if (small == c)
        return n;
    if (small < 0x80) {
        at[0] = (unsigned char)small;
        return n - size + 1;
    }
    size_t i = 0;
    if (small < 0x800) {
        at[i++] = (unsigned char)(0xc0 | small >> 6);
    } else {
        at[i++] = (unsigned char)(0xe0 | small >> 12);
        at[i++] = (unsigned char)(0x80 | (small >> 6 & 0x3f));
    }
    at[i++] = (unsigned char)(0x80 | (small & 0x3f));
    return n - size + i;
}

/* What is at the end of the output may now spell a byte in another way; replace it, as often as it
 * does. Each round shortens the output, so that the whole is linear. */
static size_t settle(char *to, size_t n, enum path_reading reading)
{
    for (;;) {
        char c;
        int v = n >= 3 ? escape(to + n - 3) : -1;
        if (v == '/' && reading == PATH_SLASH_BYTE)
            return n;
        size_t spelled = v >= 0 ? 3 : overlong((const unsigned char *)to + n, n, &c);
        if (spelled == 0) {
            size_t folded = fold_letter((unsigned char *)to, n);
            if (folded == n)
                return n;
            n = folded;
            continue;
        }
        if (v >= 0)
            c = (char)v;
        n -= spelled;
        /* an over-long slash is a slash in both readings: nothing honest writes one */
        if (c == '/' && n && to[n - 1] == '/')
            return n;
        to[n++] = ascii_lower(c);
    }
}

size_t path_fold(struct slice path, enum path_reading reading, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++) {
        if (path.p[i] == '/' && n && to[n - 1] == '/')
            continue;
        to[n++] = ascii_lower(path.p[i]);
        n = settle(to, n, reading);
    }
    return n;
}

/* Bytes at the end of a segment that file systems and frameworks drop. A NUL is a pattern's star.
 */
static bool fades(char c)
{
    return c == '.' || c == 0x7f || (c > 0 && c <= ' ');
}

/* Forget what fades at the end of the segment that ends here; the new length. */
static size_t trim_segment(const char *path, size_t n)
{
    while (n > 0 && fades(path[n - 1]))
        n--;
    return n;
}

size_t path_trim(char *path, size_t n, bool parameters)
{
    size_t kept = 0;
    bool skip = false;
    for (size_t i = 0; i < n; i++) {
        char c = path[i];
        if (parameters && (c == '?' || c == '#'))
            break;
        if (c == '/') {
            skip = false;
            kept = trim_segment(path, kept);
            if (kept && path[kept - 1] == '/')
                continue;
        } else if (parameters && c == ';') {
            skip = true;
        }
        if (!skip)
            path[kept++] = c;
    }
    kept = trim_segment(path, kept);
    while (kept > 1 && path[kept - 1] == '/')
        kept = trim_segment(path, kept - 1);
    return kept;
}

static bool unreserved(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

size_t path_normal(struct slice path, char *to)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++) {
        int v = path.n - i >= 3 ? escape(path.p + i) : -1;
        if (v < 0) {
            to[n++] = path.p[i];
            continue;
        }
        if (unreserved(v)) {
            to[n++] = (char)v;
        } else {
            to[n++] = '%';
            to[n++] = digits[v >> 4];
            to[n++] = digits[v & 15];
        }
        i += 2;
    }
    return n;
}

/* Is there anything in it that a reading changes? */
static bool has_readings(struct slice path)
{
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        bool ends = i + 1 == path.n || path.p[i + 1] == '/';
        if ((c >= 'A' && c <= 'Z') || c == '%' || c == ';' || (unsigned char)c >= 0x80 ||
            (ends && (fades(c) || (c == '/' && i > 0))))
            return true;
    }
    return false;
}

static void add_reading(struct path_readings *r, struct slice text)
{
    for (size_t i = 0; i < r->n; i++)
        if (slice_eq(r->text[i], text))
            return;
    r->text[r->n++] = text;
}

int path_readings(struct slice path, bool all, struct path_readings *ret)
{
    ret->n = 0;
    ret->large = NULL;
    bool escaped = slice_find(path, '%') >= 0;
    all = all && has_readings(path);
    if (!all && !escaped) {
        add_reading(ret, path);
        return 0;
    }
    char *to = ret->small;
    if (path.n > PATH_READINGS_SMALL)
        to = ret->large = malloc(path.n * (all ? PATH_READINGS_MAX : 1));
    if (to == NULL)
        return -1;
    add_reading(ret, (struct slice){to, path_normal(path, to)});
    for (int reading = PATH_SLASH_BYTE; all && reading <= PATH_SLASH_SPLIT; reading++) {
        char *folded = to + path.n;
        size_t n = path_fold(path, (enum path_reading)reading, folded);
        to = folded;
        add_reading(ret, (struct slice){folded, n});
        for (int parameters = 0; parameters <= 1; parameters++) {
            to += path.n;
            memcpy(to, folded, n);
            add_reading(ret, (struct slice){to, path_trim(to, n, parameters)});
        }
    }
    return 0;
}

void path_readings_free(struct path_readings *r)
{
    free(r->large);
    r->large = NULL;
}

/* empty: a segment may be empty, but for the first: "//a" may be read as a host's name. */
static const char *bad_byte(struct slice path, size_t i, bool empty)
{
    unsigned char c = (unsigned char)path.p[i];
    if (c <= 0x20 || c == 0x7f)
        return "a control byte or a space in the path";
    if (c >= 0x80)
        return "a byte above 0x7f in the path";
    if (c == '#')
        return "a fragment in the path";
    if (c == '?')
        return "a query in the path";
    if (c == '\\')
        return "a backslash in the path";
    if (c == '/' && i > 0 && path.p[i - 1] == '/' && (i == 1 || !empty))
        return "an empty segment in the path";
    if (c != '%')
        return NULL;
    int v = path.n - i >= 3 ? escape(path.p + i) : -1;
    if (v < 0)
        return "a broken percent escape in the path";
    if (v == 0)
        return "an encoded NUL in the path";
    if (v < ' ' || v == 0x7f)
        return "an encoded control byte in the path";
    if (v == '\\')
        return "an encoded backslash in the path";
    return NULL;
}

/* "." or ".." before any path parameters. */
static bool is_dots(const char *p, size_t n)
{
    const char *semicolon = memchr(p, ';', n);
    if (semicolon)
        n = (size_t)(semicolon - p);
    return (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.');
}

/* In the folded path: dots between separators of any kind, and bytes that only show when an escape
 * is decoded more than once. */
static const char *bad_fold(const char *p, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && p[i] == 0)
            return "an encoded NUL in the path";
        if (i < n && ((unsigned char)p[i] < ' ' || p[i] == 0x7f))
            return "an encoded control byte in the path";
        if (i < n && p[i] == '\\')
            return "an encoded backslash in the path";
        if (i < n && p[i] != '/')
            continue;
        if (is_dots(p + start, i - start))
            return "a dot segment in the path";
        start = i + 1;
    }
    return NULL;
}

static int check(struct slice path, bool empty, const char **why)
{
    enum { ON_STACK = 2048 };
    *why = NULL;
    if (path.n == 0 || path.p[0] != '/') {
        *why = "the path does not begin with a slash";
        return -1;
    }
    bool fold = false;
    for (size_t i = 0; i < path.n && !*why; i++) {
        *why = bad_byte(path, i, empty);
        fold = fold || path.p[i] == '%' || (path.p[i] == '.' && path.p[i - 1] == '/');
    }
    if (*why || !fold)
        return *why ? -1 : 0;
    char small[ON_STACK], *to = path.n > sizeof small ? malloc(path.n) : small;
    if (to == NULL) {
        *why = "out of memory";
        return -1;
    }
    *why = bad_fold(to, path_fold(path, PATH_SLASH_SPLIT, to));
    if (to != small)
        free(to);
    return *why ? -1 : 0;
}

int path_check(struct slice path, const char **why)
{
    return check(path, false, why);
}

int path_check_asked(struct slice path, const char **why)
{
    return check(path, true, why);
}

bool path_has_empty(struct slice path)
{
    return slice_find_slice(path, SLICE("//")) >= 0;
}
