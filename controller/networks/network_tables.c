/* Two tables, and who joins or leaves; names are looked up in them. */
#define _GNU_SOURCE 1
#include "network_tables.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "network_keeper.h"
#include "network_names.h"
#include "network_ports.h"
#include "network_program.h"
#include "network_ways.h"

enum { DNS = 53 };

struct network {
    unsigned members; /* 0: there is none */
    struct network_part like;
    struct network_hub hub;
    struct network_names *names;
    struct network_ways *ways;
};

struct container {
    char id[NETWORK_NAME_MAX + 1], name[NETWORK_NAME_MAX + 1];
    struct network_part parts[NETWORK_PARTS_MAX];
    struct network *on[NETWORK_PARTS_MAX];
    unsigned nparts;
    struct network_ports *ports;
};

static struct network networks[NETWORK_KEEPER_NETWORKS];
static struct container *containers[NETWORK_KEEPER_CONTAINERS];

/* ---- names ---- */

static bool is_on(const struct container *c, const struct network *n)
{
    for (unsigned i = 0; i < c->nparts; i++)
        if (c->on[i] == n)
            return true;
    return false;
}

static const struct container *at_address(const struct network *n, const unsigned char ip[4])
{
    for (unsigned i = 0; i < NETWORK_KEEPER_CONTAINERS; i++)
        for (unsigned k = 0; containers[i] && k < containers[i]->nparts; k++)
            if (containers[i]->on[k] == n && memcmp(containers[i]->parts[k].ip, ip, 4) == 0)
                return containers[i];
    return NULL;
}

static bool is_called(const struct container *c, const struct network_part *p, const char *name)
{
    bool found = strcasecmp(c->name, name) == 0;
    for (unsigned i = 0; i < p->naliases && !found; i++)
        found = strcasecmp(p->aliases[i], name) == 0;
    return found;
}

/* Is there a network that is not internal, for this container in here? */
static bool leads_out(const struct container *c, const struct network *here)
{
    bool leads = here->ways != NULL;
    for (unsigned i = 0; c && i < c->nparts && !leads; i++)
        leads = c->on[i]->ways != NULL;
    return leads;
}

/* Names of a network are for those who are in it. */
static int look_up(void *arg, const unsigned char from[4], const char *name,
                   unsigned char ips[NETWORK_DNS_ANSWERS][4])
{
    static const char suffix[] = ".dns.podman";
    struct network *here = arg;
    const struct container *who = at_address(here, from);
    char bare[NETWORK_DNS_NAME + 1];
    size_t n = name ? strlen(name) : 0, end = sizeof suffix - 1;
    int found = 0, none = leads_out(who, here) ? -1 : 0;
    if (name == NULL)
        return none;
    memcpy(bare, name, n + 1);
    if (n > end && strcmp(name + n - end, suffix) == 0)
        bare[n - end] = '\0';
    if (strcmp(bare, "host.containers.internal") == 0 || strcmp(bare, "host.docker.internal") == 0)
        return none && inet_pton(AF_INET, NETWORK_HOST_INSIDE, ips[0]) == 1 ? 1 : none;
    for (unsigned i = 0; i < NETWORK_KEEPER_CONTAINERS; i++)
        for (unsigned k = 0; containers[i] && k < containers[i]->nparts; k++) {
            const struct network_part *p = &containers[i]->parts[k];
            const struct network *on = containers[i]->on[k];
            if (p->names && (on == here || (who && is_on(who, on))) &&
                is_called(containers[i], p, bare) && found < NETWORK_DNS_ANSWERS)
                memcpy(ips[found++], p->ip, 4);
        }
    return found ? found : none;
}

/* ---- networks ---- */

static bool is_like(const struct network_part *a, const struct network_part *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->bridge, b->bridge) == 0 &&
           memcmp(a->gateway, b->gateway, 4) == 0 && a->bits == b->bits &&
           a->internal == b->internal;
}

static void end_network(struct network *n)
{
    network_names_close(n->names);
    network_ways_close(n->ways);
    network_hub_end(&n->hub);
    memset(n, 0, sizeof *n);
    n->hub.fd = -1;
}

static int begin_network(struct network *n, const struct network_part *p, struct err *err)
{
    memset(n, 0, sizeof *n);
    n->like = *p;
    if (network_hub_begin(&n->hub, p, err) < 0)
        return -1;
    int fd = network_hub_socket(&n->hub, NETWORK_SOCKET_DNS, DNS);
    if (fd < 0)
        err_sys(err, "names");
    else if ((n->names = network_names_open(fd, look_up, n)) == NULL)
        err_set(err, ERR_UNREADY, "names cannot be answered");
    else if (p->internal || (n->ways = network_ways_open(&n->hub, p->gateway, err)) != NULL)
        return 0;
    end_network(n);
    return -1;
}

