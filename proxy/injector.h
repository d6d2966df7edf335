/* The injector: holds the short-lived secrets of one policy, sees requests already parsed, decides
 * the grant again by itself, fills the slot, speaks TLS to the origin. Shared by its files only. */
#ifndef DURWARD_INJECTOR_H
#define DURWARD_INJECTOR_H

#include "config.h"
#include "journal.h"
#include "origin.h"
#include "scrub_cache.h"
#include "secret_client.h"

#include <openssl/evp.h>

struct revoked;

struct injector {
    struct event_base *base;
    struct limits limits;
    char name[65]; /* of the policy */
    uint32_t generation;
    uint32_t epoch; /* of secrets: one more with each change */
    struct policy *policy;
    struct ipc *parent;
    struct journal *journal;
    struct dial_client *dial;
    struct secret_client *secrets;
    struct scrub_cache *scrubs;
    struct holds *holds;
    struct pool *pool;
    struct origin_env origin;
    EVP_PKEY *token_public;
    struct revoked *revoked; /* NULL: none */
    size_t gathered;         /* bytes of request bodies that are held (proxy/gather.h) */
};

/* One gate's channel: its requests, multiplexed. sandbox: who the gate is of ("" for a listener);
 * needs_token: each request must carry a valid token. Owns fd. Frees itself when the gate goes. */
struct hop_server;
struct hop_server *hop_server_new(struct injector *i, int fd, const char *sandbox,
                                  bool needs_token);

#endif
