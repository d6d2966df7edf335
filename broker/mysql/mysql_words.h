/* What of a statement's words is known: functions, settings, engines. Names of functions, tables
 * and databases that are refused are compared as servers fold them. Internal to this room. */
#ifndef DURWARD_MYSQL_WORDS_H
#define DURWARD_MYSQL_WORDS_H

#include "slice.h"

/* A function that reads the server's files or runs programs there. */
bool mysql_function_refused(struct slice name);
/* The server's own database, in which the logins are. */
bool mysql_database_own(struct slice name);
/* A table that shows what other sessions say, and a database of such. */
bool mysql_shows_activity(struct slice name);
bool mysql_database_shows_activity(struct slice name);
/* One that writes, or takes what writers wait for. */
bool mysql_function_writes(struct slice name);
/* A setting that a session may have as it likes: it changes neither what a statement is, nor who
 * somebody is, nor what may be written. */
bool mysql_setting_free(struct slice name);
/* One of character sets, whose value must be one that we read alike. */
bool mysql_setting_charset(struct slice name);
/* A list of SQL modes none of which changes how a statement is read. */
bool mysql_modes_ok(struct slice list);
/* A storage engine that keeps its rows in the server. */
bool mysql_engine_ok(struct slice name);
/* Words that may stand in a comment with a version, whatever the server makes of it. */
bool mysql_comment_word_ok(struct slice word);
/* One of n words, in any case. */
bool mysql_is_one(struct slice s, const char *const *words, size_t n);

#endif
