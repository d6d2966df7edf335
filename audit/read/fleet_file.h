/* DIR/fleet.heads: the lines of the fleet's hosts (fleet_head.h) that this host has seen, its own
 * among them, in the order in which they came; a copy of it is what another host's log is held
 * against. The logger writes it. What is too old (witness_keeps) goes when the file is long. */
#ifndef DURWARD_FLEET_FILE_H
#define DURWARD_FLEET_FILE_H

#include "witness.h"

#define FLEET_FILE "fleet.heads"

enum { FLEET_FILE_LONG = 8 << 20 };

struct fleet_file;

/* Each line, by number; head is what it says, unless taken is WITNESS_MALFORMED. */
typedef void (*fleet_file_fn)(void *arg, uint64_t number, struct slice line,
                              enum witness_taken taken, const struct fleet_head *head);

/* All lines of such a file. A last one that is not finished is none. 0, or -1 with err. */
int fleet_file_read(int fd, struct witness *w, bool check, fleet_file_fn fn, void *arg,
                    struct err *err);

/* The writer's; it is made if there is none, and what is not finished is cut off. */
struct fleet_file *fleet_file_open(int dirfd, struct witness *w, fleet_file_fn fn, void *arg,
                                   struct err *err);
void fleet_file_free(struct fleet_file *f); /* NULL is fine */
/* Whole lines. 0: they are on disk. -1: none of them is there. */
int fleet_file_add(struct fleet_file *f, struct slice lines, struct err *err);
/* Takes out what is too old, if it is longer than that. 0, or -1 with err: it is as it was. */
int fleet_file_thin(struct fleet_file *f, const struct witness *w, uint64_t size, struct err *err);

#endif
