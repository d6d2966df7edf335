/* One request and its reply in the gate: decided, guarded, recorded, sent down one of two roads. It
 * knows no connection version; http1_server (and later h2 streams) are its front. */
#ifndef DURWARD_EXCHANGE_H
#define DURWARD_EXCHANGE_H

#include "gate.h"
#include "stream.h"

struct exchange;

enum exchange_state {
    EXCHANGE_NEW = 0,
    EXCHANGE_PREVIEW,   /* the rule wants to see the body first */
    EXCHANGE_BUDGET,    /* waits for the dialer's leave */
    EXCHANGE_RECORDING, /* waits for the journal */
    EXCHANGE_OPEN,      /* a back is under way */
    EXCHANGE_REPLYING,
    EXCHANGE_DONE,
};

struct exchange *exchange_new(struct gate *g, const struct identity *who, struct front front);
/* Decide and begin. h is taken over (its storage moves) and cleaned. `entry` is constant text:
 * "transparent", "connect", "forward", "socks5", "forwarded". The front may be told fail before
 * this returns. */
void exchange_start(struct exchange *x, struct head *h, const struct authority *a,
                    const char *entry);
/* Refuse without a decision (bad syntax, mismatch): recorded, then the front is told. a may be
 * NULL, h too. */
void exchange_refuse(struct exchange *x, const struct head *h, const struct authority *a,
                     const char *entry, unsigned status, const char *code);
struct back exchange_back(struct exchange *x);

/* A refusal where no exchange can be answered (before TLS, DNS, packets): one denied record. */
void exchange_note_denied(struct gate *g, const struct identity *who, const char *code,
                          const char *target, const char *entry, const char *detail);

#endif
