/* Shared by the session*.c files only. */
#ifndef DURWARD_SESSION_INTERNAL_H
#define DURWARD_SESSION_INTERNAL_H

#include "exchange.h"
#include "http1_server.h"
#include "http2_server.h"
#include "session.h"

#include <netinet/in.h>

/* How far a SOCKS dialogue is: what the client has to say next. */
enum socks_step { SOCKS_GREETING = 0, SOCKS_LOGIN, SOCKS_REQUEST };

struct session {
    struct gate *gate;
    struct io *io;
    enum session_state state;
    enum session_entry entry;
    const char *entry_name; /* for records: "transparent", "connect", "forward", "socks5",
                              "forwarded", "inbound" */
    struct identity who;
    struct sockaddr_storage destination;
    const char *port_name; /* ENTRY_TLS: of our own certificate; else NULL */
    /* what must agree: set by the entry mode, before TLS */
    struct authority outer;     /* CONNECT target or original destination; host "" if none */
    bool outer_binds_name;      /* SNI, if there, must equal it */
    bool refusing;              /* at the address of names that no rule names */
    bool tunnel;                /* inside a CONNECT or behind a SOCKS request */
    struct authority authority; /* the canonical one, once known */
    struct mint_wait *mint;
    struct http1_server *server;
    struct http2_server *server2; /* instead, where the handshake or the preface says h2 */
    struct faults *shared;        /* its sandbox's, or its address's while that is not known */
    struct raw *raw;              /* SESSION_RAW */
    size_t hello_needs;           /* bytes before a ClientHello is looked at again */
    int hello;                    /* 0 not seen, 1 leaf ready, -1 refused */
    unsigned char alert;
    bool explicit_inner; /* the next head is a proxy request */
    enum socks_step socks;
    struct inbound *inbound; /* ENTRY_INBOUND; else NULL */
    bool knows_http2;        /* in clear: it begins as HTTP/2 does */
    void (*closed)(void *arg);
    void *closed_arg;
    LIST_ENTRY(session) link;
};

/* One in the gate's list, with nothing of it begun. Takes fd; NULL: out of memory, and closed has
 * run. */
struct session *session_make(struct gate *g, int fd, enum session_entry entry,
                             void (*closed)(void *arg), void *arg);
/* session_request.c: the exchange of a head, or none (told); a refusal of it; what is wrong with
 * its Host (0: nothing). */
struct exchange *session_open_exchange(struct session *s, const struct requester *by);
void session_refuse(struct session *s, const struct requester *by, const struct head *h,
                    const struct authority *a, unsigned status, const char *code);
unsigned session_host_refused(const struct session *s, const struct head *h);
void session_set_state(struct session *s, enum session_state st);
void session_close(struct session *s, const char *why); /* the one way out */
/* Plain bytes or a ClientHello at the front of the input: start HTTP or TLS. */
void session_inner(struct session *s);
void session_start_tls(struct session *s);
/* A ClientHello begins the input. True: it belongs to a tunnel, or more of it is awaited; all that
 * follows is done. False: session_start_tls. */
bool session_try_raw(struct session *s);
/* Its destination is a broker's: it was handed over, or refused, and is closed. */
bool session_try_broker(struct session *s);
void session_raw_free(struct session *s, const char *code); /* the reason, for its record */
/* Which authority CONNECT target, destination and SNI make together. 0; else -1 with the
 * alert and code of the refusal, and *a what was settled until then. */
int session_hello_authority(const struct session *s, SSL *ssl, struct authority *a,
                            unsigned char *alert, const char **code, const char **detail);
void session_start_port(struct session *s); /* TLS of the port itself, then session_explicit */
/* What an explicit port speaks, once it is reached: the next byte says. */
void session_explicit(struct session *s);
/* Refused: recorded, and what session_hello_leaf answers from now on. */
void session_hello_refuse(struct session *s, unsigned char alert, const char *code,
                          const char *detail);
/* The callback's answer: a leaf for the host is served, awaited, or refused with *alert. */
int session_hello_leaf(struct session *s, const char *host, int *alert);
void session_note_tls_refused(struct session *s, const char *why);
void session_start_http(struct session *s);
/* Whose faults count together; NULL: out of memory. */
struct faults *session_faults(struct session *s);
void session_start_socks(struct session *s); /* the first byte said SOCKS5 */
/* outer is settled and the client was told: what comes next is session_inner's. */
void session_enter_tunnel(struct session *s);
/* What the address in s->destination means: sets outer. 0 go on, -1 refused (recorded). */
int session_destination(struct session *s);
/* Who asks, by his token. NULL when known, else the denial's code. */
const char *session_identify(struct session *s, struct slice token);
void session_note_denied(struct session *s, const char *code, const char *detail);
/* A head that a provider sent on: whose it is and where it was going, from its own fields. 0, with
 * the authority in *a and the provider's fields gone; -1 with the refusal. */
int session_forwarded(struct session *s, struct head *h, struct authority *a, struct refusal *why);
/* Some rule names this host and port. */
bool session_host_allowed(const struct session *s, const struct authority *a);
/* The handshake chose HTTP/2. */
bool session_chose_http2(const struct session *s);
extern const struct http1_server_ops session_http1_ops;
extern const struct http2_server_ops session_http2_ops, session_clear_http2_ops,
    session_inbound_http2_ops;

#endif
