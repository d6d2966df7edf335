/* The backend's `make`, in a launcher: opens the pod's two namespaces, puts its interface out of
 * its reach, opens the listeners in the pod's own network, lays trust where the pod has a volume
 * for it, and becomes its keeper. */
#define _GNU_SOURCE 1
#include "pod_backend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "nft_batch.h"
#include "nft_pod.h"
#include "trust_sandbox.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

enum { OWN_MAX = 64, RANGES_MAX = OWN_MAX + POD_RANGES_MAX, START_WAIT_MS = 2000 };

struct pod_parts {
    int pod, outer;
    struct pod_link link;
    struct cidr ranges[RANGES_MAX];
    unsigned n_ranges;
    struct netns_listeners listeners;
    struct pod_keeper keeper;
};

/* ---- its namespaces ---- */

static bool same(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) < 0 || fstat(b, &y) < 0 || (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* A network namespace by its name in the runtime's directory: no link, and nothing else. */
static int open_netns(int dir, const char *name, struct err *err)
{
    struct statfs fs;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? err_set(err, ERR_UNREADY, POD_GONE)
                               : err_sys(err, "the network namespace %s", name);
    if (fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC &&
        ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET)
        return fd;
    close(fd);
    /* what is left of a namespace that was unmounted */
    return err_set(err, ERR_UNREADY, POD_GONE);
}

static int open_both(const struct making *m, struct pod_parts *p, struct err *err)
{
    const struct pod_spec *spec = &m->plan->sandbox_spec.pod;
    char pin[POD_CONTAINER_MAX + sizeof POD_PIN];
    int dir = open(m->parts.pods->netns_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    snprintf(pin, sizeof pin, POD_PIN "%s", spec->container);
    int r = dir < 0 || own < 0 ? err_sys(err, "%s", m->parts.pods->netns_dir) : 0;
    if (r == 0 && ((p->pod = open_netns(dir, spec->netns, err)) < 0 ||
                   (p->outer = open_netns(dir, pin, err)) < 0))
        r = -1;
    if (r == 0 && (same(p->pod, own) || same(p->outer, own) || same(p->pod, p->outer)))
        r = err_set(err, ERR_DENIED, "the pod has no network namespace of its own");
    if (dir >= 0)
        close(dir);
    if (own >= 0)
        close(own);
    return r;
}

/* ---- who may connect ---- */

/* The node's own addresses, from one of which the kubelet probes. Still in the node's network. */
static int add_own(struct pod_parts *p, struct err *err)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0)
        return err_sys(err, "the node's addresses");
    for (const struct ifaddrs *a = all; a && p->n_ranges < OWN_MAX; a = a->ifa_next) {
        if (a->ifa_addr == NULL || a->ifa_addr->sa_family != AF_INET)
            continue;
        struct cidr *c = &p->ranges[p->n_ranges];
        struct sockaddr_in in;
        memcpy(&in, a->ifa_addr, sizeof in);
        memcpy(c->ip, &in.sin_addr, 4);
        c->kind = HOST_IPV4;
        c->bits = 32;
        p->n_ranges += c->ip[0] != 127;
    }
    freeifaddrs(all);
    return 0;
}

static int add_ranges(const struct pod_place *place, struct pod_parts *p, struct err *err)
{
    for (unsigned i = 0; i < place->n_ranges; i++)
        if (cidr_parse(&p->ranges[p->n_ranges++], slice_str(place->ranges[i])) < 0)
            return err_set(err, ERR_INTERNAL, "a range of addresses");
    return 0;
}

/* ---- what it trusts ---- */

/* The volume as the kubelet made it, or -1: the pod has none. Above it all is the kubelet's; in it
 * all may be the pod's own. */
