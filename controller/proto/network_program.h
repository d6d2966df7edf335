/* How durward-init is called as podman's network backend (controller/networks), and what it reads.
 */
#ifndef DURWARD_NETWORK_PROGRAM_H
#define DURWARD_NETWORK_PROGRAM_H

/* Names by which podman looks for them. The second is found, and never started. */
#define NETWORK_PROGRAM "netavark"
#define NETWORK_NAMES   "aardvark-dns"
/* The ports that rules name besides 80 and 443, a number a line. */
#define NETWORK_PORTS        "ports"
#define NETWORK_PORTS_INSIDE "/run/durward/" NETWORK_PORTS

/* The address by which containers reach the sandbox's own services; so does a network's gateway. */
#define NETWORK_HOST_INSIDE "169.254.1.2"

#endif
