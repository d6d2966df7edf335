/* The gate: one process that parses a sandbox's bytes and holds no secret (promise P5).
 *
 * A local sandbox has a gate of its own; a `listen` entry has one for the remote sandboxes that
 * reach it. This header is shared by the gate's files only. */
#ifndef DURWARD_GATE_H
#define DURWARD_GATE_H

#include "authority.h"
#include "bind.h"
#include "broker.h"
#include "request_limits.h"
#include "injector_channel.h"
#include "journal.h"
#include "mcp_stream.h"
#include "mint_client.h"
#include "origin.h"
#include "quota.h"
#include "faults.h"
#include "token.h"
#include "trace.h"

#include <sys/queue.h>

struct event_base;
struct gate;
struct gate_names;
struct guide;
struct oidc;
struct placeholder_key;
struct preview_sessions;
struct revoked;
struct session;
struct refusal_counters;

/* The policy a request is decided by, and the roads it may take. */
struct route {
    char name[65];
    uint32_t generation;
    struct policy *policy;
    struct dial_client *dial;
    struct injector_channel *injector_channel;
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
    struct origin_env origin;
    struct route routes[GATE_ROUTES_MAX];
    size_t n_routes;
    struct placeholder_entry placeholders[GATE_PLACEHOLDERS_MAX];
    size_t n_placeholders;
    struct quota inspected; /* bytes of request bodies held for inspection, by sandbox */
    struct placeholder_key *tag;
    unsigned char metadata_key[32]; /* of tokens of the metadata services */
    EVP_PKEY *token_public;         /* GATE_TOKEN */
    struct revoked *revoked;
    struct oidc *oidc;                 /* of a listener with `forwarded`; else NULL */
    struct dial_client *inside;        /* GATE_LOCAL: connections into the sandbox */
    struct preview_sessions *previews; /* who may see its services */
    unsigned n_inbound;                /* sessions of those */
    struct mcp_streams mcp_streams;    /* on which answers to messages are awaited */
    LIST_HEAD(, session) sessions;
    struct faults_book faults; /* of those who ask */
    bool draining;
    struct refusal_counters *refusal_counters;
    struct refusal_counters
        *outside;                /* of requests for previews: whoever sends them owns none of it */
    struct {                     /* W_TRACE; session 0: none is traced */
        uint64_t session, until; /* us, monotonic */
        char sandbox[65];
    } trace;
    struct gate_names *names; /* GATE_LOCAL: synthetic addresses */
    struct guide *guide;      /* GATE_LOCAL: what was refused */
    struct front_link {       /* GATE_LOCAL: brokers, as in broker.h's table */
        struct gate *gate;
        struct ipc *ipc; /* NULL: it is not there */
        uint32_t channel;
    } fronts[BROKERS];
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

/* Of a request of theirs that begins now. */
struct trace gate_trace(struct gate *g, const struct identity *who, uint64_t begun);
struct route *gate_route(struct gate *g, const char *policy);
/* Something was refused or failed, recorded or about to be: counted by the controller for the
 * sandbox's summary. */
void gate_denied(struct gate *g, const char *code, const char *target, uint64_t count);

#endif
