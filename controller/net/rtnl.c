/* Sends each request on a socket of its own and waits for the kernel's answer: lo up, an address on
 * it, every address local. */
#include "rtnl.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum { LOOPBACK = 1, REQUEST_MAX = 256 }; /* lo is always interface 1 */

struct nlmsghdr *rtnl_request(char room[RTNL_ROOM], uint16_t type, uint16_t flags)
{
    memset(room, 0, RTNL_ROOM);
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = type;
    h->nlmsg_flags = flags;
    return h;
}

struct nlmsghdr *rtnl_link_request(char room[RTNL_ROOM], uint16_t type, uint16_t flags, int index)
{
    struct nlmsghdr *h = rtnl_request(room, type, flags);
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(h, sizeof *link);
    link->ifi_family = AF_UNSPEC;
    link->ifi_index = index;
    return h;
}

/* Send one request with NLM_F_ACK on a socket of its own and read the verdict. */
int rtnl_ask(struct nlmsghdr *h, rtnl_fn fn, void *arg, struct err *err)
{
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (nl == NULL)
        return err_sys(err, "cannot open rtnetlink");
    char answer[4096];
    int r = -1;
    h->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    h->nlmsg_seq = 1;
    if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == 0 &&
        mnl_socket_sendto(nl, h, h->nlmsg_len) >= 0)
        do {
            ssize_t n = mnl_socket_recvfrom(nl, answer, sizeof answer);
            r = n < 0 ? MNL_CB_ERROR
                      : mnl_cb_run(answer, (size_t)n, 1, mnl_socket_get_portid(nl), fn, arg);
        } while (r == MNL_CB_OK); /* what was asked for comes before the verdict */
    int saved = errno;
    mnl_socket_close(nl);
    errno = saved;
    return r < 0 ? err_sys(err, "rtnetlink") : 0;
}

int rtnl_transact(struct nlmsghdr *h, struct err *err)
{
    return rtnl_ask(h, NULL, NULL, err);
}

int rtnl_send(struct nlmsghdr *h, const char *what, struct err *err)
{
    return rtnl_transact(h, err) < 0 ? err_wrap(err, "%s", what) : 0;
}

int rtnl_dump(uint16_t type, unsigned char family, rtnl_fn fn, void *arg, struct err *err)
{
    char room[REQUEST_MAX] = {0}, answer[32 * 1024];
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (nl == NULL)
        return err_sys(err, "cannot open rtnetlink");
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    h->nlmsg_seq = 1;
    struct rtgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg));
    g->rtgen_family = family;
    int r =
        mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 || mnl_socket_sendto(nl, h, h->nlmsg_len) < 0
            ? MNL_CB_ERROR
            : MNL_CB_OK;
    while (r == MNL_CB_OK) {
        ssize_t n = mnl_socket_recvfrom(nl, answer, sizeof answer);
        r = n < 0 ? MNL_CB_ERROR
                  : mnl_cb_run(answer, (size_t)n, 1, mnl_socket_get_portid(nl), fn, arg);
    }
    int saved = errno;
    mnl_socket_close(nl);
    errno = saved;
    return r < 0 ? err_sys(err, "rtnetlink") : 0;
}

int rtnl_loopback_up(struct err *err)
{
    char room[REQUEST_MAX] = {0};
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = RTM_NEWLINK;
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(h, sizeof *link);
    link->ifi_family = AF_UNSPEC;
    link->ifi_index = LOOPBACK;
    link->ifi_flags = IFF_UP;
    link->ifi_change = IFF_UP;
    return rtnl_transact(h, err) < 0 ? err_wrap(err, "cannot set lo up") : 0;
}

int rtnl_address(int family, const unsigned char *ip, struct err *err)
{
    char room[REQUEST_MAX] = {0};
    size_t n = family == AF_INET ? 4 : 16;
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = RTM_NEWADDR;
    h->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
    struct ifaddrmsg *a = mnl_nlmsg_put_extra_header(h, sizeof *a);
    a->ifa_family = (unsigned char)family;
    a->ifa_prefixlen = (unsigned char)(n * 8);
    a->ifa_scope = RT_SCOPE_UNIVERSE;
    a->ifa_index = LOOPBACK;
    mnl_attr_put(h, IFA_LOCAL, n, ip);
    mnl_attr_put(h, IFA_ADDRESS, n, ip);
    return rtnl_transact(h, err) < 0 ? err_wrap(err, "cannot give lo an address") : 0;
}

int rtnl_all_local(int family, struct err *err)
{
    char room[REQUEST_MAX] = {0};
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = RTM_NEWROUTE;
    h->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
    struct rtmsg *rt = mnl_nlmsg_put_extra_header(h, sizeof *rt);
    rt->rtm_family = (unsigned char)family;
    rt->rtm_table = RT_TABLE_LOCAL;
    rt->rtm_protocol = RTPROT_STATIC;
    rt->rtm_scope = RT_SCOPE_HOST;
    rt->rtm_type = RTN_LOCAL;
    mnl_attr_put_u32(h, RTA_OIF, LOOPBACK);
    if (rtnl_transact(h, err) < 0)
        return err_wrap(err, "cannot make every IPv%c address local",
                        family == AF_INET ? '4' : '6');
    return 0;
}
