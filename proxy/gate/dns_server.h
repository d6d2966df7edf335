/* The gate's DNS server: datagrams and streams that arrive on sockets of a sandbox's network
 * namespace, where every address is local. An answer leaves from the address its query was sent to
 * (IP_PKTINFO, IPV6_PKTINFO). It resolves nothing: ops->lookup decides, now or later.
 *
 * Bounds: DNS_SERVER_QUERIES undecided at once (beyond: SERVFAIL), DNS_SERVER_CONNECTIONS streams
 * (beyond: closed), 5 s of idleness a stream, one query at a time on each. */
#ifndef DURWARD_DNS_SERVER_H
#define DURWARD_DNS_SERVER_H

#include "dns.h"
#include "err.h"
#include "slice.h"

struct event_base;
struct dns_server;
struct dns_query; /* one that waits for its answer */

enum { DNS_SERVER_QUERIES = 64, DNS_SERVER_CONNECTIONS = 16, DNS_SERVER_SOCKETS = 8 };

struct dns_server_ops {
    /* A well-formed question of any type. host is canonical and valid until the query is answered.
     * Exactly one dns_query_* function is to be called for q, inside this call or later, also when
     * the server is gone by then. Must not free the server. A name that is allowed but asked for
     * another type than A or AAAA is answered with dns_query_nodata(). */
    void (*lookup)(void *arg, struct slice host, uint16_t type, struct dns_query *q);
    /* A message that got an error of its own accord (malformed, another opcode, over the bound);
     * may be NULL. */
    void (*refused)(void *arg, enum dns_code code);
};

struct dns_server *dns_server_new(struct event_base *base, const struct dns_server_ops *ops,
                                  void *arg);
/* Closes its sockets. Queries not yet answered stay valid; their answers go nowhere. */
void dns_server_free(struct dns_server *s);
/* A bound UDP socket, IPv4 or IPv6; owned from here on, closed on failure too. Asks the kernel for
 * destination addresses in case its launcher did not. */
int dns_server_add_udp(struct dns_server *s, int fd, struct err *err);
/* A listening TCP socket; owned likewise. */
int dns_server_add_tcp(struct dns_server *s, int fd, struct err *err);
/* Queries handed to lookup and not answered yet. */
unsigned dns_server_waiting(const struct dns_server *s);

/* Each ends the query. v4: 4 bytes, v6: 16 bytes; either may be NULL: no such record. */
void dns_query_answer_addr(struct dns_query *q, const unsigned char *v4, const unsigned char *v6);
void dns_query_nxdomain(struct dns_query *q);
void dns_query_nodata(struct dns_query *q);
void dns_query_refuse(struct dns_query *q);
void dns_query_fail(struct dns_query *q); /* SERVFAIL: it could not be decided */

#endif
