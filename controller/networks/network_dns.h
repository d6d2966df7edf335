/* The questions of containers for names, and answers for names of their own networks. Pure. */
#ifndef DURWARD_NETWORK_DNS_H
#define DURWARD_NETWORK_DNS_H

#include "compiler.h"

enum {
    NETWORK_DNS_NAME = 253, /* as it is written, without a last dot */
    NETWORK_DNS_ANSWERS = 16,
    NETWORK_DNS_MESSAGE = 4096, /* what is relayed is at most as long */
    NETWORK_DNS_HEAD = 12,
};

struct network_question {
    char name[NETWORK_DNS_NAME + 1]; /* in lower case, with dots between labels, without a last */
    uint16_t type;
    size_t end; /* where the question ends in the message */
};

/* What a message asks. false: it is no query with one question of class IN and plain labels. */
bool network_dns_question(const unsigned char *p, size_t n, struct network_question *ret);
/* The answer to such a query: these addresses, or none where another type is asked for. Its length;
 * 0: it does not fit. */
size_t network_dns_answer(const unsigned char *query, const struct network_question *q,
                          const unsigned char ips[][4], unsigned nips, unsigned char *to,
                          size_t size);

#endif
