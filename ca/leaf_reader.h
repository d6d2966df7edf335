/* Makes OpenSSL's certificates of the leaves that a signer sends, all of which certify one key. */
#ifndef DURWARD_LEAF_READER_H
#define DURWARD_LEAF_READER_H

#include "slice.h"
#include <openssl/x509.h>

struct leaf_reader;

/* For leaves of this key, EC on P-256. NULL: out of memory. */
struct leaf_reader *leaf_reader_new(EVP_PKEY *key);
void leaf_reader_free(struct leaf_reader *r); /* NULL is fine; what it read stays */
/* A certificate whose encoding is just this, and whose key is the reader's; NULL where it is none.
 */
X509 *leaf_reader_read(struct leaf_reader *r, struct slice der);

#endif
