/* Builds the rules as one batch that the kernel takes whole or not at all, and opens the socket
 * that reports refused packets. */
#include "nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

#define TABLE "durward"

enum {
    BATCH_MAX = 16 * 1024,
    SNAPLEN = 128,
    DNS = 53,
    HTTPS = 443,
    PRIORITY_MANGLE = -150,
    LOG_BUFFER = 256 * 1024,
};

/* A batch under construction: messages in one buffer, applied by the kernel all or none. */
struct batch {
    struct mnl_nlmsg_batch *b;
    uint32_t seq;
    bool failed; /* an allocation did; sticky */
    const char *chain;
    struct nftnl_rule *rule; /* the one being written */
};

static struct nlmsghdr *message(struct batch *t, uint16_t type, uint16_t flags)
{
    return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(t->b), type, NFPROTO_INET, flags,
                                 t->seq++);
}

static void put_table(struct batch *t)
{
    struct nftnl_table *table = nftnl_table_alloc();
    if (table == NULL) {
        t->failed = true;
        return;
    }
    nftnl_table_set_str(table, NFTNL_TABLE_NAME, TABLE);
    nftnl_table_nlmsg_build_payload(message(t, NFT_MSG_NEWTABLE, NLM_F_CREATE), table);
    nftnl_table_free(table);
    mnl_nlmsg_batch_next(t->b);
}

static void put_chain(struct batch *t, const char *name, uint32_t hook, int32_t priority)
{
    struct nftnl_chain *c = nftnl_chain_alloc();
    t->chain = name;
    if (c == NULL) {
        t->failed = true;
        return;
    }
    nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, TABLE);
    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name);
    nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter");
    nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook);
    nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
    nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
    nftnl_chain_nlmsg_build_payload(message(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE), c);
    nftnl_chain_free(c);
    mnl_nlmsg_batch_next(t->b);
}

static void rule_begin(struct batch *t)
{
    t->rule = nftnl_rule_alloc();
    if (t->rule == NULL) {
        t->failed = true;
        return;
    }
    nftnl_rule_set_u32(t->rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
    nftnl_rule_set_str(t->rule, NFTNL_RULE_TABLE, TABLE);
    nftnl_rule_set_str(t->rule, NFTNL_RULE_CHAIN, t->chain);
}

static void rule_end_flags(struct batch *t, uint16_t flags)
{
    if (t->rule == NULL)
        return;
    struct nlmsghdr *h = message(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
    nftnl_rule_nlmsg_build_payload(h, t->rule);
    nftnl_rule_free(t->rule);
    t->rule = NULL;
    mnl_nlmsg_batch_next(t->b);
}

static void rule_end(struct batch *t)
{
    rule_end_flags(t, 0);
}

/* An expression of the rule being written; NULL (and the batch failed) when memory is out. */
static struct nftnl_expr *expr(struct batch *t, const char *name)
{
    struct nftnl_expr *e = t->rule ? nftnl_expr_alloc(name) : NULL;
    if (e == NULL)
        t->failed = true;
    else
        nftnl_rule_add_expr(t->rule, e);
    return e;
}

static void compare(struct batch *t, uint32_t op, const void *value, uint32_t n)
{
    struct nftnl_expr *e = expr(t, "cmp");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
    nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, value, n);
}

static void meta_is(struct batch *t, uint32_t key, uint8_t value)
{
    struct nftnl_expr *e = expr(t, "meta");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
    compare(t, NFT_CMP_EQ, &value, sizeof value);
}

static void load(struct batch *t, uint32_t base, uint32_t offset, uint32_t n)
{
    struct nftnl_expr *e = expr(t, "payload");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, n);
}

static void to_loopback(struct batch *t, uint8_t family)
{
    static const uint8_t v4[1] = {127};
    static const uint8_t v6[16] = {[15] = 1};
    meta_is(t, NFT_META_NFPROTO, family);
    if (family == NFPROTO_IPV4) {
        load(t, NFT_PAYLOAD_NETWORK_HEADER, 16, sizeof v4); /* the destination's first byte */
        compare(t, NFT_CMP_EQ, v4, sizeof v4);
    } else {
        load(t, NFT_PAYLOAD_NETWORK_HEADER, 24, sizeof v6);
        compare(t, NFT_CMP_EQ, v6, sizeof v6);
    }
}

