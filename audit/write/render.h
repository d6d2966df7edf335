/* Audit lines: one JSON object a record, ASCII only. Every byte outside 0x20..0x7e, '"' and '\' is
 * written as \u00XX (a byte, not a code point), so a line holds no control byte, whatever a client
 * sent. The first keys are fixed in order (seq, prev, kind, id, at); the logger's own recovery and
 * `audit verify` read those without a JSON parser. */
#ifndef DURWARD_RENDER_H
#define DURWARD_RENDER_H

#include "buf.h"
#include "chain.h"
#include "record_read.h"

enum { RENDER_LINE_MAX = 64 * 1024, RENDER_NAME_MAX = 256 };

/* Who wrote a record, as the logger knows it from the channel. */
struct render_source {
    uint32_t channel;             /* 0: the logger itself */
    const char *role;             /* role_name() */
    const char *sandbox, *policy; /* at most RENDER_NAME_MAX; "" if the channel has none */
};

/* A line without its newline, appended to out. prev: where the chain stands. at: the end of the
 * record in its journal (0: made by the logger). 0, or -1 when out is full. */
int render_line(struct buf *out, const struct chain *prev, const struct record_view *v,
                const struct render_source *from, uint64_t at, uint64_t received_ns) WUNUSED;

struct render_head { /* the fixed keys of a line */
    uint64_t seq;
    unsigned char prev[CHAIN_HASH];
    enum record_kind kind;
    uint32_t channel;
    uint64_t counter;
    uint64_t at;
};
int render_parse(struct slice line, struct render_head *h); /* 0 or -1 */
enum record_kind render_kind(struct slice name);            /* 0: unknown */

#endif
