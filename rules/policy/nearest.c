/* Computes edit distances of words of at most 40 bytes, row by row. The shorter a misspelt word is,
 * the closer a suggestion must be. */
#include "nearest.h"

#include <string.h>

#include "slice.h"

enum { WORD_MAX = 40 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

unsigned nearest_distance(const char *a, const char *b, unsigned max)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX)
        return max + 1;
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    memset(before, 0, sizeof rows[0]);
    for (size_t j = 0; j <= m; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned same = ascii_lower(a[i - 1]) == ascii_lower(b[j - 1]) ? 0 : 1;
            row[j] = min3(row[j - 1] + 1, last[j] + 1, last[j - 1] + same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m] > max ? max + 1 : last[m];
}

ssize_t nearest(const char *s, size_t n, const char *(*word)(size_t i, const void *arg),
                const void *arg)
{
    unsigned limit = strlen(s) <= 3 ? 1 : strlen(s) <= 6 ? 2 : 3, best = limit + 1;
    ssize_t found = -1;
    for (size_t i = 0; i < n; i++) {
        const char *w = word(i, arg);
        unsigned d = w ? nearest_distance(s, w, limit) : limit + 1;
        if (d < best) {
            best = d;
            found = (ssize_t)i;
        }
    }
    return found;
}
