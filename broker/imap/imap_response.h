/* What a server answers, in pieces of any size: where each response ends (RFC 3501, 7). FETCH and
 * SEARCH, which may be of any length, go by; the others are kept whole, for imap_answer.h. */
#ifndef DURWARD_IMAP_RESPONSE_H
#define DURWARD_IMAP_RESPONSE_H

#include "buf.h"

enum {
    IMAP_RESPONSE_MAX = 64 * 1024,
    IMAP_DEPTH_MAX = 10000, /* brackets: of mail within mail, of which anybody may send any */
};

enum imap_part {
    IMAP_PART_NONE = 0, /* no more in what has come */
    IMAP_PART_WHOLE,    /* a response, in r->line with its end */
    IMAP_PART_BAD,
};

struct imap_responses {
    struct buf line;
    bool passing, begun; /* the response goes by; some of it has gone */
    bool words;          /* it may have literals and quotes; else it is text */
    bool quoted, escaped, cr;
    unsigned depth;
    uint64_t literal; /* that is left */
    unsigned braces;  /* how far "{12}" has come: 0 not at all, 1 behind '{', 2 behind '}' */
    uint64_t announced;
    bool settled; /* what kind it is is known */
};

void imap_responses_init(struct imap_responses *r);
void imap_responses_free(struct imap_responses *r);
/* Takes of *in; what goes by is appended to pass. */
enum imap_part imap_responses_read(struct imap_responses *r, struct slice *in, struct buf *pass);
/* Behind IMAP_PART_WHOLE. */
void imap_responses_next(struct imap_responses *r);

#endif
