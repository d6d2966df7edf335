/* The packet log: packets as bytes, netlink datagrams as the kernel writes them, losses. */
#include "nflog.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_nflog(void);

static size_t v4(unsigned char *p, uint8_t protocol, const char *to, const void *rest, size_t n)
{
    memset(p, 0, 20);
    p[0] = 0x45;
    p[9] = protocol;
    CU_ASSERT_FATAL(inet_pton(AF_INET, to, p + 16) == 1);
    memcpy(p + 20, rest, n);
    return 20 + n;
}

static size_t v6(unsigned char *p, uint8_t next, const char *to, const void *rest, size_t n)
{
    memset(p, 0, 40);
    p[0] = 0x60;
    p[6] = next;
    CU_ASSERT_FATAL(inet_pton(AF_INET6, to, p + 24) == 1);
    memcpy(p + 40, rest, n);
    return 40 + n;
}

static void expect(const unsigned char *p, size_t n, const char *text)
{
    struct nflog_packet k;
    char buf[NFLOG_TARGET_MAX] = "none";
    if (nflog_packet_parse(p, n, &k) == 0)
        nflog_packet_text(&k, buf, sizeof buf);
    CU_ASSERT_STRING_EQUAL(buf, text);
    if (strcmp(buf, text) != 0)
        printf("# %s, expected %s\n", buf, text);
}

static const unsigned char ports[8] = {0x30, 0x39, 0x01, 0xbb}; /* 12345 to 443 */

static void test_v4(void)
{
    unsigned char p[128];
    expect(p, v4(p, 17, "8.8.8.8", "\0\1\0\x35", 4), "udp 8.8.8.8:53");
    expect(p, v4(p, 6, "192.0.2.1", ports, 8), "tcp 192.0.2.1:443");
    expect(p, v4(p, 136, "192.0.2.1", ports, 8), "udplite 192.0.2.1:443");
    expect(p, v4(p, 132, "192.0.2.1", ports, 8), "sctp 192.0.2.1:443");
    expect(p, v4(p, 33, "192.0.2.1", ports, 8), "dccp 192.0.2.1:443");
    expect(p, v4(p, 1, "1.1.1.1", "\x08\0\0\0", 4), "icmp 1.1.1.1");
    expect(p, v4(p, 47, "1.1.1.1", ports, 8), "protocol-47 1.1.1.1");
    expect(p, v4(p, 255, "255.255.255.255", "", 0), "protocol-255 255.255.255.255");
}

static void test_v4_odd(void)
{
    unsigned char p[128];
    size_t n = v4(p, 17, "8.8.8.8", ports, 8);
    p[6] = 0x20; /* more fragments: still the first */
    expect(p, n, "udp 8.8.8.8:443");
    p[7] = 1; /* a later fragment has no ports */
    expect(p, n, "udp 8.8.8.8");
    n = v4(p, 17, "8.8.8.8", ports, 8);
    expect(p, 23, "udp 8.8.8.8"); /* cut in the ports */
    expect(p, 24, "udp 8.8.8.8:443");
    expect(p, 20, "udp 8.8.8.8");
    for (size_t i = 0; i < 20; i++)
        expect(p, i, "none");
    p[0] = 0x46; /* options: four bytes further on */
    memmove(p + 24, p + 20, 8);
    expect(p, n + 4, "udp 8.8.8.8:443");
    p[0] = 0x4f; /* a header longer than the packet */
    expect(p, n, "udp 8.8.8.8");
    p[0] = 0x44;
    expect(p, n, "none");
    p[0] = 0x55;
    expect(p, n, "none");
}

