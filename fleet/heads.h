/* Lines in which hosts say how far their audit logs go: what this host's logger gives is put into
 * the database, and what it asks for is read there. They are not understood here: their hosts sign
 * them, and the loggers check that. */
#ifndef DURWARD_HEADS_H
#define DURWARD_HEADS_H

#include <stdint.h>

struct database;
struct event_base;
struct heads;
struct ipc;

/* control: who hears that the logger's channel ended. NULL: out of memory. */
struct heads *heads_new(struct event_base *base, struct database *d, struct ipc *control);
void heads_free(struct heads *h); /* NULL is fine */
/* The logger's channel; takes fd. */
void heads_attach(struct heads *h, int fd, uint32_t channel);
/* The database is there. */
void heads_begin(struct heads *h);

#endif
