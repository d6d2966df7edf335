/* How durward-init is called as an OCI runtime (controller/init/oci_runtime.c), and what it reads.
 */
#ifndef DURWARD_OCI_PROGRAM_H
#define DURWARD_OCI_PROGRAM_H

/* Its name is the real one's, by which podman knows what that can do. */
#define OCI_PROGRAM "crun"
#define OCI_INSIDE  "/run/durward/" OCI_PROGRAM
/* Lines NAME=VALUE, without quotes and backslashes: the variables of trust. */
#define OCI_VARIABLES        "trust.env"
#define OCI_VARIABLES_INSIDE "/run/durward/" OCI_VARIABLES

#endif