static void test_v6(void)
{
    unsigned char p[256];
    static const unsigned char injector_channel_then_udp[16] = {17,   0,    [8] = 0x30,
                                                                0x39, 0x01, 0xbb};
    static const unsigned char first_fragment[16] = {17, 0, 0, 1, [8] = 0x30, 0x39, 0x01, 0xbb};
    static const unsigned char later_fragment[16] = {17, 0, 0, 8, [8] = 0x30, 0x39, 0x01, 0xbb};
    static const unsigned char ah_then_tcp[16] = {6, 0, [8] = 0x30, 0x39, 0x01, 0xbb};
    expect(p, v6(p, 17, "2001:4860:4860::8888", "\0\1\0\x35", 4), "udp [2001:4860:4860::8888]:53");
    expect(p, v6(p, 58, "ff02::2", "\x85\0\0\0", 4), "icmpv6 [ff02::2]");
    expect(p, v6(p, 0, "::1", injector_channel_then_udp, 16), "udp [::1]:443");
    expect(p, v6(p, 60, "::1", injector_channel_then_udp, 16), "udp [::1]:443");
    expect(p, v6(p, 43, "::1", injector_channel_then_udp, 16), "udp [::1]:443");
    expect(p, v6(p, 44, "::1", first_fragment, 16), "udp [::1]:443");
    expect(p, v6(p, 44, "::1", later_fragment, 16), "udp [::1]");
    expect(p, v6(p, 51, "::1", ah_then_tcp, 16), "tcp [::1]:443");
    expect(p, v6(p, 59, "::1", "", 0), "protocol-59 [::1]");
}

static void test_v6_odd(void)
{
    unsigned char p[256], chain[8 * 12] = {0};
    size_t n = v6(p, 17, "::1", ports, 8);
    for (size_t i = 0; i < 40; i++)
        expect(p, i, "none");
    expect(p, 43, "udp [::1]");
    expect(p, n, "udp [::1]:443");
    expect(p, v6(p, 0, "::1", "\x11\xff\0\0\0\0\0\0", 8), "udp [::1]"); /* longer than there is */
    expect(p, v6(p, 0, "::1", "\x11\0\0", 3), "protocol-0 [::1]");
    expect(p, v6(p, 0, "::1", chain, sizeof chain), "protocol-0 [::1]"); /* never ends */
}

/* ---- netlink ---- */

static struct nlmsghdr *put_message(void *at, uint16_t type, const uint32_t *seq,
                                    const void *packet, size_t n)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(at);
    h->nlmsg_type = type;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->nfgen_family = AF_UNSPEC;
    mnl_attr_put_str(h, NFULA_PREFIX, "x");
    if (packet)
        mnl_attr_put(h, NFULA_PAYLOAD, n, packet);
    if (seq)
        mnl_attr_put_u32(h, NFULA_SEQ, htonl(*seq));
    return h;
}

enum { PACKET_TYPE = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET };

struct seen {
    unsigned n;
    char text[NFLOG_TARGET_MAX];
};

static void on_packet(void *arg, const struct nflog_packet *k)
{
    struct seen *s = arg;
    s->n++;
    nflog_packet_text(k, s->text, sizeof s->text);
}

/* The datagram as its only reader sees it: in a buffer of exactly its size. */
static unsigned feed(const void *p, size_t n, struct nflog_seq *seq, struct seen *s)
{
    unsigned char exact[2048] __attribute__((aligned(8)));
    CU_ASSERT_FATAL(n <= sizeof exact);
    memcpy(exact, p, n);
    return nflog_datagram(exact, n, seq, on_packet, s);
}

static void test_datagram(void)
{
    unsigned char room[2048] __attribute__((aligned(8))), packet[64];
    struct nflog_seq seq = {0};
    struct seen seen = {0};
    size_t n = v4(packet, 17, "9.9.9.9", ports, 8);
    uint32_t number = 5;
    struct nlmsghdr *h = put_message(room, PACKET_TYPE, &number, packet, n);
    size_t at = MNL_ALIGN(h->nlmsg_len);
    number++;
    h = put_message(room + at, PACKET_TYPE, &number, packet, n);
    at += MNL_ALIGN(h->nlmsg_len);
    h = put_message(room + at, NLMSG_DONE, NULL, NULL, 0);
    at += h->nlmsg_len;
    CU_ASSERT_EQUAL(feed(room, at, &seq, &seen), 0);
    CU_ASSERT_EQUAL(seen.n, 2);
    CU_ASSERT_STRING_EQUAL(seen.text, "udp 9.9.9.9:443");
    CU_ASSERT_EQUAL(seq.lost, 0); /* where the numbering began is nobody's loss */
    number = 10;                  /* 7, 8 and 9 never came */
    h = put_message(room, PACKET_TYPE, &number, packet, n);
    CU_ASSERT_EQUAL(feed(room, h->nlmsg_len, &seq, &seen), 0);
    CU_ASSERT_EQUAL(seq.lost, 3);
    number = 0; /* a new numbering */
    h = put_message(room, PACKET_TYPE, &number, packet, n);
    CU_ASSERT_EQUAL(feed(room, h->nlmsg_len, &seq, &seen), 0);
    CU_ASSERT_EQUAL(seq.lost, 3);
    CU_ASSERT_EQUAL(seen.n, 4);
}

