/* The canonical authority: the one form in which scheme, host and port are compared, decided,
 * certified, dialled and logged (promise P7).
 *
 * Only ASCII case and one trailing dot are folded, once. Anything else that is ambiguous is
 * refused: bytes outside [a-z0-9-_.], empty labels, labels over 63 bytes, names over 253, a
 * percent sign, user information, zone ids, IPv4 in any spelling but the canonical dotted quad,
 * names whose last label is numeric or hexadecimal (RFC 3986 3.2.2, WHATWG "ends in a number"). */
#ifndef DURWARD_AUTHORITY_H
#define DURWARD_AUTHORITY_H

#include "compiler.h"
#include "slice.h"

struct sockaddr;

enum scheme {
    SCHEME_HTTP = 1,
    SCHEME_HTTPS,
    SCHEME_SSH,
    SCHEME_POSTGRES,
    SCHEME_REDIS,
    SCHEME_MYSQL,
    SCHEME_SMTP,
    SCHEME_IMAP,
    SCHEME_ENDS
};
enum host_kind { HOST_NAME = 1, HOST_IPV4, HOST_IPV6 };

enum { HOST_MAX = 253, HOST_TEXT_MAX = 256 };

struct authority {
    enum scheme scheme;
    enum host_kind kind;
    uint16_t port;            /* host order, 1..65535 */
    char host[HOST_TEXT_MAX]; /* canonical, NUL-terminated; IPv6 without brackets */
    unsigned char ip[16];     /* IPv4: first four; IPv6: all */
};

/* "http" | "https" | "ssh" | "postgres" | "redis" | "mysql" | "smtp" | "imap" */
const char *scheme_name(enum scheme s);
uint16_t scheme_port(enum scheme s); /* 80 | 443 | 22 | 5432 | 6379 | 3306 | 587 | 143 */
/* HTTP, in TLS or not: what a gate speaks itself. The others have brokers (broker.h). */
bool scheme_is_http(enum scheme s);

/* A host alone ("api.github.com", "192.0.2.1", "[2001:db8::1]"). 0 or -1. Leaves scheme and port.
 */
int authority_host(struct authority *a, struct slice host);
/* host[:port]; an absent port is the scheme's. "host:" is refused. 0 or -1. */
int authority_parse(struct authority *a, enum scheme scheme, struct slice text);
/* From a socket address (AF_INET, AF_INET6; v4-mapped becomes IPv4). */
int authority_from_sockaddr(struct authority *a, enum scheme scheme, const struct sockaddr *sa);
bool authority_eq(const struct authority *a, const struct authority *b);
bool authority_same_host(const struct authority *a, const struct authority *b);
/* "host", "host:port" or "[v6]:port"; the port is left out where it is the scheme's own.
 * Returns buf (size >= 270). */
char *authority_text(const struct authority *a, char *buf, size_t size);
/* The same with the port always there: for CONNECT and pool keys. */
char *authority_text_port(const struct authority *a, char *buf, size_t size);

#endif
