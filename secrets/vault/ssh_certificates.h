/* The certificates that one CA of SSH has given: for each sandbox one, with a key of its own that
 * is made here and stays here. Another is made when half of its time is over, so whoever is given
 * one has the other half to log in with it. */
#ifndef DURWARD_SSH_CERTIFICATES_H
#define DURWARD_SSH_CERTIFICATES_H

#include "ssh_certificate.h"

struct ssh_certificates;

enum {
    SSH_CERTIFICATES_MAX = 4096,      /* kept at once, with their keys, */
    SSH_CERTIFICATES_OF_POLICY = 512, /* for the sandboxes of one; beyond that its oldest goes */
    SSH_CERTIFICATES_AHEAD = 60,      /* seconds by which a server's clock may be behind ours */
};

/* As its declaration says it: minutes, and the texts of struct ssh_certificate. */
struct ssh_certificates_terms {
    const char *principals, *source_address, *force_command, *extensions;
    unsigned minutes;
};

/* Whose: by the channel of who asks, and by what it says. */
struct ssh_certificates_owner {
    const char *policy, *sandbox;
};

struct ssh_certificates *ssh_certificates_new(void);    /* NULL: memory is out */
void ssh_certificates_free(struct ssh_certificates *s); /* NULL is fine */
void ssh_certificates_forget(struct ssh_certificates *s);
/* Appends the owner's certificate. now: seconds since the epoch. 0, or -1 with err. */
int ssh_certificates_get(struct ssh_certificates *s, const struct ssh_certificates_terms *t,
                         const struct ssh_certificates_owner *of, struct slice ca, int64_t now,
                         struct buf *out, struct err *err) WUNUSED;
/* Signs a login with the key of the certificate that it names, which is the owner's and good yet.
 * Appends the signature as SSH writes it. 0, or -1 with err. */
int ssh_certificates_sign(struct ssh_certificates *s, const struct ssh_certificates_owner *of,
                          struct slice login, int64_t now, struct buf *out,
                          struct err *err) WUNUSED;

#endif
