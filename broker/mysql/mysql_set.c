/* SET: settings of a session's own, of which a few would change how its statements are read, who it
 * is or what it may write. */
#include "buf.h"
#include "mysql_handshake.h"
#include "mysql_reading.h"
#include "mysql_words.h"

#include <string.h>

static void skip_value(struct mysql_reading *x)
{
    while (!mysql_reading_end(x) && !(mysql_is_sign(&x->token, ',') && x->depth == 0))
        mysql_reading_next(x);
}

static bool value_ends(struct mysql_reading *x)
{
    mysql_reading_next(x);
    return mysql_reading_end(x) || mysql_is_sign(&x->token, ',');
}

/* @OLD_SQL_MODE and the like, as dumps restore what a session had. What is in it is not known here:
 * the back asks the server what the session is then. */
static bool read_kept(struct mysql_reading *x)
{
    if (x->token.kind != MYSQL_VARIABLE || !value_ends(x))
        return false;
    x->ret->restores = true;
    return true;
}

/* NAMES and CHARACTER SET, from the set's name. */
static void read_names(struct mysql_reading *x, bool collation)
{
    if (!(mysql_is_name(&x->token) || x->token.kind == MYSQL_STRING) ||
        !mysql_charset_name_ok(x->token.text))
        mysql_reading_refuse(x, "a character set in which statements may be read differently");
    mysql_reading_next(x);
    if (collation && mysql_is_word(&x->token, "collate"))
        mysql_reading_next(x), mysql_reading_next(x);
    if (!mysql_reading_end(x) && !mysql_is_sign(&x->token, ','))
        mysql_reading_refuse(x, "SET NAMES with more behind it");
}

/* The value of a setting of character sets: NULL, or a name that begins with one. */
static void read_charset(struct mysql_reading *x)
{
    if (read_kept(x))
        return;
    struct slice name = x->token.text;
    ssize_t end = slice_find(name, '_');
    if (end > 0)
        name.n = (size_t)end;
    bool good =
        (mysql_is_name(&x->token) || x->token.kind == MYSQL_STRING) && mysql_charset_name_ok(name);
    if (!good || !value_ends(x))
        mysql_reading_refuse(x, "a character set in which statements may be read differently");
}

/* ---- sql_mode: an expression, as drivers and frameworks write it ---- */

/* It is read as what it makes of a session that has one of the harmless modes, and that has to be a
 * list of such. So what stands beside the session's own modes is set off by a comma, and no two
 * parts make one word. */
struct modes {
    struct buf list;
    unsigned depth;
};

enum { MODES_MAX = 2048, MODES_DEPTH = 8 };

static bool modes_add(struct modes *m, struct slice text)
{
    return buf_append(&m->list, text.p, text.n) == 0;
}

static bool takes(struct mysql_reading *x, char sign)
{
    bool is = mysql_is_sign(&x->token, sign);
    if (is)
        mysql_reading_next(x);
    return is;
}

/* @@sql_mode, of the session. */
static bool read_own_mode(struct mysql_reading *x, struct modes *m)
{
    mysql_reading_next(x);
    if (mysql_is_word(&x->token, "session") || mysql_is_word(&x->token, "local")) {
        mysql_reading_next(x);
        if (!takes(x, '.'))
            return false;
    }
    bool is = mysql_is_word(&x->token, "sql_mode");
    if (is)
        mysql_reading_next(x);
    return is && modes_add(m, SLICE("strict_all_tables"));
}

static bool read_mode(struct mysql_reading *x, struct modes *m);

/* CONCAT(expression, ...) */
static bool read_joined(struct mysql_reading *x, struct modes *m)
{
    do {
        mysql_reading_next(x); /* from the function's name onto "(", or from "," */
        if (!read_mode(x, m))
            return false;
    } while (mysql_is_sign(&x->token, ','));
    return takes(x, ')');
}

/* REPLACE(expression, 'MODE', ''): a mode less. */
static bool read_less(struct mysql_reading *x, struct modes *m)
{
    mysql_reading_next(x);
    if (!read_mode(x, m) || !takes(x, ','))
        return false;
    bool good = x->token.kind == MYSQL_STRING && slice_find(x->token.text, ',') < 0 &&
                mysql_modes_ok(x->token.text);
    mysql_reading_next(x);
    good = good && takes(x, ',') && x->token.kind == MYSQL_STRING && x->token.text.n == 0;
    mysql_reading_next(x);
    return good && takes(x, ')');
}

