/* What a rule leaves of commands. Front and back both ask: the front answers what is refused, the
 * back ends a session whose front hands on what it should have refused. */
#ifndef DURWARD_MYSQL_JUDGE_H
#define DURWARD_MYSQL_JUDGE_H

#include "mysql_handshake.h"
#include "mysql_reply.h"
#include "mysql_statement.h"

struct mysql_judged {
    const char *why; /* NULL: it may go on */
    enum mysql_reply_kind reply;
    bool may_ask;                     /* its reply may ask for a file */
    bool quits;                       /* it is the last */
    struct mysql_statement statement; /* of a query or a prepared statement */
};

/* m: the first part of a command's packet, all of it but for what a prepared statement is given. */
void mysql_judge(const struct mysql_terms *t, struct slice database, const struct mysql_part *m,
                 struct mysql_judged *ret);
/* The capabilities that a session has at its server, of those that its client has. */
uint32_t mysql_capabilities(const struct mysql_terms *t, uint32_t of_client);

#endif
