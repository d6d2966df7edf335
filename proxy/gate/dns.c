/* Reads a query and writes answers byte by byte; a question's name is checked as it is read, and an
 * answer points to it by compression. */
#include "dns.h"

#include <string.h>

enum {
    HEADER = 12,
    CLASS_IN = 1,
    TYPE_OPT = 41,
    TYPE_TRANSFER_FIRST = 249,
    TYPE_TRANSFER_LAST = 254
};
enum { FLAG_QR = 0x8000, FLAG_TC = 0x0200, FLAG_RD = 0x0100, FLAG_RA = 0x0080, FLAG_Z = 0x0040 };

struct reader {
    const unsigned char *p;
    size_t n;
};

static int take_u16(struct reader *r, uint16_t *v)
{
    if (r->n < 2)
        return -1;
    *v = (uint16_t)(r->p[0] << 8 | r->p[1]);
    r->p += 2;
    r->n -= 2;
    return 0;
}

/* The name as dotted text. A length byte above 63 is a compression pointer or a label type that
 * never came to life; a query has no reason to hold either. */
static int take_name(struct reader *r, char text[HOST_TEXT_MAX], size_t *text_n)
{
    size_t at = 0, used = 0;
    for (;;) {
        if (r->n == 0)
            return -1;
        size_t len = r->p[0];
        used += 1 + len;
        if (len > 63 || used > 255 || r->n < 1 + len)
            return -1;
        if (len == 0)
            break;
        if (at)
            text[at++] = '.';
        if (at + len > HOST_MAX || memchr(r->p + 1, '.', len))
            return -1;
        memcpy(text + at, r->p + 1, len);
        at += len;
        r->p += 1 + len;
        r->n -= 1 + len;
    }
    r->p++;
    r->n--;
    *text_n = at;
    return 0;
}

static int take_question(struct reader *r, struct dns_question *q, uint16_t *class)
{
    const unsigned char *start = r->p;
    char text[HOST_TEXT_MAX];
    size_t text_n;
    struct authority a;
    if (take_name(r, text, &text_n) < 0 || take_u16(r, &q->type) < 0 || take_u16(r, class) < 0)
        return -1;
    if (authority_host(&a, (struct slice){text, text_n}) < 0 || a.kind != HOST_NAME)
        return -1;
    memcpy(q->host, a.host, sizeof q->host);
    q->wire_n = (size_t)(r->p - start);
    memcpy(q->wire, start, q->wire_n);
    return 0;
}

/* The one additional record that a query may have. *version is its EDNS version. */
static int take_opt(struct reader *r, unsigned *version)
{
    uint16_t type, size, high, low, length;
    if (r->n < 1 || r->p[0] != 0)
        return -1;
    r->p++;
    r->n--;
    if (take_u16(r, &type) < 0 || take_u16(r, &size) < 0 || take_u16(r, &high) < 0 ||
        take_u16(r, &low) < 0 || take_u16(r, &length) < 0)
        return -1;
    if (type != TYPE_OPT || length != r->n)
        return -1;
    struct reader options = {r->p, r->n};
    while (options.n > 0) {
        uint16_t option, n;
        if (take_u16(&options, &option) < 0 || take_u16(&options, &n) < 0 || n > options.n)
            return -1;
        options.p += n;
        options.n -= n;
    }
    *version = high & 0xff;
    r->p += r->n;
    r->n = 0;
    return 0;
}

static enum dns_code parse_body(struct reader *r, uint16_t flags, const uint16_t counts[4],
                                struct dns_question *q)
{
    uint16_t class;
    unsigned version = 0;
    if (flags & (FLAG_TC | FLAG_Z | FLAG_RA | 0xf))
        return DNS_FORMERR;
    if (counts[0] != 1 || counts[1] != 0 || counts[2] != 0 || counts[3] > 1)
        return DNS_FORMERR;
    if (take_question(r, q, &class) < 0)
        return DNS_FORMERR;
    if (counts[3] == 1) {
        if (take_opt(r, &version) < 0)
            return DNS_FORMERR;
        q->edns = true;
    }
    if (r->n != 0 || q->type == 0 || q->type == TYPE_OPT)
        return DNS_FORMERR;
    if (class != CLASS_IN)
        return DNS_NOTIMP;
    if (version != 0)
        return DNS_BADVERS;
    if (q->type >= TYPE_TRANSFER_FIRST && q->type <= TYPE_TRANSFER_LAST)
        return DNS_REFUSED;
    return DNS_NOERROR;
}

