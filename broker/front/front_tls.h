/* TLS towards the sandbox, for clients that insist on it: by a certificate of the sandbox's own CA,
 * for the host that they connected to. The key is the front's own. */
#ifndef DURWARD_FRONT_TLS_H
#define DURWARD_FRONT_TLS_H

#include "front.h"
#include "io.h"

struct mint_wait;

struct front_tls {
    struct front *front;
    struct io *io; /* its owner's */
    struct authority at;
    struct mint_wait *wait;
    bool begun; /* it was asked for; once a connection */
    void (*failed)(void *arg);
    void *arg;
};

/* Do these first bytes of a connection begin TLS? */
static inline bool front_tls_is_hello(struct slice first)
{
    return first.n > 0 && first.p[0] == 0x16;
}
/* All that the sandbox sends from here on is TLS, what is in the input already too. The owner hears
 * of IO_CONNECTED; failed: there is no certificate, on record already, perhaps at once. */
void front_tls_begin(struct front_tls *t, struct front *f, struct io *io,
                     const struct authority *at, void (*failed)(void *arg), void *arg);
/* It was asked for, and is not there yet. */
bool front_tls_pending(const struct front_tls *t);
/* IO_ERROR, IO_EOF or IO_TIMEOUT came meanwhile: on record. */
void front_tls_refused(const struct front_tls *t, const char *why);
void front_tls_end(struct front_tls *t); /* before the io is closed */

#endif
