/* What is asked of a server before a session begins: how it reads statements, and what the login
 * may do there. */
#include "mysql_back.h"
#include "mysql_rights.h"
#include "mysql_words.h"

#include <stdio.h>
#include <string.h>

static int refuse(struct mysql_session *s, const char *code, const char *text)
{
    mysql_carry_stop(s, code, text);
    return -1;
}

enum { CHECKS = 3 };

/* The question of that number, p NULL: it is not asked. Each is answered with one column, or OK. */
static struct slice question(const struct mysql_session *s, unsigned i)
{
    const struct mysql_terms *t = mysql_terms_of(s);
    if (i == 0)
        return SLICE("SELECT CONCAT_WS(' ', @@session.sql_mode, @@session.character_set_client, "
                     "@@session.character_set_connection)");
    if (i == 1 && (t->read_only || !t->any_database))
        return SLICE("SHOW GRANTS");
    if (i == 2 && t->read_only)
        return SLICE("SET SESSION TRANSACTION READ ONLY");
    return (struct slice){NULL, 0};
}

static int ask_next(struct mysql_session *s)
{
    if (s->state == SESSION_ASKING && s->n_checked > 0) {
        mysql_carry_on(s);
        return 0;
    }
    while (s->n_checked < CHECKS && question(s, s->n_checked).p == NULL)
        s->n_checked++;
    if (s->n_checked == CHECKS)
        return mysql_carry_begin(s);
    s->check_row = false;
    mysql_reply_begin(&s->reply, MYSQL_REPLY_RESULT, false);
    if (mysql_put_query(io_out(s->login.link.io), question(s, s->n_checked)) < 0)
        return refuse(s, "memory", "");
    io_flush_soon(s->login.link.io);
    return 0;
}

int mysql_check_begin(struct mysql_session *s)
{
    s->state = SESSION_CHECKING;
    mysql_reader_init(&s->down, MYSQL_LOGIN);
    return ask_next(s);
}

int mysql_check_again(struct mysql_session *s)
{
    s->restores = false;
    s->n_checked = 0;
    s->state = SESSION_ASKING;
    mysql_reader_free(&s->down);
    mysql_reader_init(&s->down, MYSQL_LOGIN);
    return ask_next(s);
}

/* Up to a blank. False: there is no more. */
static bool take_word(struct slice *s, struct slice *word)
{
    ssize_t blank = slice_find(*s, ' ');
    *word = (struct slice){s->p, blank < 0 ? s->n : (size_t)blank};
    size_t n = word->n + (blank >= 0);
    *s = (struct slice){s->p + n, s->n - n};
    return blank >= 0;
}

/* "STRICT_TRANS_TABLES,... utf8mb4 utf8mb4" */
static int on_reading(struct mysql_session *s, struct slice said)
{
    struct slice modes, client, connection;
    bool whole = take_word(&said, &modes) && take_word(&said, &client);
    if (!whole || take_word(&said, &connection) || !mysql_modes_ok(modes))
        return refuse(s, "mysql_setting",
                      "the session's sql_mode has one that changes how statements are read");
    return mysql_charset_name_ok(client) && mysql_charset_name_ok(connection)
               ? 0
               : refuse(s, "mysql_setting", "the session has another character set");
}

static int on_right(struct mysql_session *s, struct slice line)
{
    const struct mysql_terms *t = mysql_terms_of(s);
    char why[200], text[300];
    struct slice database = t->any_database ? SLICE("") : slice_str(s->database);
    const char *beyond = mysql_rights_beyond(line, t->read_only, database, why, sizeof why);
    if (beyond == NULL)
        return 0;
    snprintf(text, sizeof text, "%s does not hold for this login: %s",
             t->read_only ? "'access: read-only'" : "the rule's database", beyond);
    return refuse(s, t->read_only ? "mysql_writes" : "mysql_beyond", text);
}

int mysql_check_packet(struct mysql_session *s, const struct mysql_part *m)
{
    struct slice body = m->body, value;
    bool is_error = (unsigned char)body.p[0] == 0xff;
    if (is_error || mysql_reply_take(&s->reply, m) < 0)
        return refuse(s, "mysql_setting", "the server does not say what the session is");
    if (s->reply.row) {
        s->check_row = true;
        if (mysql_take_counted(&body, &value) < 0 || body.n > 0)
            return refuse(s, "upstream_protocol", "the server's answer cannot be read");
        return s->n_checked == 0 ? on_reading(s, value) : on_right(s, value);
    }
    if (!mysql_reply_over(&s->reply))
        return 0;
    if (s->n_checked < 2 && !s->check_row)
        return refuse(s, "mysql_setting", "the server does not say what the session is");
    s->n_checked++;
    return ask_next(s);
}
