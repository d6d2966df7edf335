/* A number that two names have in common where OpenSSL takes them for one name (X509_NAME_cmp).
 * Other names may have it as well, so whoever finds a name by it compares the names. It is made
 * without OpenSSL, attribute by attribute: a process that packs the roots need not set OpenSSL up
 * for it, and spends a tenth of what X509_NAME_hash_ex takes. */
#ifndef DURWARD_NAME_HASH_H
#define DURWARD_NAME_HASH_H

#include "slice.h"

#include <stdint.h>

struct name_hash {
    uint32_t whole, rdn;
};

void name_hash_begin(struct name_hash *h);
/* An attribute of the RDN in hand: the content of its OID; tag: the universal one of its value. */
void name_hash_attribute(struct name_hash *h, struct slice oid, int tag, struct slice value);
/* That RDN is whole; another may follow. */
void name_hash_rdn(struct name_hash *h);
uint32_t name_hash_end(const struct name_hash *h);

#endif
