/* The upstream that reaches an origin: take or dial a connection, TLS with the origin verified,
 * send, retry once where that is safe, relay the reply, return the connection. Used by the gate for
 * uncredentialed rules, by the injector for credentialed ones, and by roles that fetch something of
 * their own (fetch.h). */
#ifndef DURWARD_ORIGIN_H
#define DURWARD_ORIGIN_H

#include "authority.h"
#include "request_limits.h"
#include "pool.h"
#include "record.h"
#include "stream.h"
#include "trace.h"
#include <openssl/ssl.h>

struct event_base;
struct client_cert;
struct dial_client;
struct roots;

struct origin_env {
    struct event_base *base;
    const struct limits *limits;
    struct pool *pool;
    SSL_CTX *tls;        /* client context with the roots */
    struct roots *roots; /* NULL: there are none yet, and no origin can be verified */
    bool wipe;           /* heads and buffers hold secrets */
};

/* What the connections of a role share, made before it is confined. So many connections may be
 * idle, and for so long. limits live as long as it does. -1: out of memory. */
int origin_env_init(struct origin_env *env, struct event_base *base, const struct limits *limits,
                    unsigned idle_max, unsigned idle_seconds);
/* From here on origins are verified by these roots; roots_fd is taken. */
int origin_env_trust(struct origin_env *env, int roots_fd, struct err *err);
void origin_env_done(struct origin_env *env);

/* What came of it, for the audit record; valid in the downstream's end and fail calls. */
struct origin_facts {
    char address[64]; /* where it was dialled, "" if a kept connection of unknown address */
    char detail[192]; /* why it failed */
    bool reused;
    uint64_t opened, dialled, secured, sent, replied; /* us, monotonic; 0: it did not come to it */
    char tls[64];         /* version and cipher of a handshake of its own, or "" */
    const char *protocol; /* constant, or NULL */
    unsigned repaired;    /* enum repair, of its reply's head */
};

struct origin;

/* h: the cleaned head, complete but for Host and framing; copied before this returns; in clear it
 * goes by HTTP/2 where it says so, else by HTTP/1.1. key: pool key. cert: the client certificate of
 * new connections, or NULL; it lives as long as the downstream is not told the end, key says it,
 * and an origin that does not ask for it does not get the request. trace: of its steps, and the
 * dialer's; NULL: they are not told. NULL when memory is out. The downstream's functions never run
 * before this returns. */
struct origin *origin_open(const struct origin_env *env, struct dial_client *dial,
                           struct downstream downstream, const struct authority *a,
                           const struct head *h, const char *key, const char *id, const char *token,
                           struct client_cert *cert, const struct trace *trace);
struct upstream origin_upstream(struct origin *o);
const struct origin_facts *origin_facts(const struct origin *o);
/* The same into an end record. begun: us, when the request's head was there. */
void origin_record(const struct origin_facts *f, uint64_t begun, struct record *to);

/* Client TLS for this authority: SNI, host or address verification; for what is not HTTP. */
SSL *origin_ssl_for(SSL_CTX *ctx, const struct authority *a);
/* The same with ALPN h2 and http/1.1, or the latter only. */
SSL *origin_ssl(SSL_CTX *ctx, const struct authority *a, bool only_http1);
/* What the origin chose; plain (NULL) is HTTP/1. */
enum origin_protocol { ORIGIN_HTTP1 = 1, ORIGIN_HTTP2, ORIGIN_UNKNOWN };
enum origin_protocol origin_protocol(const SSL *ssl);

#endif
