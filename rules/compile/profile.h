/* A profile: what a program (mostly somebody's coding agent) needs in order to run in a sandbox as
 * it is. It is data, and stands for nothing that `durward run` could not be told by itself: rules,
 * variables, files of the home. Built in ones are the files of rules/profiles/; users have theirs
 * beside their configuration. Keys: doc/durward-profile.5.md. */
#ifndef DURWARD_PROFILE_H
#define DURWARD_PROFILE_H

#include "err.h"
#include "slice.h"

enum {
    PROFILE_MAX = 64 * 1024,      /* bytes of its file */
    PROFILE_FILE_MAX = 16 * 1024, /* of one file that it writes: it fits into a pipe */
    PROFILE_FILES_MAX = 32,
    PROFILE_WORDS_MAX = 32
};

struct profile;

/* Which rules for a login made inside count. */
enum profile_inside {
    PROFILE_NOT_INSIDE = 0,
    PROFILE_LOGIN, /* it may be made */
    PROFILE_KEPT   /* it was made before, and may be refreshed */
};

/* The text of a built-in one; NULL: there is none of this name. In the order of the alphabet; NULL
 * past the end. */
const char *profile_text(const char *name);
const char *profile_builtin(size_t i);

/* where: what messages call the text, a file's name. The profile is checked whole, its rules too.
 * NULL with "WHERE:LINE: what; hint". */
struct profile *profile_read(const char *name, struct slice text, const char *where,
                             struct err *err);
void profile_free(struct profile *p); /* NULL is fine */

const char *profile_name(const struct profile *p);
const char *profile_about(const struct profile *p); /* "" if it does not say */
/* The login file that may stand for its keys (login.h); NULL: none is known. */
const char *profile_login(const struct profile *p);
/* The command and what stands before the user's own words; NULL past the end. */
const char *profile_word(const struct profile *p, size_t i);
/* A file of the home, by its path below it; false past the end. Text may hold {{placeholder NAME}},
 * {{placeholder NAME last N}} and {{project}}. */
bool profile_file(const struct profile *p, size_t i, const char **path, const char **text);
/* It says how its program logs in by itself; the files of the home that go with that. */
bool profile_inside(const struct profile *p);
bool profile_inside_file(const struct profile *p, size_t i, const char **path, const char **text);
/* What is removed from the home before each run; NULL past the end. */
const char *profile_forgotten(const struct profile *p, size_t i);

#endif
