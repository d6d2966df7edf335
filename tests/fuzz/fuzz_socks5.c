/* The three readers of SOCKS5 on the same bytes: what they take lies within them, what they grant
 * is canonical and of this message alone, and a shorter piece of it is never a whole message. */
#include "socks5.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void within(struct slice in, struct slice part)
{
    if (part.n && (part.p < in.p || part.p + part.n > in.p + in.n))
        abort();
}

static void granted(const struct socks5_request *r)
{
    struct authority again;
    char text[HOST_TEXT_MAX + 2];
    size_t n = strlen(r->target.host);
    bool v6 = r->target.kind == HOST_IPV6;
    if (r->code || n == 0 || n > HOST_MAX || r->target.port == 0)
        abort();
    text[0] = '[';
    memcpy(text + v6, r->target.host, n);
    text[n + v6] = ']';
    if (authority_host(&again, (struct slice){text, n + (v6 ? 2 : 0)}) < 0 ||
        strcmp(again.host, r->target.host) != 0)
        abort();
    if (!r->named && address_port(&r->address.sa) != r->target.port)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = {(const char *)data, size};
    struct socks5_greeting g;
    struct socks5_login l;
    struct socks5_request r;
    ssize_t n = socks5_greeting(in, &g);
    if (n > 0 && ((size_t)n > size ||
                  socks5_greeting((struct slice){in.p, (size_t)n - 1}, &g) != SOCKS5_MORE))
        abort();
    n = socks5_login(in, &l);
    within(in, l.user);
    within(in, l.password);
    if (n > 0 &&
        ((size_t)n > size || socks5_login((struct slice){in.p, (size_t)n - 1}, &l) != SOCKS5_MORE))
        abort();
    n = socks5_request(in, &r);
    if (n == SOCKS5_MORE && size >= SOCKS5_MESSAGE_MAX)
        abort();
    if (n <= 0)
        return 0;
    if ((size_t)n > size || (r.reply == SOCKS5_GRANTED) != (r.code == NULL))
        abort();
    if (r.reply != SOCKS5_GRANTED)
        return 0;
    granted(&r);
    if (socks5_request((struct slice){in.p, (size_t)n - 1}, &r) != SOCKS5_MORE)
        abort();
    return 0;
}
