/* One client connection of the gate, from accept to close: who it is for (preamble), TLS with a
 * minted leaf, then HTTP. Entry modes: transparent (original destination), explicit proxy (CONNECT,
 * absolute form). All of them end in one canonical authority and one exchange. */
#ifndef DURWARD_SESSION_H
#define DURWARD_SESSION_H

#include "gate.h"

struct session;
struct sockaddr_storage;

enum session_state {
    SESSION_PREAMBLE = 0, /* waits for the first byte of the inner protocol */
    SESSION_MINTING,      /* the handshake waits for a leaf */
    SESSION_HANDSHAKE,
    SESSION_HTTP,
    SESSION_RAW, /* a tunnel: bytes both ways, unread */
    SESSION_DEAD,
};

enum session_entry {
    ENTRY_TRANSPARENT = 1,
    ENTRY_EXPLICIT,
    ENTRY_TLS,       /* the same in TLS */
    ENTRY_FORWARDED, /* a provider sends its sandboxes' requests on to us (session_forwarded.c) */
    ENTRY_INBOUND,   /* from outside, to a service of the sandbox (session_inbound.c) */
};

/* destination: what the client meant to reach (transparent), NULL for explicit entries. port_name:
 * what the certificate of a port in TLS is for, NULL: in clear; it outlives the session. Takes fd.
 * closed runs once, when the session is gone. */
void session_new(struct gate *g, int fd, enum session_entry entry,
                 const struct sockaddr_storage *destination, const char *port_name,
                 void (*closed)(void *arg), void *arg);

/* Close what is idle, let the rest end with its present reply. */
void session_drain_all(struct gate *g);

/* End what was begun with a token that is revoked now. */
void session_drop_revoked(struct gate *g);

/* To be set on the gate's server context: client hello and ALPN callbacks. */
void session_tls_setup(SSL_CTX *ctx);
/* For the context that looks at a ClientHello only. */
void session_raw_setup(SSL_CTX *ctx);
/* The same for the context of TLS ports. */
void session_port_setup(SSL_CTX *ctx);

#endif
