/* Commands, by their first bytes. */
#include "mysql_judge.h"

#include "mysql_words.h"

#include <string.h>

static void judge_database(const struct mysql_terms *t, struct slice database, struct slice name,
                           struct mysql_judged *ret)
{
    ret->reply = MYSQL_REPLY_ONE;
    if (!t->any_database && !slice_eq(name, database))
        ret->why = "another database";
    else if (name.n == 0 || memchr(name.p, 0, name.n))
        ret->why = "a database whose name cannot be read";
    else if (mysql_database_own(name))
        ret->why = "the server's own database";
    else if (!t->activity && mysql_database_shows_activity(name))
        ret->why = "what other sessions say, which 'activity' would allow";
}

static void judge_text(const struct mysql_terms *t, struct slice database, struct slice text,
                       bool prepared, struct mysql_judged *ret)
{
    mysql_statement_read(text, t, database, prepared, &ret->statement);
    ret->why = ret->statement.refused;
    ret->reply = prepared ? MYSQL_REPLY_PREPARED : MYSQL_REPLY_RESULT;
    ret->may_ask = t->local_infile && !prepared;
}

static void judge_option(const struct mysql_terms *t, struct slice body, struct mysql_judged *ret)
{
    ret->reply = MYSQL_REPLY_ONE;
    if (body.n != 2 || body.p[1] != 0 || (unsigned char)body.p[0] > 1)
        ret->why = "an option that is not known";
    else if (body.p[0] == 0 && !t->multi_statements)
        ret->why = "several statements in one text, which 'multi_statements' would allow";
}

static void judge_kill(struct slice body, struct mysql_judged *ret)
{
    if (mysql_take_u32(&body, &ret->statement.killed) < 0 || body.n > 0)
        ret->why = "KILL that is not KILL QUERY of a connection";
    else
        ret->statement.kills = true;
}

void mysql_judge(const struct mysql_terms *t, struct slice database, const struct mysql_part *m,
                 struct mysql_judged *ret)
{
    struct slice body = {m->body.p + 1, m->body.n - 1};
    memset(ret, 0, sizeof *ret);
    switch ((unsigned char)m->body.p[0]) {
    case MYSQL_QUIT:
        ret->quits = true;
        break;
    case MYSQL_INIT_DB:
        judge_database(t, database, body, ret);
        break;
    case MYSQL_QUERY:
        judge_text(t, database, body, false, ret);
        break;
    case MYSQL_PREPARE:
        judge_text(t, database, body, true, ret);
        break;
    case MYSQL_PROCESS_KILL:
        judge_kill(body, ret);
        break;
    case MYSQL_STATISTICS:
    case MYSQL_PING:
    case MYSQL_RESET:
        ret->reply = MYSQL_REPLY_ONE;
        break;
    case MYSQL_EXECUTE:
        ret->reply = MYSQL_REPLY_RESULT;
        break;
    case MYSQL_FETCH:
        ret->reply = MYSQL_REPLY_ROWS;
        break;
    case MYSQL_LONG_DATA:
    case MYSQL_CLOSE:
        break;
    case MYSQL_SET_OPTION:
        judge_option(t, body, ret);
        break;
    default:
        ret->why = "a command that is not carried";
        break;
    }
}

uint32_t mysql_capabilities(const struct mysql_terms *t, uint32_t of_client)
{
    uint32_t left = of_client & MYSQL_CHOSEN;
    if (!t->multi_statements)
        left &= ~(uint32_t)MYSQL_MULTI_STATEMENTS;
    if (!t->local_infile)
        left &= ~(uint32_t)MYSQL_LOCAL_FILES;
    return left;
}
