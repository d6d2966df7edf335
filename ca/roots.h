/* The roots that origins are verified against, in a form that costs a small process nothing until
 * it meets one of them.
 *
 * The parent packs the system's bundle and `upstream.ca` into a sealed memfd: DER certificates with
 * an index by subject. Each gate and injector maps it (the pages are shared between all) and parses
 * a certificate only when a chain ends in its name. */
#ifndef DURWARD_ROOTS_H
#define DURWARD_ROOTS_H

#include "err.h"

#include <openssl/x509.h>

struct roots;

enum { ROOTS_MAX = 8192 };

/* The system's bundle (when there is one) and the certificates of these files, PEM with any number
 * of them or one DER; NULL-terminated list, NULL for none. A damaged certificate of the system is
 * left out; one of the user's files is an error. A certificate of the user's files is an anchor
 * whoever issued it; one of the system's, when it is self-signed. Returns the memfd (sealed,
 * close-on-exec) or -1. */
int roots_pack(const char *const *pem_paths, struct err *err);
/* The same with another bundle in the system's place; NULL for none. */
int roots_pack_with(const char *system_path, const char *const *pem_paths, struct err *err);

/* Maps what roots_pack made; memfd stays the caller's and may be closed. */
struct roots *roots_load(int memfd, struct err *err);
void roots_free(struct roots *r); /* the store may outlive it, where an SSL_CTX shares it */
size_t roots_count(const struct roots *r);
/* How many have been parsed so far. */
size_t roots_parsed(const struct roots *r);
/* Owned by the roots; use SSL_CTX_set1_cert_store. */
X509_STORE *roots_store(struct roots *r);

#endif
