/* A listening TCP socket of an address that somebody wrote. */
#ifndef DURWARD_TCP_LISTEN_H
#define DURWARD_TCP_LISTEN_H

#include "err.h"

/* text: "127.0.0.1:3128", "[::1]:8443". A port that is taken is tried for a while (start_wait.h).
 * -1 with err, and errno of what failed. */
int tcp_listen(const char *text, struct err *err);

#endif
