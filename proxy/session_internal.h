/* Shared by session.c, session_tls.c and session_request.c only. */
#ifndef DURWARD_SESSION_INTERNAL_H
#define DURWARD_SESSION_INTERNAL_H

#include "exchange.h"
#include "http1_server.h"
#include "http2_server.h"
#include "session.h"

#include <netinet/in.h>

struct session {
    struct gate *gate;
    struct io *io;
    enum session_state state;
    enum session_entry entry;
    const char *entry_name; /* for records: "transparent", "connect", "forward" */
    struct identity who;
    struct sockaddr_storage destination;
    bool has_destination;
    /* what must agree: set by the entry mode, before TLS */
    struct authority outer;     /* CONNECT target or original destination; host "" if none */
    bool outer_binds_name;      /* SNI, if there, must equal it */
    bool tunnel;                /* inside a CONNECT */
    struct authority authority; /* the canonical one, once known */
    struct mint_wait *mint;
    struct http1_server *server;
    struct http2_server *server2; /* instead, where the handshake chose h2 */
    int hello;                    /* 0 not seen, 1 leaf ready, -1 refused */
    unsigned char alert;
    bool explicit_inner; /* the next head is a proxy request */
    void (*closed)(void *arg);
    void *closed_arg;
    LIST_ENTRY(session) link;
};

void session_set_state(struct session *s, enum session_state st);
void session_close(struct session *s, const char *why); /* the one exit door */
/* Plain bytes or a ClientHello at the front of the input: start HTTP or TLS. */
void session_inner(struct session *s);
void session_start_tls(struct session *s);
void session_start_http(struct session *s);
void session_note_denied(struct session *s, const char *code, const char *detail);
/* Some rule names this host and port. */
bool session_host_allowed(const struct session *s, const struct authority *a);
/* The handshake chose HTTP/2. */
bool session_chose_http2(const struct session *s);
extern const struct http1_server_ops session_http1_ops;
extern const struct http2_server_ops session_http2_ops;

#endif
