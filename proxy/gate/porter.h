/* The listener of previews, in a gate of its own: by the name that a connection's first request
 * says it is handed to the gate of that name's sandbox, by way of the controller (W_PORTER), which
 * knows whose name it is. Nothing is taken off the connection: who gets it reads it from its first
 * byte on, and holds each request against its own name. So no two sandboxes' previews are read by
 * one process, and this one sees no reply.
 *
 * Bounds: PORTER_CALLERS connections whose name is not known yet, each for PORTER_SECONDS; the next
 * one takes the place of the oldest. */
#ifndef DURWARD_PORTER_H
#define DURWARD_PORTER_H

#include "gate.h"

struct porter;
struct msg;

enum { PORTER_CALLERS = 256, PORTER_SECONDS = 5, PORTER_PEEK = 16 * 1024 };

/* Takes the non-blocking fd. NULL when memory is out. */
struct porter *porter_new(struct gate *g, int fd);
void porter_free(struct porter *d); /* NULL is fine */
/* W_TURNED_AWAY: nobody takes that connection; it is told why. -1: bad. */
int porter_refused(struct porter *d, struct msg *m);

/* ---- for tests ---- */

enum { PORTER_NAME_MAX = 300 };
enum porter_said { PORTER_MORE = 0, PORTER_NAMED, PORTER_BAD };
struct porter_name {
    bool http1;
    char text[PORTER_NAME_MAX]; /* as it was sent: "web--sb-x.preview.localhost:8088" */
};
enum porter_said porter_look(struct slice in, struct porter_name *ret);

#endif
