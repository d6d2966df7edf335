/* dns_parse on any bytes; what it accepts is canonical, and every answer is well formed and small.
 */
#include "dns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct dns_question *q, const unsigned char *query,
                         const unsigned char *out, size_t n)
{
    if (n < 12 || n > DNS_UDP_MAX)
        abort();
    if (memcmp(out, query, 2) != 0 || !(out[2] & 0x80) || (out[2] & 0x78))
        abort();
    if (q->wire_n && memcmp(out + 12, q->wire, q->wire_n) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char ip[16] = {198, 18, 0, 1};
    struct dns_question q;
    enum dns_code code;
    unsigned char out[DNS_UDP_MAX];
    enum dns_parse what = dns_parse(data, size, &q, &code);
    if (what == DNS_IGNORE) {
        if (size >= 12 && !(data[2] & 0x80))
            abort();
        return 0;
    }
    check_answer(&q, data, out, dns_write_code(&q, code, out, sizeof out));
    if (what != DNS_PARSED) {
        if (code == DNS_NOERROR)
            abort();
        return 0;
    }
    struct authority a;
    if (authority_host(&a, slice_str(q.host)) < 0 || a.kind != HOST_NAME ||
        strcmp(a.host, q.host) != 0 || q.wire_n == 0)
        abort();
    check_answer(&q, data, out, dns_write_address(&q, ip, out, sizeof out));
    check_answer(&q, data, out, dns_write_address(&q, NULL, out, sizeof out));
    check_answer(&q, data, out, dns_write_code(&q, DNS_NXDOMAIN, out, sizeof out));
    return 0;
}
