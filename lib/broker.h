/* Brokers: for each protocol that is not HTTP two roles. The front ends the sandbox's protocol and
 * holds no secret; the back speaks to the server. This table is all that parent, gate and dialer
 * know of them. */
#ifndef DURWARD_BROKER_H
#define DURWARD_BROKER_H

#include "authority.h"
#include "proc.h"

enum { BROKERS = 6, BROKER_KEY_MAX = 64 };

struct broker {
    enum scheme scheme; /* of the rules' patterns */
    enum role front, back;
    bool tls; /* the sandbox may speak TLS to the front, which has a channel to the signer */
};

const struct broker *broker_at(size_t i);    /* NULL past the end */
const struct broker *broker_of(enum role r); /* whose front or back it is; NULL: of none */
bool broker_is_back(enum role r);
bool broker_is_front(enum role r);

#endif
