/* The folder of what the processes for containers have in common: the socket of the networks, and a
 * lock for each container whose health is checked. It is its owner's alone. */
#ifndef DURWARD_NETWORK_FOLDER_H
#define DURWARD_NETWORK_FOLDER_H

#include "err.h"

#define NETWORK_FOLDER "/run/durward-containers"

/* Makes it where it is missing. Its descriptor, or -1 with err: it is another user's, or others can
 * enter it. */
int network_folder_open(struct err *err);

#endif
