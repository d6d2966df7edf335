/* How durward-init gets its descriptors in a container, whose engine can pass none: it connects to
 * a socket that the launcher listens on in a directory mounted there, and is sent them
 * (W_INIT_HANDOVER). Both ends are closed before anything else begins, so that no unix socket is
 * left in the container's network namespace.
 *
 * Nothing else runs in the container yet: no program of the image's is ever first. */
#ifndef DURWARD_HANDOVER_H
#define DURWARD_HANDOVER_H

#define HANDOVER_DIR    "/run/durward" /* inside */
#define HANDOVER_INIT   "init"         /* in it: our program */
#define HANDOVER_SOCKET "socket"

/* Inside: what it is given for lies at control afterwards, and the filter is on. -1: errno. */
int handover_take(int control);
/* The filter alone, which is the first message there is. */
int handover_filter(int control);

#endif
