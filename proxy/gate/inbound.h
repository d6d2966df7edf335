/* A connection from outside to a service of this gate's sandbox (a preview): its name, which each
 * request on it has to say, and the service behind it. */
#ifndef DURWARD_INBOUND_H
#define DURWARD_INBOUND_H

#include "authority.h"
#include "wire.h"

struct downstream;
struct dial_client;
struct exchange;
struct gate;
struct head;
struct msg;
struct requester;
struct session;

enum { INBOUND_SESSIONS = 128 }; /* of the sandbox at once */

struct inbound {
    struct authority at; /* as browsers see it, of whom TLS may be ended before us */
    char service[WIRE_SERVICE_MAX + 1];
    unsigned port; /* inside */
};

/* What of a request shows that somebody may see it. The first is a field, the second a parameter
 * of a link, which is exchanged for a cookie of this name only. */
#define INBOUND_FIELD     "durward-preview-token"
#define INBOUND_PARAMETER "durward-preview"
const char *inbound_cookie(const struct inbound *in);

/* W_INBOUND: a session of it. -1: bad. */
int session_inbound(struct gate *g, struct msg *m);
/* W_PREVIEWS, W_PREVIEW_END: sessions of what may be seen no more end. -1: bad. */
int session_inbound_may(struct gate *g, struct msg *m);
int session_inbound_end(struct gate *g, struct msg *m);
/* A head on such a session. */
void session_inbound_request(struct session *s, const struct requester *by, struct head *h);

/* Let in, or refused; in outlives the exchange. h is taken over. */
void exchange_inbound(struct exchange *x, struct head *h, const struct inbound *in);
/* A request of such a session that gets no further than this. Refusals are counted, all of a code
 * in one record (refusal_counters.h), for all services of the sandbox: whoever is outside writes no
 * more of the log than that, and uses up nothing that is the sandbox's. */
void exchange_inbound_refuse(struct exchange *x, const struct inbound *in, unsigned status,
                             const char *code);
void exchange_inbound_count(struct gate *g, const struct inbound *in, const char *code);
/* Where its connections inside are from, and what the service is told of its own name. */
struct dial_client *exchange_inbound_dial(struct exchange *x, struct authority *a);
/* Takes off a reply what would reach beyond this preview. */
void exchange_inbound_reply(const struct exchange *x, struct head *reply);

#endif