static void test_datagram_odd(void)
{
    unsigned char room[2048] __attribute__((aligned(8))), packet[64];
    struct nflog_seq seq = {0};
    struct seen seen = {0};
    size_t n = v4(packet, 17, "9.9.9.9", ports, 8);
    struct nlmsghdr *h = put_message(room, PACKET_TYPE, NULL, packet, n);
    size_t whole = h->nlmsg_len;
    for (size_t i = 1; i < whole; i++)
        CU_ASSERT_EQUAL(feed(room, i, &seq, &seen), 1); /* cut anywhere */
    CU_ASSERT_EQUAL(seen.n, 0);
    CU_ASSERT_EQUAL(feed(room, 0, &seq, &seen), 0);
    h = put_message(room, PACKET_TYPE, NULL, NULL, 0);
    CU_ASSERT_EQUAL(feed(room, h->nlmsg_len, &seq, &seen), 1); /* no packet in it */
    h = put_message(room, 77, NULL, packet, n);
    CU_ASSERT_EQUAL(feed(room, h->nlmsg_len, &seq, &seen), 1); /* another kind */
    h = put_message(room, PACKET_TYPE, NULL, "\x75", 1);
    CU_ASSERT_EQUAL(feed(room, h->nlmsg_len, &seq, &seen), 1); /* no IP packet */
    h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = PACKET_TYPE; /* no nfgenmsg */
    CU_ASSERT_EQUAL(feed(room, h->nlmsg_len, &seq, &seen), 1);
    CU_ASSERT_EQUAL(seen.n, 0);
    CU_ASSERT(!seq.has && seq.lost == 0);
}

/* As they come from the builder, until it is gone. */
static void test_stream(void)
{
    unsigned char room[512] __attribute__((aligned(8))), packet[64];
    struct seen seen = {0};
    struct err err = {0};
    int pair[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    struct event_base *base = event_base_new();
    struct nflog *l = nflog_new(base, pair[0], on_packet, &seen, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(l);
    struct nlmsghdr *h =
        put_message(room, PACKET_TYPE, NULL, packet, v4(packet, 17, "9.9.9.9", ports, 8));
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(send(pair[1], room, h->nlmsg_len, 0), (ssize_t)h->nlmsg_len);
    CU_ASSERT_EQUAL(event_base_loop(base, EVLOOP_ONCE), 0);
    CU_ASSERT_EQUAL(seen.n, 3);
    close(pair[1]);
    CU_ASSERT_EQUAL(event_base_loop(base, EVLOOP_ONCE), 0);
    CU_ASSERT_EQUAL(event_base_loop(base, EVLOOP_NONBLOCK), 1); /* nothing is watched any more */
    CU_ASSERT_EQUAL(nflog_lost(l), 0);
    nflog_free(l);
    event_base_free(base);
}

void suite_nflog(void)
{
    CU_pSuite s = CU_add_suite("nflog", NULL, NULL);
    CU_add_test(s, "IPv4 packets", test_v4);
    CU_add_test(s, "odd IPv4 packets", test_v4_odd);
    CU_add_test(s, "IPv6 packets", test_v6);
    CU_add_test(s, "odd IPv6 packets", test_v6_odd);
    CU_add_test(s, "a datagram of the kernel's, and gaps", test_datagram);
    CU_add_test(s, "odd datagrams", test_datagram_odd);
    CU_add_test(s, "as they are passed on", test_stream);
}

void tap_suites(void)
{
    suite_nflog();
}
