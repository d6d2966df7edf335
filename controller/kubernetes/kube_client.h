/* A client of the cluster's API server: one request a connection, blocking, with time-outs, over
 * TLS 1.2 or later, verified by the cluster's CA. It has the token of its service account and no
 * other secret. HTTP/1.0, so that no answer comes in chunks. */
#ifndef DURWARD_KUBE_CLIENT_H
#define DURWARD_KUBE_CLIENT_H

#include <jansson.h>
#include <openssl/ssl.h>

#include "authority.h"
#include "buf.h"
#include "err.h"

enum { KUBE_ANSWER_MAX = 16 << 20 };

struct kube {
    struct authority at;
    const char *token; /* a file; read for each request, since it is replaced */
    SSL_CTX *tls;
    unsigned seconds; /* for each step; 0: as many as usual */
};

/* where: HOST[:PORT], an IPv6 address in brackets; 443 without a port. ca: a file. */
int kube_init(struct kube *k, const char *where, const char *ca, const char *token,
              struct err *err);
void kube_done(struct kube *k);

struct kube_request {
    const char *method, *path;
    const char *type; /* of the body; NULL: there is none */
    const json_t *body;
    const char *as; /* KIND;g=GROUP;v=VERSION that the answer is to be of; NULL: what it is */
};

/* The answer's JSON, a new reference, whatever its status is. -1 with err: nobody answers, or no
 * API server does. */
int kube_ask(const struct kube *k, const struct kube_request *q, int *status, json_t **ret,
             struct err *err);
/* The same, and any status but 2xx is an error with what the API server says. */
int kube_must(const struct kube *k, const struct kube_request *q, json_t **ret, struct err *err);

/* A list by pages, so that no number of objects is too many: each page to `on`, whose -1 ends it. A
 * page that is too long is asked for again, in smaller ones. as: of its request, or NULL. */
int kube_pages(const struct kube *k, const char *path, const char *as,
               int (*on)(const json_t *page, void *arg, struct err *err), void *arg,
               struct err *err);

/* An answer that goes on, of a watch. */
struct kube_stream {
    int fd; /* -1: not open */
    SSL *ssl;
    bool said; /* something came already */
};
int kube_watch(const struct kube *k, const char *path, struct kube_stream *s, struct err *err);
void kube_unwatch(struct kube_stream *s);
/* Until one of them says something (true), ends, or the time is over. */
bool kube_wait(struct kube_stream *list, size_t n, unsigned seconds);

/* A watch whose events are wanted. status: of the answer's head; what came behind it is in b. */
int kube_listen(const struct kube *k, const struct kube_request *q, struct kube_stream *s,
                struct buf *b, int *status, struct err *err);
/* All that has come of it, each event to `on` (NULL: one that is malformed). 1: it goes on; 0: it
 * has ended; -1: an event is longer than there is room for. */
int kube_heard(struct kube_stream *s, struct buf *b, void (*on)(const json_t *event, void *arg),
               void *arg);

/* A connection whose WebSocket has begun (RFC 6455, 4.1), of this subprotocol and no other. rest:
 * what came behind the answer's head; the caller's in either case. */
int kube_upgrade(const struct kube *k, const char *path, const char *protocol,
                 struct kube_stream *s, struct buf *rest, struct err *err);

/* Each event of a watch, until it ends or for so many seconds nothing comes. What was allowed when
 * it began it goes on telling, whatever becomes of the rights. */
int kube_follow(const struct kube *k, const char *path, unsigned seconds,
                void (*on)(const json_t *event, void *arg), void *arg, struct err *err);

#endif
