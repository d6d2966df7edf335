/* The /etc of a sandbox without an image: small files written for it, a few harmless ones copied
 * from the host, and the trust bundles. Nothing of the host's accounts, keys or networks. */
#ifndef DURWARD_ETCFILES_H
#define DURWARD_ETCFILES_H

#include "err.h"
#include "plan.h"

/* etc: descriptor of the sandbox's (empty, still writable) /etc. host_etc: of the host's. trust:
 * of the directory with the trust bundles, which will be seen inside at /etc/durward. */
int etcfiles_write(int etc, int host_etc, int trust, const struct plan *plan, struct err *err);

#endif
