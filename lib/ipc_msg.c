/* Puts and gets the fields of a message and sends and receives it with its descriptors. The memory
 * that it is received in is static and wiped each time. */
#include "ipc_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void msg_init(struct msg *m, uint16_t type)
{
    m->type = type;
    buf_init_wiped(&m->body, IPC_MSG_MAX);
    m->nfds = m->next_fd = 0;
    m->bad = m->lost = m->starved = false;
}

void msg_view(struct msg *m, uint16_t type, struct slice fields)
{
    msg_init(m, type);
    m->body.base = (unsigned char *)fields.p;
    m->body.len = m->body.cap = fields.n;
}

void msg_done(struct msg *m)
{
    for (unsigned i = m->next_fd; i < m->nfds; i++)
        close(m->fds[i]);
    m->nfds = m->next_fd = 0;
    buf_free(&m->body);
}

static void put(struct msg *m, const void *p, size_t n)
{
    if (buf_append(&m->body, p, n) < 0) {
        m->bad = true;
        m->starved |= n <= buf_room(&m->body);
    }
}

void msg_put_u8(struct msg *m, uint8_t v)
{
    put(m, &v, 1);
}

void msg_put_u32(struct msg *m, uint32_t v)
{
    unsigned char b[4] = {v >> 24, v >> 16, v >> 8, v};
    put(m, b, 4);
}

void msg_put_u64(struct msg *m, uint64_t v)
{
    msg_put_u32(m, (uint32_t)(v >> 32));
    msg_put_u32(m, (uint32_t)v);
}

void msg_put_bytes(struct msg *m, const void *p, size_t n)
{
    if (n > IPC_MSG_MAX) {
        m->bad = true;
        return;
    }
    msg_put_u32(m, (uint32_t)n);
    put(m, p, n);
}

void msg_put_slice(struct msg *m, struct slice s)
{
    msg_put_bytes(m, s.p, s.n);
}

void msg_put_str(struct msg *m, const char *s)
{
    msg_put_slice(m, slice_str(s));
}

void msg_put_fd(struct msg *m, int fd)
{
    if (fd < 0 || m->nfds >= IPC_FDS_MAX) {
        if (fd >= 0)
            close(fd);
        m->bad = true;
        return;
    }
    m->fds[m->nfds++] = fd;
}

void msg_put_fd_dup(struct msg *m, int fd)
{
    msg_put_fd(m, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

static int take(struct msg *m, void *to, size_t n)
{
    if (m->bad || buf_len(&m->body) < n) {
        m->bad = true;
        memset(to, 0, n);
        return -1;
    }
    memcpy(to, buf_data(&m->body), n);
    m->body.off += n; /* not drained: slices handed out must stay readable */
    m->body.len -= n;
    return 0;
}

int msg_get_u8(struct msg *m, uint8_t *v)
{
    return take(m, v, 1);
}

int msg_get_u32(struct msg *m, uint32_t *v)
{
    unsigned char b[4];
    int r = take(m, b, 4);
    *v = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return r;
}

int msg_get_u64(struct msg *m, uint64_t *v)
{
    uint32_t hi, lo;
    *v = 0;
    if (msg_get_u32(m, &hi) < 0 || msg_get_u32(m, &lo) < 0)
        return -1;
    *v = (uint64_t)hi << 32 | lo;
    return 0;
}

int msg_get_slice(struct msg *m, size_t max, struct slice *v)
{
    uint32_t n;
    *v = (struct slice){"", 0};
    if (msg_get_u32(m, &n) < 0)
        return -1;
    if (n > max || n > buf_len(&m->body)) {
        m->bad = true;
        return -1;
    }
    *v = (struct slice){(const char *)buf_data(&m->body), n};
    m->body.off += n;
    m->body.len -= n;
    return 0;
}

int msg_get_str(struct msg *m, char *to, size_t size)
{
    struct slice s;
    to[0] = 0;
    if (msg_get_slice(m, size - 1, &s) < 0)
        return -1;
    if (s.n && memchr(s.p, 0, s.n)) {
        m->bad = true;
        return -1;
    }
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return 0;
}

int msg_get_fd(struct msg *m, int *fd)
{
    *fd = -1;
    if (m->bad || m->next_fd >= m->nfds) {
        m->bad = true;
        return -1;
    }
    *fd = m->fds[m->next_fd++];
    return 0;
}

int msg_end(struct msg *m)
{
    return m->bad || m->lost || buf_len(&m->body) != 0 || m->next_fd != m->nfds ? -1 : 0;
}

int msg_send(int sock, const struct msg *m)
{
    unsigned char head[4] = {m->type >> 8, m->type & 255, 0, 0};
    struct iovec iov[2] = {{head, 4}, {buf_data(&m->body), buf_len(&m->body)}};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
    } control;
    struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
    if (m->bad) {
        errno = EMSGSIZE;
        return -1;
    }
    if (m->nfds) {
        memset(&control, 0, sizeof control);
        mh.msg_control = &control;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * m->nfds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * m->nfds);
        memcpy(CMSG_DATA(c), m->fds, sizeof(int) * m->nfds);
    }
    for (;;) {
        if (sendmsg(sock, &mh, MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno == EINTR)
            continue;
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 1 : -1;
    }
}

static void claim_fds(struct msghdr *mh, struct msg *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (m->nfds < IPC_FDS_MAX)
                m->fds[m->nfds++] = fd;
            else
                close(fd);
        }
    }
}

int msg_recv(int sock, struct msg *m)
{
    static unsigned char room[4 + IPC_MSG_MAX];
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
    } control;
    struct iovec iov = {room, sizeof room};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? 0 : -1;
    if (n == 0 && mh.msg_controllen == 0)
        return 0;
    msg_init(m, 0);
    claim_fds(&mh, m);
    m->lost = (mh.msg_flags & MSG_CTRUNC) != 0;
    bool too_many = m->lost && m->nfds == IPC_FDS_MAX; /* not our limit: nobody may send more */
    bool whole = n >= 4 && !(mh.msg_flags & MSG_TRUNC) && !too_many && room[2] == 0 && room[3] == 0;
    if (whole) {
        m->type = (uint16_t)(room[0] << 8 | room[1]);
        whole = buf_append(&m->body, room + 4, (size_t)n - 4) == 0;
    }
    if (n > 0)
        explicit_bzero(room, (size_t)n);
    if (!whole) {
        msg_done(m);
        errno = EBADMSG;
        return -1;
    }
    return 1;
}
