/* Walks the JSON text and takes what it needs of it; what it does not know it passes over, as
 * versions of podman differ in that. */
#define _GNU_SOURCE 1
#include "network_request.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "json_walk.h"

/* ---- values ---- */

/* A text without escapes, as names, addresses and words of podman's are. */
static int take_text(struct slice value, const char *what, char *to, size_t size, struct err *err)
{
    if (value.n < 2 || value.p[0] != '"')
        return err_set(err, ERR_PARSE, "%s is missing or not a text", what);
    if (value.n - 2 >= size)
        return err_set(err, ERR_LIMIT, "%s is longer than %zu bytes", what, size - 1);
    if (memchr(value.p, '\\', value.n) || memchr(value.p, '\0', value.n))
        return err_set(err, ERR_PARSE, "%s has a character that no name has", what);
    memcpy(to, value.p + 1, value.n - 2);
    to[value.n - 2] = '\0';
    return 0;
}

static int take_number(struct slice value, const char *what, uint64_t max, uint64_t *ret,
                       struct err *err)
{
    return slice_u64(value, max, ret) < 0 ? err_set(err, ERR_PARSE, "%s is not a number up to %llu",
                                                    what, (unsigned long long)max)
                                          : 0;
}

static bool is_true(struct slice object, const char *name)
{
    return slice_eq_str(json_find(object, name), "true");
}

static bool is_null(struct slice value)
{
    return value.n == 0 || slice_eq_str(value, "null");
}

/* For each item of a list; null and none are empty ones. */
typedef int item_fn(struct slice item, void *arg, struct err *err);

static int each(struct slice list, const char *what, item_fn *fn, void *arg, struct err *err)
{
    struct json_walk w = {list.p, list.p + list.n};
    struct slice item;
    if (is_null(list))
        return 0;
    if (!json_next_is(&w, '['))
        return err_set(err, ERR_PARSE, "%s is not a list", what);
    if (json_next_is(&w, ']'))
        return 0;
    do {
        if (!json_value(&w, &item))
            return err_set(err, ERR_PARSE, "%s is not a list", what);
        if (fn(item, arg, err) < 0)
            return -1;
    } while (json_next_is(&w, ','));
    return json_next_is(&w, ']') ? 0 : err_set(err, ERR_PARSE, "%s is not a list", what);
}

/* ---- ports ---- */

static int add_ports(struct network_request *r, const struct network_port *first, uint64_t n,
                     struct err *err)
{
    if (n == 0 || first->host + n > 65536 || first->container + n > 65536)
        return err_set(err, ERR_PARSE, "a range of ports ends beyond 65535");
    if (n > NETWORK_PORTS_MAX - r->nports)
        return err_set(err, ERR_LIMIT, "a container can have %d mapped ports in here",
                       NETWORK_PORTS_MAX);
    for (uint64_t i = 0; i < n; i++) {
        struct network_port *p = &r->ports[r->nports++];
        *p = *first;
        p->host = (uint16_t)(first->host + i);
        p->container = (uint16_t)(first->container + i);
    }
    return 0;
}

static int on_port(struct slice item, void *arg, struct err *err)
{
    struct network_port p = {.udp = false};
    uint64_t host, container, n = 1;
    char protocol[8];
    unsigned char ip[16];
    struct slice range = json_find(item, "\"range\""), host_ip = json_find(item, "\"host_ip\"");
    if (take_number(json_find(item, "\"host_port\""), "host_port", 65535, &host, err) < 0 ||
        take_number(json_find(item, "\"container_port\""), "container_port", 65535, &container,
                    err) < 0 ||
        take_text(json_find(item, "\"protocol\""), "protocol", protocol, sizeof protocol, err) <
            0 ||
        (!is_null(range) && take_number(range, "range", 65535, &n, err) < 0) ||
        (!is_null(host_ip) && take_text(host_ip, "host_ip", p.host_ip, sizeof p.host_ip, err) < 0))
        return -1;
    if (host == 0 || container == 0)
        return err_set(err, ERR_PARSE, "a mapped port is 0");
    if (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0)
        return err_set(err, ERR_DENIED,
                       "ports of %s cannot be mapped in a sandbox: tcp and udp can", protocol);
    if (p.host_ip[0] && inet_pton(AF_INET, p.host_ip, ip) != 1 &&
        inet_pton(AF_INET6, p.host_ip, ip) != 1)
        return err_set(err, ERR_PARSE, "host_ip %s is not an address", p.host_ip);
    p.host = (uint16_t)host;
    p.container = (uint16_t)container;
    p.udp = protocol[0] == 'u';
    return add_ports(arg, &p, n ? n : 1, err);
}

