/* What a SOCKS5 client says, up to its request (RFC 1928, RFC 1929): bytes in, meaning out. It
 * keeps nothing and sends nothing; proxy/gate/session_socks.c does.
 *
 * Each reader is given all bytes that have come so far and returns how many of them its message
 * takes, SOCKS5_MORE when it is not whole yet (at most SOCKS5_MESSAGE_MAX bytes are needed), or
 * SOCKS5_BAD when it can be none. */
#ifndef DURWARD_SOCKS5_H
#define DURWARD_SOCKS5_H

#include "address.h"
#include "authority.h"

enum { SOCKS5_MORE = 0, SOCKS5_BAD = -1 };
enum { SOCKS5_VERSION = 5, SOCKS5_LOGIN_VERSION = 1, SOCKS5_MESSAGE_MAX = 513 };
enum socks5_method { SOCKS5_NONE = 0, SOCKS5_PASSWORD = 2, SOCKS5_UNACCEPTABLE = 0xff };

enum socks5_reply {
    SOCKS5_GRANTED = 0,
    SOCKS5_FAILED = 1,
    SOCKS5_NOT_ALLOWED = 2,
    SOCKS5_BAD_COMMAND = 7,
    SOCKS5_BAD_ADDRESS_TYPE = 8
};

struct socks5_greeting {
    bool none, password; /* the methods that it offers, of those we know */
};

/* Both are of the input and may be empty, though RFC 1929 says 1 to 255 bytes: clients whose proxy
 * address has a token and nothing else send an empty half. */
struct socks5_login {
    struct slice user, password;
};

struct socks5_request {
    enum socks5_reply reply; /* GRANTED: a CONNECT to what follows */
    const char *code;        /* constant, for the record; NULL when granted */
    bool named;              /* target is a name or address that the client wrote as text */
    struct authority target; /* host "" where it said none that is one; scheme https */
    struct address address;  /* when not named: the same, as an address */
};

ssize_t socks5_greeting(struct slice in, struct socks5_greeting *ret);
ssize_t socks5_login(struct slice in, struct socks5_login *ret);
/* Not BAD is only that its end is known: `reply` says whether it is granted. */
ssize_t socks5_request(struct slice in, struct socks5_request *ret);

#endif
