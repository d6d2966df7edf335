/* Writes one message of rtnetlink a function. */
#include "bridge_request.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "rtnl.h"

enum { LOOPBACK = 1 };

int bridge_request_make(const char *name, const unsigned char mac[6], struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    mnl_attr_put(h, IFLA_ADDRESS, 6, mac);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "bridge");
    mnl_attr_nest_end(h, info);
    return rtnl_send(h, "a bridge", err);
}

int bridge_request_join(int index, int bridge, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, 0, index);
    mnl_attr_put_u32(h, IFLA_MASTER, (uint32_t)bridge);
    return rtnl_send(h, "a bridge's port", err);
}

int bridge_request_no_forward(int index, struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = rtnl_link_request(room, RTM_NEWLINK, 0, index);
    struct nlattr *all = mnl_attr_nest_start(h, IFLA_AF_SPEC);
    struct nlattr *inet = mnl_attr_nest_start(h, AF_INET);
    struct nlattr *conf = mnl_attr_nest_start(h, IFLA_INET_CONF);
    mnl_attr_put_u32(h, IPV4_DEVCONF_FORWARDING, 0);
    mnl_attr_nest_end(h, conf);
    mnl_attr_nest_end(h, inet);
    mnl_attr_nest_end(h, all);
    return rtnl_send(h, "an interface that forwards nothing", err);
}

static struct nlmsghdr *route_of(char room[RTNL_ROOM], uint16_t flags, unsigned char type,
                                 unsigned char scope, uint32_t how)
{
    struct nlmsghdr *h = rtnl_request(room, RTM_NEWROUTE, flags);
    struct rtmsg *rt = mnl_nlmsg_put_extra_header(h, sizeof *rt);
    rt->rtm_family = AF_INET;
    rt->rtm_table = RT_TABLE_MAIN;
    rt->rtm_protocol = RTPROT_STATIC;
    rt->rtm_scope = scope;
    rt->rtm_type = type;
    rt->rtm_flags = how;
    return h;
}

int bridge_request_rest_local(struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h = route_of(room, NLM_F_CREATE | NLM_F_REPLACE, RTN_LOCAL, RT_SCOPE_HOST, 0);
    mnl_attr_put_u32(h, RTA_OIF, LOOPBACK);
    return rtnl_send(h, "a local route", err);
}

int bridge_request_way_out(int index, const unsigned char gateway[4], struct err *err)
{
    char room[RTNL_ROOM];
    struct nlmsghdr *h =
        route_of(room, NLM_F_CREATE | NLM_F_EXCL, RTN_UNICAST, RT_SCOPE_UNIVERSE, RTNH_F_ONLINK);
    mnl_attr_put(h, RTA_GATEWAY, 4, gateway);
    mnl_attr_put_u32(h, RTA_OIF, (uint32_t)index);
    if (rtnl_transact(h, err) == 0 || errno == EEXIST)
        return 0;
    return err_wrap(err, "a default route");
}
