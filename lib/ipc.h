/* A channel between two of our processes: a SOCK_SEQPACKET socket on an event loop.
 *
 * A channel is an identity: whoever wired it up knows who is at the other end, and no message
 * carries an identity that the receiver would trust. At most 16 messages of a channel are handled
 * in one turn of the loop, so that nobody's channel waits for all that another one has to say. A
 * message that the handler calls bad, an overlong queue or a socket error end the channel, never
 * the process. */
#ifndef DURWARD_IPC_H
#define DURWARD_IPC_H

#include "ipc_msg.h"

struct event_base;
struct ipc;

/* Handles one message; it may take fields and descriptors. Return 0, or -1 when the message is bad:
 * the channel is then closed (the closed callback runs). The handler may call ipc_free. */
typedef int (*ipc_message_fn)(struct ipc *ch, struct msg *m, void *arg);
/* The far end is gone, or was cut off; why is constant text. The handler should ipc_free. */
typedef void (*ipc_closed_fn)(struct ipc *ch, const char *why, void *arg);

/* Takes ownership of fd (made non-blocking). NULL on allocation failure (fd closed). */
struct ipc *ipc_new(struct event_base *base, int fd, ipc_message_fn on_message,
                    ipc_closed_fn on_closed, void *arg);
void ipc_free(struct ipc *ch); /* NULL is fine; safe inside its own callbacks */
int ipc_fd(const struct ipc *ch);
/* Queue a message; always takes it over (msg_done is done here). -1 when it was too large, memory
 * was out, the queue is over its bound (8 MiB) or the channel is dead; but for the first, the
 * channel then closes from the loop. */
int ipc_send(struct ipc *ch, struct msg *m);
/* A datagram of several messages: this type, then of each u16 type and u32 length before its
 * fields. */
enum { IPC_GATHERED = 0xffff };

/* From now on small messages without descriptors go out together, in one datagram a turn of the
 * loop, in the order in which they were sent; only such a channel takes such a datagram. Both ends
 * ask for it. */
void ipc_gather(struct ipc *ch);
/* Bytes waiting in user space, what keeps them included. */
size_t ipc_queued(const struct ipc *ch);
/* fn runs each time a queue that had formed has gone out (back-pressure on ourselves). */
void ipc_on_drained(struct ipc *ch, void (*fn)(void *arg), void *arg);
/* Stop or go on reading (back-pressure on the peer). */
void ipc_pause(struct ipc *ch);
void ipc_resume(struct ipc *ch);
/* Wait until the queue is out or the channel died; for the last words of a process. At most ms. */
void ipc_flush(struct ipc *ch, int ms);

/* A connected pair, close-on-exec, both ends non-blocking. 0 or -1 with err. */
int ipc_pair(int fds[2], struct err *err);
/* An anonymous file with these bytes, rewound, sealed against change: for what exceeds a message.
 */
int ipc_memfd(const char *name, const void *p, size_t n, struct err *err);
/* Read such a file whole: *ret is malloc'd and NUL-terminated beyond *len. At most max bytes. */
int ipc_memfd_read(int fd, size_t max, char **ret, size_t *len, struct err *err);

#endif
