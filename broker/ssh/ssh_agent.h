/* The SSH agent inside a sandbox (the protocol of ssh-agent, as draft-ietf-sshm-ssh-agent has it):
 * it lists keys and signs what policy names, and nothing else of that protocol. What a client says
 * is read by the front; its back is told typed facts, and makes what is signed anew. */
#ifndef DURWARD_SSH_AGENT_H
#define DURWARD_SSH_AGENT_H

#include "authority.h"
#include "buf.h"
#include "record.h"
#include "ssh_rule.h"
#include "sshsig.h"

enum {
    SSH_AGENT_MESSAGE_MAX = 16 * 1024, /* of a client's */
    SSH_AGENT_PUBLIC_MAX = 2048,
    SSH_AGENT_FACTS_MAX = 4096,
    SSH_AGENT_PRINT = 64, /* "SHA256:" and 43 characters */
};

enum ssh_agent_type {
    SSH_AGENT_FAILURE = 5,
    SSH_AGENT_LIST = 11,
    SSH_AGENT_LISTED = 12,
    SSH_AGENT_SIGN = 13,
    SSH_AGENT_SIGNED = 14,
};

/* A client's message: its type, and of one that asks for a signature what it says. */
struct ssh_agent_asked {
    uint8_t type;
    struct slice key; /* the public key, as SSH writes it */
    struct slice text;
    uint32_t flags;
};

/* The body of a message, behind its length. -1: it has no form that its type allows. Of a type that
 * is not one of ours nothing but the type is read. */
int ssh_agent_read(struct slice body, struct ssh_agent_asked *ret) WUNUSED;

/* Keys are to be listed (key.n 0), or this is to be signed. Slices lie in what was read. */
struct ssh_agent_facts {
    struct slice key;
    uint32_t flags;
    struct sshsig what;
};

int ssh_agent_facts_put(const struct ssh_agent_facts *f, struct buf *to) WUNUSED;
/* The whole of it. 0 or -1. */
int ssh_agent_facts_get(struct slice s, struct ssh_agent_facts *ret) WUNUSED;

/* Where the agent is: a host and port that are no server's. */
bool ssh_agent_is(const struct authority *a);
/* As `ssh-add -l` shows a key; "": it cannot be made. */
void ssh_agent_print(struct slice key, char to[SSH_AGENT_PRINT]);
/* Fields of a record: that it is a signature, in which namespace, with which key, over what. */
void ssh_agent_record(const struct ssh_agent_facts *f, struct record *r);
/* "sha512:0a1b...": "" when it is none */
void ssh_agent_hash(const struct sshsig *what, char *to, size_t size);

#endif
