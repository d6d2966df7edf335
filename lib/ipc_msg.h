/* One message between two of our processes: a type, typed fields, descriptors.
 *
 * Wire form (one SOCK_SEQPACKET datagram): u16 type, u16 zero, then fields in the order in which
 * they were put, big-endian, strings and bytes as u32 length + bytes. Readers check every length;
 * msg_end() insists that all was consumed, descriptors too. A message that fails a check is bad as
 * a whole: the caller closes the channel it came from and nothing else. */
#ifndef DURWARD_IPC_MSG_H
#define DURWARD_IPC_MSG_H

#include "compiler.h"
#include "buf.h"
#include "err.h"

enum { IPC_MSG_MAX = 96 * 1024, IPC_FDS_MAX = 64 };

struct msg {
    uint16_t type;
    struct buf body;      /* fields; while reading, drained from the front */
    int fds[IPC_FDS_MAX]; /* owned by the message until taken or sent */
    unsigned nfds;
    unsigned next_fd; /* reading: the next to take */
    bool bad;         /* a put or get failed; sticky */
    bool starved;     /* as memory was out, not for its size */
    bool lost;        /* received: descriptors were dropped, as we had no room for them */
};

void msg_init(struct msg *m, uint16_t type);
/* For reading fields that lie elsewhere and stay there as long as the message is used; no msg_done.
 */
void msg_view(struct msg *m, uint16_t type, struct slice fields);
/* Closes descriptors that nobody took; wipes the body. */
void msg_done(struct msg *m);

void msg_put_u8(struct msg *m, uint8_t v);
void msg_put_u32(struct msg *m, uint32_t v);
void msg_put_u64(struct msg *m, uint64_t v);
void msg_put_bytes(struct msg *m, const void *p, size_t n);
void msg_put_slice(struct msg *m, struct slice s);
void msg_put_str(struct msg *m, const char *s); /* NULL is put as "" */
/* Adds a descriptor. The message owns it from here on (closed after sending). */
void msg_put_fd(struct msg *m, int fd);
/* The same with a duplicate, so that the caller keeps its own. */
void msg_put_fd_dup(struct msg *m, int fd);

/* Getters return 0 or -1 and set m->bad on -1; outputs are zeroed on failure. */
int msg_get_u8(struct msg *m, uint8_t *v);
int msg_get_u32(struct msg *m, uint32_t *v);
int msg_get_u64(struct msg *m, uint64_t *v);
/* A view into the message, valid until msg_done; at most `max` bytes. */
int msg_get_slice(struct msg *m, size_t max, struct slice *v);
/* NUL-terminated copy into `to` of `size` bytes; a NUL inside or a longer string is bad. */
int msg_get_str(struct msg *m, char *to, size_t size);
/* Ownership of the next descriptor. */
int msg_get_fd(struct msg *m, int *fd);
/* 0 when everything was read and nothing was bad or lost. */
int msg_end(struct msg *m);

/* Send on a socket (MSG_NOSIGNAL). 0 sent; 1 would block; -1 error (errno). Keeps ownership with
 * the caller until msg_done. */
int msg_send(int sock, const struct msg *m);
/* Receive. 1 a message (m initialised, msg_done it); 0 end of file; -1 error, errno EAGAIN when
 * nothing is there, EBADMSG for a truncated or malformed one. A message whose descriptors did not
 * fit under our limit is still a message, `lost`: whoever can do without it must not be cut off. */
int msg_recv(int sock, struct msg *m);

#endif