static bool read_mode(struct mysql_reading *x, struct modes *m)
{
    bool good = m->depth < MODES_DEPTH;
    if (!good)
        return false;
    if (x->token.kind == MYSQL_STRING) {
        good = modes_add(m, x->token.text);
        mysql_reading_next(x);
        return good;
    }
    if (x->token.kind == MYSQL_SYSTEM)
        return read_own_mode(x, m);
    bool joined = mysql_is_word(&x->token, "concat");
    if (!joined && !mysql_is_word(&x->token, "replace"))
        return false;
    mysql_reading_next(x);
    if (!mysql_is_sign(&x->token, '('))
        return false;
    m->depth++;
    good = joined ? read_joined(x, m) : read_less(x, m);
    m->depth--;
    return good;
}

static void read_modes(struct mysql_reading *x)
{
    if (read_kept(x))
        return;
    struct modes m = {.depth = 0};
    buf_init(&m.list, MODES_MAX);
    bool good = read_mode(x, &m) && (mysql_reading_end(x) || mysql_is_sign(&x->token, ',')) &&
                mysql_modes_ok(buf_slice(&m.list));
    buf_free(&m.list);
    if (!good)
        mysql_reading_refuse(x, "a mode in which statements may be read differently");
}

/* [SESSION | LOCAL] TRANSACTION */
static void read_transaction(struct mysql_reading *x)
{
    x->ret->classes = (x->ret->classes & ~(unsigned)MYSQL_SETTING) | MYSQL_TRANSACTION;
    while (!mysql_reading_end(x)) {
        if (x->terms->read_only && mysql_is_word(&x->token, "write"))
            mysql_reading_refuse(x, "the end of 'access: read-only'");
        mysql_reading_next(x);
    }
}

/* "@@", and what is behind. */
static void read_scope(struct mysql_reading *x)
{
    mysql_reading_next(x);
    if (mysql_is_word(&x->token, "session") || mysql_is_word(&x->token, "local")) {
        mysql_reading_next(x);
        if (!mysql_is_sign(&x->token, '.'))
            mysql_reading_refuse(x, "a setting that cannot be read");
        mysql_reading_next(x);
    }
}

static void read_setting(struct mysql_reading *x, struct slice name)
{
    mysql_reading_next(x);
    if (!mysql_is_sign(&x->token, '=') && !slice_eq_str(x->token.text, ":="))
        mysql_reading_refuse(x, "a setting that is not a session's own");
    mysql_reading_next(x);
    if (mysql_setting_charset(name))
        read_charset(x);
    else if (slice_ieq_str(name, "sql_mode"))
        read_modes(x);
    else if (!mysql_setting_free(name))
        mysql_reading_refuse(x, "a setting that is not known to be harmless");
    skip_value(x);
}

/* One assignment. */
static void read_one(struct mysql_reading *x)
{
    if (x->token.kind == MYSQL_VARIABLE) {
        skip_value(x);
        return;
    }
    bool scoped = mysql_is_word(&x->token, "session") || mysql_is_word(&x->token, "local");
    if (scoped)
        mysql_reading_next(x);
    if (!scoped && x->token.kind == MYSQL_SYSTEM)
        read_scope(x);
    if (mysql_is_word(&x->token, "transaction")) {
        read_transaction(x);
    } else if (!scoped && mysql_is_word(&x->token, "names")) {
        mysql_reading_next(x);
        read_names(x, true);
    } else if (!scoped && mysql_is_word(&x->token, "charset")) {
        mysql_reading_next(x);
        read_names(x, false);
    } else if (!scoped && mysql_is_word(&x->token, "character")) {
        mysql_reading_next(x);
        if (!mysql_is_word(&x->token, "set"))
            mysql_reading_refuse(x, "a setting that cannot be read");
        mysql_reading_next(x);
        read_names(x, false);
    } else if (mysql_is_name(&x->token)) {
        read_setting(x, x->token.text);
    } else {
        mysql_reading_refuse(x, "a setting that cannot be read");
        skip_value(x);
    }
}

void mysql_set_read(struct mysql_reading *x)
{
    for (;;) {
        read_one(x);
        if (!mysql_is_sign(&x->token, ','))
            return;
        mysql_reading_next(x);
    }
}