/* One whose process is gone takes no more containers: it begins anew beside that. */
static struct network *network_of(const struct network_part *p, struct err *err)
{
    struct network *room = NULL;
    for (unsigned i = 0; i < NETWORK_KEEPER_NETWORKS; i++)
        if (networks[i].members && networks[i].hub.fd >= 0 && is_like(&networks[i].like, p))
            return &networks[i];
        else if (networks[i].members == 0)
            room = &networks[i];
    if (room == NULL)
        err_set(err, ERR_LIMIT, "a sandbox can have %d networks of containers",
                NETWORK_KEEPER_NETWORKS);
    return room && begin_network(room, p, err) == 0 ? room : NULL;
}

/* ---- containers ---- */

static struct container *find(const char *id)
{
    for (unsigned i = 0; i < NETWORK_KEEPER_CONTAINERS; i++)
        if (containers[i] && strcmp(containers[i]->id, id) == 0)
            return containers[i];
    return NULL;
}

static struct container *add(const struct network_request *r, struct err *err)
{
    for (unsigned i = 0; i < NETWORK_KEEPER_CONTAINERS; i++) {
        if (containers[i])
            continue;
        struct container *c = containers[i] = calloc(1, sizeof *c);
        if (c == NULL) {
            err_set(err, ERR_INTERNAL, "out of memory");
            return NULL;
        }
        memcpy(c->id, r->id, sizeof c->id);
        memcpy(c->name, r->name, sizeof c->name);
        return c;
    }
    err_set(err, ERR_LIMIT, "a sandbox can have %d containers with networks of their own",
            NETWORK_KEEPER_CONTAINERS);
    return NULL;
}

static void leave(struct container *c, unsigned i)
{
    struct network *n = c->on[i];
    network_hub_detach(&n->hub, &c->parts[i]);
    if (--n->members == 0)
        end_network(n);
    c->nparts--;
    c->parts[i] = c->parts[c->nparts];
    c->on[i] = c->on[c->nparts];
}

static void forget_if_empty(struct container *c)
{
    if (c->nparts > 0)
        return;
    network_ports_close(c->ports);
    for (unsigned i = 0; i < NETWORK_KEEPER_CONTAINERS; i++)
        if (containers[i] == c)
            containers[i] = NULL;
    free(c);
}

static int join(struct container *c, const struct network_part *p, int netns, struct err *err)
{
    if (c->nparts == NETWORK_PARTS_MAX)
        return err_set(err, ERR_LIMIT, "a container can have %d networks in here",
                       NETWORK_PARTS_MAX);
    struct network *n = network_of(p, err);
    int r = n ? network_hub_attach(&n->hub, p, netns, err) : -1;
    if (n && n->members > 0 && n->hub.fd < 0) {
        n = network_of(p, err);
        r = n ? network_hub_attach(&n->hub, p, netns, err) : -1;
    }
    if (r < 0) {
        if (n && n->members == 0)
            end_network(n);
        return -1;
    }
    n->members++;
    c->parts[c->nparts] = *p;
    c->on[c->nparts++] = n;
    return 0;
}

static bool place(void *arg, struct network_hub **hub, unsigned char ip[4])
{
    struct container *c = arg;
    if (c->nparts == 0)
        return false;
    *hub = &c->on[0]->hub;
    memcpy(ip, c->parts[0].ip, 4);
    return true;
}

static void leave_named(struct container *c, const char *name)
{
    for (unsigned i = 0; i < c->nparts; i++)
        if (strcmp(c->parts[i].name, name) == 0) {
            leave(c, i);
            return;
        }
}

/* One that is there already died unseen: what is left of it makes room. */
int network_tables_setup(const struct network_request *r, int netns, struct err *err)
{
    struct container *c = find(r->id);
    if (c == NULL && (c = add(r, err)) == NULL)
        return -1;
    for (unsigned i = 0; i < r->nparts; i++)
        leave_named(c, r->parts[i].name);
    unsigned before = c->nparts;
    bool mapped = c->ports != NULL;
    int result = 0;
    for (unsigned i = 0; result == 0 && i < r->nparts; i++)
        if (join(c, &r->parts[i], netns, err) < 0)
            result = err_wrap(err, "network %s", r->parts[i].name);
    if (result == 0 && c->ports == NULL && r->nports > 0 &&
        (c->ports = network_ports_open(r->ports, r->nports, place, c, err)) == NULL)
        result = -1;
    while (result < 0 && c->nparts > before)
        leave(c, c->nparts - 1);
    if (mapped && c->nparts > 0)
        network_ports_moved(c->ports);
    forget_if_empty(c);
    return result;
}

void network_tables_teardown(const struct network_request *r)
{
    struct container *c = find(r->id);
    if (c == NULL)
        return;
    for (unsigned i = 0; i < r->nparts; i++)
        leave_named(c, r->parts[i].name);
    if (c->ports && c->nparts > 0)
        network_ports_moved(c->ports);
    forget_if_empty(c);
}

bool network_tables_empty(void)
{
    for (unsigned i = 0; i < NETWORK_KEEPER_CONTAINERS; i++)
        if (containers[i])
            return false;
    return true;
}

void network_tables_refresh(void)
{
    for (unsigned i = 0; i < NETWORK_KEEPER_NETWORKS; i++)
        if (networks[i].members && networks[i].ways)
            network_ways_refresh(networks[i].ways);
}
