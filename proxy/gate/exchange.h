/* One request and its reply in the gate: decided, guarded, recorded, sent down one of two roads. It
 * knows no connection version; its downstream is an http1_server or a stream of an http2_server. */
#ifndef DURWARD_EXCHANGE_H
#define DURWARD_EXCHANGE_H

#include "gate.h"
#include "stream.h"

struct exchange;

enum exchange_state {
    EXCHANGE_NEW = 0,
    EXCHANGE_INBOUND,         /* the controller is asked who may see it */
    EXCHANGE_OUTWARD,         /* detectors want to see all of the body first */
    EXCHANGE_BODY_INSPECTION, /* the rule wants to see the body first */
    EXCHANGE_BUDGET,          /* waits for the dialer's leave */
    EXCHANGE_RECORDING,       /* waits for the journal */
    EXCHANGE_OPEN,            /* an upstream is under way */
    EXCHANGE_REPLYING,
    EXCHANGE_DONE,
};

struct exchange *exchange_new(struct gate *g, const struct identity *who,
                              struct downstream downstream);
/* Decide and begin. h is taken over (its storage moves) and cleaned. `entry` is constant text:
 * "transparent", "connect", "forward", "socks5", "forwarded", "inbound". The downstream may be told
 * fail before this returns. */
void exchange_start(struct exchange *x, struct head *h, const struct authority *a,
                    const char *entry);
/* Refuse without a decision (bad syntax, mismatch): recorded, then the downstream is told. a may be
 * NULL, h too. */
void exchange_refuse(struct exchange *x, const struct head *h, const struct authority *a,
                     const char *entry, unsigned status, const char *code);
struct upstream exchange_upstream(struct exchange *x);

#endif
