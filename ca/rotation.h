/* A change of the CA, as files beside key.pem and cert.pem in its directory:
 *
 *   next-key.pem, next-cert.pem   the CA to come; nothing is signed with it yet
 *   rotation                      "since SECONDS\nuntil SECONDS\n" (Unix time): they count
 *   old-key.pem                   a key on its way to be destroyed
 *
 * From `since` to `until` clients are to trust both while the old one signs; then whoever opens the
 * directory next puts the new one in its place and destroys the old key. Every step is one rename
 * or unlink, and each state that a crash can leave is one that the next call goes on from.
 *
 * All calls but rotation_read need the directory's lock, held exclusively. */
#ifndef DURWARD_ROTATION_H
#define DURWARD_ROTATION_H

#include "err.h"

#include <stdint.h>

enum { ROTATION_OVERLAP_DEFAULT = 7 * 86400, ROTATION_OVERLAP_MAX = 90 * 86400 };

struct rotation {
    int64_t since, until; /* Unix seconds */
};

/* 1: one is under way; 0: none; -1: the file cannot be read, or is not ours. */
int rotation_read(int dir, struct rotation *ret, struct err *err);
/* Is there anything for rotation_settle to do? 1, 0 or -1. The lock may be a shared one. */
int rotation_due(int dir, int64_t now, struct err *err);
/* Ends what is over and goes on with what a crash cut short: afterwards key.pem and cert.pem belong
 * together, and no key lies there but theirs and next-key.pem. */
int rotation_settle(int dir, int64_t now, struct err *err);
/* Empty files for the signer to make the new CA in; both descriptors are the caller's. */
int rotation_open_next(int dir, int *key_fd, int *cert_fd, struct err *err);
/* From here on the files of rotation_open_next count; again, to move `until`. */
int rotation_commit(int dir, const struct rotation *r, struct err *err);

#endif
