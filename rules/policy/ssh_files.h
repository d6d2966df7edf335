/* Which files of an SSH server a rule leaves to a sandbox, and for what: patterns of paths as the
 * server has them. Front and back of the broker both ask here.
 *
 * A path is plain: from the root, no empty part, no "." and no "..", and no backslash, which
 * servers on Windows take for a slash. */
#ifndef DURWARD_SSH_FILES_H
#define DURWARD_SSH_FILES_H

#include "slice.h"

enum { SSH_FILE_PATH_MAX = 1024, SSH_FILE_PATTERNS_MAX = 64, SSH_FILE_PATTERN_MAX = 256 };

enum ssh_file_right { SSH_FILE_READ = 0, SSH_FILE_WRITE, SSH_FILE_REMOVE, SSH_FILE_RIGHTS };

struct ssh_files {
    const char *const *patterns[SSH_FILE_RIGHTS];
    size_t n[SSH_FILE_RIGHTS];
    bool hidden;         /* a '*' stands for names that begin with a dot, too */
    uint64_t most_bytes; /* of a file; 0: as many as it likes */
};

enum ssh_file_verb {
    SSH_FILE_SEE = 0, /* what it is, how large, where it really is */
    SSH_FILE_LIST,
    SSH_FILE_GET,
    SSH_FILE_PUT,
    SSH_FILE_GET_PUT,
    SSH_FILE_READ_LINK,
    SSH_FILE_SET, /* its mode, its times, its size */
    SSH_FILE_MAKE_DIRECTORY,
    SSH_FILE_DELETE,
    SSH_FILE_DELETE_DIRECTORY,
    SSH_FILE_RENAME, /* to `to` */
    SSH_FILE_LINK,   /* another name, `to` */
    SSH_FILE_VERBS
};

struct ssh_file_asked {
    enum ssh_file_verb verb;
    struct slice path, to;
};

const char *ssh_file_verb_name(enum ssh_file_verb v); /* "read", "write", "list" */
bool ssh_file_path_ok(struct slice path);
/* A path, or one from home ("~/reports"): a star is a part of one name, but not the dot that one
 * begins with; two stars at the end are all that is below. */
bool ssh_file_pattern_ok(struct slice pattern);
/* home: where the server begins; n 0: not known, and "~" matches nothing. NULL, or a constant code:
 * "file_path", or "file": no pattern allows it. */
const char *ssh_files_refused(const struct ssh_files *f, struct slice home,
                              const struct ssh_file_asked *asked);
/* Of a rename that is not refused: all that may lie below may be removed there and written here, so
 * that it may be of a folder, too. */
bool ssh_files_covered(const struct ssh_files *f, struct slice home,
                       const struct ssh_file_asked *asked);

#endif
