/* The HTTP/1.1 handshake of a WebSocket (RFC 6455 4), which is ours on both sides: the client's key
 * is answered by us, the origin gets a key of ours. Neither sees the other's, and no extension is
 * ever agreed on. HTTP/2 asks by an extended CONNECT instead, which has no key (RFC 8441). */
#ifndef DURWARD_UPGRADE_H
#define DURWARD_UPGRADE_H

#include "http_head.h"

enum {
    UPGRADE_KEY_TEXT = 25,   /* base64 of 16 bytes, with its NUL */
    UPGRADE_ACCEPT_TEXT = 29 /* base64 of a SHA-1, with its NUL */
};

/* A request's fields, when it has an Upgrade or `option` says that Connection names one. A
 * well-formed WebSocket handshake makes it a tunnel (upgrade, body); 0 also when none is asked for;
 * -1 with the refusal: another protocol (501), or a handshake with a fault (400). */
int upgrade_check_request(struct head *h, bool option, struct refusal *why);
/* The same for the fields of an extended CONNECT for `protocol`, the request read as a GET. end: it
 * has no body, so nothing could come of it. */
int upgrade_check_connect(struct head *h, struct slice protocol, bool end, struct refusal *why);
/* upgrade_key.c: what a request with that key is answered. -1: no such digest here. */
int upgrade_accept(struct slice key, char to[UPGRADE_ACCEPT_TEXT]) WUNUSED;
/* The key of such a request, which upgrade_check_request accepted. */
struct slice upgrade_key(const struct head *h);
/* upgrade_key.c: a fresh random key. -1: no randomness. */
int upgrade_make_key(char to[UPGRADE_KEY_TEXT]) WUNUSED;
/* A 101 is the answer to our request, whose key upgrade_accept answered so: the protocol, the
 * accept value, no extension. */
bool upgrade_reply_fits(const struct head *h, bool option, const char *accept);
/* Of sub-protocols a reply names at most one, and one that was asked for (4.1). */
bool upgrade_protocol_fits(const struct head *request, const struct head *reply);

#endif
