/* Compares, searches, trims and copies slices, and converts numbers. Case is folded for ASCII
 * alone, whatever the locale. */
#include "slice.h"

#include <stdlib.h>
#include <string.h>

struct slice slice_str(const char *s)
{
    return s ? (struct slice){s, strlen(s)} : (struct slice){"", 0};
}

bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool slice_eq_str(struct slice a, const char *s)
{
    if (a.n && s && a.p[0] != s[0])
        return false; /* most of what is compared: no need to measure s */
    return slice_eq(a, slice_str(s));
}

bool ascii_is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool slice_ieq(struct slice a, struct slice b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

bool slice_ieq_str(struct slice a, const char *s)
{
    return slice_ieq(a, slice_str(s));
}

bool slice_starts(struct slice s, struct slice prefix)
{
    return s.n >= prefix.n && slice_eq((struct slice){s.p, prefix.n}, prefix);
}

bool slice_istarts(struct slice s, struct slice prefix)
{
    return s.n >= prefix.n && slice_ieq((struct slice){s.p, prefix.n}, prefix);
}

bool slice_ends(struct slice s, struct slice suffix)
{
    return s.n >= suffix.n && slice_eq((struct slice){s.p + (s.n - suffix.n), suffix.n}, suffix);
}

struct slice slice_trim(struct slice s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

ssize_t slice_find(struct slice s, char c)
{
    if (s.n == 0)
        return -1;
    const char *q = memchr(s.p, c, s.n);
    return q ? q - s.p : -1;
}

ssize_t slice_find_slice(struct slice s, struct slice needle)
{
    if (needle.n == 0)
        return 0;
    if (s.n < needle.n)
        return -1;
    const char *q = memmem(s.p, s.n, needle.p, needle.n);
    return q ? q - s.p : -1;
}

char *slice_dup(struct slice s)
{
    if (s.n && memchr(s.p, 0, s.n))
        return NULL;
    char *r = malloc(s.n + 1);
    if (r == NULL)
        return NULL;
    if (s.n)
        memcpy(r, s.p, s.n);
    r[s.n] = 0;
    return r;
}

int slice_u64(struct slice s, uint64_t max, uint64_t *ret)
{
    if (s.n == 0 || s.n > 20)
        return -1;
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return -1;
    }
    if (v > max)
        return -1;
    *ret = v;
    return 0;
}

struct slice slice_of_u64(uint64_t v, char buf[SLICE_U64_TEXT])
{
    char *at = buf + SLICE_U64_TEXT;
    do
        *--at = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    return (struct slice){at, (size_t)(buf + SLICE_U64_TEXT - at)};
}
