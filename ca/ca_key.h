/* The CA's key and certificate in their files (PEM), by descriptor: the signer opens nothing. */
#ifndef DURWARD_CA_KEY_H
#define DURWARD_CA_KEY_H

#include "buf.h"
#include "mint.h"

enum { CA_FILE_MAX = 64 * 1024 };

/* Read both and check that they can sign (mint_issuer_check). Buffers that held the key are wiped.
 */
int ca_key_load(int key_fd, int cert_fd, time_t now, struct mint_issuer *ret, struct err *err);
/* Replace the content of both files and fsync them, the key first: a certificate without its key
 * can never be left behind. */
int ca_key_store(const struct mint_issuer *issuer, int key_fd, int cert_fd, struct err *err);
/* The certificate as PEM appended to `to`. */
int ca_key_cert_pem(X509 *cert, struct buf *to, struct err *err);

#endif
