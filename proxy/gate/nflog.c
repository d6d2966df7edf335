/* Takes netlink's messages and the IPv4 or IPv6 packets in them apart, and counts from their
 * numbers how many were lost. */
#include "nflog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 32, DATAGRAM_MAX = 128 * 1024, EXTENSIONS_MAX = 8 };
enum { EXT_HOP = 0, EXT_ROUTING = 43, EXT_FRAGMENT = 44, EXT_AH = 51, EXT_DESTINATION = 60 };
enum { PROTO_TCP = 6, PROTO_UDP = 17, PROTO_DCCP = 33, PROTO_SCTP = 132, PROTO_UDPLITE = 136 };

struct nflog {
    int fd;
    struct event *readable;
    struct nflog_seq seq;
    uint64_t unread;
    nflog_fn fn;
    void *arg;
    unsigned char *room; /* DATAGRAM_MAX */
};

static void read_port(struct nflog_packet *k, const unsigned char *p, size_t n)
{
    switch (k->protocol) {
    case PROTO_TCP:
    case PROTO_UDP:
    case PROTO_DCCP:
    case PROTO_SCTP:
    case PROTO_UDPLITE:
        if (n < 4)
            return;
        k->has_port = true;
        k->port = (uint16_t)(p[2] << 8 | p[3]);
        return;
    default:
        return;
    }
}

static int parse_v4(const unsigned char *p, size_t n, struct nflog_packet *k)
{
    size_t head = (size_t)(p[0] & 15) * 4;
    if (n < 20 || head < 20)
        return -1;
    k->family = AF_INET;
    k->protocol = p[9];
    memcpy(k->ip, p + 16, 4);
    bool first = (((unsigned)p[6] << 8 | p[7]) & 0x1fff) == 0;
    if (first && n >= head)
        read_port(k, p + head, n - head);
    return 0;
}

/* Steps over one extension header; false at the end of the chain or of what there is. */
static bool skip_extension(uint8_t *next, const unsigned char **p, size_t *n, bool *first)
{
    size_t len;
    if (*next != EXT_HOP && *next != EXT_ROUTING && *next != EXT_FRAGMENT && *next != EXT_AH &&
        *next != EXT_DESTINATION)
        return false;
    if (*n < 8) {
        *n = 0;
        return false;
    }
    if (*next == EXT_FRAGMENT) {
        len = 8;
        if ((((unsigned)(*p)[2] << 8 | (*p)[3]) & 0xfff8) != 0)
            *first = false;
    } else {
        len = *next == EXT_AH ? ((size_t)(*p)[1] + 2) * 4 : ((size_t)(*p)[1] + 1) * 8;
    }
    *next = (*p)[0];
    if (len > *n)
        len = *n;
    *p += len;
    *n -= len;
    return true;
}

static int parse_v6(const unsigned char *p, size_t n, struct nflog_packet *k)
{
    bool first = true;
    if (n < 40)
        return -1;
    k->family = AF_INET6;
    k->protocol = p[6];
    memcpy(k->ip, p + 24, 16);
    p += 40;
    n -= 40;
    for (int i = 0; i < EXTENSIONS_MAX; i++) {
        if (!skip_extension(&k->protocol, &p, &n, &first)) {
            if (first)
                read_port(k, p, n);
            break;
        }
        if (!first) /* what follows is a piece from the middle */
            break;
    }
    return 0;
}

int nflog_packet_parse(const unsigned char *p, size_t n, struct nflog_packet *ret)
{
    struct nflog_packet k = {0};
    int r = -1;
    if (n == 0)
        return -1;
    if (p[0] >> 4 == 4)
        r = parse_v4(p, n, &k);
    else if (p[0] >> 4 == 6)
        r = parse_v6(p, n, &k);
    if (r == 0)
        *ret = k;
    return r;
}

static const char *protocol_name(uint8_t protocol)
{
    switch (protocol) {
    case 1:
        return "icmp";
    case 2:
        return "igmp";
    case PROTO_TCP:
        return "tcp";
    case PROTO_UDP:
        return "udp";
    case PROTO_DCCP:
        return "dccp";
    case 58:
        return "icmpv6";
    case PROTO_SCTP:
        return "sctp";
    case PROTO_UDPLITE:
        return "udplite";
    default:
        return NULL;
    }
}

char *nflog_packet_text(const struct nflog_packet *k, char *buf, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?", port[8] = "", number[16];
    bool v6 = k->family == AF_INET6;
    const char *name = protocol_name(k->protocol);
    inet_ntop(k->family, k->ip, ip, sizeof ip);
    snprintf(number, sizeof number, "protocol-%u", k->protocol);
    if (k->has_port)
        snprintf(port, sizeof port, ":%u", k->port);
    snprintf(buf, size, "%s %s%s%s%s", name ? name : number, v6 ? "[" : "", ip, v6 ? "]" : "",
             port);
    return buf;
}