/* ---- networks ---- */

/* The first address of IPv4: others are podman's to give and nobody's to have in here. */
static int on_address(struct slice item, void *arg, struct err *err)
{
    struct network_part *part = arg;
    static const unsigned char none[4];
    char text[INET6_ADDRSTRLEN];
    if (take_text(item, "an address", text, sizeof text, err) < 0)
        return -1;
    if (memcmp(part->ip, none, 4) == 0 && strchr(text, ':') == NULL &&
        inet_pton(AF_INET, text, part->ip) != 1)
        return err_set(err, ERR_PARSE, "%s is not an address", text);
    return 0;
}

static int on_alias(struct slice item, void *arg, struct err *err)
{
    struct network_part *part = arg;
    if (part->naliases == NETWORK_ALIASES_MAX)
        return err_set(err, ERR_LIMIT, "a container can have %d names in a network in here",
                       NETWORK_ALIASES_MAX);
    return take_text(item, "an alias", part->aliases[part->naliases++], sizeof part->aliases[0],
                     err);
}

static bool in_subnet(const struct network_part *part, const unsigned char ip[4])
{
    uint32_t a, b;
    memcpy(&a, part->ip, 4);
    memcpy(&b, ip, 4);
    return part->bits > 0 && ((ntohl(a) ^ ntohl(b)) >> (32 - part->bits)) == 0;
}

/* The subnet that the container's address is of. */
static int on_subnet(struct slice item, void *arg, struct err *err)
{
    struct network_part *part = arg;
    struct network_part seen = *part;
    char text[INET6_ADDRSTRLEN + 4];
    unsigned char ip[4];
    uint64_t bits;
    if (take_text(json_find(item, "\"subnet\""), "a subnet", text, sizeof text, err) < 0)
        return -1;
    char *slash = strchr(text, '/');
    if (slash == NULL || slice_u64(slice_str(slash + 1), 128, &bits) < 0)
        return err_set(err, ERR_PARSE, "%s is not a subnet", text);
    *slash = '\0';
    if (strchr(text, ':'))
        return 0;
    if (bits == 0 || bits > 30 || inet_pton(AF_INET, text, ip) != 1)
        return err_set(err, ERR_PARSE, "%s/%llu is not a subnet of IPv4", text,
                       (unsigned long long)bits);
    seen.bits = (unsigned)bits;
    if (part->bits || !in_subnet(&seen, ip))
        return 0;
    struct slice gateway = json_find(item, "\"gateway\"");
    part->bits = (unsigned)bits;
    if (is_null(gateway)) /* podman may give the first address to a container then */
        return 0;
    if (take_text(gateway, "a gateway", text, sizeof text, err) < 0)
        return -1;
    if (inet_pton(AF_INET, text, part->gateway) != 1)
        return err_set(err, ERR_PARSE, "the gateway %s is not an address", text);
    return 0;
}

static int take_mac(struct slice value, struct network_part *part, struct err *err)
{
    char text[18], rest;
    unsigned m[NETWORK_MAC];
    if (is_null(value) || value.n == 2) {
        static const unsigned char local[2] = {0x02, 0x42};
        memcpy(part->mac, local, 2);
        memcpy(part->mac + 2, part->ip, 4);
        return 0;
    }
    if (take_text(value, "static_mac", text, sizeof text, err) < 0)
        return -1;
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
               &rest) != NETWORK_MAC)
        return err_set(err, ERR_PARSE, "%s is not a hardware address", text);
    for (int i = 0; i < NETWORK_MAC; i++)
        part->mac[i] = (unsigned char)m[i];
    return 0;
}

static int take_network(struct slice info, struct network_part *part, struct err *err)
{
    char driver[32];
    if (take_text(json_find(info, "\"driver\""), "a network's driver", driver, sizeof driver, err) <
        0)
        return -1;
    if (strcmp(driver, "bridge") != 0)
        return err_set(err, ERR_DENIED, "a sandbox has networks of the driver bridge alone");
    part->internal = is_true(info, "\"internal\"");
    part->names = is_true(info, "\"dns_enabled\"");
    if (take_text(json_find(info, "\"network_interface\""), "a network's interface", part->bridge,
                  sizeof part->bridge, err) < 0 ||
        each(json_find(info, "\"subnets\""), "subnets", on_subnet, part, err) < 0)
        return -1;
    return part->bits ? 0
                      : err_set(err, ERR_DENIED,
                                "networks in a sandbox have IPv4, and no subnet of it is there");
}

