/* What controller/net asks of libmnl on behalf of programs that are linked statically, since Debian
 * has no archive of that library: a node has no library of ours, and neither has a sandbox. As
 * libmnl's header has it; messages are those of rtnetlink (rtnetlink(7)), and the answers of the
 * kernel. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- messages ---- */

static unsigned char *tail(const struct nlmsghdr *h)
{
    return (unsigned char *)(uintptr_t)h + NLMSG_ALIGN(h->nlmsg_len);
}

struct nlmsghdr *mnl_nlmsg_put_header(void *buf)
{
    struct nlmsghdr *h = buf;
    memset(h, 0, NLMSG_HDRLEN);
    h->nlmsg_len = NLMSG_HDRLEN;
    return h;
}

void *mnl_nlmsg_put_extra_header(struct nlmsghdr *h, size_t size)
{
    unsigned char *at = tail(h);
    memset(at, 0, NLMSG_ALIGN(size));
    h->nlmsg_len = (uint32_t)(NLMSG_ALIGN(h->nlmsg_len) + NLMSG_ALIGN(size));
    return at;
}

void *mnl_nlmsg_get_payload(const struct nlmsghdr *h)
{
    return (unsigned char *)(uintptr_t)h + NLMSG_HDRLEN;
}

void *mnl_nlmsg_get_payload_offset(const struct nlmsghdr *h, size_t offset)
{
    return (unsigned char *)mnl_nlmsg_get_payload(h) + NLMSG_ALIGN(offset);
}

void *mnl_nlmsg_get_payload_tail(const struct nlmsghdr *h)
{
    return tail(h);
}

/* ---- attributes ---- */

void mnl_attr_put(struct nlmsghdr *h, uint16_t type, size_t n, const void *data)
{
    struct nlattr *a = (struct nlattr *)tail(h);
    size_t pad = NLA_ALIGN(n) - n;
    a->nla_type = type;
    a->nla_len = (uint16_t)(NLA_HDRLEN + n);
    memcpy((unsigned char *)a + NLA_HDRLEN, data, n);
    memset((unsigned char *)a + NLA_HDRLEN + n, 0, pad);
    h->nlmsg_len = (uint32_t)(NLMSG_ALIGN(h->nlmsg_len) + NLA_HDRLEN + NLA_ALIGN(n));
}

void mnl_attr_put_u8(struct nlmsghdr *h, uint16_t type, uint8_t v)
{
    mnl_attr_put(h, type, sizeof v, &v);
}

void mnl_attr_put_u32(struct nlmsghdr *h, uint16_t type, uint32_t v)
{
    mnl_attr_put(h, type, sizeof v, &v);
}

void mnl_attr_put_strz(struct nlmsghdr *h, uint16_t type, const char *s)
{
    mnl_attr_put(h, type, strlen(s) + 1, s);
}

struct nlattr *mnl_attr_nest_start(struct nlmsghdr *h, uint16_t type)
{
    struct nlattr *a = (struct nlattr *)tail(h);
    a->nla_type = NLA_F_NESTED | type;
    h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + NLA_HDRLEN;
    return a;
}

void mnl_attr_nest_end(struct nlmsghdr *h, struct nlattr *a)
{
    a->nla_len = (uint16_t)(tail(h) - (unsigned char *)a);
}

uint16_t mnl_attr_get_type(const struct nlattr *a)
{
    return a->nla_type & NLA_TYPE_MASK;
}

uint16_t mnl_attr_get_payload_len(const struct nlattr *a)
{
    return (uint16_t)(a->nla_len - NLA_HDRLEN);
}

void *mnl_attr_get_payload(const struct nlattr *a)
{
    return (unsigned char *)(uintptr_t)a + NLA_HDRLEN;
}

uint32_t mnl_attr_get_u32(const struct nlattr *a)
{
    uint32_t v;
    memcpy(&v, mnl_attr_get_payload(a), sizeof v);
    return v;
}

bool mnl_attr_ok(const struct nlattr *a, int n)
{
    return n >= (int)sizeof *a && a->nla_len >= sizeof *a && (int)a->nla_len <= n;
}

struct nlattr *mnl_attr_next(const struct nlattr *a)
{
    return (struct nlattr *)((unsigned char *)(uintptr_t)a + NLA_ALIGN(a->nla_len));
}

/* ---- the kernel ---- */

struct mnl_socket {
    int fd;
    struct sockaddr_nl at;
};

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
    struct mnl_socket *nl = calloc(1, sizeof *nl);
    if (nl && (nl->fd = socket(AF_NETLINK, SOCK_RAW | flags, bus)) >= 0)
        return nl;
    free(nl);
    return NULL;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned groups, pid_t pid)
{
    socklen_t n = sizeof nl->at;
    nl->at =
        (struct sockaddr_nl){.nl_family = AF_NETLINK, .nl_groups = groups, .nl_pid = (uint32_t)pid};
    return bind(nl->fd, (struct sockaddr *)&nl->at, sizeof nl->at) < 0
               ? -1
               : getsockname(nl->fd, (struct sockaddr *)&nl->at, &n);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *p, size_t n)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    return sendto(nl->fd, p, n, 0, (const struct sockaddr *)&kernel, sizeof kernel);
}

/* What does not fit, or is nobody's but the kernel's, is no answer. */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *p, size_t n)
{
    struct sockaddr_nl from = {0};
    struct iovec iov = {p, n};
    struct msghdr m = {
        .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1};
    ssize_t got = recvmsg(nl->fd, &m, 0);
    if (got >= 0 && ((m.msg_flags & MSG_TRUNC) || from.nl_pid != 0)) {
        errno = ENOSPC;
        return -1;
    }
    return got;
}

unsigned mnl_socket_get_portid(const struct mnl_socket *nl)
{
    return nl->at.nl_pid;
}

int mnl_socket_close(struct mnl_socket *nl)
{
    int r = close(nl->fd);
    free(nl);
    return r;
}

/* What one message says: MNL_CB_OK where others follow. */
static int heard(const struct nlmsghdr *h, unsigned seq, unsigned port, mnl_cb_t fn, void *arg)
{
    const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);
    if (h->nlmsg_pid != port || h->nlmsg_seq != seq) {
        errno = ESRCH;
        return MNL_CB_ERROR;
    }
    if (h->nlmsg_flags & NLM_F_DUMP_INTR) {
        errno = EINTR;
        return MNL_CB_ERROR;
    }
    if (h->nlmsg_type >= NLMSG_MIN_TYPE)
        return fn ? fn(h, arg) : MNL_CB_OK;
    if (h->nlmsg_type == NLMSG_DONE)
        return MNL_CB_STOP;
    if (h->nlmsg_type != NLMSG_ERROR)
        return MNL_CB_OK;
    bool whole = h->nlmsg_len >= NLMSG_HDRLEN + sizeof *e;
    errno = !whole ? EBADMSG : e->error < 0 ? -e->error : e->error;
    return errno == 0 ? MNL_CB_STOP : MNL_CB_ERROR;
}

int mnl_cb_run(const void *p, size_t n, unsigned seq, unsigned port, mnl_cb_t fn, void *arg)
{
    const struct nlmsghdr *h = p;
    int r = MNL_CB_OK;
    while (r == MNL_CB_OK && n >= sizeof *h && h->nlmsg_len >= sizeof *h && h->nlmsg_len <= n) {
        r = heard(h, seq, port, fn, arg);
        size_t step = NLMSG_ALIGN(h->nlmsg_len);
        n -= step < n ? step : n;
        h = (const struct nlmsghdr *)((const unsigned char *)h + step);
    }
    return r;
}
