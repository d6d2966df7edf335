/* The public half of a P-256 key as a key of OpenSSL's former kind, which encodes itself. A key of
 * a provider is encoded by looking for an encoder among all that there are; setting those up takes
 * 0.6 ms and 88 KiB in each process that does it once. */
#ifndef DURWARD_PUBLIC_HALF_H
#define DURWARD_PUBLIC_HALF_H

#include <openssl/evp.h>

/* The caller frees. NULL: it is no such key, or memory is out; OpenSSL's errors are left. */
EVP_PKEY *public_half(const EVP_PKEY *key);

#endif
