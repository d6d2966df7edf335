/* The role that holds secrets and releases to each injector only what its policy needs.
 *
 * Control channel: W_INIT {n × (name:str, store:u8, ttl:u32, lines:u8, and of one that is made a
 * derived_spec.h), fd: block of environment secrets} once, answered by W_READY {} or W_FAILED.
 * W_PEER of kind injector (or dialer, for the password of the upstream proxy), whose extra is a
 * secret_list.h, opens a channel; W_PEER_GONE closes it. W_STORE_OPEN goes to the parent, which
 * answers with W_STORE_FD and, for a command, W_STORE_EXIT. W_TOKEN_SAVE and W_TOKEN_GET go there
 * for refresh tokens. W_VAULT_ROOTS and a W_PEER of the dialer for PEER_TOKENS open the way to
 * token endpoints. On an injector's channel: W_SECRET_GET → W_SECRET, W_SIGN → W_SIGNED, and
 * W_SECRET_STALE when a value has changed. A bad message ends its channel; one on the control
 * channel, or its end, ends the role. */
#ifndef DURWARD_VAULT_H
#define DURWARD_VAULT_H

#include "err.h"

struct event_base;
struct token_fetcher;
struct vault;

/* Everything of the role but the process around it. control_fd is owned from here on. fetcher:
 * NULL, or outlives the vault. With `confine` the system-call filter is installed after W_INIT,
 * before W_READY. */
struct vault *vault_new(struct event_base *base, int control_fd, bool confine,
                        const struct token_fetcher *fetcher);
void vault_free(struct vault *v);
struct ipc *vault_control(const struct vault *v); /* its channel to the parent */
unsigned vault_channels(const struct vault *v);

#endif
