/* The rules before a pod, in one batch that the kernel takes whole or not at all. */
#include "nft_pod.h"

#include <arpa/inet.h>
#include <stdio.h> /* FILE */

#include <libnftnl/expr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include <string.h>

#include "netns.h"
#include "nft_batch.h"

enum { PRIORITY_MANGLE = -150, SOURCE = 12, DESTINATION = 16 };

static void by_interface(struct nft_batch *t, uint32_t key, const char *name)
{
    char padded[IFNAMSIZ] = {0};
    memcpy(padded, name, strlen(name));
    nft_meta(t, key);
    nft_compare(t, NFT_CMP_EQ, padded, sizeof padded);
}

static void masked(struct nft_batch *t, const void *mask, const void *zero, uint32_t n)
{
    struct nftnl_expr *e = nft_expr(t, "bitwise");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, n);
    nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, mask, n);
    nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, zero, n);
}

static void address(struct nft_batch *t, uint32_t offset, const unsigned char ip[4], unsigned bits)
{
    static const uint32_t zero;
    uint32_t mask = bits ? htonl(UINT32_MAX << (32 - bits)) : 0;
    nft_load(t, NFT_PAYLOAD_NETWORK_HEADER, offset, 4);
    masked(t, &mask, &zero, sizeof mask);
    nft_compare(t, NFT_CMP_EQ, ip, 4);
}

static void mark_is(struct nft_batch *t)
{
    uint32_t mark = NFT_POD_MARK;
    nft_meta(t, NFT_META_MARK);
    nft_compare(t, NFT_CMP_EQ, &mark, sizeof mark);
}

static void set_mark(struct nft_batch *t)
{
    struct nftnl_expr *e = nft_expr(t, "immediate");
    if (e) {
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DATA, NFT_POD_MARK);
    }
    if ((e = nft_expr(t, "meta")) != NULL) {
        nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_MARK);
        nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, NFT_REG_1);
    }
}

static void connection(struct nft_batch *t, uint32_t key)
{
    struct nftnl_expr *e = nft_expr(t, "ct");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, NFT_REG_1);
}

/* NF_CT_STATE_BIT of the kernel */
static void state_is(struct nft_batch *t, unsigned state)
{
    static const uint32_t zero;
    uint32_t bit = 1u << (state % IP_CT_IS_REPLY + 1);
    connection(t, NFT_CT_STATE);
    masked(t, &bit, &zero, sizeof bit);
    nft_compare(t, NFT_CMP_NEQ, &zero, sizeof zero);
}

static void is_reply(struct nft_batch *t)
{
    uint8_t reply = 1; /* IP_CT_DIR_REPLY, which no header for programs has */
    connection(t, NFT_CT_DIRECTION);
    nft_compare(t, NFT_CMP_EQ, &reply, sizeof reply);
}

static void not_to_port(struct nft_batch *t, uint16_t port)
{
    uint16_t net = htons(port);
    nft_load(t, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof net);
    nft_compare(t, NFT_CMP_NEQ, &net, sizeof net);
}

static void prerouting(struct nft_batch *t, const struct pod_link *link, const struct cidr *ranges,
                       unsigned n)
{
    nft_chain(t, "prerouting", NF_INET_PRE_ROUTING, PRIORITY_MANGLE, NF_ACCEPT);
    for (unsigned i = 0; i < n; i++) {
        nft_rule(t);
        by_interface(t, NFT_META_IIFNAME, link->name);
        nft_meta_is(t, NFT_META_NFPROTO, NFPROTO_IPV4);
        address(t, SOURCE, ranges[i].ip, ranges[i].bits);
        address(t, DESTINATION, link->ip, 32);
        nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
        not_to_port(t, NETNS_PORT_CATCH_ALL);
        not_to_port(t, NETNS_PORT_DNS);
        set_mark(t);
        nft_verdict(t, NF_ACCEPT);
        nft_rule_end(t);
    }
}

static void to_pod(struct nft_batch *t, const struct pod_link *link, bool begins)
{
    nft_rule(t);
    by_interface(t, NFT_META_IIFNAME, link->name);
    by_interface(t, NFT_META_OIFNAME, POD_LINK);
    mark_is(t);
    if (begins) {
        state_is(t, IP_CT_NEW);
        nft_log(t, NFT_POD_INBOUND);
    }
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);
}

static void forward(struct nft_batch *t, const struct pod_link *link)
{
    nft_chain(t, "forward", NF_INET_FORWARD, 0, NF_DROP);
    to_pod(t, link, true);
    to_pod(t, link, false);

    nft_rule(t);
    by_interface(t, NFT_META_IIFNAME, POD_LINK);
    by_interface(t, NFT_META_OIFNAME, link->name);
    nft_meta_is(t, NFT_META_NFPROTO, NFPROTO_IPV4);
    address(t, SOURCE, link->ip, 32);
    nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    state_is(t, IP_CT_ESTABLISHED);
    is_reply(t);
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);

    nft_rule(t);
    by_interface(t, NFT_META_IIFNAME, POD_LINK);
    nft_log(t, NFT_POD_REFUSED);
    nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    nft_reject(t, NFT_REJECT_TCP_RST, 0);
    nft_rule_end(t);
}

/* This namespace's own programs are none; what it says by itself are resets to the pod. */
static void own(struct nft_batch *t)
{
    nft_chain(t, "input", NF_INET_LOCAL_IN, 0, NF_DROP);
    nft_chain(t, "output", NF_INET_LOCAL_OUT, 0, NF_DROP);
    nft_rule(t);
    by_interface(t, NFT_META_OIFNAME, POD_LINK);
    nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);
}

static int install(const struct pod_link *link, const struct cidr *ranges, unsigned n_ranges,
                   bool again, struct err *err)
{
    struct nft_batch t;
    if (nft_begin(&t, again, err) < 0)
        return -1;
    prerouting(&t, link, ranges, n_ranges);
    forward(&t, link);
    own(&t);
    return nft_apply(&t, err);
}

int nft_pod_install(const struct pod_link *link, const struct cidr *ranges, unsigned n_ranges,
                    struct err *err)
{
    int r = install(link, ranges, n_ranges, false, err);
    return nft_was_there(r, err) ? install(link, ranges, n_ranges, true, err) : r;
}
