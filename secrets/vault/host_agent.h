/* An SSH agent of the host, where a key is that no process of ours has: its list of keys, of which
 * the configuration names one, and its signatures. The parent connects and asks for the list; what
 * is asked for behind it, vault_agent.c says. (draft-miller-ssh-agent) */
#ifndef DURWARD_HOST_AGENT_H
#define DURWARD_HOST_AGENT_H

#include "buf.h"
#include "err.h"
#include "secret.h"

enum { HOST_AGENT_MESSAGE_MAX = 256 * 1024, HOST_AGENT_KEY_MAX = 2048 };

/* The first message in what came, without its length. 1: *ret, and *n bytes are to be drained with
 * it; 0: there is more to come; -1: it is too long, or empty. */
int host_agent_next(struct slice came, struct slice *ret, size_t *n);
/* Of a list the key that is wanted ("SHA256:..." or "TYPE BASE64"), as a value that the vault
 * keeps: its public half, marked as an agent's. The caller unrefs. NULL with err. */
struct secret *host_agent_find(struct slice message, struct slice wanted, struct err *err) WUNUSED;
bool host_agent_is(struct slice value);
/* The public half of such a value, as SSH writes it, appended. 0 or -1. */
int host_agent_public(struct slice value, struct buf *out) WUNUSED;
/* The question for a signature, with its length, appended. 0 or -1. */
int host_agent_ask(struct slice key, struct slice text, uint32_t flags, struct buf *to) WUNUSED;
/* The signature in the answer, which must be by this algorithm, appended. 0, or -1 with err. */
int host_agent_signature(struct slice message, struct slice algorithm, struct buf *to,
                         struct err *err) WUNUSED;

#endif
