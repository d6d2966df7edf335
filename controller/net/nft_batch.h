/* Rules of a network namespace's packets as one batch, which the kernel takes whole or not at all,
 * and the socket on which it tells what a rule logs. The rules themselves are in nft.c (of a
 * sandbox) and nft_pod.c (before a pod). */
#ifndef DURWARD_NFT_BATCH_H
#define DURWARD_NFT_BATCH_H

#include "compiler.h"
#include "err.h"

struct mnl_nlmsg_batch;
struct nftnl_rule;
struct nftnl_expr;
struct nlmsghdr;

/* A batch under construction: messages in one buffer, applied by the kernel all or none. */
struct nft_batch {
    struct mnl_nlmsg_batch *b;
    void *room;
    uint32_t seq;
    bool failed; /* an allocation did, or it is too large; sticky */
    const char *chain, *set;
    struct nlmsghdr *last;   /* of the rules */
    struct nftnl_rule *rule; /* the one being written */
};

/* Our table, empty. again: what was in one before is gone when the batch is applied; else a
 * namespace that has one refuses the batch. The kernel waits for all its processors before it
 * forgets a table, and whoever closes a netlink socket meanwhile waits with it (4 to 14 ms). -1:
 * out of memory. */
int nft_begin(struct nft_batch *t, bool again, struct err *err);
/* Apply it in the caller's namespace. Frees the batch in any case; keeps errno. */
int nft_apply(struct nft_batch *t, struct err *err);
/* Whether that failed since the namespace has our table already; then it is no error any more, but
 * to be done again. */
bool nft_was_there(int applied, struct err *err);

/* A chain of type filter, to which the following rules belong. */
void nft_chain(struct nft_batch *t, const char *name, uint32_t hook, int32_t priority,
               uint32_t policy);
/* The table's set, of values of so many bytes, at most so many at once; each goes when it was not
 * taken for so many milliseconds. */
void nft_set(struct nft_batch *t, const char *name, uint32_t bytes, uint32_t most, uint64_t ms);
/* What was loaded goes into the set, where there is room; or: the rule is of what is not in it. */
void nft_set_take(struct nft_batch *t);
void nft_set_lacks(struct nft_batch *t);
void nft_rule(struct nft_batch *t);
void nft_rule_end(struct nft_batch *t);
/* An expression of the rule being written; NULL (and the batch failed) when memory is out. */
struct nftnl_expr *nft_expr(struct nft_batch *t, const char *name);
void nft_compare(struct nft_batch *t, uint32_t op, const void *value, uint32_t n);
void nft_meta(struct nft_batch *t, uint32_t key);
void nft_meta_is(struct nft_batch *t, uint32_t key, uint8_t value);
/* n bytes at this offset of a header (NFT_PAYLOAD_...). */
void nft_load(struct nft_batch *t, uint32_t base, uint32_t offset, uint32_t n);
void nft_protocol_port(struct nft_batch *t, uint8_t protocol, uint32_t offset, uint16_t port);
void nft_log(struct nft_batch *t, uint16_t group);
void nft_verdict(struct nft_batch *t, uint32_t code);
void nft_reject(struct nft_batch *t, uint32_t type, uint8_t code);

/* What rules log to this group, in the caller's namespace: a socket (NETLINK_NETFILTER,
 * non-blocking, one message a packet, its first 128 bytes), or -1. */
int nft_open_log(uint16_t group, struct err *err);

#endif
