/* Files below a bound directory that are known to hold credentials, and sockets of host programs:
 * they are covered by an empty read-only file or directory, so that the sandbox does not see them.
 *
 * This is for who cannot have a view (view.h). The search ends when nothing has changed since it
 * was read, so that nothing is overlooked that was moved meanwhile; or the bind is refused. A
 * directory below MASK_DEPTH_MAX others is covered unread.
 *
 * Limits, named in the manual: a file's other hard links and a link with another name than the
 * credential's are not recognised; a file that a host program makes or replaces (a new file renamed
 * over the old one) after the sandbox began is visible, which a note says. */
#ifndef DURWARD_MASK_H
#define DURWARD_MASK_H

#include "buf.h"
#include "err.h"

enum {
    MASK_ENTRIES_MAX = 2000000, /* directory entries looked at */
    MASK_MS_MAX = 20000,
    MASK_ROUNDS_MAX = 16,
    MASK_LIST_ENTRIES_MAX = 50000, /* the same where it is only to be said what is masked */
    MASK_LIST_MS_MAX = 500,
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
/* Does a directory of this name (.aws, .ssh) make known what lies in it? */
bool mask_names_children(const char *name);
/* The i-th name, from 0, that a link in a directory called `parent` may bear to give away a
 * credential of another name; NULL: there is none further. */
const char *mask_link_name(size_t i, const char *parent, size_t nparent);
/* Do the first bytes of a file show a private key? Not one that is all of them and that everybody
 * has (sample_keys.h). */
bool mask_is_key(const char *head, size_t n);
/* The same for an open file; what cannot be read counts as one. */
bool mask_holds_key(int fd);

struct mask {
    int empty_file, empty_dir; /* O_PATH, in the caller's mount namespace; the caller's */
    struct buf *notes;         /* a line for each covered file, and for what was not searched */
    unsigned entries_max;      /* 0: MASK_ENTRIES_MAX */
    unsigned entries, covered; /* entries: of this round; covered: of all calls together */
    bool unnamed;              /* notes had no more room for names */
};

/* Search the attached mount tree (directory) and cover what is found. source: its host path, for
 * recognition and for the notes. -1 when it cannot be searched whole, too much was found or a file
 * cannot be covered. */
int mask_tree(struct mask *m, int tree, const char *source, struct err *err);
/* Only note what would be covered, as far as is found in a short time: a view (view.h) masks. */
int mask_list(struct mask *m, int tree, const char *source, struct err *err);

#endif
