/* The address guard: which addresses the dialer may never connect to, however a name came to them
 * (attacks D5-D9). Two layers: a fixed table of special-purpose ranges (RFC 6890 and successors,
 * cloud metadata, this machine) and, in a guard object, the host's own interface addresses and what
 * the parent adds (our own listeners). IPv6 forms that carry an IPv4 address (v4-mapped,
 * v4-compatible, NAT64, 6to4, Teredo, ISATAP) are unwrapped and the IPv4 table is applied to what
 * is inside. */
#ifndef DURWARD_ADDRESS_H
#define DURWARD_ADDRESS_H

#include "err.h"
#include "slice.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct address_guard;

enum {
    ADDRESS_TEXT_MAX = 64,   /* "[v6]:port" and its terminator fit */
    ADDRESS_PORTS_MAX = 128, /* listeners of our own */
    ADDRESS_EXTRA_MAX = 4096,
    ADDRESS_OWN_MAX = 4096
};

/* AF_INET or AF_INET6 with port. */
struct address {
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    };
    socklen_t len;
};

/* The fixed table alone. NULL when it may be dialled, else a constant name of the range that
 * forbids it ("loopback", "private", "metadata", …). A family that is not IP is forbidden. */
const char *address_blocked(const struct sockaddr *sa);

/* An empty guard: the fixed table alone. NULL when memory is out. */
struct address_guard *address_guard_new(void);
void address_guard_free(struct address_guard *g);
/* Forbid one more "address" or "address/prefix". */
int address_guard_add(struct address_guard *g, struct slice cidr, struct err *err);
/* Read the host's interface addresses again. On failure the old ones stay. */
int address_guard_refresh(struct address_guard *g, struct err *err);
/* NULL when it may be dialled, else a constant reason; besides those of address_blocked() "own"
 * (an address of this host) and "listed" (given with address_guard_add). */
const char *address_guard_check(const struct address_guard *g, const struct sockaddr *sa);
/* Given with address_guard_add: what no rule can open. */
bool address_guard_listed(const struct address_guard *g, const struct sockaddr *sa);

/* A port that this daemon listens on, on whichever address: no rule opens it on this host. */
int address_guard_port(struct address_guard *g, uint16_t port, struct err *err);
/* Those published for sandboxes now, in place of the ones said before; not limited. */
void address_guard_published(struct address_guard *g, const uint16_t *ports, size_t n);
/* Is it one of those, on an address of this host? */
bool address_guard_ours(const struct address_guard *g, const struct sockaddr *sa, uint16_t port);

/* ip: 4 or 16 bytes. Port in host order. A v4-mapped one stays IPv6. */
void address_set(struct address *a, int family, const void *ip, uint16_t port);
/* "192.0.2.1:443" or "[2001:db8::1]:443"; the port is needed and not 0. 0 or -1. */
int address_parse(struct address *a, struct slice text);
/* The reverse, into buf of ADDRESS_TEXT_MAX bytes. Returns buf. */
char *address_text(const struct sockaddr *sa, char *buf, size_t size);
uint16_t address_port(const struct sockaddr *sa);
/* The same host, ports aside; v4-mapped equals its IPv4. */
bool address_same_host(const struct sockaddr *a, const struct sockaddr *b);

#endif
