/* The parts of `durward doctor`. Each looks, adds what it found, and leaves nothing behind. */
#ifndef DURWARD_DOCTOR_H
#define DURWARD_DOCTOR_H

#include "config.h"
#include "findings.h"
#include "strlist.h"

/* What the clients in a sandbox of its own ask for. */
#define DOCTOR_HOST "doctor.durward.test"

/* Kernel, namespaces, packet rules, memory for secrets, control groups, limits, bubblewrap. */
void doctor_host(struct findings *f);
/* Directories, the CA and the clock, ports, the daemon. c: NULL when no configuration was found. */
void doctor_files(struct findings *f, const struct config *c, const char *socket);
/* Clients in a sandbox of its own, each making a request over TLS that the gate answers itself.
 * more: arguments of `run` (-e, --image). */
void doctor_clients(struct findings *f, const struct config *c, const struct strlist *more);
/* The same clients right here, against a host that can be reached. */
void doctor_here(struct findings *f, const char *host);

#endif
