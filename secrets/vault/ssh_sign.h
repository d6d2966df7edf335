/* Keys of SSH: the vault holds the private key and signs with it either what a client signs to log
 * in by public key (RFC 4252 7), or what is signed in a namespace (lib/sshsig.h), as the key was
 * declared, and nothing else. */
#ifndef DURWARD_SSH_SIGN_H
#define DURWARD_SSH_SIGN_H

#include "buf.h"
#include "err.h"
#include "secret.h"

enum { SSH_PUBLIC_MAX = 2048, SSH_SIGNATURE_MAX = 1200 };

/* key: OpenSSH's own form or PEM, without a passphrase: Ed25519, ECDSA (P-256, P-384, P-521), RSA
 * of 2048 bits or more. Appends the public key as SSH writes it. */
int ssh_key_public(struct slice key, struct buf *out, struct err *err) WUNUSED;
/* Is it such a private key? */
bool ssh_key_ok(struct slice key);
/* text: session identifier and request, as the client signs them; its public key must be this
 * key's. Appends the signature as SSH writes it: algorithm and bytes. */
int ssh_key_sign(struct slice key, struct slice text, struct buf *out, struct err *err) WUNUSED;
/* text: that under a signature in one of the namespaces, which have blanks between. flags: of the
 * agent's protocol: with which hash an RSA key signs. Appends the same. */
enum { SSH_SIGN_SHA256 = 2, SSH_SIGN_SHA512 = 4 };
int ssh_key_sign_text(struct slice key, const char *namespaces, uint32_t flags, struct slice text,
                      struct buf *out, struct err *err) WUNUSED;

/* The same questions where an agent has the key, of which `key` is the public half as SSH writes
 * it: may it sign that, and how is it asked to? */
struct ssh_signing {
    char algorithm[64];
    uint32_t flags; /* of the agent's protocol */
};
int ssh_login_may(struct slice key, struct slice text, struct ssh_signing *ret,
                  struct err *err) WUNUSED;
int ssh_text_may(struct slice key, const char *namespaces, uint32_t flags, struct slice text,
                 struct ssh_signing *ret, struct err *err) WUNUSED;

#endif
