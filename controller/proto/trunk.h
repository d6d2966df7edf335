/* What goes over the one line between the guest of a microVM and its keeper: messages of
 * durward-init and of the controller, bytes of descriptors that are in them, connections and
 * datagrams of programs inside, each a channel.
 *
 * A frame: type:u8 zero:u8 channel:u16 length:u32, big-endian, and so many bytes:
 *   MESSAGE  type:u16 n:u8, n × (kind:u8 channel:u16), the message's fields; descriptors that the
 *            host sends open a channel each, and the guest sends none
 *   OPEN     kind:u8 family:u8 address:16 port:u16; the guest's, of a connection or datagrams
 *   REFUSED  family:u8 address:16 port:u16: a datagram that was refused inside
 *   DATA     1 to TRUNK_CHUNK bytes; END: no more of them; CREDIT n:u32: so many bytes more
 *   CLOSED   the descriptor is closed on this side; a channel is free when both have said so
 * A channel's highest bit says that the host opened it. Nobody sends more than the other has given
 * credit for, TRUNK_WINDOW at first: what is held for one channel is bounded, and one that nobody
 * reads holds up no other.
 *
 * The other side is an adversary: what is not as above ends the trunk. */
#ifndef DURWARD_TRUNK_H
#define DURWARD_TRUNK_H

#include <poll.h>

#include "compiler.h"
#include "ipc_msg.h"
#include "slice.h"

struct sockaddr;
struct trunk;

enum {
    TRUNK_CHANNELS = 384, /* that each side may open */
    TRUNK_WINDOW = 64 * 1024,
    TRUNK_CHUNK = 16 * 1024,
    TRUNK_HEAD = 8,
    TRUNK_BY_HOST = 0x8000,
    TRUNK_POLLED = 2 * TRUNK_CHANNELS + 2, /* descriptors that trunk_watch names at most */
    TRUNK_TURN_MS = 2000,                  /* trunk_turn wants to be called as often */
    TRUNK_QUIET_S = 15,                    /* datagrams: their channel ends, */
    TRUNK_ANSWERED_S = 2,                  /* where all of them are answered */
    TRUNK_ASKING = TRUNK_CHANNELS / 2,     /* channels of datagrams, at most */
};

enum trunk_type {
    TRUNK_MESSAGE = 1,
    TRUNK_OPEN,
    TRUNK_REFUSED,
    TRUNK_DATA,
    TRUNK_END,
    TRUNK_CREDIT,
    TRUNK_CLOSED,
    TRUNK_TYPES
};

/* What a channel carries; of a message's descriptors those up to PACKETS. */
enum trunk_kind {
    TRUNK_NULL = 1, /* /dev/null, and no channel */
    TRUNK_IN,       /* bytes to the guest */
    TRUNK_OUT,      /* bytes from it */
    TRUNK_BOTH,
    TRUNK_PACKETS, /* both ways, each packet whole */
    TRUNK_TCP,
    TRUNK_UDP,
    TRUNK_KINDS
};

struct trunk_address {
    uint8_t family; /* 4 or 6 */
    unsigned char ip[16];
    uint16_t port; /* not 0 */
};

struct trunk_frame {
    enum trunk_type type;
    uint16_t channel;
    enum trunk_kind kind;    /* OPEN */
    struct trunk_address to; /* OPEN, REFUSED */
    uint32_t credit;
    struct slice body; /* DATA, MESSAGE */
};

/* Reads one that begins there. How many bytes it takes; 0: more are needed; -1: it is none. */
ssize_t trunk_frame_read(struct slice from, struct trunk_frame *ret);
/* *len as for bind(2); of the room of a sockaddr_storage. */
void trunk_address_to(const struct trunk_address *a, struct sockaddr *ret, unsigned *len);
/* -1: it is of another family, or its port is 0. */
int trunk_address_of(const struct sockaddr *a, struct trunk_address *ret);

struct trunk_ops {
    /* The host's: a descriptor that connects or sends there, non-blocking; -1: no. */
    int (*open)(enum trunk_kind kind, const struct trunk_address *to);
    void (*refused)(const struct trunk_address *to);
};

/* line: the stream between both; control: a SOCK_SEQPACKET with whoever's messages it carries.
 * Both owned. ops: NULL in the guest. */
struct trunk *trunk_new(int line, int control, const struct trunk_ops *ops);
void trunk_free(struct trunk *t);
/* The guest's: fd's bytes or packets go to that place outside. Owned, closed where there is no room
 * (-1). */
int trunk_open(struct trunk *t, enum trunk_kind kind, int fd, const struct trunk_address *to);
/* The same of datagrams, of which the first is there. */
int trunk_ask(struct trunk *t, int fd, const struct trunk_address *to, struct slice first);
/* The guest's: tells of a datagram that was refused; where much is to be told, not of all. */
void trunk_refused(struct trunk *t, const struct trunk_address *to);
/* What it waits for. */
unsigned trunk_watch(struct trunk *t, struct pollfd p[TRUNK_POLLED]);
/* After poll(2). -1: its end. */
int trunk_turn(struct trunk *t, const struct pollfd *p, unsigned n);
/* For tests: as if it had come over the line. -1: as it is none. */
int trunk_take(struct trunk *t, struct slice bytes);

#endif
