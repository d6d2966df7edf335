/* Reads login files of other programs: which entries and parts one has (for `durward run`), the
 * value of one part (for the vault), and writes back a session that was refreshed. What a file has
 * to be is what is asked of every file with a secret (store.h). */
#ifndef DURWARD_LOGIN_FILE_H
#define DURWARD_LOGIN_FILE_H

#include "buf.h"
#include "login.h"
#include "store.h"

/* What the file has: entries and lines of *ret, whose format and file are set; no value of a secret
 * is in it. only: names of entries, separated by commas; NULL: what the format says. -1 when there
 * is nothing to use. */
int login_file_look(struct login_use *ret, const char *only, struct err *err) WUNUSED;
void login_use_done(struct login_use *u); /* its format and file too; zeroed is fine */

/* A `login` store: its value, as a file of our own that nobody else sees. */
int login_file_open(const struct config_secret *s, struct store_result *ret,
                    struct err *err) WUNUSED;

/* A session: {"access", "refresh", "expires" (seconds since the epoch)} as JSON, wiped by buf_free.
 */
int login_file_session(const struct login_format *f, const char *path, struct buf *to,
                       struct err *err) WUNUSED;
struct login_session {
    struct slice access, refresh; /* empty: as it is; access too, with when it ends */
    int64_t expires;
};
/* Trees in which secrets stand leave nothing in memory from here on. */
void login_trees_wiped(void);
/* A file of these bytes takes the name, whole or not at all, on disk before, 0600. like: of that
 * file's owner; NULL: ours. */
int login_file_replace(const char *path, const char *like, struct slice text,
                       struct err *err) WUNUSED;
/* The file with these in place of those it had, all else as it was: a new file, on disk before it
 * takes the name. */
int login_file_save(const struct login_format *f, const char *path,
                    const struct login_session *session, struct err *err) WUNUSED;

/* ---- internal to login_*.c ---- */

/* The whole text, NUL-terminated beyond *n, wiped with login_text_free. */
char *login_text_read(const char *path, size_t *n, struct err *err);
void login_text_free(char *text, size_t n);
/* The tree of a file; new reference, and lines that may be shown as they are (malloc'd, or NULL).
 */
json_t *login_tree_of(enum login_syntax syntax, char *text, size_t n, const char *path,
                      char **lines, struct err *err);

#endif