static int open_volume(const struct making *m)
{
    const struct pod_spec *spec = &m->plan->sandbox_spec.pod;
    char path[256];
    if (spec->uid[0] == '\0')
        return -1;
    int n = snprintf(path, sizeof path, "%s/pods/%s/volumes/kubernetes.io~empty-dir/" POD_VOLUME,
                     m->parts.pods->kubelet, spec->uid);
    if (n < 0 || (size_t)n >= sizeof path)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whatever lies at these names goes first; what is laid is made anew (trust_lay follows no link and
 * opens no file that is there). */
static int lay_trust(const struct making *m, struct slice root, struct err *err)
{
    int to = open_volume(m);
    if (to < 0)
        return 0;
    int roots = open(m->parts.roots_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = roots < 0 ? err_sys(err, "trust bundles") : trust_lay_anew(roots, to, root, err);
    if (roots >= 0)
        close(roots);
    close(to);
    return r;
}

/* ---- from birth to keeping ---- */

static int heed_signals(struct pod_keeper *k, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
        (k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return err_sys(err, "signalfd");
    return 0;
}

/* The pod has no interface yet, so that nobody else reaches listeners in it. */
static int lay_inside(struct pod_parts *p, struct err *err)
{
    if (pod_link_tied(p->pod, p->outer, err) < 0 || pod_link_find(p->outer, &p->link, err) < 0)
        return -1;
    if (setns(p->pod, CLONE_NEWNET) < 0)
        return err_sys(err, "cannot enter the pod's network");
    return netns_listen_pod(&p->listeners, p->link.ip, err);
}

/* While a gate takes the listeners. The rules come before the interfaces that they are for. */
static int lay_outside(struct pod_parts *p, struct err *err)
{
    if (setns(p->outer, CLONE_NEWNET) < 0)
        return err_sys(err, "cannot enter the pod's network");
    if (nft_pod_install(&p->link, p->ranges, p->n_ranges, err) < 0 ||
        (p->keeper.inbound = nft_open_log(NFT_POD_INBOUND, err)) < 0 ||
        (p->keeper.refused = nft_open_log(NFT_POD_REFUSED, err)) < 0)
        return -1;
    return pod_link_make(p->pod, p->outer, &p->link, err);
}

static int make_it(const struct making *m, struct pod_parts *p, struct err *err)
{
    struct slice root;
    if (m->parts.pods == NULL)
        return err_set(err, ERR_DENIED, "this daemon has no node's pods");
    if (heed_signals(&p->keeper, err) < 0 || open_both(m, p, err) < 0 || add_own(p, err) < 0 ||
        add_ranges(m->parts.pods, p, err) < 0 || lay_inside(p, err) < 0)
        return -1;
    if (launcher_offer(m->plan, &p->listeners, err) < 0 || lay_outside(p, err) < 0 ||
        launcher_await_root(&root, err) < 0 || lay_trust(m, root, err) < 0 ||
        launcher_built(m->plan, true, "", err) < 0 || launcher_await_consent(err) < 0)
        return -1;
    netns_close(&p->listeners);
    int r = pod_link_check(p->pod, p->outer, &p->link, err);
    close(p->pod); /* what stays holds no way into either */
    close(p->outer);
    p->pod = p->outer = -1;
    return r;
}

static int pod_make(const struct making *m, struct err *err)
{
    static struct pod_parts p;
    p = (struct pod_parts){
        .pod = -1, .outer = -1, .keeper = {.inbound = -1, .refused = -1, .signals = -1}};
    prctl(PR_SET_NAME, "durward-pod");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != m->builder)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    if (make_it(m, &p, err) < 0 || pod_keep(&p.keeper, err) < 0)
        return -1;
    _exit(0);
}

static int check(const struct plan *plan, struct err *err)
{
    return geteuid() == 0 && plan->nbinds == 0
               ? 0
               : err_set(err, ERR_DENIED, "only root's daemon gives pods their way out");
}

static const char *remedy(const char *said)
{
    (void)said;
    return "";
}

const struct backend backend_pod = {
    .name = "pod",
    .check = check,
    .make = pod_make,
    .remedy = remedy,
    .stays = true,
    .start_wait_ms = START_WAIT_MS,
};
