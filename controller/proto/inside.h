/* Work that the controller wants done inside a sandbox without a program of the sandbox's own:
 * files, and connections to its loopback. Each is a child of durward-init with the rights of the
 * sandbox's user, in its mount namespace: no path of the sandbox is ever resolved outside.
 *
 * A directory's list is written as entries, each NUL-terminated "TYPE MODE SIZE MTIME VERSION
 * NAME": TYPE is one of f d l o, MODE octal, SIZE and MTIME decimal, VERSION as in
 * lib/file_version.h or "-" while it changes, NAME any bytes but NUL and '/'. */
#ifndef DURWARD_INSIDE_H
#define DURWARD_INSIDE_H

#include "compiler.h"

enum inside_op {
    INSIDE_READ = 1,    /* pipe: the file's bytes come out */
    INSIDE_WRITE,       /* pipe: the file's new bytes go in; missing parents are made */
    INSIDE_LIST,        /* pipe: its entries come out */
    INSIDE_DELETE,      /* a file, a link or an empty directory */
    INSIDE_DELETE_TREE, /* all below it as well */
    INSIDE_MKDIR,       /* with missing parents; one that is there is fine */
    INSIDE_CHECK,       /* is it a directory that can be read? */
    INSIDE_WRITE_NEW,   /* as INSIDE_WRITE; EEXIST where something has that name */
    INSIDE_STAT,        /* pipe: the one entry of this path comes out; links are not followed */
    INSIDE_WATCH,       /* pipe: what happens below a directory comes out; W_INIT_WATCH only */
    INSIDE_END,
};

enum { INSIDE_PATH = 4096, INSIDE_ENTRIES = 16384, INSIDE_VERSION = 96 };

/* "": whatever is there, in place. Else INSIDE_WRITE and INSIDE_DELETE do nothing but to this
 * version, or to nothing (INSIDE_NO_VERSION), and whole or not at all. */
#define INSIDE_NO_VERSION "none"

/* Does it; fd is the pipe's inner end (-1 for deletions). mode: of a file that is made. Returns 0
 * or an errno; EFBIG for a list that goes on beyond INSIDE_ENTRIES, ESTALE for another version. */
int inside_do(enum inside_op op, const char *path, unsigned mode, const char *version, int fd);
/* What happens below the directory, as entries, each NUL-terminated "KIND DIR NAME": KIND is one of
 * enum inside_event, DIR 1 of a directory, else 0; NAME its path below the one that is watched, of
 * any bytes but NUL, empty of INSIDE_READY and of INSIDE_MISSED_*. Links are not followed. skip:
 * names that are neither watched nor told of. Returns an errno: ENOENT when the directory is gone,
 * EPIPE when nobody listens. */
enum inside_event {
    INSIDE_READY = 'r',          /* from here on nothing is missed */
    INSIDE_CREATED = 'c',        /* or moved to there */
    INSIDE_MODIFIED = 'm',       /* its bytes */
    INSIDE_ATTRIBUTES = 'a',     /* its mode, owner or times */
    INSIDE_DELETED = 'd',        /* or moved from there; of a directory with all below it */
    INSIDE_MISSED_EVENTS = 'o',  /* there were more than could be told of */
    INSIDE_MISSED_FOLDERS = 'w', /* there are more directories than can be watched */
};
enum { INSIDE_SKIPPED = 32, INSIDE_WATCHED = 4096 }; /* names; directories */
int inside_watch(const char *path, char *const *skip, unsigned n_skip, int fd);

/* A connection to 127.0.0.1 or ::1, at most 5 s. The socket, or -1 with errno. */
int inside_connect(unsigned port);

#endif
