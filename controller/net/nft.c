/* The rules of a sandbox's network namespace, in one batch that the kernel takes whole or not at
 * all. */
#include "nft.h"

#include <arpa/inet.h>
#include <stdio.h> /* FILE */

#include <libnftnl/expr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <unistd.h>

#include "synthetic.h"
#include "nft_batch.h"
#include "wire.h"

enum { DNS = 53, HTTPS = 443, PRIORITY_MANGLE = -150 };
enum { NEIGHBOURS_MAX = 1024, NEIGHBOUR_MS = 120 * 1000 };

/* What of a namespace is its own: loopback of a family, or the pod's address. */
enum own { OWN_LOOPBACK4, OWN_LOOPBACK6, OWN_POD, OWNS };

static void to_pod(struct nft_batch *t, const unsigned char *pod)
{
    nft_meta_is(t, NFT_META_NFPROTO, NFPROTO_IPV4);
    nft_load(t, NFT_PAYLOAD_NETWORK_HEADER, 16, 4);
    nft_compare(t, NFT_CMP_EQ, pod, 4);
}

static void to_loopback(struct nft_batch *t, uint8_t family)
{
    static const uint8_t v4[1] = {127};
    static const uint8_t v6[16] = {[15] = 1};
    nft_meta_is(t, NFT_META_NFPROTO, family);
    if (family == NFPROTO_IPV4) {
        nft_load(t, NFT_PAYLOAD_NETWORK_HEADER, 16, sizeof v4); /* the destination's first byte */
        nft_compare(t, NFT_CMP_EQ, v4, sizeof v4);
    } else {
        nft_load(t, NFT_PAYLOAD_NETWORK_HEADER, 24, sizeof v6);
        nft_compare(t, NFT_CMP_EQ, v6, sizeof v6);
    }
}

static void to_own(struct nft_batch *t, enum own own, const unsigned char *pod)
{
    if (own == OWN_POD)
        to_pod(t, pod);
    else
        to_loopback(t, own == OWN_LOOPBACK6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
}

static void prerouting(struct nft_batch *t, uint16_t port, const unsigned char *pod)
{
    uint16_t net = htons(port);
    nft_chain(t, "prerouting", NF_INET_PRE_ROUTING, PRIORITY_MANGLE, NF_ACCEPT);
    for (enum own own = 0; own < (pod ? OWNS : OWN_POD); own++) {
        nft_rule(t);
        to_own(t, own, pod);
        nft_verdict(t, NF_ACCEPT);
        nft_rule_end(t);
    }
    nft_rule(t);
    nft_protocol_port(t, IPPROTO_TCP, 2, DNS);
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);

    nft_rule(t);
    nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    struct nftnl_expr *e = nft_expr(t, "immediate");
    if (e) {
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
        nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &net, sizeof net);
    }
    if ((e = nft_expr(t, "tproxy")) != NULL) {
        nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_UNSPEC);
        nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
    }
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);
}

/* Errors that the kernel sends to the sandbox, our own rejections among them. Nothing inside can
 * make ICMP itself: raw and ping sockets are refused. */
static void pass_icmp_errors(struct nft_batch *t)
{
    static const uint8_t v4[] = {ICMP_DEST_UNREACH, ICMP_TIME_EXCEEDED, ICMP_PARAMETERPROB};
    static const uint8_t v6_last = ICMP6_PARAM_PROB; /* errors are the types up to it */
    for (size_t i = 0; i < ARRAY_LEN(v4); i++) {
        nft_rule(t);
        nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_ICMP);
        nft_load(t, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
        nft_compare(t, NFT_CMP_EQ, &v4[i], 1);
        nft_verdict(t, NF_ACCEPT);
        nft_rule_end(t);
    }
    nft_rule(t);
    nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_ICMPV6);
    nft_load(t, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
    nft_compare(t, NFT_CMP_LTE, &v6_last, 1);
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);
}

/* The one datagram that durward-init sends to see that it is refused is not worth a log entry. */
static void pass_over_selftest(struct nft_batch *t)
{
    uint32_t address = htonl(WIRE_SELFTEST_ADDRESS);
    nft_rule(t);
    nft_meta_is(t, NFT_META_NFPROTO, NFPROTO_IPV4);
    nft_load(t, NFT_PAYLOAD_NETWORK_HEADER, 16, sizeof address);
    nft_compare(t, NFT_CMP_EQ, &address, sizeof address);
    nft_protocol_port(t, IPPROTO_UDP, 2, HTTPS);
    nft_reject(t, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    nft_rule_end(t);
}

/* The kernel keeps a neighbour for each address of IPv6 that something is sent to, also where all
 * of them are lo's, counts it for nobody and looks for old ones once in a minute. So a sandbox has
 * so many of them at a time. */
static void bound_neighbours(struct nft_batch *t, uint16_t group)
{
    unsigned char self[16]; /* answers to the sandbox need no place */
    t->failed |= synthetic_v6(NAMES_SELF, self) < 0;
    for (int full = 0; full <= 1; full++) {
        nft_rule(t);
        nft_meta_is(t, NFT_META_NFPROTO, NFPROTO_IPV6);
        nft_load(t, NFT_PAYLOAD_NETWORK_HEADER, 24, sizeof(struct in6_addr)); /* destination */
        nft_compare(t, NFT_CMP_NEQ, self, sizeof self);
        if (full) {
            nft_set_lacks(t);
            nft_log(t, group);
            nft_reject(t, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
        } else {
            nft_set_take(t);
        }
        nft_rule_end(t);
    }
}

static void output(struct nft_batch *t, uint16_t port, uint16_t group, const unsigned char *pod)
{
    nft_chain(t, "output", NF_INET_LOCAL_OUT, 0, NF_ACCEPT);
    for (enum own own = 0; own < (pod ? OWNS : OWN_POD); own++) {
        nft_rule(t);
        to_own(t, own, pod);
        nft_protocol_port(t, IPPROTO_TCP, 2, port);
        nft_reject(t, NFT_REJECT_TCP_RST, 0);
        nft_rule_end(t);
        nft_rule(t);
        to_own(t, own, pod);
        nft_verdict(t, NF_ACCEPT);
        nft_rule_end(t);
    }
    bound_neighbours(t, group);
    nft_rule(t);
    nft_meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    nft_verdict(t, NF_ACCEPT);
    nft_rule_end(t);
    for (uint32_t offset = 0; offset <= 2; offset += 2) { /* answers, then questions */
        nft_rule(t);
        nft_protocol_port(t, IPPROTO_UDP, offset, DNS);
        nft_verdict(t, NF_ACCEPT);
        nft_rule_end(t);
    }
    pass_icmp_errors(t);
    pass_over_selftest(t);

    nft_rule(t);
    nft_log(t, group);
    nft_reject(t, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    nft_rule_end(t);
}

static int install(uint16_t port, uint16_t group, const unsigned char *pod, bool again,
                   struct err *err)
{
    struct nft_batch t;
    if (nft_begin(&t, again, err) < 0)
        return -1;
    nft_set(&t, "seen", sizeof(struct in6_addr), NEIGHBOURS_MAX, NEIGHBOUR_MS);
    prerouting(&t, port, pod);
    output(&t, port, group, pod);
    return nft_apply(&t, err);
}

int nft_install(uint16_t port, uint16_t group, const unsigned char *pod, struct err *err)
{
    int log = nft_open_log(group, err);
    if (log < 0)
        return -1;
    int r = install(port, group, pod, false, err);
    if (pod && nft_was_there(r, err))
        r = install(port, group, pod, true, err);
    if (r == 0)
        return log;
    close(log);
    return -1;
}
