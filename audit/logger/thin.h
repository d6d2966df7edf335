/* Takes records of those who filled the log out of one closed file, so that retention need not take
 * others': a sandbox that has more than its even part of the file loses what it was refused there,
 * or all that it asked for. Where lines stood there is a gap (gap.h). What is not whole and signed
 * as it should be is left as it is. In steps, since the logger has other things to do. */
#ifndef DURWARD_THIN_H
#define DURWARD_THIN_H

#include "err.h"
#include "log_dir.h"
#include "signing_key.h"

enum thin_depth { THIN_REFUSED = 1, THIN_ALL = 2 };

enum { THIN_BOXES = 512 };

struct thin;

struct thin_loss { /* what one sandbox loses */
    const char *sandbox;
    uint64_t records;
};

/* previous: the file before, "" if there is none. NULL with err. */
struct thin *thin_new(int dirfd, const char *name, const char *previous, enum thin_depth depth,
                      const struct signing_key *key, struct err *err);
void thin_free(struct thin *t); /* unfinished: the file is as it was */
/* 1: more to do; 0: it is known what is lost (thin_loss), if anything; -1: left as it is. */
int thin_step(struct thin *t, struct err *err);
bool thin_loss(const struct thin *t, size_t i, struct thin_loss *ret); /* false: no more */
/* The thinned file takes the file's place, uncompressed; its name in plain[]. */
int thin_commit(struct thin *t, char plain[LOG_NAME_MAX], struct err *err);

#endif