static void protocol_port(struct batch *t, uint8_t protocol, uint32_t offset, uint16_t port)
{
    uint16_t net = htons(port);
    meta_is(t, NFT_META_L4PROTO, protocol);
    load(t, NFT_PAYLOAD_TRANSPORT_HEADER, offset, sizeof net);
    compare(t, NFT_CMP_EQ, &net, sizeof net);
}

static void verdict(struct batch *t, uint32_t code)
{
    struct nftnl_expr *e = expr(t, "immediate");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, code);
}

static void reject(struct batch *t, uint32_t type, uint8_t code)
{
    struct nftnl_expr *e = expr(t, "reject");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
    nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

static void prerouting(struct batch *t, uint16_t port)
{
    uint16_t net = htons(port);
    put_chain(t, "prerouting", NF_INET_PRE_ROUTING, PRIORITY_MANGLE);
    for (int v6 = 0; v6 < 2; v6++) {
        rule_begin(t);
        to_loopback(t, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
        verdict(t, NF_ACCEPT);
        rule_end(t);
    }
    rule_begin(t);
    protocol_port(t, IPPROTO_TCP, 2, DNS);
    verdict(t, NF_ACCEPT);
    rule_end(t);

    rule_begin(t);
    meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    struct nftnl_expr *e = expr(t, "immediate");
    if (e) {
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
        nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &net, sizeof net);
    }
    if ((e = expr(t, "tproxy")) != NULL) {
        nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_UNSPEC);
        nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
    }
    verdict(t, NF_ACCEPT);
    rule_end(t);
}

/* Errors that the kernel sends to the sandbox, our own rejections among them. Nothing inside can
 * make ICMP itself: raw and ping sockets are refused. */
