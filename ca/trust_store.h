/* A trust store that a JDK opens: PKCS#12 of trusted certificates (RFC 7292), each with the
 * trusted-key-usage attribute by which Java tells them from a key's chain. */
#ifndef DURWARD_TRUST_STORE_H
#define DURWARD_TRUST_STORE_H

#include "buf.h"
#include "err.h"

/* All certificates of a PEM text into `to`, in DER, protected by the password "changeit" that every
 * JDK expects. Damaged blocks are left out. */
int trust_store_java(struct slice pem, struct buf *to, struct err *err);
/* A part of such a store, which holds any number of them (ca/trust_sandbox.c puts them together):
 * one ContentInfo in DER; nothing where there is no certificate. first: number of the first name.
 */
int trust_store_safe(struct slice pem, size_t first, struct buf *to, struct err *err);

#endif
