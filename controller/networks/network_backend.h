/* podman's network backend for containers inside a sandbox, as it calls `netavark`: networks of
 * their own for containers, names in them, mapped ports, and the sandbox's way out. It decides
 * nothing: what leaves a container goes on in the sandbox's network, as whatever the sandbox sends.
 */
#ifndef DURWARD_NETWORK_BACKEND_H
#define DURWARD_NETWORK_BACKEND_H

#include "compiler.h"

/* argv[0] is one of its names: *status is the process's. */
bool network_main(int argc, char **argv, int *status);

#endif
