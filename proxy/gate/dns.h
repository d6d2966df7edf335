/* DNS messages, as far as the gate needs them: one strict reader of queries, a few writers of
 * answers (RFC 1035, 2181, 6891). Pure: no sockets, no events, no memory.
 *
 * The sandbox writes the query; nothing of it but the question is ever given back. A question is
 * one name of host labels (letters, digits, "-", "_"; the rules of lib/authority.h), class IN,
 * without compression; one EDNS OPT record may follow. Everything else is answered with a code. */
#ifndef DURWARD_DNS_H
#define DURWARD_DNS_H

#include "authority.h"
#include "compiler.h"

enum {
    DNS_UDP_MAX = 512,      /* no answer of ours is larger */
    DNS_QUERY_MAX = 4096,   /* a larger query is malformed */
    DNS_QUESTION_MAX = 259, /* a name's 255 bytes, type, class */
    DNS_TTL_SECONDS = 60
};

enum { /* types that anybody here has to know */
       DNS_TYPE_A = 1,
       DNS_TYPE_PTR = 12,
       DNS_TYPE_AAAA = 28,
       DNS_TYPE_SVCB = 64,
       DNS_TYPE_HTTPS = 65
};

enum dns_code { /* RFC 1035 4.1.1, RFC 6891 6.1.3 */
                DNS_NOERROR = 0,
                DNS_FORMERR = 1,
                DNS_SERVFAIL = 2,
                DNS_NXDOMAIN = 3,
                DNS_NOTIMP = 4,
                DNS_REFUSED = 5,
                DNS_BADVERS = 16
};

struct dns_question {
    uint16_t id;
    uint16_t type;
    bool recursion;                       /* RD, given back */
    bool edns;                            /* the query had an OPT record, so the answer gets one */
    char host[HOST_TEXT_MAX];             /* canonical; "" while there is none */
    unsigned char wire[DNS_QUESTION_MAX]; /* name, type and class as they came (0x20 case kept) */
    size_t wire_n;                        /* 0: the question could not be read */
};

enum dns_parse {
    DNS_PARSED = 0, /* *q is a question to be decided */
    DNS_ANSWER_NOW, /* answer at once with *code (dns_write_code) */
    DNS_IGNORE      /* not even a query: no answer at all */
};

enum dns_parse dns_parse(const unsigned char *p, size_t n, struct dns_question *q,
                         enum dns_code *code);

/* Writers return the size of the message, at most DNS_UDP_MAX, or 0 when `size` is below that. */

/* One address record: ip is 4 bytes for type A, 16 for AAAA; NULL or another type: no data. */
size_t dns_write_address(const struct dns_question *q, const unsigned char *ip, unsigned char *out,
                         size_t size);
/* No record. DNS_NOERROR is "no data": the name exists, this type does not. */
size_t dns_write_code(const struct dns_question *q, enum dns_code code, unsigned char *out,
                      size_t size);

#endif
