/* Messages of PostgreSQL's protocol 3.0 ("Frontend/Backend Protocol", Message Formats): a strict
 * incremental reader and the writers. Pure: bytes in, messages out, the same memory whatever a
 * message's length. Short messages come whole and with their form checked; those that carry data
 * (Bind, DataRow, CopyData, RowDescription) come as pieces of what the length promised. */
#ifndef DURWARD_POSTGRES_MESSAGE_H
#define DURWARD_POSTGRES_MESSAGE_H

#include "buf.h"

enum {
    POSTGRES_HEAD = 5,               /* type and length */
    POSTGRES_SMALL_MAX = 10000,      /* as PostgreSQL bounds what is short by nature */
    POSTGRES_WHOLE_MAX = 1 << 20,    /* of a statement or an error */
    POSTGRES_LONG_MAX = 0x3ffffffe,  /* of one that comes in pieces: PostgreSQL's own bound */
    POSTGRES_PARAMETERS_MAX = 65535, /* of a statement */
};

enum postgres_side { POSTGRES_CLIENT, POSTGRES_SERVER }; /* who wrote it */

/* What of the conversation a message belongs to. */
enum postgres_phase { POSTGRES_LOGIN = 1, POSTGRES_SESSION = 2 };

enum postgres_event {
    POSTGRES_MORE = 0,  /* the input is used up */
    POSTGRES_MESSAGE,   /* a whole one, its form checked */
    POSTGRES_PIECE,     /* some of a long one */
    POSTGRES_VIOLATION, /* `why` says which; it reads no more */
};

struct postgres_part {
    char type;
    bool first, last;
    uint32_t length;   /* of the message's body */
    struct slice body; /* all of it, or this piece */
    struct slice wire; /* the same with its head, as it came; p NULL: it is not in one place */
};

struct postgres_reader {
    enum postgres_side from;
    enum postgres_phase phase; /* the owner says when it changes */
    unsigned char head[POSTGRES_HEAD];
    size_t have;       /* of head */
    uint32_t length;   /* of the body */
    uint32_t left;     /* of the body, to come */
    struct buf whole;  /* a short message so far */
    bool piecewise;    /* this one comes in pieces */
    bool broken, held; /* held: `whole` is given out */
    const char *why;
};

void postgres_reader_init(struct postgres_reader *r, enum postgres_side from,
                          enum postgres_phase phase);
void postgres_reader_free(struct postgres_reader *r);
/* Takes bytes off the front of *in and says what they are. ret->body lies in *in's memory or in
 * the reader and is good until the next call. Call until MORE or VIOLATION. */
enum postgres_event postgres_read(struct postgres_reader *r, struct slice *in,
                                  struct postgres_part *ret);
/* No message is begun: the stream may end here. */
bool postgres_reader_between(const struct postgres_reader *r);

/* ---- what whole messages hold; -1: it is not that ---- */

/* A text up to its zero byte, taken off the front of *in. */
int postgres_take_text(struct slice *in, struct slice *ret) WUNUSED;
int postgres_take_u16(struct slice *in, uint16_t *ret) WUNUSED;
int postgres_take_u32(struct slice *in, uint32_t *ret) WUNUSED;

/* Query */
int postgres_query_read(struct slice body, struct slice *text) WUNUSED;
/* Parse: types are n 32-bit numbers. */
struct postgres_parse {
    struct slice name, text, types;
    uint16_t n;
};
int postgres_parse_read(struct slice body, struct postgres_parse *ret) WUNUSED;
/* ErrorResponse or NoticeResponse: the field of that code, p NULL when it has none. */
struct slice postgres_field(struct slice body, char code);
/* DataRow: the only value of a row of one column, p NULL for NULL. */
int postgres_only_value(struct slice body, struct slice *ret) WUNUSED;
/* CommandComplete: the number of rows that its tag ends in; 0 when it has none. */
uint64_t postgres_rows(struct slice body);

/* ---- writing ---- */

/* -1: out is full; what was appended is taken back. */
int postgres_put(struct buf *out, char type, struct slice body) WUNUSED;
int postgres_put_part(struct buf *out, const struct postgres_part *m) WUNUSED; /* as it came */
int postgres_put_query(struct buf *out, struct slice text) WUNUSED;
int postgres_put_parse(struct buf *out, struct slice name, struct slice text) WUNUSED;
/* ErrorResponse: severity "ERROR" or "FATAL", five characters of code, a text. */
int postgres_put_error(struct buf *out, const char *severity, const char *code,
                       struct slice text) WUNUSED;
int postgres_put_ready(struct buf *out, char status) WUNUSED;
int postgres_put_parameter(struct buf *out, struct slice name, struct slice value) WUNUSED;
int postgres_put_authentication(struct buf *out, uint32_t code, struct slice data) WUNUSED;
int postgres_put_u32(struct buf *out, uint32_t v) WUNUSED;
int postgres_put_text(struct buf *out, struct slice text) WUNUSED; /* with its zero byte */

#endif
