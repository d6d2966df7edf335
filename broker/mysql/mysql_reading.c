/* What is looked for in each word of a statement, wherever it stands. */
#include "mysql_reading.h"

#include "mysql_words.h"

#include <string.h>

void mysql_reading_refuse(struct mysql_reading *x, const char *why)
{
    if (x->ret->refused == NULL)
        x->ret->refused = why;
}

void mysql_reading_activity(struct mysql_reading *x)
{
    if (!x->terms->activity)
        mysql_reading_refuse(x, "what other sessions say, which 'activity' would allow");
}

void mysql_reading_tables(struct mysql_reading *x)
{
    x->list[x->depth] = x->table[x->depth] = true;
}

/* ---- the fingerprint ---- */

static void print(struct mysql_reading *x, const char *p, size_t n)
{
    if (EVP_DigestUpdate(x->print, p, n) != 1)
        mysql_reading_refuse(x, "its fingerprint cannot be made");
}

static void print_word(struct mysql_reading *x, struct slice word)
{
    for (size_t i = 0; i < word.n; i++) {
        char c = ascii_lower(word.p[i]);
        print(x, &c, 1);
    }
    print(x, " ", 1);
}

/* Words as they are, anything else that is not a list of values. */
static void print_token(struct mysql_reading *x)
{
    const struct mysql_token *t = &x->token;
    bool number = t->kind == MYSQL_NUMBER || t->kind == MYSQL_STRING ||
                  (t->kind == MYSQL_WORD && t->text.p[0] >= '0' && t->text.p[0] <= '9');
    if (t->kind == MYSQL_END)
        return;
    if (number) {
        if (!x->value)
            print(x, "? ", 2);
        x->value = true;
    } else if (t->kind != MYSQL_SIGN || !strchr(",()+-.", t->text.p[0])) {
        print_word(x, t->text);
        x->value = false;
    }
}

/* ---- tables ---- */

/* In "mysql" are the logins, and more than one way to write them. */
static void check_database(struct mysql_reading *x, struct slice name)
{
    if (mysql_database_own(name))
        mysql_reading_refuse(x, "the server's own database");
    if (mysql_database_shows_activity(name))
        mysql_reading_activity(x);
    if (!x->terms->any_database && !slice_eq(name, x->database) &&
        !slice_ieq_str(name, "information_schema"))
        mysql_reading_refuse(x, "a name of another database");
}

static bool keeps_expecting(const struct mysql_token *t)
{
    static const char *const all[] = {
        "low_priority", "high_priority", "delayed", "quick", "ignore", "if",   "not",  "exists",
        "lateral",      "table",         "tables",  "into",  "from",   "only", "local"};
    return t->kind == MYSQL_WORD && mysql_is_one(t->text, all, ARRAY_LEN(all));
}

/* Words behind which a table's name stands (true), and such that end a list of them. */
static bool on_table_word(struct mysql_reading *x)
{
    static const char *const begins[] = {"from", "join",  "straight_join", "into",      "table",
                                         "view", "using", "tables",        "references"};
    static const char *const defining[] = {"on", "to", "like", "index", "sequence"};
    static const char *const ends[] = {"where",  "group", "order",     "having", "limit",
                                       "select", "union", "except",    "set",    "intersect",
                                       "window", "value", "returning", "values"};
    const struct mysql_token *t = &x->token;
    bool *list = &x->list[x->depth], *table = &x->table[x->depth];
    if (mysql_is_word(t, "select"))
        x->plain[x->depth] = false;
    if (mysql_is_word(t, "from") && x->plain[x->depth])
        return false;
    if (mysql_is_one(t->text, begins, ARRAY_LEN(begins)) ||
        (mysql_is_word(t, "update") && !mysql_is_word(&x->last, "key")) ||
        (x->defines && mysql_is_one(t->text, defining, ARRAY_LEN(defining))))
        return *list = *table = true;
    if (mysql_is_one(t->text, ends, ARRAY_LEN(ends)))
        *list = *table = false;
    return false;
}

/* A word that is reserved is followed by no dot: one that is not may be a database's name. */
static void on_name(struct mysql_reading *x)
{
    bool was = x->table[x->depth];
    if (!mysql_is_sign(&x->last, '.'))
        x->owner = SLICE("");
    if (mysql_shows_activity(x->token.text))
        mysql_reading_activity(x);
    bool begins = x->token.kind == MYSQL_WORD && on_table_word(x);
    x->named = was;
    if (was && !begins && !keeps_expecting(&x->token))
        x->table[x->depth] = false;
}

/* ---- parentheses ---- */

