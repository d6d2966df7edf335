/* SET: settings of a session's own, of which a few would change how its statements are read, who it
 * is or what it may write. */
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
    struct slice name = x->token.text;
    ssize_t end = slice_find(name, '_');
    if (end > 0)
        name.n = (size_t)end;
    bool good =
        (mysql_is_name(&x->token) || x->token.kind == MYSQL_STRING) && mysql_charset_name_ok(name);
    if (!good || !value_ends(x))
        mysql_reading_refuse(x, "a character set in which statements may be read differently");
}

static void read_modes(struct mysql_reading *x)
{
    bool good = x->token.kind == MYSQL_STRING && mysql_modes_ok(x->token.text);
    if (!good || !value_ends(x))
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
