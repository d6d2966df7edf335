/* `durward run --publish`: ports of this host that lead into the sandbox while it runs. We listen
 * and carry the bytes; connections inside are made by durward-init, asked by way of the controller.
 */
#ifndef DURWARD_RUN_PUBLISH_H
#define DURWARD_RUN_PUBLISH_H

#include "err.h"
#include "ipc.h"
#include "strlist.h"

struct event_base;
struct run_publish;

/* Listens at once, before anything is started: "[[ADDRESS:]H:]S" each. An empty list: NULL, without
 * err. NULL with err: what is none, or cannot be had. */
struct run_publish *run_publish_open(const struct strlist *list, struct err *err);
/* Says on stderr where, tells the controller for its record, and begins to take connections. */
int run_publish_begin(struct run_publish *p, struct event_base *base, struct ipc *controller);
/* W_RUN_CONNECTED. -1: bad. */
int run_publish_message(struct run_publish *p, struct msg *m);
/* The controller is gone: no more are taken. */
void run_publish_stop(struct run_publish *p);
void run_publish_free(struct run_publish *p); /* NULL is fine; before the base */

#endif
