/* A length-counted view of bytes that somebody else owns. Never NUL-terminated by contract, so a
 * NUL in the middle of a host name is just one more byte that a check refuses. */
#ifndef DURWARD_SLICE_H
#define DURWARD_SLICE_H

#include "compiler.h"

struct slice {
    const char *p;
    size_t n;
};

#define SLICE(lit) ((struct slice){"" lit, sizeof(lit) - 1})
#define SLICE_INIT(lit)         \
    {                           \
        "" lit, sizeof(lit) - 1 \
    }                           /* of a static table */
#define SL(s) (int)(s).n, (s).p /* for "%.*s" */

struct slice slice_str(const char *s); /* NULL gives an empty slice */
bool slice_eq(struct slice a, struct slice b);
bool slice_eq_str(struct slice a, const char *s);
bool slice_ieq(struct slice a, struct slice b);         /* ASCII case folded */
bool slice_ieq_str(struct slice a, const char *s);      /* ASCII case folded */
bool slice_starts(struct slice s, struct slice prefix); /* exact bytes */
bool slice_istarts(struct slice s, struct slice prefix);
bool slice_ends(struct slice s, struct slice suffix);
struct slice slice_trim(struct slice s); /* SP and HTAB off both ends */
/* Index of the byte, or -1. */
ssize_t slice_find(struct slice s, char c);
/* Index of the first occurrence of needle, or -1; an empty needle is at 0. */
ssize_t slice_find_slice(struct slice s, struct slice needle);
/* A fresh NUL-terminated copy, or NULL when memory is out or a NUL is inside. Caller frees. */
char *slice_dup(struct slice s) WUNUSED;
/* ASCII lower case. */
static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}
bool ascii_is_alnum(char c);
/* Decimal digits only, at most `max`; 0 or -1. */
int slice_u64(struct slice s, uint64_t max, uint64_t *ret);

enum { SLICE_U64_TEXT = 20 }; /* digits of the greatest number */
/* v in decimal at the end of buf, which lives as long as the slice. */
struct slice slice_of_u64(uint64_t v, char buf[SLICE_U64_TEXT]);

#endif
