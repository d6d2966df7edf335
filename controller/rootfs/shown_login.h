/* Files of the directories in shown.c that have a place for a login: is there one in it? Such a
 * file is none of a sandbox's, as credentials in a bound directory are not (mask.h). */
#ifndef DURWARD_SHOWN_LOGIN_H
#define DURWARD_SHOWN_LOGIN_H

#include "buf.h"
#include "err.h"

/* pattern: of shown.c; from: the directory; name: a file in it. What cannot be read here cannot be
 * read inside either, and holds none; what is too large to be looked through holds one. */
bool shown_login(const char *pattern, int from, const char *name);
/* Whether any file of that directory does; each is noted as a masked one. */
bool shown_note_logins(const char *pattern, const char *path, int from, struct buf *notes);
/* Covers files deeper in those directories, and of the host's /usr, which root has whole, where a
 * login is filled in. */
int shown_cover_logins(int root, int empty, struct buf *notes, struct err *err);
/* The same of a file of lines anywhere. */
bool shown_login_at(int from, const char *name);
/* How a file says something. ATTRIBUTES: in XML, values of attributes and what they consist of.
 * ANY: whatever its program is; names and values by =, : or blanks. SECRETS: it holds nothing else.
 */
enum shown_form { SHOWN_LINES = 0, SHOWN_XML, SHOWN_ATTRIBUTES, SHOWN_ANY, SHOWN_SECRETS };
/* The judgement itself. Comments, which are full of examples, do not count. */
bool shown_login_in(struct slice text, enum shown_form form);

#endif
