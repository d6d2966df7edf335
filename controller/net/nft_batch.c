/* Builds messages with libnftnl and speaks to the kernel with libmnl. */
#include "nft_batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TABLE "durward"

enum { BATCH_MAX = 128 * 1024, SNAPLEN = 128, LOG_BUFFER = 256 * 1024, SET_ID = 1 };

static struct nlmsghdr *message(struct nft_batch *t, uint16_t type, uint16_t flags)
{
    return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(t->b), type, NFPROTO_INET, flags,
                                 t->seq++);
}

static void next(struct nft_batch *t)
{
    if (!mnl_nlmsg_batch_next(t->b))
        t->failed = true; /* what does not fit would be left out */
}

static void put_table(struct nft_batch *t, uint16_t type, uint16_t flags)
{
    struct nftnl_table *table = nftnl_table_alloc();
    if (table == NULL) {
        t->failed = true;
        return;
    }
    nftnl_table_set_str(table, NFTNL_TABLE_NAME, TABLE);
    nftnl_table_nlmsg_build_payload(message(t, type, flags), table);
    nftnl_table_free(table);
    next(t);
}

void nft_chain(struct nft_batch *t, const char *name, uint32_t hook, int32_t priority,
               uint32_t policy)
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
    nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, policy);
    nftnl_chain_nlmsg_build_payload(message(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE), c);
    nftnl_chain_free(c);
    next(t);
}

void nft_set(struct nft_batch *t, const char *name, uint32_t bytes, uint32_t most, uint64_t ms)
{
    struct nftnl_set *s = nftnl_set_alloc();
    t->set = name;
    if (s == NULL) {
        t->failed = true;
        return;
    }
    nftnl_set_set_u32(s, NFTNL_SET_FAMILY, NFPROTO_INET);
    nftnl_set_set_str(s, NFTNL_SET_TABLE, TABLE);
    nftnl_set_set_str(s, NFTNL_SET_NAME, name);
    nftnl_set_set_u32(s, NFTNL_SET_ID, SET_ID);
    nftnl_set_set_u32(s, NFTNL_SET_FLAGS, NFT_SET_EVAL | NFT_SET_TIMEOUT);
    nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE, 0); /* for whoever prints it */
    nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, bytes);
    nftnl_set_set_u32(s, NFTNL_SET_DESC_SIZE, most);
    nftnl_set_set_u64(s, NFTNL_SET_TIMEOUT, ms);
    nftnl_set_nlmsg_build_payload(message(t, NFT_MSG_NEWSET, NLM_F_CREATE), s);
    nftnl_set_free(s);
    next(t);
}

void nft_set_take(struct nft_batch *t)
{
    struct nftnl_expr *e = nft_expr(t, "dynset");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
    nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, t->set);
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SET_ID, SET_ID);
}

void nft_set_lacks(struct nft_batch *t)
{
    struct nftnl_expr *e = nft_expr(t, "lookup");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, t->set);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SET_ID, SET_ID);
}

void nft_rule(struct nft_batch *t)
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

void nft_rule_end(struct nft_batch *t)
{
    if (t->rule == NULL)
        return;
    t->last = message(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    nftnl_rule_nlmsg_build_payload(t->last, t->rule);
    nftnl_rule_free(t->rule);
    t->rule = NULL;
    next(t);
}

/* An expression of the rule being written; NULL (and the batch failed) when memory is out. */
struct nftnl_expr *nft_expr(struct nft_batch *t, const char *name)
{
    struct nftnl_expr *e = t->rule ? nftnl_expr_alloc(name) : NULL;
    if (e == NULL)
        t->failed = true;
    else
        nftnl_rule_add_expr(t->rule, e);
    return e;
}

void nft_compare(struct nft_batch *t, uint32_t op, const void *value, uint32_t n)
{
    struct nftnl_expr *e = nft_expr(t, "cmp");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
    nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, value, n);
}

void nft_meta(struct nft_batch *t, uint32_t key)
{
    struct nftnl_expr *e = nft_expr(t, "meta");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

void nft_meta_is(struct nft_batch *t, uint32_t key, uint8_t value)
{
    nft_meta(t, key);
    nft_compare(t, NFT_CMP_EQ, &value, sizeof value);
}

void nft_load(struct nft_batch *t, uint32_t base, uint32_t offset, uint32_t n)
{
    struct nftnl_expr *e = nft_expr(t, "payload");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, n);
}

void nft_protocol_port(struct nft_batch *t, uint8_t protocol, uint32_t offset, uint16_t port)
{
    uint16_t net = htons(port);
    nft_meta_is(t, NFT_META_L4PROTO, protocol);
    nft_load(t, NFT_PAYLOAD_TRANSPORT_HEADER, offset, sizeof net);
    nft_compare(t, NFT_CMP_EQ, &net, sizeof net);
}

void nft_verdict(struct nft_batch *t, uint32_t code)
{
    struct nftnl_expr *e = nft_expr(t, "immediate");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, code);
}

void nft_reject(struct nft_batch *t, uint32_t type, uint8_t code)
{
    struct nftnl_expr *e = nft_expr(t, "reject");
    if (e == NULL)
        return;
    nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
    nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

void nft_log(struct nft_batch *t, uint16_t group)
{
    struct nftnl_expr *e = nft_expr(t, "log");
    if (e == NULL)
        return;
    nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, SNAPLEN);
    nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_QTHRESHOLD, 1);
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

int nft_open_log(uint16_t group, struct err *err)
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

/* ---- the whole ---- */

int nft_begin(struct nft_batch *t, bool again, struct err *err)
{
    *t = (struct nft_batch){.room = malloc((size_t)BATCH_MAX * 2), .seq = 1}; /* mnl wants twice */
    t->b = t->room ? mnl_nlmsg_batch_start(t->room, BATCH_MAX) : NULL;
    if (t->b == NULL) {
        free(t->room);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    nftnl_batch_begin(mnl_nlmsg_batch_current(t->b), t->seq++);
    next(t);
    if (again) {
        put_table(t, NFT_MSG_NEWTABLE, NLM_F_CREATE); /* what is not there cannot be deleted */
        put_table(t, NFT_MSG_DELTABLE, 0);
    }
    put_table(t, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
    return 0;
}

static int send_whole(struct nft_batch *t, struct err *err)
{
    struct mnl_socket *nl = open_netlink(err);
    if (nl == NULL)
        return -1;
    /* the acknowledgement of the last rule comes when the whole batch was applied */
    t->last->nlmsg_flags |= NLM_F_ACK;
    int r = transact(nl, mnl_nlmsg_batch_head(t->b), mnl_nlmsg_batch_size(t->b), 1) < 0
                ? err_sys(err, "nf_tables")
                : 0;
    int saved = errno;
    mnl_socket_close(nl);
    errno = saved;
    return r;
}

int nft_apply(struct nft_batch *t, struct err *err)
{
    nftnl_batch_end(mnl_nlmsg_batch_current(t->b), t->seq++);
    next(t);
    int r = t->failed || t->last == NULL
                ? err_set(err, ERR_INTERNAL, "packet rules are too many, or memory is out")
                : send_whole(t, err);
    int saved = errno;
    if (t->rule)
        nftnl_rule_free(t->rule);
    mnl_nlmsg_batch_stop(t->b);
    free(t->room);
    errno = saved;
    return r;
}

bool nft_was_there(int applied, struct err *err)
{
    if (applied == 0 || errno != EEXIST)
        return false;
    *err = (struct err){0};
    return true;
}
