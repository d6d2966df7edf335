/* Finds the pod's interface, and lays the second pair. */
#define _GNU_SOURCE 1
#include "pod_link.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "nft_pod.h"
#include "pod_request.h"
#include "rtnl.h"

enum {
    LOOPBACK = 1,
    TABLE_INBOUND = 200, /* outer: what was marked goes to the pod */
    TABLE_ANSWERS = 100, /* pod: from its address */
    PRIORITY_INBOUND = 1,
    PRIORITY_ANSWERS = 1,
    PRIORITY_LOCAL = 10, /* behind these: in the pod all addresses are local */
    HOST = 32,
    TIE = 214, /* the pod's number in its outer namespace; the kernel's own begin at 0 */
    TIES = 16, /* those of pods that it was refused to stay for a moment */
};

static const unsigned char gateway[4] = {169, 254, 1, 1}; /* of the pod: our end of the pair */
static const unsigned char anywhere[4] = {0};

/* What the kernel itself puts into each new namespace where tunnels are compiled in; switched off,
 * and with nothing below it. */
static bool is_fallback(const char *name)
{
    static const char *const names[] = {"tunl0",   "sit0",    "ip6tnl0",  "gre0",   "gretap0",
                                        "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* ---- what there is in a namespace ---- */

struct seen_link {
    int index; /* 0: none */
    char name[IFNAMSIZ];
    unsigned char mac[POD_REQUEST_MAC];
    uint32_t mtu;
};

struct seen {
    struct seen_link link, ours; /* the pod's interface, and POD_LINK */
    unsigned others;             /* more than these */
    unsigned char ip[4];
    bool has_ip;
};

static void keep_link(const struct nlmsghdr *h, struct seen_link *to)
{
    const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
    struct nlattr *a;
    *to = (struct seen_link){.index = m->ifi_index};
    mnl_attr_for_each(a, h, sizeof *m)
    {
        size_t n = mnl_attr_get_payload_len(a);
        if (mnl_attr_get_type(a) == IFLA_IFNAME && n <= sizeof to->name)
            memcpy(to->name, mnl_attr_get_payload(a), n);
        else if (mnl_attr_get_type(a) == IFLA_ADDRESS && n == sizeof to->mac)
            memcpy(to->mac, mnl_attr_get_payload(a), n);
        else if (mnl_attr_get_type(a) == IFLA_MTU && n == sizeof to->mtu)
            to->mtu = mnl_attr_get_u32(a);
    }
    to->name[sizeof to->name - 1] = '\0';
}

static int on_link(const struct nlmsghdr *h, void *arg)
{
    const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
    struct seen *s = arg;
    struct seen_link one;
    keep_link(h, &one);
    bool up = m->ifi_flags & IFF_UP;
    if (one.index == LOOPBACK || (!up && is_fallback(one.name)))
        return MNL_CB_OK;
    if (strcmp(one.name, POD_LINK) == 0 && s->ours.index == 0)
        s->ours = one;
    else if (s->link.index == 0)
        s->link = one;
    else
        s->others++;
    return MNL_CB_OK;
}

static int on_address(const struct nlmsghdr *h, void *arg)
{
    const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
    struct seen *s = arg;
    struct nlattr *a;
    if ((int)m->ifa_index != s->link.index || m->ifa_scope != RT_SCOPE_UNIVERSE || s->has_ip)
        return MNL_CB_OK;
    mnl_attr_for_each(a, h, sizeof *m) if (mnl_attr_get_type(a) == IFA_LOCAL &&
                                           mnl_attr_get_payload_len(a) == sizeof s->ip)
    {
        memcpy(s->ip, mnl_attr_get_payload(a), sizeof s->ip);
        s->has_ip = true;
    }
    return MNL_CB_OK;
}

static int enter(int netns, struct err *err)
{
    return setns(netns, CLONE_NEWNET) == 0 ? 0 : err_sys(err, "cannot enter the pod's network");
}

static int look(int netns, struct seen *s, struct err *err)
{
    memset(s, 0, sizeof *s);
    if (enter(netns, err) < 0 || rtnl_dump(RTM_GETLINK, AF_UNSPEC, on_link, s, err) < 0)
        return -1;
    if (s->link.index == 0)
        return 0;
    return rtnl_dump(RTM_GETADDR, AF_INET, on_address, s, err) < 0 ? -1 : 0;
}

int pod_link_tie(int pod, struct err *err)
{
    int r = -1;
    errno = EEXIST;
    for (int i = 0; r < 0 && errno == EEXIST && i < TIES; i++)
        r = pod_request_set_number(pod, TIE + i, err);
    return r;
}

int pod_link_tied(int pod, int outer, struct err *err)
{
    int number;
    if (enter(outer, err) < 0 || pod_request_number(pod, &number, err) < 0)
        return -1;
    return number >= TIE && number < TIE + TIES
               ? 0
               : err_set(err, ERR_DENIED, "the pinned namespace is not that pod's");
}

int pod_link_find(int outer, struct pod_link *ret, struct err *err)
{
    struct seen s;
    if (look(outer, &s, err) < 0)
        return -1;
    if (s.link.index == 0)
        return err_set(err, ERR_UNREADY,
                       "the pod has no interface: what makes it has to stand "
                       "before durward-cni in the list of plugins");
    if (s.others || !s.has_ip)
        return err_set(err, ERR_UNREADY,
                       s.others ? "the pod has more than one interface"
                                : "the pod's interface %s has no IPv4 address",
                       s.link.name);
    memcpy(ret->name, s.link.name, sizeof ret->name);
    memcpy(ret->ip, s.ip, sizeof ret->ip);
    return 0;
}

/* ---- joining ---- */

/* In the outer namespace: to the pod what is marked, back what comes. */
static int join_outer(const struct seen *s, const struct pod_link *link, struct err *err)
{
    if (pod_request_forward(s->link.index, false, err) < 0 ||
        pod_request_forward(s->ours.index, true, err) < 0 ||
        pod_request_no_ipv6(s->ours.index, err) < 0 ||
        pod_request_flags(s->ours.index, true, err) < 0 ||
        pod_request_address(s->ours.index, gateway, HOST, true, err) < 0 ||
        pod_request_route(s->ours.index, TABLE_INBOUND, link->ip, HOST, NULL, err) < 0)
        return -1;
    return pod_request_rule(PRIORITY_LOCAL, RT_TABLE_LOCAL, 0, NULL, err) < 0 ||
                   pod_request_rule(PRIORITY_INBOUND, TABLE_INBOUND, NFT_POD_MARK, NULL, err) < 0 ||
                   pod_request_local_last(err) < 0
               ? -1
               : 0;
}

static int join_pod(int pod, const struct pod_link *link, struct err *err)
{
    struct seen s;
    if (look(pod, &s, err) < 0)
        return -1;
    int index = s.link.index;
    if (index == 0 || s.others || strcmp(s.link.name, link->name) != 0)
        return err_set(err, ERR_UNREADY, "the pod has other interfaces than ours");
    if (pod_request_not_all_local(err) < 0 || pod_request_no_ipv6(index, err) < 0 ||
        pod_request_address(index, link->ip, HOST, false, err) < 0 ||
        pod_request_flags(index, true, err) < 0 ||
        pod_request_local(TABLE_ANSWERS, link->ip, err) < 0 ||
        pod_request_route(index, TABLE_ANSWERS, gateway, HOST, NULL, err) < 0 ||
        pod_request_route(index, TABLE_ANSWERS, anywhere, 0, gateway, err) < 0)
        return -1;
    return rtnl_all_local(AF_INET, err) < 0 ||
                   pod_request_rule(PRIORITY_LOCAL, RT_TABLE_LOCAL, 0, NULL, err) < 0 ||
                   pod_request_rule(PRIORITY_ANSWERS, TABLE_ANSWERS, 0, link->ip, err) < 0 ||
                   pod_request_local_last(err) < 0
               ? -1
               : 0;
}

int pod_link_make(int pod, int outer, const struct pod_link *link, struct err *err)
{
    struct seen s;
    if (look(outer, &s, err) < 0 || rtnl_loopback_up(err) < 0)
        return -1;
    if (s.ours.index == 0 &&
        (pod_request_pair(POD_LINK, link->name, s.link.mac, s.link.mtu, pod, err) < 0 ||
         look(outer, &s, err) < 0))
        return -1;
    return join_outer(&s, link, err) < 0 ? -1 : join_pod(pod, link, err);
}

int pod_link_undo(int outer, struct err *err)
{
    struct seen s;
    if (look(outer, &s, err) < 0)
        return -1;
    if (s.ours.index == 0)
        return 0;
    return pod_request_delete(s.ours.index, err) < 0 ||
                   (s.link.index && pod_request_flags(s.link.index, false, err) < 0)
               ? -1
               : 0;
}

int pod_link_check(int pod, int outer, const struct pod_link *link, struct err *err)
{
    struct seen in, out;
    if (look(outer, &out, err) < 0 || look(pod, &in, err) < 0)
        return -1;
    bool ok = out.others == 0 && in.others == 0 && in.ours.index == 0 && out.ours.index != 0 &&
              strcmp(out.link.name, link->name) == 0 && strcmp(in.link.name, link->name) == 0;
    return ok ? 0 : err_set(err, ERR_UNREADY, "the pod's network has an interface of its own");
}
