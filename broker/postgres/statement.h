/* What a statement does, by PostgreSQL's own grammar (libpg_query): its classes, what it would
 * undo, and its fingerprint, in which no value stands. What that parser cannot read is refused, and
 * so is each kind of statement and each function of the server that is not known to be harmless. */
#ifndef DURWARD_STATEMENT_H
#define DURWARD_STATEMENT_H

#include "slice.h"

enum {
    STATEMENT_MAX =
        256 * 1024, /* bytes of what is parsed: the tree takes up to 170 times as much */
    STATEMENT_FINGERPRINT = 16,
    STATEMENT_ROLE_MAX = 63, /* bytes of a name that a server tells apart */
};

enum statement_class {
    STATEMENT_READ = 1,
    STATEMENT_WRITE = 2, /* rows; sequences; a lock that writers wait for; CALL */
    STATEMENT_DEFINE = 4,
    STATEMENT_TRANSACTION = 8,
    STATEMENT_SESSION = 16, /* SET, RESET, DISCARD */
    STATEMENT_LISTEN = 32,
    STATEMENT_ANY = 63,
};

/* What it would undo, or see: what other sessions of its login say, which may be other sandboxes'.
 */
enum statement_mark { STATEMENT_ROLE = 1, STATEMENT_READ_ONLY = 2, STATEMENT_ACTIVITY = 4 };

struct statement {
    unsigned classes, marks; /* of all statements in the text, and within them */
    /* Of each SET ROLE in it, where that says one name; another change of the role is a mark. */
    char role[STATEMENT_ROLE_MAX + 1];
    const char *refused; /* why it is refused whatever the policy says; NULL: it is not */
    char fingerprint[STATEMENT_FINGERPRINT + 1]; /* "": it cannot be read */
};

/* text: what Query or Parse holds; UTF-8. Never fails: what cannot be judged is refused. */
void statement_read(struct slice text, struct statement *ret);

/* What a rule leaves to a session. */
struct statement_bounds {
    unsigned classes; /* that it may use */
    bool read_only;
    bool role;            /* it has a role that it may not leave */
    bool activity;        /* it may see what other sessions say */
    const char *own_role; /* that role, which may be said; NULL: none may */
};

/* Why such a session may not say this; NULL: it may. */
const char *statement_refusal(const struct statement *s, const struct statement_bounds *b);

/* A function that a statement may call, by its name alone: none that runs SQL which it is given,
 * reaches files, programs, other sessions or servers, or the server's own affairs. */
bool statement_function_ok(struct slice name);
/* The same of the name of a column: x.f may be f(x), whatever x is. */
bool statement_column_ok(struct slice name);
/* A table, view or function that shows what other sessions say, by its name alone. */
bool statement_shows_activity(struct slice name);
/* The classes that calling it is of, beside that of the statement. */
unsigned statement_function_classes(struct slice name);

#endif
