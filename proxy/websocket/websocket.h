/* WebSocket frames (RFC 6455 section 5): a strict incremental reader and the writer of headers.
 * Pure: bytes in, events out, the same memory whatever a message's length. Headers are never handed
 * on as they came: a message is read as pieces of payload, which the writer frames anew, so that
 * nothing rides on one (attack C20). Extensions are never negotiated: reserved bits and
 * opcodes are faults. */
#ifndef DURWARD_WEBSOCKET_H
#define DURWARD_WEBSOCKET_H

#include "slice.h"

enum {
    WEBSOCKET_HEADER_MAX = 14,
    WEBSOCKET_CONTROL_MAX = 125,
    WEBSOCKET_PIECE_MAX = 16384, /* bytes of a message that one event carries */
};

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10,
};

/* Close codes that we send (7.4.1), and the two that only stand for the lack of one. */
enum {
    WEBSOCKET_PROTOCOL = 1002,
    WEBSOCKET_NO_CODE = 1005,
    WEBSOCKET_NOT_UTF8 = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_LARGE = 1009,
    WEBSOCKET_INTERNAL = 1011,
};

enum websocket_event {
    WEBSOCKET_MORE = 0,  /* the input is used up; also all there is after a close frame */
    WEBSOCKET_PIECE,     /* some of a message */
    WEBSOCKET_CONTROL,   /* a whole close, ping or pong frame */
    WEBSOCKET_VIOLATION, /* the reader's `code` says which; it reads no more */
};

struct websocket_part {
    enum websocket_opcode opcode; /* of the message or control frame; never CONTINUATION */
    bool last;                    /* the message ends with this piece */
    char *p;                      /* payload, unmasked; in the caller's scratch; may be empty */
    size_t n;
    bool single;    /* the message is this one frame, */
    uint64_t total; /* of so many bytes */
    unsigned code;  /* of a close frame, WEBSOCKET_NO_CODE when it has none */
};

enum websocket_reader_state {
    WEBSOCKET_IN_HEADER = 0,
    WEBSOCKET_IN_PAYLOAD,
    WEBSOCKET_CLOSED, /* a close frame came: what follows it is nothing */
    WEBSOCKET_BROKEN,
};

/* UTF-8 across pieces (RFC 3629): how many bytes are due and what the next may be. */
struct websocket_utf8 {
    unsigned due;
    unsigned char least, most;
};

struct websocket_reader {
    bool masked; /* frames must be (from a client), or must not be */
    enum websocket_reader_state state;
    unsigned char header[WEBSOCKET_HEADER_MAX];
    size_t have, need;
    enum websocket_opcode frame, message; /* message: CONTINUATION between messages */
    bool fin, single;                     /* single: that message has one frame only */
    uint64_t left, at;                    /* of the frame's payload: to come, behind us */
    unsigned char mask[4];
    char control[WEBSOCKET_CONTROL_MAX];
    struct websocket_utf8 utf8;
    unsigned code; /* after VIOLATION: the close code for it */
};

void websocket_reader_init(struct websocket_reader *r, bool masked);
/* Takes bytes off the front of *in and says what they are. scratch: WEBSOCKET_PIECE_MAX bytes. Call
 * until MORE or VIOLATION. */
enum websocket_event websocket_read(struct websocket_reader *r, struct slice *in, char *scratch,
                                    struct websocket_part *ret);

/* The whole of it is well-formed UTF-8 (RFC 3629). */
bool websocket_is_utf8(struct slice s);
/* A frame's header, its length in the shortest form; mask NULL: none. Returns its size. */
size_t websocket_header(unsigned char to[WEBSOCKET_HEADER_MAX], enum websocket_opcode opcode,
                        bool fin, uint64_t n, const unsigned char *mask);
/* Mask or unmask n bytes from offset `at` of a payload (5.3). */
void websocket_mask(char *p, size_t n, const unsigned char mask[4], uint64_t at);
/* The payload of a close frame: nothing for WEBSOCKET_NO_CODE, else the code. Returns its size. */
size_t websocket_close(char to[2], unsigned code);

#endif
