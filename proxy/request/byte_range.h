/* The part of an origin's file that a request asks for (RFC 9110 14), where the reply is searched
 * for secrets: it is asked for with a margin on each side, searched with it, and the margin cut off
 * again. So a secret that the part would cut in two is seen whole (attack C14). */
#ifndef DURWARD_BYTE_RANGE_H
#define DURWARD_BYTE_RANGE_H

#include "http_head.h"

struct byte_range {
    const char *name;     /* the field's; NULL: no part is asked for */
    uint64_t first, last; /* the last one too; UINT64_MAX: to the end */
    uint64_t suffix;      /* not 0: so many at the end, and the two above say nothing */
};

/* What goes on of a reply's body: behind so many bytes, so many. */
struct byte_cut {
    bool on, bad;              /* bad: not as many bytes came as the origin said */
    uint64_t skip, take, rest; /* rest: so many are still to come, of all that the origin said */
    char last[1]; /* it goes on when the origin has said all, so that nobody leaves before */
    bool held;
};

/* What the head asks for: one part of a GET, plainly said, in Range or Azure's x-ms-range. */
void byte_range_read(const struct head *h, struct byte_range *ret);
/* Take every field that asks for a part out of the head, also those that are not plain. */
void byte_range_drop(struct head *h);
/* Take out what some servers read as one of them: Request-Range, and other spellings. */
void byte_range_drop_twins(struct head *h);
/* Ask for so many bytes more on each side. -1: memory is out, or too many fields. */
int byte_range_widen(const struct byte_range *r, struct head *h, uint64_t margin) WUNUSED;
/* A reply to what was asked so, made the reply to what was asked before. -1: it does not fit. */
int byte_range_cut(const struct byte_range *r, uint64_t margin, struct head *reply,
                   struct byte_cut *ret) WUNUSED;
/* What of the next bytes goes on now. */
struct slice byte_cut_take(struct byte_cut *c, struct slice s);
/* The last ones are so many. False: bad, and none of them may go on. */
bool byte_cut_close(struct byte_cut *c, size_t n) WUNUSED;
/* There is no more: the byte that was held, if one was. */
struct slice byte_cut_end(struct byte_cut *c);

#endif
