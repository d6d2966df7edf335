/* A broker's front: the part that every protocol has. A role's own file fills in a struct
 * front_life and calls front_main. */
#ifndef DURWARD_FRONT_H
#define DURWARD_FRONT_H

#include "authority.h"
#include "broker_stream.h"
#include "buf.h"
#include "journal.h"
#include "policy.h"
#include "proc.h"
#include "request_limits.h"

#include <openssl/ssl.h>

struct event_base;
struct front;
struct ipc;
struct mint_client;

struct front_life {
    enum role role;
    enum scheme scheme;
    /* The sandbox may speak TLS to it (front_tls.h), as lib/broker.c says too; protocols: what it
     * may name there (RFC 7301), NULL: none. */
    bool tls;
    const char *protocols;
    /* Before the filter: whatever the library opens. key: the seed of what the sandbox knows it
     * by, 32 bytes. Sets f->self. -1 with err: it cannot start. */
    int (*load)(struct front *f, struct slice key, struct err *err);
    /* A connection of the sandbox's to that host and port; takes fd. */
    void (*accept)(struct front *f, const struct authority *at, int fd);
};

struct front {
    const struct front_life *life;
    struct event_base *base;
    struct ipc *parent, *back, *gate; /* NULL while there is none */
    uint32_t back_channel, gate_channel;
    struct mint_client *mint; /* with tls: certificates, and what they are used by */
    SSL_CTX *tls;
    struct journal *journal;
    struct policy *policy; /* take a reference to keep it over a reload */
    uint32_t generation;
    struct limits limits;
    char name[65];
    void *self; /* the protocol's */
};

/* The role's main. */
int front_main(const struct front_life *life);

/* To the back, with facts that it reads and judges by itself. The stream of the request; NULL:
 * there is no back just now, or no room. */
struct broker_stream *front_open(struct front *f, const struct authority *at, struct slice facts,
                                 const struct broker_stream_ops *ops, void *arg);
/* So long the back's answer is waited for: it has bounds of its own for each step. */
unsigned front_wait_seconds(const struct front *f, const struct rule *rule);
/* A request that goes no further: on record. Fields beside kind, code, scheme and authority are the
 * caller's, in *r (record_init was called with RECORD_DENIED). */
void front_denied(struct front *f, struct record *r, const struct authority *at, const char *code);

#endif
