/* Packets of MySQL's protocol ("Client/Server Protocol", Packets): a strict incremental reader and
 * the writers. Pure: bytes in, packets out, the same memory whatever a packet's length. What is
 * judged comes whole; what carries data comes as pieces of what the length promised. */
#ifndef DURWARD_MYSQL_PACKET_H
#define DURWARD_MYSQL_PACKET_H

#include "buf.h"

enum {
    MYSQL_HEAD = 4,             /* length and number */
    MYSQL_WHOLE_MAX = 1 << 20,  /* of a packet that is judged */
    MYSQL_LOGIN_MAX = 64 << 10, /* of one of a login */
    MYSQL_FIRST = 32,           /* of a packet's first piece at least, if it has as many */
    MYSQL_FULL = 0xffffff,      /* a packet of this length goes on in the next */
};

/* First byte of a command. */
enum mysql_command {
    MYSQL_QUIT = 1,
    MYSQL_INIT_DB = 2,
    MYSQL_QUERY = 3,
    MYSQL_STATISTICS = 9,
    MYSQL_PROCESS_KILL = 12,
    MYSQL_PING = 14,
    MYSQL_PREPARE = 0x16,
    MYSQL_EXECUTE = 0x17,
    MYSQL_LONG_DATA = 0x18,
    MYSQL_CLOSE = 0x19,
    MYSQL_RESET = 0x1a, /* of a statement */
    MYSQL_SET_OPTION = 0x1b,
    MYSQL_FETCH = 0x1c,
};

/* What is read: who wrote it, and in which part of the conversation. */
enum mysql_phase {
    MYSQL_LOGIN = 1, /* of either: whole */
    MYSQL_COMMANDS,  /* of a client: whole, but for the data of prepared statements */
    MYSQL_FILE,      /* of a client: a file's content, which the server has asked for; pieces */
    MYSQL_REPLIES,   /* of a server: pieces */
};

enum mysql_event {
    MYSQL_MORE = 0,  /* the input is used up */
    MYSQL_PART,      /* a whole packet, or a piece of one */
    MYSQL_VIOLATION, /* `why` says which; it reads no more */
};

struct mysql_part {
    bool first, last;
    bool continued; /* it belongs to the packet before, which had MYSQL_FULL bytes */
    unsigned char head[MYSQL_HEAD];
    uint32_t length;   /* of the packet's body */
    struct slice body; /* all of it, or this piece */
};

struct mysql_reader {
    enum mysql_phase phase; /* the owner says when it changes, between packets */
    unsigned char head[MYSQL_HEAD];
    size_t have;           /* of head */
    uint32_t length, left; /* of the body, and of it what is to come */
    struct buf start;      /* the whole packet so far, or its first piece */
    bool begun, held;      /* a first piece was given out; `start` is given out */
    bool full, continued;  /* this packet goes on in the next; it goes on with the last */
    bool broken;
    const char *why;
};

void mysql_reader_init(struct mysql_reader *r, enum mysql_phase phase);
void mysql_reader_free(struct mysql_reader *r);
/* Takes bytes off the front of *in and says what they are. ret->body lies in *in's memory or in
 * the reader and is good until the next call. Call until MORE or VIOLATION. */
enum mysql_event mysql_read(struct mysql_reader *r, struct slice *in, struct mysql_part *ret);
/* No packet is begun: something else may stand here. */
bool mysql_reader_between(const struct mysql_reader *r);
static inline unsigned char mysql_number(const struct mysql_part *m)
{
    return m->head[3];
}

/* ---- what packets hold, taken off the front; -1: it is not there ---- */

int mysql_take_u16(struct slice *in, uint16_t *ret) WUNUSED; /* all little-endian */
int mysql_take_u32(struct slice *in, uint32_t *ret) WUNUSED;
int mysql_take_count(struct slice *in, uint64_t *ret) WUNUSED; /* length-encoded; NULL is -1 */
int mysql_take_bytes(struct slice *in, size_t n, struct slice *ret) WUNUSED;
int mysql_take_counted(struct slice *in, struct slice *ret) WUNUSED; /* behind such a length */
int mysql_take_text(struct slice *in, struct slice *ret) WUNUSED;    /* up to its zero byte */
/* The text of an error packet's body, its number in *code; "": it is none. */
struct slice mysql_error_text(struct slice body, uint16_t *code);

/* ---- writing; -1: out is full ---- */

int mysql_put(struct buf *out, unsigned char number, struct slice body) WUNUSED;
int mysql_put_part(struct buf *out, const struct mysql_part *m) WUNUSED; /* as it was read */
int mysql_put_u32(struct buf *out, uint32_t v) WUNUSED;
int mysql_put_counted(struct buf *out, struct slice s) WUNUSED; /* of fewer than 65536 bytes */
/* state: five characters; text: cut at 512 bytes. */
int mysql_put_error(struct buf *out, unsigned char number, uint16_t code, const char *state,
                    struct slice text) WUNUSED;
int mysql_put_ok(struct buf *out, unsigned char number) WUNUSED;
int mysql_put_query(struct buf *out, struct slice text) WUNUSED;

#endif
