/* Writes one message of rtnetlink a function. */
#include "pod_request.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sys/socket.h>

#include "rtnl.h"

enum { LOOSE = 2, LOOPBACK = 1 };

int pod_request_flags(int index, bool up, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, 0, index);
    struct ifinfomsg *link = mnl_nlmsg_get_payload(h);
    link->ifi_flags = up ? IFF_UP : 0;
    link->ifi_change = IFF_UP;
    return rtnl_send(h, up ? "an interface up" : "an interface down", err);
}

/* Checks of where a packet comes from would be by routes that lead to both of the pod's sides: they
 * are loose, and the rules (nft_pod.h) say what may come from where. */
int pod_request_forward(int index, bool ours, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, 0, index);
    struct nlattr *all = mnl_attr_nest_start(h, IFLA_AF_SPEC);
    struct nlattr *inet = mnl_attr_nest_start(h, AF_INET);
    struct nlattr *conf = mnl_attr_nest_start(h, IFLA_INET_CONF);
    mnl_attr_put_u32(h, IPV4_DEVCONF_FORWARDING, 1);
    mnl_attr_put_u32(h, IPV4_DEVCONF_RP_FILTER, LOOSE);
    if (ours)
        mnl_attr_put_u32(h, IPV4_DEVCONF_ACCEPT_LOCAL, 1);
    mnl_attr_nest_end(h, conf);
    mnl_attr_nest_end(h, inet);
    mnl_attr_nest_end(h, all);
    return rtnl_send(h, "an interface that forwards", err);
}

static struct nlmsghdr *number_of(char room[RTNL_ROOM], uint16_t type, int netns)
{
    struct nlmsghdr *h = rtnl_request(room, type, 0);
    struct rtgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->rtgen_family = AF_UNSPEC;
    mnl_attr_put_u32(h, NETNSA_FD, (uint32_t)netns);
    return h;
}

static int on_number(const struct nlmsghdr *h, void *arg)
{
    struct nlattr *a;
    mnl_attr_for_each(a, h, sizeof(struct rtgenmsg)) if (mnl_attr_get_type(a) == NETNSA_NSID &&
                                                         mnl_attr_get_payload_len(a) == 4) *
        (int *)arg = (int)mnl_attr_get_u32(a);
    return MNL_CB_OK;
}

int pod_request_number(int netns, int *ret, struct err *err)
{
    char room[RTNL_ROOM];
    *ret = -1;
    return rtnl_ask(number_of(room, RTM_GETNSID, netns), on_number, ret, err) < 0
               ? err_wrap(err, "the number of a namespace")
               : 0;
}

int pod_request_set_number(int netns, int number, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = number_of(room, RTM_NEWNSID, netns);
    mnl_attr_put_u32(h, NETNSA_NSID, (uint32_t)number);
    return rtnl_send(h, "a number for a namespace", err);
}

int pod_request_delete(int index, struct err *err)
{
    char room[RTNL_ROOM];
    return rtnl_send(rtnl_link_request(room, RTM_DELLINK, 0, index), "an interface removed", err);
}

/* One queue each way, as a pair has by itself; for those that it takes back the kernel waits. */
static void put_queues(struct nlmsghdr *h)
{
    mnl_attr_put_u32(h, IFLA_NUM_TX_QUEUES, 1);
    mnl_attr_put_u32(h, IFLA_NUM_RX_QUEUES, 1);
}

int pod_request_pair(const char *name, const char *peer, const unsigned char mac[POD_REQUEST_MAC],
                     uint32_t mtu, int netns, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, 0, 0);
    h->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    mnl_attr_put_u32(h, IFLA_MTU, mtu);
    put_queues(h);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    struct nlattr *other = mnl_attr_nest_start(h, VETH_INFO_PEER);
    mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(h, IFLA_IFNAME, peer);
    mnl_attr_put_u32(h, IFLA_MTU, mtu);
    put_queues(h);
    mnl_attr_put(h, IFLA_ADDRESS, POD_REQUEST_MAC, mac);
    mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t)netns);
    mnl_attr_nest_end(h, other);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    return rtnl_send(h, "a pair of interfaces", err);
}