struct attributes {
    const struct nlattr *payload, *seq;
};

static int on_attribute(const struct nlattr *a, void *data)
{
    struct attributes *t = data;
    if (mnl_attr_get_type(a) == NFULA_PAYLOAD)
        t->payload = a;
    else if (mnl_attr_get_type(a) == NFULA_SEQ && mnl_attr_get_payload_len(a) == sizeof(uint32_t))
        t->seq = a;
    return MNL_CB_OK;
}

static void count_seq(struct nflog_seq *seq, const struct nlattr *a)
{
    uint32_t v = ntohl(mnl_attr_get_u32(a));
    uint32_t gap = v - seq->next;
    if (seq->has && gap < UINT32_MAX / 2) /* a step back is a new numbering, not a loss */
        seq->lost += gap;
    seq->has = true;
    seq->next = v + 1;
}

/* One message. 0 when it was a packet. */
static int read_message(const struct nlmsghdr *h, struct nflog_seq *seq, nflog_fn fn, void *arg)
{
    struct attributes t = {NULL, NULL};
    struct nflog_packet k;
    if (h->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
        mnl_nlmsg_get_payload_len(h) < sizeof(struct nfgenmsg))
        return -1;
    if (mnl_attr_parse(h, sizeof(struct nfgenmsg), on_attribute, &t) != MNL_CB_OK)
        return -1;
    if (t.seq)
        count_seq(seq, t.seq);
    if (t.payload == NULL || nflog_packet_parse(mnl_attr_get_payload(t.payload),
                                                mnl_attr_get_payload_len(t.payload), &k) < 0)
        return -1;
    fn(arg, &k);
    return 0;
}

/* mnl_nlmsg_ok takes a length of 2 GiB and more for a negative one, and so for a short one. */
static bool message_ok(const struct nlmsghdr *h, int left)
{
    return mnl_nlmsg_ok(h, left) && h->nlmsg_len <= (unsigned)left;
}

unsigned nflog_datagram(const unsigned char *p, size_t n, struct nflog_seq *seq, nflog_fn fn,
                        void *arg)
{
    unsigned odd = 0;
    const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)p;
    int left = n > DATAGRAM_MAX ? DATAGRAM_MAX : (int)n;
    while (message_ok(h, left)) {
        /* A group that answers the builder's own set-up, or ends a batch, says nothing of packets.
         */
        if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE ||
            h->nlmsg_type == NLMSG_NOOP) {
            h = mnl_nlmsg_next(h, &left);
            continue;
        }
        if (read_message(h, seq, fn, arg) < 0)
            odd++;
        h = mnl_nlmsg_next(h, &left);
    }
    return odd + (left > 0 ? 1 : 0);
}

/* One datagram. Returns false when there is nothing more to read now. */
static bool read_datagram(struct nflog *l)
{
    ssize_t n = recv(l->fd, l->room, DATAGRAM_MAX, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0)
        return errno == EINTR;
    if (n == 0) { /* the builder is gone, and the sandbox with it */
        event_del(l->readable);
        return false;
    }
    if (n > DATAGRAM_MAX) {
        l->unread++;
        return true;
    }
    l->unread += nflog_datagram(l->room, (size_t)n, &l->seq, l->fn, l->arg);
    return true;
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    for (int i = 0; i < BATCH && read_datagram(arg); i++)
        ;
}

struct nflog *nflog_new(struct event_base *base, int fd, nflog_fn fn, void *arg, struct err *err)
{
    struct nflog *l = calloc(1, sizeof *l);
    if (l == NULL || (l->room = malloc(DATAGRAM_MAX)) == NULL)
        goto fail;
    l->fd = fd;
    l->fn = fn;
    l->arg = arg;
    if (evutil_make_socket_nonblocking(fd) < 0) /* a confined gate can only check it */
        goto fail;
    l->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, l);
    if (l->readable == NULL || event_add(l->readable, NULL) < 0)
        goto fail;
    return l;
fail:
    if (l) {
        if (l->readable)
            event_free(l->readable);
        free(l->room);
        free(l);
    }
    close(fd);
    err_set(err, ERR_INTERNAL, "watching the packet log failed");
    return NULL;
}

void nflog_free(struct nflog *l)
{
    if (l == NULL)
        return;
    event_free(l->readable);
    close(l->fd);
    free(l->room);
    free(l);
}

uint64_t nflog_lost(const struct nflog *l)
{
    return l->seq.lost + l->unread;
}
