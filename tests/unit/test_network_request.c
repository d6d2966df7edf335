/* What podman asks for a container's networks, and what is refused, in words. */
#include "network_request.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define NETWORK                                                                                 \
    "\"driver\":\"bridge\",\"network_interface\":\"podman1\",\"dns_enabled\":true,\"subnets\":" \
    "[{\"subnet\":\"fd00::/64\",\"gateway\":\"fd00::1\"},{\"subnet\":\"10.1.0.0/24\"},"         \
    "{\"subnet\":\"10.89.0.0/24\",\"gateway\":\"10.89.0.1\"}]"
#define PART "\"static_ips\":[\"fd00::2\",\"10.89.0.7\"],\"interface_name\":\"eth0\""

static struct network_request r;
static struct err err;

/* ports, a network's part, what is said of it */
static int parse(const char *ports, const char *part, const char *network)
{
    static char text[8192];
    snprintf(
        text, sizeof text,
        "{\"container_id\":\"c1\",\"container_name\":\"web\",\"port_mappings\":%s,\"networks\":"
        "{\"back\":{%s}},\"network_info\":{\"back\":{%s}},\"later\":[1,{}]}",
        ports, part, network);
    err = (struct err){0};
    return network_request_parse(slice_str(text), &r, &err);
}

static void refused(const char *ports, const char *part, const char *network, const char *why)
{
    CU_ASSERT_EQUAL(parse(ports, part, network), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
    if (strstr(err.text, why) == NULL)
        printf("# %s\n", err.text);
}

static void test_taken(void)
{
    char status[1000];
    CU_ASSERT_EQUAL(parse("[{\"host_ip\":\"127.0.0.1\",\"container_port\":80,\"host_port\":8080,"
                          "\"range\":2,\"protocol\":\"tcp\"},{\"container_port\":53,\"host_port\":"
                          "5300,\"protocol\":\"udp\",\"host_ip\":\"\"}]",
                          PART ",\"aliases\":[\"a\",\"b.c\"]", NETWORK),
                    0);
    CU_ASSERT_STRING_EQUAL(r.id, "c1");
    CU_ASSERT_STRING_EQUAL(r.name, "web");
    CU_ASSERT_EQUAL_FATAL(r.nports, 3);
    CU_ASSERT_TRUE(r.ports[1].host == 8081 && r.ports[1].container == 81 && !r.ports[1].udp);
    CU_ASSERT_STRING_EQUAL(r.ports[1].host_ip, "127.0.0.1");
    CU_ASSERT_TRUE(r.ports[2].udp && r.ports[2].host_ip[0] == '\0');
    const struct network_part *p = &r.parts[0];
    CU_ASSERT_TRUE(r.nparts == 1 && p->naliases == 2 && p->names && !p->internal && p->bits == 24);
    CU_ASSERT_STRING_EQUAL(p->aliases[1], "b.c");
    CU_ASSERT_EQUAL(memcmp(p->gateway, "\x0a\x59\x00\x01", 4), 0);
    CU_ASSERT_EQUAL(memcmp(p->mac, "\x02\x42\x0a\x59\x00\x07", 6), 0);
    CU_ASSERT_EQUAL(network_request_status(&r, status, sizeof status), 0);
    CU_ASSERT_STRING_EQUAL(
        status, "{\"back\":{\"dns_search_domains\":[],\"dns_server_ips\":[\"10.89.0.1\"],"
                "\"interfaces\":{\"eth0\":{\"mac_address\":\"02:42:0a:59:00:07\","
                "\"subnets\":[{\"ipnet\":\"10.89.0.7/24\",\"gateway\":\"10.89.0.1\"}]}}}}");
    CU_ASSERT_EQUAL(network_request_status(&r, status, 100), -1);
}

static void test_without(void)
{
    char status[400];
    CU_ASSERT_EQUAL(parse("null",
                          "\"static_ips\":[\"10.88.0.2\"],\"interface_name\":\"eth0\",\"aliases\":"
                          "null,\"static_mac\":\"44:33:22:11:00:0f\"",
                          "\"driver\":\"bridge\",\"network_interface\":\"podman0\",\"internal\":"
                          "true,\"subnets\":[{\"subnet\":\"10.88.0.0/16\"}]"),
                    0);
    CU_ASSERT_TRUE(r.nports == 0 && r.parts[0].internal && !r.parts[0].names);
    /* podman gives the network's first address to a container then */
    CU_ASSERT_FALSE(network_part_has_gateway(&r.parts[0]));
    CU_ASSERT_EQUAL(r.parts[0].mac[5], 15);
    CU_ASSERT_EQUAL(network_request_status(&r, status, sizeof status), 0);
    CU_ASSERT_PTR_NULL(strstr(status, "gateway"));
    CU_ASSERT_EQUAL(parse("[]", PART,
                          "\"driver\":\"bridge\",\"network_interface\":\"b\",\"dns_enabled\":true,"
                          "\"subnets\":[{\"subnet\":\"10.89.0.0/24\"}]"),
                    0);
    CU_ASSERT_EQUAL(network_request_status(&r, status, sizeof status), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(status, "\"dns_server_ips\":[]"));
    CU_ASSERT_PTR_NULL(strstr(status, "gateway"));
    CU_ASSERT_EQUAL(
        network_request_parse(SLICE("{\"container_id\":\"x\",\"networks\":{}}"), &r, &err), 0);
    CU_ASSERT_EQUAL(network_request_status(&r, status, sizeof status), 0);
    CU_ASSERT_STRING_EQUAL(status, "{}");
}

static void test_refused(void)
{
    static const char port[] = "[{\"container_port\":%s,\"host_port\":%s,\"protocol\":\"%s\"%s}]";
    static const struct {
        const char *container, *host, *protocol, *more, *why;
    } ports[] = {
        {"80", "0", "tcp", "", "is 0"},
        {"80", "65536", "tcp", "", "host_port is not a number"},
        {"-1", "80", "tcp", "", "container_port is not a number"},
        {"80", "80", "sctp", "", "sctp cannot be mapped"},
        {"80", "65535", "tcp", ",\"range\":2", "beyond 65535"},
        {"80", "1024", "tcp", ",\"range\":300", "256 mapped ports"},
        {"80", "80", "tcp", ",\"host_ip\":\"here\"", "is not an address"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        char text[200];
        snprintf(text, sizeof text, port, ports[i].container, ports[i].host, ports[i].protocol,
                 ports[i].more);
        refused(text, PART, NETWORK, ports[i].why);
    }
    refused("{}", PART, NETWORK, "port_mappings is not a list");
    refused("[]", "\"interface_name\":\"eth0\"", NETWORK, "no subnet");
    refused("[]", "\"static_ips\":[\"10.89.0.7\"]", NETWORK, "interface_name");
    refused("[]", "\"static_ips\":[\"10.89.0.7\"],\"interface_name\":\"an-interface-too-long\"",
            NETWORK, "longer than 15");
    refused("[]", "\"static_ips\":[\"10.89.0.\\u0037\"],\"interface_name\":\"eth0\"", NETWORK,
            "no name has");
    refused("[]", PART ",\"static_mac\":\"1:2:3\"", NETWORK, "not a hardware address");
    refused("[]", PART, "\"driver\":\"macvlan\"", "driver bridge alone");
    refused("[]", PART,
            "\"driver\":\"bridge\",\"network_interface\":\"b\",\"subnets\":"
            "[{\"subnet\":\"0.0.0.0/0\"}]",
            "not a subnet of IPv4");
    refused("[]", PART,
            "\"driver\":\"bridge\",\"network_interface\":\"b\",\"subnets\":"
            "[{\"subnet\":\"fd00::/64\"}]",
            "networks in a sandbox have IPv4");
    CU_ASSERT_EQUAL(network_request_parse(SLICE("{\"container_id\":\"x\"}"), &r, &err), -1);
    CU_ASSERT_EQUAL(network_request_parse(SLICE("[]"), &r, &err), -1);
}

/* More than there is room for: aliases, networks, bytes. */
static void test_bounds(void)
{
    static char text[NETWORK_REQUEST_MAX + 100], aliases[1000];
    size_t n = 0;
    for (int i = 0; i <= NETWORK_ALIASES_MAX; i++)
        n += (size_t)snprintf(aliases + n, sizeof aliases - n, "%s\"a%d\"", i ? "," : "", i);
    snprintf(text, sizeof text, PART ",\"aliases\":[%s]", aliases);
    refused("[]", text, NETWORK, "16 names");
    n = (size_t)snprintf(text, sizeof text, "{\"container_id\":\"x\",\"networks\":{");
    for (int i = 0; i <= NETWORK_PARTS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"n%d\":{" PART "}", i ? "," : "", i);
    n += (size_t)snprintf(text + n, sizeof text - n, "},\"network_info\":{");
    for (int i = 0; i <= NETWORK_PARTS_MAX; i++)
        n +=
            (size_t)snprintf(text + n, sizeof text - n, "%s\"n%d\":{" NETWORK "}", i ? "," : "", i);
    snprintf(text + n, sizeof text - n, "}}");
    CU_ASSERT_EQUAL(network_request_parse(slice_str(text), &r, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "8 networks"));
    memset(text, ' ', sizeof text - 1);
    memcpy(text, "{\"container_id\":\"x\",\"networks\":{}}", 34);
    CU_ASSERT_EQUAL(network_request_parse((struct slice){text, sizeof text - 1}, &r, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "longer than"));
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("network_request", NULL, NULL);
    CU_add_test(s, "what is asked", test_taken);
    CU_add_test(s, "what is left out", test_without);
    CU_add_test(s, "what is refused", test_refused);
    CU_add_test(s, "bounds", test_bounds);
}
