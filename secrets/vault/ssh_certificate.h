/* One certificate of SSH for a user (OpenSSH's PROTOCOL.certkeys): what it says, and its bytes,
 * which a CA's key has signed. */
#ifndef DURWARD_SSH_CERTIFICATE_H
#define DURWARD_SSH_CERTIFICATE_H

#include "buf.h"
#include "err.h"

enum {
    SSH_CERTIFICATE_MAX = 7680, /* its bytes: twice that fits into a back's question */
    SSH_CERTIFICATE_KEY = 32,   /* of Ed25519, of which the certified key is */
    SSH_CERTIFICATE_LIST = 16,  /* principals, and extensions */
};

#define SSH_CERTIFICATE_TYPE "ssh-ed25519-cert-v01@openssh.com"

/* Lists have blanks between; an empty text: there is none. */
struct ssh_certificate {
    struct slice public;        /* the certified key's bytes */
    const char *key_id;         /* who it is for, as the server writes it into its log */
    const char *principals;     /* users that it may log in as */
    const char *source_address; /* ranges that it may come from */
    const char *force_command;
    const char *extensions; /* NAME or NAME=VALUE */
    int64_t from, until;    /* seconds since the epoch */
};

/* Appends it, with a serial number and a nonce of its own. ca: a private key (ssh_sign.h). 0, or -1
 * with err. */
int ssh_certificate_make(const struct ssh_certificate *c, struct slice ca, struct buf *out,
                         struct err *err) WUNUSED;

#endif
