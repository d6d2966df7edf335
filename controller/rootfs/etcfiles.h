/* The /etc of a sandbox: small files written for it, where it has no image also a few harmless ones
 * copied from the host, and the trust bundles. Nothing of the host's accounts, keys or networks. */
#ifndef DURWARD_ETCFILES_H
#define DURWARD_ETCFILES_H

#include "err.h"
#include "plan.h"

/* etc: descriptor of the sandbox's (empty, still writable) /etc. host_etc: of the host's. image: of
 * the image below it, -1 when there is none: then it has its own of most files. trust: of the
 * directory with the trust bundles, which will be seen inside at /etc/durward. notes: where a file
 * of the host's with a login is named, which is not copied. */
int etcfiles_write(int etc, int host_etc, int image, int trust, const struct plan *plan,
                   struct buf *notes, struct err *err);

/* The variables of trust, for containers inside (oci_program.h), into dir. */
int etcfiles_write_variables(int dir, struct err *err);
/* The ports that lead out of their networks (network_program.h), into dir. */
int etcfiles_write_ports(int dir, const uint16_t *ports, unsigned n, struct err *err);
/* The files that a container of an engine's gets in /etc: resolv.conf and gitconfig, into dir. */
int etcfiles_write_few(int dir, const struct plan *plan, struct err *err);
/* Where programs look for a trust bundle ("/etc/ssl/cert.pem"), and its name in the directory of
 * bundles. NULL past the last. */
const char *etcfiles_bundle(size_t i, const char **name);

#endif
