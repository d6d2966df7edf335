/* What a front and a back say to one another about one request, on a socket pair of its own: whole
 * packets with a type. The front makes the pair, the back gets its end with W_BROKER_OPEN. When one
 * end closes, or its process dies, the other sees it at once.
 *
 * A full socket is back-pressure: who cannot send stops reading where the bytes come from. */
#ifndef DURWARD_BROKER_STREAM_H
#define DURWARD_BROKER_STREAM_H

#include <stdbool.h>

#include "buf.h"
#include "slice.h"

struct event_base;
struct broker_stream;

enum { BROKER_PACKET_MAX = 16 * 1024 };

enum broker_packet {
    BROKER_DATA = 1, /* both: bytes of the protocol's main stream */
    BROKER_ASIDE,    /* B→F: bytes beside it (standard error; what a long status begins with) */
    BROKER_END,      /* both: no more of BROKER_DATA (and BROKER_ASIDE) comes from here */
    BROKER_OPENED,   /* B→F: the server has begun; once, first */
    BROKER_REFUSED,  /* B→F: code, a NUL, a text for people; last */
    BROKER_STATUS,   /* B→F: how it ended, the broker's own form; then BROKER_END may follow */
    BROKER_EVENT,    /* F→B: the broker's own (a window's size, a signal) */
    BROKER_PACKETS
};

struct broker_stream_ops {
    /* One packet; may free the stream. -1: it is bad, and closed follows. */
    int (*packet)(void *arg, enum broker_packet type, struct slice bytes);
    void (*writable)(void *arg); /* after a send that found it full */
    void (*closed)(void *arg);   /* the far end is gone; free it there */
};

/* A connected pair, non-blocking. 0 or -1. */
int broker_stream_pair(int fds[2]);
/* Takes fd. NULL: out of memory. */
struct broker_stream *broker_stream_new(struct event_base *base, int fd,
                                        const struct broker_stream_ops *ops, void *arg);
void broker_stream_free(struct broker_stream *s); /* NULL is fine; not within its callbacks only
                                                   * when it is not used there any more */
/* 1: sent; 0: full, nothing was sent, writable follows; -1: it is dead, closed follows. bytes: at
 * most BROKER_PACKET_MAX. */
int broker_stream_send(struct broker_stream *s, enum broker_packet type, struct slice bytes);
/* All of it as BROKER_DATA, and it is drained; what does not fit now stays. True: nothing stays. */
bool broker_stream_send_buf(struct broker_stream *s, struct buf *from);
/* BROKER_REFUSED with a code and a text, of which 600 bytes go. */
void broker_stream_refuse(struct broker_stream *s, const char *code, const char *text);
void broker_stream_break(struct broker_stream *s); /* it is bad; closed follows */
/* While it is paused: a far end that goes is over, whatever it has said. */
void broker_stream_hold(struct broker_stream *s, bool held);
void broker_stream_pause(struct broker_stream *s, bool paused); /* packets wait in the socket */

#endif
