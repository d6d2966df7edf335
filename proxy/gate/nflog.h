/* What the packet filter of a sandbox's network namespace refused, as it reports it through an
 * NFLOG netlink socket made there, whose datagrams the builder passes on. Every packet becomes one
 * call with its protocol and where it wanted to go; nothing of its content is kept. The sandbox
 * writes the packets. */
#ifndef DURWARD_NFLOG_H
#define DURWARD_NFLOG_H

#include "compiler.h"
#include "err.h"

struct event_base;
struct nflog;

enum { NFLOG_TARGET_MAX = 96 };

struct nflog_packet {
    int family;           /* AF_INET or AF_INET6 */
    uint8_t protocol;     /* IPPROTO_*; of an IPv6 packet the one behind its extension headers */
    unsigned char ip[16]; /* destination; IPv4: the first four bytes */
    bool has_port;        /* TCP, UDP, UDP-Lite, SCTP or DCCP, first fragment, long enough */
    uint16_t port;        /* destination, host order */
};

/* Bytes of an IP packet (perhaps cut short). 0, or -1 when it is none. */
int nflog_packet_parse(const unsigned char *p, size_t n, struct nflog_packet *ret);
/* "udp 8.8.8.8:53", "icmpv6 [ff02::2]", "protocol-47 192.0.2.1"; returns buf (NFLOG_TARGET_MAX). */
char *nflog_packet_text(const struct nflog_packet *k, char *buf, size_t size);

/* One netlink datagram from the kernel: calls fn for each packet in it. Returns how many messages
 * in it were no packet of ours or malformed. seq: what the next sequence number should be, kept
 * from call to call (has_seq false at first); *lost grows by the gaps. */
struct nflog_seq {
    bool has;
    uint32_t next;
    uint64_t lost;
};
typedef void (*nflog_fn)(void *arg, const struct nflog_packet *k);
unsigned nflog_datagram(const unsigned char *p, size_t n, struct nflog_seq *seq, nflog_fn fn,
                        void *arg);

/* fd: of controller/net/packets.h, whole datagrams; owned from here on, closed on failure too. fn
 * is called for each packet and must not free the nflog. */
struct nflog *nflog_new(struct event_base *base, int fd, nflog_fn fn, void *arg, struct err *err);
void nflog_free(struct nflog *l);
/* Packets that are known to have been lost before we saw them: sequence gaps where the group
 * numbers its packets (ours does). Also unreadable ones. */
uint64_t nflog_lost(const struct nflog *l);

#endif