int pod_request_address(int index, const unsigned char ip[4], unsigned bits, bool link,
                        struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_request(room, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
    struct ifaddrmsg *a = mnl_nlmsg_put_extra_header(h, sizeof *a);
    a->ifa_family = AF_INET;
    a->ifa_prefixlen = (unsigned char)bits;
    a->ifa_scope = link ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
    a->ifa_index = (unsigned)index;
    mnl_attr_put(h, IFA_LOCAL, 4, ip);
    mnl_attr_put(h, IFA_ADDRESS, 4, ip);
    return rtnl_send(h, "an interface's address", err);
}

int pod_request_route(int index, unsigned table, const unsigned char ip[4], unsigned bits,
                      const unsigned char *gateway, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_request(room, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
    struct rtmsg *rt = mnl_nlmsg_put_extra_header(h, sizeof *rt);
    rt->rtm_family = AF_INET;
    rt->rtm_dst_len = (unsigned char)bits;
    rt->rtm_protocol = RTPROT_STATIC;
    rt->rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    rt->rtm_type = RTN_UNICAST;
    rt->rtm_table = (unsigned char)table;
    rt->rtm_flags = gateway ? RTNH_F_ONLINK : 0;
    if (bits)
        mnl_attr_put(h, RTA_DST, 4, ip);
    if (gateway)
        mnl_attr_put(h, RTA_GATEWAY, 4, gateway);
    mnl_attr_put_u32(h, RTA_OIF, (uint32_t)index);
    return rtnl_send(h, "a route", err);
}

int pod_request_local(unsigned table, const unsigned char ip[4], struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_request(room, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
    struct rtmsg *rt = mnl_nlmsg_put_extra_header(h, sizeof *rt);
    rt->rtm_family = AF_INET;
    rt->rtm_dst_len = 32;
    rt->rtm_protocol = RTPROT_STATIC;
    rt->rtm_scope = RT_SCOPE_HOST;
    rt->rtm_type = RTN_LOCAL;
    rt->rtm_table = (unsigned char)table;
    mnl_attr_put(h, RTA_DST, 4, ip);
    mnl_attr_put_u32(h, RTA_OIF, LOOPBACK);
    return rtnl_send(h, "a local route", err);
}

/* What rtnl_all_local made: while all is local no gateway can be named. */
int pod_request_not_all_local(struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_request(room, RTM_DELROUTE, 0);
    struct rtmsg *rt = mnl_nlmsg_put_extra_header(h, sizeof *rt);
    rt->rtm_family = AF_INET;
    rt->rtm_scope = RT_SCOPE_HOST;
    rt->rtm_type = RTN_LOCAL;
    rt->rtm_table = RT_TABLE_LOCAL;
    mnl_attr_put_u32(h, RTA_OIF, LOOPBACK);
    if (rtnl_transact(h, err) == 0 || errno == ESRCH)
        return 0;
    return err_wrap(err, "a local route");
}

/* No addresses of IPv6 that nobody asked for. */
int pod_request_no_ipv6(int index, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, 0, index);
    struct nlattr *all = mnl_attr_nest_start(h, IFLA_AF_SPEC);
    struct nlattr *inet6 = mnl_attr_nest_start(h, AF_INET6);
    mnl_attr_put_u8(h, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
    mnl_attr_nest_end(h, inet6);
    mnl_attr_nest_end(h, all);
    if (rtnl_transact(h, err) == 0 || errno == EAFNOSUPPORT || errno == EOPNOTSUPP)
        return 0; /* this kernel has none at all */
    return err_wrap(err, "an interface without IPv6");
}

static struct nlmsghdr *rule_of(char room[RTNL_ROOM], uint16_t type, uint16_t flags,
                                uint32_t priority, unsigned table)
{
    struct nlmsghdr *h = rtnl_request(room, type, flags);
    struct fib_rule_hdr *r = mnl_nlmsg_put_extra_header(h, sizeof *r);
    r->family = AF_INET;
    r->action = FR_ACT_TO_TBL;
    r->table = (unsigned char)table;
    mnl_attr_put_u32(h, FRA_PRIORITY, priority);
    return h;
}

int pod_request_rule(uint32_t priority, unsigned table, uint32_t mark, const unsigned char *from,
                     struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rule_of(room, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, priority, table);
    struct fib_rule_hdr *r = mnl_nlmsg_get_payload(h);
    if (from) {
        r->src_len = 32;
        mnl_attr_put(h, FRA_SRC, 4, from);
    }
    if (mark)
        mnl_attr_put_u32(h, FRA_FWMARK, mark);
    if (rtnl_transact(h, err) == 0 || errno == EEXIST)
        return 0;
    return err_wrap(err, "a routing rule");
}

int pod_request_local_last(struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rule_of(room, RTM_DELRULE, 0, 0, RT_TABLE_LOCAL);
    if (rtnl_transact(h, err) == 0 || errno == ENOENT)
        return 0;
    return err_wrap(err, "a routing rule");
}
