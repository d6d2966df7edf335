/* Rules of mysql://: what a session at a MySQL or MariaDB server is, and the decision about it.
 * Front and back of the broker both decide, by this one function.
 *
 * A request is a path to the engine whose only segment is the database: /orders; "/-" is a session
 * without one, which a rule for any database allows. */
#ifndef DURWARD_MYSQL_RULE_H
#define DURWARD_MYSQL_RULE_H

#include "policy.h"

enum { MYSQL_DATABASE_MAX = 64 };

struct mysql_terms {
    bool read_only;
    bool any_database; /* else a session has the one that it began with, and may not leave it */
    bool multi_statements, local_infile;
    bool activity;       /* it sees what other sessions of its login say */
    unsigned statements; /* classes, as bits in the order of mysql_statement_words */
    unsigned rows;       /* of replies, in a session; 0: any number */
    unsigned megabytes;  /* of replies, in a session; 0: any number */
    unsigned seconds;    /* a session; 0: as long as it likes */
};

enum { MYSQL_STATEMENT_WORDS = 5 };
/* "read", "write", "define", "transaction", "session". */
extern const char *const mysql_statement_words[MYSQL_STATEMENT_WORDS];

/* The name of a database that is sent as it is: letters, digits, "_", "-", "$", neither "-" first
 * nor one of the server's own. */
bool mysql_name_ok(struct slice name);
/* database: n 0 when none is named. */
void policy_mysql_decide(const struct policy *p, const struct authority *a, struct slice database,
                         struct decision *ret);

#endif