static void on_open(struct mysql_reading *x)
{
    static const char *const with_from[] = {"extract", "trim", "substring", "substr",
                                            "mid",     "date", "position"};
    const struct mysql_token *f = &x->last;
    bool table = x->table[x->depth];
    if (mysql_is_name(f) && x->owner.n > 0)
        check_database(x, x->owner);
    if (mysql_is_name(f) && mysql_function_refused(f->text))
        mysql_reading_refuse(x, "a function that reaches the server's files, or others");
    if (mysql_is_name(f) && mysql_function_writes(f->text))
        x->ret->classes |= MYSQL_WRITE;
    if (x->depth + 1 >= MYSQL_DEPTH) {
        mysql_reading_refuse(x, "too many parentheses within others");
        x->token.kind = MYSQL_END;
        return;
    }
    x->table[x->depth] = false;
    x->depth++;
    x->list[x->depth] = x->table[x->depth] = table;
    x->plain[x->depth] =
        f->kind == MYSQL_WORD && mysql_is_one(f->text, with_from, ARRAY_LEN(with_from));
}

static void on_sign(struct mysql_reading *x)
{
    const struct mysql_token *t = &x->token;
    if (mysql_is_sign(t, '.') && x->named)
        check_database(x, x->last.text);
    x->named = false;
    if (mysql_is_sign(t, '.'))
        x->owner = mysql_is_name(&x->last) ? x->last.text : SLICE("");
    if (mysql_is_sign(t, '(')) {
        on_open(x);
    } else if (mysql_is_sign(t, ')')) {
        if (x->depth == 0)
            mysql_reading_refuse(x, "parentheses that do not match");
        else
            x->depth--;
    } else if (mysql_is_sign(t, ',')) {
        x->table[x->depth] = x->list[x->depth];
    } else if (mysql_is_sign(t, ';') && x->depth > 0) {
        mysql_reading_refuse(x, "parentheses that do not match");
        x->token.kind = MYSQL_END;
    }
}

/* ---- words ---- */

/* What a table may be made of. */
static void on_definition(struct mysql_reading *x)
{
    const struct mysql_token *t = &x->token, *l = &x->last;
    if (mysql_is_word(t, "connection") || mysql_is_word(t, "directory") ||
        mysql_is_word(t, "tablespace"))
        mysql_reading_refuse(x, "a table that lies elsewhere");
    if (mysql_is_word(l, "engine") && !mysql_is_sign(t, '=') && !mysql_engine_ok(t->text))
        mysql_reading_refuse(x, "a storage engine that is not known");
}

static void on_word(struct mysql_reading *x)
{
    const struct mysql_token *t = &x->token, *l = &x->last;
    if (mysql_is_word(l, "into") && (mysql_is_word(t, "outfile") || mysql_is_word(t, "dumpfile")))
        mysql_reading_refuse(x, "a file at the server");
    if ((mysql_is_word(l, "for") && (mysql_is_word(t, "update") || mysql_is_word(t, "share"))) ||
        (mysql_is_word(l, "lock") && mysql_is_word(t, "in")) ||
        (mysql_is_word(l, "value") && mysql_is_word(t, "for")))
        x->ret->classes |= MYSQL_WRITE;
}

static bool comment_ok(struct slice text)
{
    struct mysql_lexer l = {text};
    struct mysql_token t;
    for (mysql_lex(&l, &t); t.kind == MYSQL_WORD; mysql_lex(&l, &t))
        if (!mysql_comment_word_ok(t.text))
            return false;
    return t.kind == MYSQL_END;
}

void mysql_reading_next(struct mysql_reading *x)
{
    bool engine = mysql_is_word(&x->last, "engine") && mysql_is_sign(&x->token, '=');
    if (x->token.kind != MYSQL_VERSIONED && !engine)
        x->last = x->token; /* "ENGINE = x" is read as "ENGINE x" */
    do {
        mysql_lex(&x->lexer, &x->token);
        if (x->token.kind == MYSQL_VERSIONED && x->last.kind == MYSQL_END)
            return; /* it may be the whole */
        if (x->token.kind == MYSQL_VERSIONED && !comment_ok(x->token.text))
            mysql_reading_refuse(x, "a comment that servers of some version run");
    } while (x->token.kind == MYSQL_VERSIONED);
    if (x->token.kind == MYSQL_UNREADABLE) {
        mysql_reading_refuse(x, x->token.why);
        x->token.kind = MYSQL_END;
    }
    print_token(x);
    if (x->defines)
        on_definition(x);
    if (x->token.kind == MYSQL_WORD)
        on_word(x);
    if (mysql_is_name(&x->token))
        on_name(x);
    else
        on_sign(x);
}
