/* The injector: holds the short-lived secrets of one policy, sees requests already parsed, decides
 * the injection again by itself, fills the slot, speaks TLS to the origin. Shared by its files
 * only. */
#ifndef DURWARD_INJECTOR_H
#define DURWARD_INJECTOR_H

#include "request_limits.h"
#include "journal.h"
#include "origin.h"
#include "scrub_cache.h"
#include "secret_client.h"

#include "quota.h"
#include "recall.h"

#include <openssl/evp.h>
#include <sys/queue.h>

struct revoked;

struct injector {
    struct event_base *base;
    struct limits limits;
    char name[65]; /* of the policy */
    bool several;  /* it is not the only injector of it, or may not be */
    uint32_t generation;
    uint32_t epoch; /* of secrets: one more with each change */
    struct policy *policy;
    struct ipc *parent;
    struct journal *journal;
    struct dial_client *dial;
    struct secret_client *secrets;
    struct scrub_cache *scrubs;
    struct recall *recall;
    struct mcp_pins *pins; /* what tools of MCP servers were; NULL: none was listed yet */
    LIST_HEAD(searching, injection) searching; /* those whose replies are searched, under way */
    struct pending_approvals *pending_approvals;
    struct origin_env origin;
    EVP_PKEY *token_public;
    struct revoked *revoked; /* NULL: none */
    /* What its sandboxes share, each its part: */
    struct quota gathered;  /* bytes of bodies that are held (body_buffer.h) */
    struct quota exchanges; /* requests under way */
};

/* One gate's channel: its requests, multiplexed. sandbox: who the gate is of ("" for a listener);
 * needs_token: each request must carry a valid token. Owns fd. Frees itself when the gate goes. */
struct injector_channel_server;
struct injector_channel_server *injector_channel_server_new(struct injector *i, int fd,
                                                            const char *sandbox, bool needs_token);

#endif
