/* What a text of MySQL's or MariaDB's does: its classes, and its fingerprint, in which no value
 * stands. There is no parser of theirs to ask: each kind of statement is known by its first words,
 * and what is not known to be harmless is refused. */
#ifndef DURWARD_MYSQL_STATEMENT_H
#define DURWARD_MYSQL_STATEMENT_H

#include "mysql_rule.h"
#include "slice.h"

enum {
    MYSQL_PRINT = 16,  /* digits of a fingerprint */
    MYSQL_DEPTH = 100, /* of parentheses */
};

/* Bits, in the order of mysql_statement_words. */
enum mysql_class {
    MYSQL_READ = 1,
    MYSQL_WRITE = 2, /* rows; sequences; locks that writers wait for; CALL */
    MYSQL_DEFINE = 4,
    MYSQL_TRANSACTION = 8,
    MYSQL_SETTING = 16, /* SET, USE */
};

struct mysql_statement {
    unsigned classes;
    const char *refused; /* NULL: it is not */
    bool kills;          /* it is KILL QUERY of that connection, and nothing else */
    uint32_t killed;
    bool restores; /* a mode or a character set from a variable: what it is now has to be asked for
                    * before the next statement; it is one statement, and not prepared */
    char print[MYSQL_PRINT + 1]; /* "": it cannot be read */
};

/* What a session may say, in the database that it has. prepared: one statement, whatever the terms
 * say. Never fails: what cannot be judged is refused. */
void mysql_statement_read(struct slice text, const struct mysql_terms *terms, struct slice database,
                          bool prepared, struct mysql_statement *ret);

#endif
