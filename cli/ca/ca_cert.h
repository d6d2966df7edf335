/* The CA's certificate for `durward ca`. The key is never read here: where there is no CA yet, a
 * signer of its own makes it. */
#ifndef DURWARD_CA_CERT_H
#define DURWARD_CA_CERT_H

#include "buf.h"
#include "config.h"

#include <openssl/x509.h>

struct ca_cert {
    X509 *cert;
    char *path;   /* of the certificate file */
    bool created; /* by this call */
    /* while a rotation is under way (ca/rotation.h); else NULL and 0: */
    X509 *next;
    char *next_path;
    int64_t since, until;
};

/* c may be NULL: the default place. 0 or -1 with err. */
int ca_cert_open(const struct config *c, struct ca_cert *ret, struct err *err);
/* Have a signer make a CA in these two empty files. *ret: its certificate, path NULL. */
int ca_cert_make(int key_fd, int cert_fd, struct ca_cert *ret, struct err *err);
void ca_cert_clear(struct ca_cert *c);

/* `ca show` (cmd_ca.c): the exit code. */
int ca_show(const char *file, bool json);

#endif
