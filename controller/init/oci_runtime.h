/* An OCI runtime for containers inside a sandbox: it adds to a container's configuration what the
 * sandbox's own commands have of trust, the bundles and the variables that lead to them, and
 * becomes the real runtime. So images need no change, neither when they run nor while they are
 * built. It decides nothing: whoever goes round it has clients that trust no certificate of ours.
 */
#ifndef DURWARD_OCI_RUNTIME_H
#define DURWARD_OCI_RUNTIME_H

#include "buf.h"
#include "slice.h"

enum { OCI_CONFIG_MAX = 4 << 20 };

/* A config.json with a mount of /etc/durward, and those of the variables (OCI_VARIABLES) that it
 * does not set. -1: it is no such configuration, or too long. */
int oci_extend(struct slice config, struct slice variables, struct buf *ret);
/* The same of the process that is begun in a container: its variables alone. */
int oci_extend_process(struct slice process, struct slice variables, struct buf *ret);
/* argv[0] is that name: *status is the process's. */
bool oci_main(int argc, char **argv, int *status);

#endif
