/* Reads greeting, login and request, each when it is whole; a request that cannot be granted gets
 * the reply for the client and the code for the log. */
#include "socks5.h"

#include <string.h>

enum { COMMAND_CONNECT = 1, TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4, REQUEST_HEAD = 4 };

static unsigned char byte_at(struct slice in, size_t i)
{
    return (unsigned char)in.p[i];
}

/* version, count, that many methods (RFC 1928 3) */
ssize_t socks5_greeting(struct slice in, struct socks5_greeting *ret)
{
    *ret = (struct socks5_greeting){false, false};
    if (in.n >= 1 && byte_at(in, 0) != SOCKS5_VERSION)
        return SOCKS5_BAD;
    if (in.n < 2)
        return SOCKS5_MORE;
    size_t count = byte_at(in, 1);
    if (count == 0)
        return SOCKS5_BAD;
    if (in.n < 2 + count)
        return SOCKS5_MORE;
    for (size_t i = 2; i < 2 + count; i++) {
        ret->none = ret->none || byte_at(in, i) == SOCKS5_NONE;
        ret->password = ret->password || byte_at(in, i) == SOCKS5_PASSWORD;
    }
    return (ssize_t)(2 + count);
}

/* version of this dialogue, length, user, length, password (RFC 1929 2) */
ssize_t socks5_login(struct slice in, struct socks5_login *ret)
{
    memset(ret, 0, sizeof *ret);
    if (in.n >= 1 && byte_at(in, 0) != SOCKS5_LOGIN_VERSION)
        return SOCKS5_BAD;
    if (in.n < 2)
        return SOCKS5_MORE;
    size_t user_n = byte_at(in, 1), at = 2 + user_n;
    if (in.n < at + 1)
        return SOCKS5_MORE;
    size_t password_n = byte_at(in, at);
    if (in.n < at + 1 + password_n)
        return SOCKS5_MORE;
    ret->user = (struct slice){in.p + 2, user_n};
    ret->password = (struct slice){in.p + at + 1, password_n};
    return (ssize_t)(at + 1 + password_n);
}

static void refuse(struct socks5_request *r, enum socks5_reply reply, const char *code)
{
    r->reply = reply;
    r->code = code;
}

static ssize_t address_target(struct slice in, int family, struct socks5_request *r)
{
    size_t n = family == AF_INET ? 4 : 16, end = REQUEST_HEAD + n + 2;
    if (in.n < end)
        return SOCKS5_MORE;
    uint16_t port = (uint16_t)(byte_at(in, end - 2) << 8 | byte_at(in, end - 1));
    address_set(&r->address, family, in.p + REQUEST_HEAD, port);
    if (port == 0 || authority_from_sockaddr(&r->target, SCHEME_HTTPS, &r->address.sa) < 0) {
        memset(&r->target, 0, sizeof r->target);
        refuse(r, SOCKS5_NOT_ALLOWED, "malformed_host");
    }
    return (ssize_t)end;
}

/* A name in the alphabet of names, or a dotted quad. Brackets are of URLs, not of names: an IPv6
 * address has a type of its own. */
static ssize_t name_target(struct slice in, struct socks5_request *r)
{
    if (in.n < REQUEST_HEAD + 1)
        return SOCKS5_MORE;
    size_t n = byte_at(in, REQUEST_HEAD), end = REQUEST_HEAD + 1 + n + 2;
    if (in.n < end)
        return SOCKS5_MORE;
    struct slice name = {in.p + REQUEST_HEAD + 1, n};
    uint16_t port = (uint16_t)(byte_at(in, end - 2) << 8 | byte_at(in, end - 1));
    r->named = true;
    if (port == 0 || slice_find(name, '[') >= 0 || authority_host(&r->target, name) < 0) {
        memset(&r->target, 0, sizeof r->target);
        refuse(r, SOCKS5_NOT_ALLOWED, "malformed_host");
        return (ssize_t)end;
    }
    r->target.scheme = SCHEME_HTTPS;
    r->target.port = port;
    return (ssize_t)end;
}

/* version, command, reserved, address type, address, port (RFC 1928 4) */
ssize_t socks5_request(struct slice in, struct socks5_request *ret)
{
    ssize_t used;
    memset(ret, 0, sizeof *ret);
    if ((in.n >= 1 && byte_at(in, 0) != SOCKS5_VERSION) || (in.n >= 3 && byte_at(in, 2) != 0))
        return SOCKS5_BAD;
    if (in.n < REQUEST_HEAD)
        return SOCKS5_MORE;
    switch (byte_at(in, 3)) {
    case TYPE_IPV4:
        used = address_target(in, AF_INET, ret);
        break;
    case TYPE_IPV6:
        used = address_target(in, AF_INET6, ret);
        break;
    case TYPE_NAME:
        used = name_target(in, ret);
        break;
    default: /* where it ends nobody can say, so all there is belongs to it */
        used = (ssize_t)in.n;
        refuse(ret, SOCKS5_BAD_ADDRESS_TYPE, "socks_address_type");
        break;
    }
    if (used > 0 && byte_at(in, 1) != COMMAND_CONNECT)
        refuse(ret, SOCKS5_BAD_COMMAND, "socks_command");
    return used;
}
