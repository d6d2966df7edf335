/* A back's connection to a server: dialled, and in TLS that was verified for its name where its
 * protocol or its rule says so. */
#ifndef DURWARD_BACK_LINK_H
#define DURWARD_BACK_LINK_H

#include "back.h"
#include "back_certificate.h"
#include "io.h"

enum { BACK_LINK_IO = 64 * 1024 };

struct back_link {
    struct back *back;
    struct authority at;
    struct back_certificate certificate; /* that it shows; of no secret: none */
    char id[48];
    char sandbox[65];
    struct dial_wait *dial;
    struct io *io;
    size_t longest;
    char address[64];
    bool up;
    bool tls;
    struct slice ask; /* what asks for TLS, answered with "S"; n 0: it begins at once */
    bool upgrading;   /* what its owner wrote goes out, then TLS begins */
    /* Once: code NULL when it is up (and io the owner's to use). It may free the link. */
    void (*done)(void *arg, const char *code, const char *detail);
    void *arg;
};

/* certificate: the secret of a client certificate that TLS needs, or NULL; a server that asks for
 * none gets nothing. ask: constant. longest: bytes that the owner writes at once, beyond
 * BACK_LINK_IO. */
void back_link_begin(struct back_link *l, struct back *b, const struct authority *at,
                     const char *sandbox, const char *id, const char *certificate, bool tls,
                     struct slice ask, size_t longest,
                     void (*done)(void *arg, const char *code, const char *detail), void *arg);
/* A link that is up, in clear: what is in its output goes out, then TLS begins, and `done` is
 * called again. Whatever the server says in between ends it. */
void back_link_upgrade(struct back_link *l);
void back_link_end(struct back_link *l);

#endif
