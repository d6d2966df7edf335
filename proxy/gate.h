/* The gate: one process that parses a sandbox's bytes and holds no secret (promise P5).
 *
 * A local sandbox has a gate of its own; a `listen` entry has one for the remote sandboxes that
 * reach it. This header is shared by the gate's files only. */
#ifndef DURWARD_GATE_H
#define DURWARD_GATE_H

#include "authority.h"
#include "config.h"
#include "hop.h"
#include "journal.h"
#include "mint_client.h"
#include "origin.h"
#include "token.h"

#include <sys/queue.h>

struct event_base;
struct gate;
struct gate_names;
struct oidc;
struct placeholder_key;
struct revoked;
struct session;
struct tally;

enum gate_mode {
    GATE_SPARE = 0,
    GATE_LOCAL, /* one local sandbox: the listeners say who it is */
    GATE_BOUND, /* a `listen` entry with a policy */
    GATE_TOKEN, /* a `listen` entry whose clients show a token */
};

/* The policy a request is decided by, and the roads it may take. */
struct route {
    char name[65];
    uint32_t generation;
    struct policy *policy;
    struct dial_client *dial;
    struct hop *hop;
};

enum { GATE_ROUTES_MAX = 64, GATE_PLACEHOLDERS_MAX = 256 };

struct placeholder_entry {
    char *text;
    char *secret;
};

struct gate {
    struct event_base *base;
    enum gate_mode mode;
    char sandbox[65]; /* GATE_LOCAL; else "" */
    struct limits limits;
    struct ipc *parent, *controller;
    SSL_CTX *server_tls; /* towards clients, as the origin */
    SSL_CTX *look_tls;   /* to read a ClientHello and nothing more (session_raw.c) */
    SSL_CTX *port_tls;   /* towards clients, as their proxy */
    struct mint_client *mint;
    struct journal *journal;
    struct pool *pool;
    struct origin_env origin;
    struct route routes[GATE_ROUTES_MAX];
    size_t n_routes;
    struct placeholder_entry placeholders[GATE_PLACEHOLDERS_MAX];
    size_t n_placeholders;
    size_t previewed; /* bytes of request bodies held for inspection */
    struct placeholder_key *tag;
    EVP_PKEY *token_public; /* GATE_TOKEN */
    struct revoked *revoked;
    struct oidc *oidc; /* of a listener with `forwarded`; else NULL */
    LIST_HEAD(, session) sessions;
    bool draining;
    struct tally *tally;
    struct gate_names *names; /* GATE_LOCAL: synthetic addresses */
};

/* Who asks: fixed for a local gate and a bound listener, shown by token otherwise. */
struct identity {
    struct route *route; /* NULL: not known yet */
    char sandbox[65];
    char token[TOKEN_TEXT_MAX]; /* "" unless GATE_TOKEN */
    uint64_t expires;           /* of the token */
    unsigned char seed[TOKEN_SEED];
    bool has_seed; /* placeholders are derived from it */
};

struct route *gate_route(struct gate *g, const char *policy);
/* Something was refused, recorded or about to be: counted by the controller for the sandbox's
 * summary. */
void gate_denied(struct gate *g, const char *code, const char *target, uint64_t count);

#endif