static void pass_icmp_errors(struct batch *t)
{
    static const uint8_t v4[] = {ICMP_DEST_UNREACH, ICMP_TIME_EXCEEDED, ICMP_PARAMETERPROB};
    static const uint8_t v6_last = ICMP6_PARAM_PROB; /* errors are the types up to it */
    for (size_t i = 0; i < ARRAY_LEN(v4); i++) {
        rule_begin(t);
        meta_is(t, NFT_META_L4PROTO, IPPROTO_ICMP);
        load(t, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
        compare(t, NFT_CMP_EQ, &v4[i], 1);
        verdict(t, NF_ACCEPT);
        rule_end(t);
    }
    rule_begin(t);
    meta_is(t, NFT_META_L4PROTO, IPPROTO_ICMPV6);
    load(t, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
    compare(t, NFT_CMP_LTE, &v6_last, 1);
    verdict(t, NF_ACCEPT);
    rule_end(t);
}

/* The one datagram that durward-init sends to see that it is refused is not worth a log entry. */
static void pass_over_selftest(struct batch *t)
{
    uint32_t address = htonl(WIRE_SELFTEST_ADDRESS);
    rule_begin(t);
    meta_is(t, NFT_META_NFPROTO, NFPROTO_IPV4);
    load(t, NFT_PAYLOAD_NETWORK_HEADER, 16, sizeof address);
    compare(t, NFT_CMP_EQ, &address, sizeof address);
    protocol_port(t, IPPROTO_UDP, 2, HTTPS);
    reject(t, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    rule_end(t);
}

static void output(struct batch *t, uint16_t port, uint16_t group)
{
    put_chain(t, "output", NF_INET_LOCAL_OUT, 0);
    for (int v6 = 0; v6 < 2; v6++) {
        uint8_t family = v6 ? NFPROTO_IPV6 : NFPROTO_IPV4;
        rule_begin(t);
        to_loopback(t, family);
        protocol_port(t, IPPROTO_TCP, 2, port);
        reject(t, NFT_REJECT_TCP_RST, 0);
        rule_end(t);
        rule_begin(t);
        to_loopback(t, family);
        verdict(t, NF_ACCEPT);
        rule_end(t);
    }
    rule_begin(t);
    meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
    verdict(t, NF_ACCEPT);
    rule_end(t);
    for (uint32_t offset = 0; offset <= 2; offset += 2) { /* answers, then questions */
        rule_begin(t);
        protocol_port(t, IPPROTO_UDP, offset, DNS);
        verdict(t, NF_ACCEPT);
        rule_end(t);
    }
    pass_icmp_errors(t);
    pass_over_selftest(t);

    rule_begin(t);
    struct nftnl_expr *e = expr(t, "log");
    if (e) {
        nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
        nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, SNAPLEN);
        nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_QTHRESHOLD, 1);
    }
    reject(t, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    /* the last rule asks for an acknowledgement: it comes when the whole batch was applied */
    rule_end_flags(t, NLM_F_ACK);
}

/* Send and collect the answers: the kernel acknowledges or refuses each message of a batch. The
 * socket receives with a time-out, so that a kernel that says nothing is an error too. */
static int transact(struct mnl_socket *nl, const void *p, size_t n, unsigned answers)
{
    char room[16 * 1024];
    if (mnl_socket_sendto(nl, p, n) < 0)
        return -1;
    while (answers > 0) {
        ssize_t got = mnl_socket_recvfrom(nl, room, sizeof room);
        if (got < 0)
            return -1;
        int len = (int)got;
        for (const struct nlmsghdr *h = (void *)room; mnl_nlmsg_ok(h, len) && answers > 0;
             h = mnl_nlmsg_next(h, &len)) {
            if (h->nlmsg_type != NLMSG_ERROR)
                continue;
            const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);
            if (mnl_nlmsg_get_payload_len(h) < sizeof *e)
                continue;
            if (e->error) {
                errno = -e->error;
                return -1;
            }
            answers--;
        }
    }
    return 0;
}

static int install(struct mnl_socket *nl, uint16_t port, uint16_t group, struct err *err)
{
    static char room[BATCH_MAX * 2]; /* mnl wants twice the limit */
    struct batch t = {.b = mnl_nlmsg_batch_start(room, BATCH_MAX), .seq = 1};
    if (t.b == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    nftnl_batch_begin(mnl_nlmsg_batch_current(t.b), t.seq++);
    mnl_nlmsg_batch_next(t.b);
    put_table(&t);
    prerouting(&t, port);
    output(&t, port, group);
    nftnl_batch_end(mnl_nlmsg_batch_current(t.b), t.seq++);
    mnl_nlmsg_batch_next(t.b);
    int r = t.failed ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
    if (r == 0 && transact(nl, mnl_nlmsg_batch_head(t.b), mnl_nlmsg_batch_size(t.b), 1) < 0)
        r = err_sys(err, "nf_tables");
    mnl_nlmsg_batch_stop(t.b);
    return r;
}

static int bind_group(struct mnl_socket *nl, uint16_t group)
{
    char room[256] = {0};
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->nfgen_family = AF_UNSPEC;
    g->res_id = htons(group);
    struct nfulnl_msg_config_cmd cmd = {.command = NFULNL_CFG_CMD_BIND};
    struct nfulnl_msg_config_mode mode = {.copy_range = htonl(SNAPLEN),
                                          .copy_mode = NFULNL_COPY_PACKET};
    mnl_attr_put(h, NFULA_CFG_CMD, sizeof cmd, &cmd);
    mnl_attr_put(h, NFULA_CFG_MODE, sizeof mode, &mode);
    mnl_attr_put_u32(h, NFULA_CFG_QTHRESH, htonl(1)); /* tell at once, not once a second */
    mnl_attr_put_u16(h, NFULA_CFG_FLAGS, htons(NFULNL_CFG_F_SEQ)); /* so that gaps show */
    return transact(nl, h, h->nlmsg_len, 1);
}

/* A netlink socket with answers awaited for at most two seconds; bound. */
static struct mnl_socket *open_netlink(struct err *err)
{
    struct timeval start_wait = {.tv_sec = 2};
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
    if (nl == NULL || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
        setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &start_wait, sizeof start_wait) <
            0) {
        err_sys(err, "netfilter's netlink");
        if (nl)
            mnl_socket_close(nl);
        return NULL;
    }
    return nl;
}

static int open_log(uint16_t group, struct err *err)
{
    struct mnl_socket *nl = open_netlink(err);
    int fd = -1;
    if (nl == NULL)
        return -1;
    int size = LOG_BUFFER; /* a hint; the gate counts what overruns it */
    (void)setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (bind_group(nl, group) < 0)
        err_sys(err, "NFLOG");
    else if ((fd = fcntl(mnl_socket_get_fd(nl), F_DUPFD_CLOEXEC, 0)) < 0 ||
             fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        err_sys(err, "dup");
    mnl_socket_close(nl);
    return fd;
}

int nft_install(uint16_t port, uint16_t group, struct err *err)
{
    struct mnl_socket *nl = open_netlink(err);
    if (nl == NULL)
        return -1;
    int log = open_log(group, err);
    if (log >= 0 && install(nl, port, group, err) < 0) {
        close(log);
        log = -1;
    }
    mnl_socket_close(nl);
    return log;
}
