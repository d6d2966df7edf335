/* Files below a bound directory that are known to hold credentials, and sockets of host programs:
 * they are covered by an empty read-only file or directory, so that the sandbox does not see them.
 *
 * A directory below MASK_DEPTH_MAX others is covered unread.
 *
 * Limits, named in the manual: a file's other hard links and a link with another name than the
 * credential's are not recognised; a file that a host program replaces (a new file renamed over the
 * old one) after the sandbox began is visible. */
#ifndef DURWARD_MASK_H
#define DURWARD_MASK_H

#include "buf.h"
#include "err.h"

enum {
    MASK_ENTRIES_MAX = 200000, /* directory entries looked at */
    MASK_MS_MAX = 2000,
    MASK_DEPTH_MAX = 64,
    MASK_COVERED_MAX = 1000, /* beyond this the directory is too much of a secret to be bound */
};

enum mask_verdict {
    MASK_NO,
    MASK_YES,    /* by its name */
    MASK_IF_KEY, /* if its first bytes hold a private key: mask_is_key() */
};

/* What a file or directory at this path is; path: its own name and, with slashes, those of the
 * directories above it as far as known. */
enum mask_verdict mask_match(const char *path, bool directory);
/* Do the first bytes of a file show a private key? */
bool mask_is_key(const char *head, size_t n);

struct mask {
    int empty_file, empty_dir; /* O_PATH, in the caller's mount namespace; the caller's */
    struct buf *notes;         /* a line for each covered file, and for what was not searched */
    unsigned entries, covered; /* of all mask_tree calls together */
    bool unnamed;              /* notes had no more room for names */
};

/* Search the attached mount tree (directory) and cover what is found. source: its host path, for
 * recognition and for the notes. -1 when too much was found or a file cannot be covered. */
int mask_tree(struct mask *m, int tree, const char *source, struct err *err);

#endif
