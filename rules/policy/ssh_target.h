/* Where an SSH server may connect to for a sandbox (`forward`): a host and a port, which the server
 * resolves. Front and back of the broker both ask here. */
#ifndef DURWARD_SSH_TARGET_H
#define DURWARD_SSH_TARGET_H

#include "cidr.h"

enum {
    SSH_TARGETS_MAX = 64, /* of a rule */
    SSH_TARGET_TEXT_MAX = HOST_TEXT_MAX + 16,
};

/* "db.internal:5432", ".internal:443", "10.0.0.5:*", "10.0.0.0/8:22", "[fd00::/8]:22" */
struct ssh_target {
    bool subdomains; /* names under the host, not the host */
    bool is_range;   /* of addresses; a name is in none */
    uint16_t port;   /* 0: any */
    struct authority host;
    struct cidr range;
};

/* A pattern of a rule's. 0 or -1. */
int ssh_target_parse(struct slice text, struct ssh_target *ret);
bool ssh_target_matches(const struct ssh_target *t, const struct authority *at);
/* What a client asks for: a name or an address as authority_host has it, without brackets. 0, or
 * -1: two parsers may read it differently, or it is none. */
int ssh_target_asked(struct slice host, unsigned port, struct authority *ret);
/* The same of "host:port", "[v6]:port" in their one form, as authority_text_port writes them. */
int ssh_target_read(struct slice text, struct authority *ret);

#endif