static int take_part(struct slice key, struct slice value, struct slice infos,
                     struct network_part *part, struct err *err)
{
    char quoted[NETWORK_NAME_MAX + 3];
    if (take_text(key, "a network's name", part->name, sizeof part->name, err) < 0)
        return -1;
    snprintf(quoted, sizeof quoted, "\"%s\"", part->name);
    struct slice info = json_find(infos, quoted);
    if (is_null(info))
        return err_set(err, ERR_PARSE, "nothing is said of that network");
    if (take_text(json_find(value, "\"interface_name\""), "interface_name", part->interface,
                  sizeof part->interface, err) < 0 ||
        each(json_find(value, "\"static_ips\""), "static_ips", on_address, part, err) < 0 ||
        each(json_find(value, "\"aliases\""), "aliases", on_alias, part, err) < 0 ||
        take_network(info, part, err) < 0 ||
        take_mac(json_find(value, "\"static_mac\""), part, err) < 0)
        return -1;
    return 0;
}

static int take_parts(struct slice networks, struct slice infos, struct network_request *ret,
                      struct err *err)
{
    struct json_walk w = {networks.p, networks.p + networks.n};
    struct slice key, value;
    if (!json_next_is(&w, '{'))
        return err_set(err, ERR_PARSE, "no networks are said");
    if (json_next_is(&w, '}'))
        return 0;
    do {
        if (!json_member(&w, &key, &value))
            return err_set(err, ERR_PARSE, "the networks are not JSON");
        if (ret->nparts == NETWORK_PARTS_MAX)
            return err_set(err, ERR_LIMIT, "a container can have %d networks in here",
                           NETWORK_PARTS_MAX);
        struct network_part *part = &ret->parts[ret->nparts++];
        if (take_part(key, value, infos, part, err) < 0)
            return err_wrap(err, "network %.*s", SL(key));
    } while (json_next_is(&w, ','));
    return json_next_is(&w, '}') ? 0 : err_set(err, ERR_PARSE, "the networks are not JSON");
}

int network_request_parse(struct slice text, struct network_request *ret, struct err *err)
{
    memset(ret, 0, sizeof *ret);
    struct slice name = json_find(text, "\"container_name\"");
    if (text.n > NETWORK_REQUEST_MAX)
        return err_set(err, ERR_LIMIT, "what is asked is longer than %d bytes",
                       NETWORK_REQUEST_MAX);
    if (take_text(json_find(text, "\"container_id\""), "container_id", ret->id, sizeof ret->id,
                  err) < 0 ||
        (!is_null(name) && take_text(name, "container_name", ret->name, sizeof ret->name, err) < 0))
        return -1;
    return each(json_find(text, "\"port_mappings\""), "port_mappings", on_port, ret, err) < 0
               ? -1
               : take_parts(json_find(text, "\"networks\""), json_find(text, "\"network_info\""),
                            ret, err);
}

bool network_part_has_gateway(const struct network_part *p)
{
    static const unsigned char none[4];
    return memcmp(p->gateway, none, 4) != 0;
}

/* ---- the answer ---- */

static int status_of(const struct network_part *p, char *to, size_t size)
{
    char ip[INET_ADDRSTRLEN], gateway[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, p->ip, ip, sizeof ip);
    inet_ntop(AF_INET, p->gateway, gateway, sizeof gateway);
    const unsigned char *m = p->mac;
    bool has = network_part_has_gateway(p), names = p->names && has, leads = !p->internal && has;
    int n = snprintf(to, size,
                     "\"%s\":{\"dns_search_domains\":[],\"dns_server_ips\":[%s%s%s],\"interfaces\":"
                     "{\"%s\":{\"mac_address\":\"%02x:%02x:%02x:%02x:%02x:%02x\",\"subnets\":"
                     "[{\"ipnet\":\"%s/%u\"%s%s%s}]}}}",
                     p->name, names ? "\"" : "", names ? gateway : "", names ? "\"" : "",
                     p->interface, m[0], m[1], m[2], m[3], m[4], m[5], ip, p->bits,
                     leads ? ",\"gateway\":\"" : "", leads ? gateway : "", leads ? "\"" : "");
    return n < 0 || (size_t)n >= size ? -1 : n;
}

int network_request_status(const struct network_request *r, char *to, size_t size)
{
    size_t at = 0;
    for (unsigned i = 0; i < r->nparts; i++) {
        if (size - at < 3)
            return -1;
        to[at++] = i ? ',' : '{';
        int n = status_of(&r->parts[i], to + at, size - at);
        if (n < 0)
            return -1;
        at += (size_t)n;
    }
    int n = snprintf(to + at, size - at, r->nparts ? "}" : "{}");
    return n < 0 || (size_t)n >= size - at ? -1 : 0;
}