enum dns_parse dns_parse(const unsigned char *p, size_t n, struct dns_question *q,
                         enum dns_code *code)
{
    struct reader r = {p, n};
    uint16_t flags, counts[4];
    memset(q, 0, sizeof *q);
    *code = DNS_FORMERR;
    if (n < HEADER)
        return DNS_IGNORE;
    (void)take_u16(&r, &q->id);
    (void)take_u16(&r, &flags);
    for (int i = 0; i < 4; i++)
        (void)take_u16(&r, &counts[i]);
    if (flags & FLAG_QR)
        return DNS_IGNORE;
    q->recursion = (flags & FLAG_RD) != 0;
    if (flags >> 11 & 15) {
        *code = DNS_NOTIMP;
        return DNS_ANSWER_NOW;
    }
    if (n <= DNS_QUERY_MAX)
        *code = parse_body(&r, flags, counts, q);
    if (*code == DNS_NOERROR)
        return DNS_PARSED;
    if (*code == DNS_FORMERR) { /* what could not be read is not given back */
        q->wire_n = 0;
        q->edns = false;
        q->host[0] = 0;
    }
    return DNS_ANSWER_NOW;
}

static void put_u16(unsigned char *out, size_t *at, unsigned v)
{
    out[(*at)++] = (unsigned char)(v >> 8);
    out[(*at)++] = (unsigned char)v;
}

static size_t write_head(const struct dns_question *q, enum dns_code code, bool answer,
                         unsigned char *out)
{
    size_t at = 0;
    unsigned flags = FLAG_QR | FLAG_RA | ((unsigned)code & 15);
    put_u16(out, &at, q->id);
    put_u16(out, &at, flags | (q->recursion ? FLAG_RD : 0));
    put_u16(out, &at, q->wire_n ? 1 : 0);
    put_u16(out, &at, answer ? 1 : 0);
    put_u16(out, &at, 0);
    put_u16(out, &at, q->edns ? 1 : 0);
    memcpy(out + at, q->wire, q->wire_n);
    return at + q->wire_n;
}

static size_t write_opt(const struct dns_question *q, enum dns_code code, unsigned char *out,
                        size_t at)
{
    if (!q->edns)
        return at;
    out[at++] = 0;
    put_u16(out, &at, TYPE_OPT);
    put_u16(out, &at, DNS_UDP_MAX);
    put_u16(out, &at, ((unsigned)code >> 4) << 8);
    put_u16(out, &at, 0);
    put_u16(out, &at, 0);
    return at;
}

size_t dns_write_code(const struct dns_question *q, enum dns_code code, unsigned char *out,
                      size_t size)
{
    if (size < DNS_UDP_MAX)
        return 0;
    return write_opt(q, code, out, write_head(q, code, false, out));
}

size_t dns_write_address(const struct dns_question *q, const unsigned char *ip, unsigned char *out,
                         size_t size)
{
    size_t ip_n = q->type == DNS_TYPE_A ? 4 : q->type == DNS_TYPE_AAAA ? 16 : 0;
    if (ip == NULL || ip_n == 0 || q->wire_n == 0)
        return dns_write_code(q, DNS_NOERROR, out, size);
    if (size < DNS_UDP_MAX)
        return 0;
    size_t at = write_head(q, DNS_NOERROR, true, out);
    put_u16(out, &at, 0xc000 | HEADER); /* the name of the question */
    put_u16(out, &at, q->type);
    put_u16(out, &at, CLASS_IN);
    put_u16(out, &at, 0);
    put_u16(out, &at, DNS_TTL_SECONDS);
    put_u16(out, &at, (unsigned)ip_n);
    memcpy(out + at, ip, ip_n);
    return write_opt(q, DNS_NOERROR, out, at + ip_n);
}
