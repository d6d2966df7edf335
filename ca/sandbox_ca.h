/* The CA of one local sandbox: made of a secret of the signer's and the sandbox's id, so that
 * nothing has to be kept for it, and one of the same id is the same after the signer's death.
 *
 * The secret is random and lives as long as the parent, in a memfd that only signers read. It is
 * not derived from the key of the exported CA: whoever gets at that file would have every sandbox's
 * CA too, and a rotation of the one would change the others under sandboxes that run. */
#ifndef DURWARD_SANDBOX_CA_H
#define DURWARD_SANDBOX_CA_H

#include "err.h"
#include "mint.h"

enum { SANDBOX_CA_SECRET = 32 };

/* An empty memfd for it; -1 with err. */
int sandbox_ca_memfd(struct err *err);
/* What the memfd holds; an empty one is given a fresh secret and sealed. */
int sandbox_ca_secret(int memfd, unsigned char secret[SANDBOX_CA_SECRET], struct err *err);
/* Key and name follow from secret and id; serial number, times and signature do not. */
int sandbox_ca_make(const unsigned char secret[SANDBOX_CA_SECRET], const char *sandbox, time_t now,
                    struct mint_issuer *ret, struct err *err);

#endif
