/* Rules of postgres://: what a session at a PostgreSQL server is, and the decision about it. Front
 * and back of the broker both decide, by this one function.
 *
 * A request is a path to the engine whose only segment is the database: /orders. */
#ifndef DURWARD_POSTGRES_RULE_H
#define DURWARD_POSTGRES_RULE_H

#include "policy.h"

enum { POSTGRES_DATABASE_MAX = 63 };

struct postgres_terms {
    bool read_only;
    bool activity;       /* it sees what other sessions of its login say */
    const char *role;    /* that the session has, and may not leave; NULL: the login's own */
    const char *user;    /* as whom a certificate logs in; NULL: as its common name says */
    unsigned statements; /* classes, as bits in the order of postgres_statement_words */
    unsigned rows;       /* of replies, in a session; 0: any number */
    unsigned megabytes;  /* of replies, in a session; 0: any number */
    unsigned seconds;    /* a session; 0: as long as it likes */
};

enum { POSTGRES_STATEMENT_WORDS = 6 };
/* "read", "write", "define", "transaction", "session", "listen". */
extern const char *const postgres_statement_words[POSTGRES_STATEMENT_WORDS];

/* A name of a database or a role that is sent as it is: letters, digits, "_", "-", ".", "$", not
 * "-" first. */
bool postgres_name_ok(struct slice name);
void policy_postgres_decide(const struct policy *p, const struct authority *a,
                            struct slice database, struct decision *ret);

#endif
