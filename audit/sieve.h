/* Which lines of a log can match a filter at all, told from their text. The log writes each value
 * in one way only (audit/render.h), so a wanted one is found by its bytes; JSON is read only for
 * what is left. */
#ifndef DURWARD_SIEVE_H
#define DURWARD_SIEVE_H

#include "query.h"
#include "render.h"
#include "stamp.h"

enum { SIEVE_NEEDLES = 12, SIEVE_TEXT_MAX = 512, SIEVE_STAMP = 30 };

struct sieve {
    unsigned kinds;                          /* 0: any */
    char since[STAMP_MAX], until[STAMP_MAX]; /* "": any time */
    size_t n;
    struct {
        char text[SIEVE_TEXT_MAX];
        size_t length;
        bool of_request; /* an end may have it from its admitted record */
        bool fold;       /* ASCII case folded */
        const char *key; /* a line that has this has the value itself, or another */
    } needle[SIEVE_NEEDLES];
};

void sieve_init(struct sieve *s, const struct query_filter *f);
/* false: it cannot match, and no later line needs it. begun: the admitted record of this line's id
 * is remembered. */
bool sieve_may(const struct sieve *s, struct slice line, enum record_kind kind, bool begun);

/* false: the line itself cannot match, though an end may yet need it. Only of lines of which
 * sieve_may said true. */
bool sieve_itself(const struct sieve *s, struct slice line, enum record_kind kind);

/* Of an end whose beginning is not known (yet): it matches if that has what the end does not say.
 */
bool sieve_waits(const struct sieve *s, struct slice line, enum record_kind kind);
bool sieve_find(struct slice in, struct slice text); /* ASCII case folded; an empty text is found */

#endif
