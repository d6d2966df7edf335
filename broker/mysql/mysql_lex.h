/* Words of a statement as MySQL and MariaDB read it, of any version and in the sql_mode that a
 * session has (no ANSI_QUOTES, no NO_BACKSLASH_ESCAPES; the back looks). Where servers differ, it
 * is refused: what is behind a version in a comment, a dollar before a word, braces, an exponent
 * without digits, and the byte 0xA0 in a word, which is a blank in latin1. */
#ifndef DURWARD_MYSQL_LEX_H
#define DURWARD_MYSQL_LEX_H

#include "slice.h"

enum mysql_token_kind {
    MYSQL_END = 0,
    MYSQL_WORD,      /* a name or a keyword, not quoted */
    MYSQL_QUOTED,    /* `name`; text is what is within the quotes, as written */
    MYSQL_STRING,    /* likewise, 'text' or "text" */
    MYSQL_NUMBER,    /* begins with a digit and is no name */
    MYSQL_VARIABLE,  /* @name; text is behind the @, n 0 when it is quoted */
    MYSQL_SYSTEM,    /* "@@" */
    MYSQL_SIGN,      /* one character; ":=" is two */
    MYSQL_VERSIONED, /* a comment that servers of some version run; text is behind the number */
    MYSQL_UNREADABLE,
};

struct mysql_token {
    enum mysql_token_kind kind;
    struct slice text;
    const char *why; /* of UNREADABLE */
};

struct mysql_lexer {
    struct slice rest;
    bool name, dot; /* the last was a word, or the dot of one: a digit behind it is a name's */
};

void mysql_lex(struct mysql_lexer *l, struct mysql_token *ret);
bool mysql_is_word(const struct mysql_token *t, const char *word); /* in any case, not quoted */
bool mysql_is_sign(const struct mysql_token *t, char c);
/* A name, quoted or not. */
bool mysql_is_name(const struct mysql_token *t);

#endif
