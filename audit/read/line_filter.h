/* Which lines of a log can match a filter at all, told from their text. The log writes each value
 * in one way only (audit/write/render.h), so a wanted one is found by its bytes; JSON is read only
 * for what is left. */
#ifndef DURWARD_LINE_FILTER_H
#define DURWARD_LINE_FILTER_H

#include "query.h"
#include "render.h"
#include "timestamp.h"

enum { LINE_FILTER_NEEDLES = 12, LINE_FILTER_TEXT_MAX = 512, LINE_FILTER_TIMESTAMP = 30 };

struct line_filter {
    unsigned kinds;                                  /* 0: any */
    char since[TIMESTAMP_MAX], until[TIMESTAMP_MAX]; /* "": any time */
    size_t n;
    struct {
        char text[LINE_FILTER_TEXT_MAX];
        size_t length;
        bool of_request; /* an end may have it from its admitted record */
        bool fold;       /* ASCII case folded */
        const char *key; /* a line that has this has the value itself, or another */
    } needle[LINE_FILTER_NEEDLES];
};

void line_filter_init(struct line_filter *s, const struct query_filter *f);
/* false: it cannot match, and no later line needs it. begun: the admitted record of this line's id
 * is remembered. */
bool line_filter_may(const struct line_filter *s, struct slice line, enum record_kind kind,
                     bool begun);

/* false: the line itself cannot match, though an end may yet need it. Only of lines of which
 * line_filter_may said true. */
bool line_filter_itself(const struct line_filter *s, struct slice line, enum record_kind kind);

/* Of an end whose beginning is not known (yet): it matches if that has what the end does not say.
 */
bool line_filter_waits(const struct line_filter *s, struct slice line, enum record_kind kind);
bool line_filter_find(struct slice in,
                      struct slice text); /* ASCII case folded; an empty text is found */

#endif
