/* The client certificate that a back's connection shows: its certificates come from the vault, and
 * so does each signature of a handshake (client_cert.h). The key is never here. */
#ifndef DURWARD_BACK_CERTIFICATE_H
#define DURWARD_BACK_CERTIFICATE_H

#include "back.h"

struct client_cert;
struct client_proof;
struct io;

/* Zeroes: there is none, and TLS goes without. */
struct back_certificate {
    struct back *back;
    const char *sandbox, *secret; /* its owner's, until it is there */
    struct secret_wait *wait;
    struct client_cert *cert;
    struct client_proof *proof; /* of a handshake under way */
    void (*done)(void *arg, const char *why);
    void *arg;
};

/* Once a process, before it is confined. */
int back_certificate_setup(struct err *err) WUNUSED;
/* done, perhaps at once: why NULL when it is there. It may free the certificate. */
void back_certificate_get(struct back_certificate *c, struct back *b, const char *sandbox,
                          const char *secret, void (*done)(void *arg, const char *why), void *arg);
/* Before a handshake. -1: out of memory, or it fits no handshake. */
int back_certificate_begin(struct back_certificate *c, struct io *io, SSL *ssl) WUNUSED;
/* After it. False: there is one, and the server has not asked for it. */
bool back_certificate_end(struct back_certificate *c) WUNUSED;
void back_certificate_free(struct back_certificate *c); /* before its io is closed */

/* Whom the first of these certificates (PEM) names, by its only common name. 0, or -1: nobody, or
 * by a name of more bytes than fit, or of bytes that no name has. */
int back_certificate_user(struct slice told, char *to, size_t size) WUNUSED;

#endif
