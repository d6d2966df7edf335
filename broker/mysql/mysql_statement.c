/* Kinds of statements, by their first words. */
#include "mysql_statement.h"

#include "mysql_reading.h"
#include "mysql_words.h"

#include <stdio.h>
#include <string.h>

struct head {
    const char *word;
    unsigned classes;
    void (*read)(struct mysql_reading *x); /* from the word behind it; NULL: nothing is asked */
};

static const struct head *head_of(const struct mysql_token *t);

static void not_carried(struct mysql_reading *x)
{
    mysql_reading_refuse(x, "a kind of statement that is not carried");
}

static void only(struct mysql_reading *x, const char *const *words, size_t n)
{
    if (x->token.kind != MYSQL_WORD || !mysql_is_one(x->token.text, words, n))
        not_carried(x);
}

static void skip_words(struct mysql_reading *x, const char *const *words, size_t n)
{
    while (x->token.kind == MYSQL_WORD && mysql_is_one(x->token.text, words, n))
        mysql_reading_next(x);
}

/* ---- what is asked of each kind ---- */

/* The first verb behind the definitions says what it does. */
static void read_with(struct mysql_reading *x)
{
    static const char *const verbs[] = {"select", "table",  "values", "update",
                                        "delete", "insert", "replace"};
    while (!mysql_reading_end(x) && !(x->depth == 0 && x->token.kind == MYSQL_WORD &&
                                      mysql_is_one(x->token.text, verbs, ARRAY_LEN(verbs))))
        mysql_reading_next(x);
    const struct head *h = head_of(&x->token);
    if (h == NULL) {
        mysql_reading_refuse(x, "a WITH that cannot be judged");
        return;
    }
    x->ret->classes |= h->classes;
    if (h->classes & MYSQL_WRITE)
        mysql_reading_tables(x);
}

static void read_change(struct mysql_reading *x)
{
    (void)x; /* its tables follow at once */
}

static void read_begin(struct mysql_reading *x)
{
    if (mysql_is_word(&x->token, "work"))
        mysql_reading_next(x);
    if (!mysql_reading_end(x))
        not_carried(x); /* BEGIN NOT ATOMIC, a block */
}

static void read_start(struct mysql_reading *x)
{
    static const char *const words[] = {"transaction"};
    only(x, words, 1);
    while (!mysql_reading_end(x)) {
        if (x->terms->read_only && mysql_is_word(&x->token, "write"))
            mysql_reading_refuse(x, "the end of 'access: read-only'");
        mysql_reading_next(x);
    }
}

static void read_release(struct mysql_reading *x)
{
    static const char *const words[] = {"savepoint"};
    only(x, words, 1);
}

static void read_lock(struct mysql_reading *x)
{
    static const char *const words[] = {"tables", "table"};
    only(x, words, ARRAY_LEN(words));
}

static void read_use(struct mysql_reading *x)
{
    if (!mysql_is_name(&x->token))
        mysql_reading_refuse(x, "a database whose name cannot be read");
    else if (!x->terms->any_database && !slice_eq(x->token.text, x->database))
        mysql_reading_refuse(x, "another database");
    else if (mysql_database_own(x->token.text))
        mysql_reading_refuse(x, "the server's own database");
    else if (mysql_database_shows_activity(x->token.text))
        mysql_reading_activity(x);
}

static void read_load(struct mysql_reading *x)
{
    bool local = false;
    static const char *const words[] = {"data", "xml"};
    only(x, words, ARRAY_LEN(words));
    while (!mysql_reading_end(x) && !mysql_is_word(&x->token, "infile")) {
        local = local || mysql_is_word(&x->token, "local");
        mysql_reading_next(x);
    }
    if (!local)
        mysql_reading_refuse(x, "a file at the server");
    else if (!x->terms->local_infile)
        mysql_reading_refuse(x, "LOAD DATA LOCAL, which 'local_infile' would allow");
}

static void read_kill(struct mysql_reading *x)
{
    static const char *const how[] = {"hard", "soft"};
    uint64_t id = 0;
    skip_words(x, how, ARRAY_LEN(how));
    bool query = mysql_is_word(&x->token, "query");
    mysql_reading_next(x);
    if (!query || x->token.kind != MYSQL_NUMBER || slice_u64(x->token.text, UINT32_MAX, &id) < 0) {
        mysql_reading_refuse(x, "KILL that is not KILL QUERY of a connection");
        return;
    }
    x->ret->kills = true;
    x->ret->killed = (uint32_t)id;
    mysql_reading_next(x);
    if (!mysql_reading_end(x))
        mysql_reading_refuse(x, "KILL with more behind it");
}

/* CREATE, ALTER and DROP, by what it is that they make or change. */
static void read_define(struct mysql_reading *x)
{
    static const char *const adjectives[] = {"or",       "replace", "temporary", "unique",
                                             "fulltext", "spatial", "online",    "offline",
                                             "ignore",   "sql",     "security",  "invoker"};
    static const char *const databases[] = {"database", "schema"};
    static const char *const kinds[] = {"table", "tables", "index", "view", "sequence"};
    x->defines = true;
    skip_words(x, adjectives, ARRAY_LEN(adjectives));
    if (mysql_is_word(&x->token, "algorithm")) {
        for (int i = 0; i < 3; i++)
            mysql_reading_next(x);
        skip_words(x, adjectives, ARRAY_LEN(adjectives));
    }
    if (x->token.kind == MYSQL_WORD && mysql_is_one(x->token.text, databases, 2)) {
        if (!x->terms->any_database)
            mysql_reading_refuse(x, "a database");
    } else {
        only(x, kinds, ARRAY_LEN(kinds));
    }
    mysql_reading_tables(x);
}

static void read_rename(struct mysql_reading *x)
{
    static const char *const kinds[] = {"table", "tables"};
    x->defines = true;
    only(x, kinds, ARRAY_LEN(kinds));
}

static void read_maintain(struct mysql_reading *x)
{
    static const char *const before[] = {"local", "no_write_to_binlog"};
    skip_words(x, before, ARRAY_LEN(before));
    read_rename(x);
}

static void read_checksum(struct mysql_reading *x)
{
    static const char *const kinds[] = {"table", "tables"};
    only(x, kinds, ARRAY_LEN(kinds));
}

/* A login's password is there as a hash, which somebody could guess at, and in the log of what was
 * written too; SHOW EXPLAIN FOR and what an engine tells of itself hold statements of others. */
static void read_show(struct mysql_reading *x)
{
    bool log = mysql_is_word(&x->token, "binlog"), relayed = mysql_is_word(&x->token, "relaylog");
    static const char *const of_others[] = {"explain", "analyze", "engine"};
    if (x->token.kind == MYSQL_WORD && mysql_is_one(x->token.text, of_others, ARRAY_LEN(of_others)))
        mysql_reading_activity(x);
    bool made = mysql_is_word(&x->token, "create");
    if (made)
        mysql_reading_next(x);
    if (log)
        mysql_reading_next(x);
    if (relayed || mysql_is_word(&x->token, log ? "events" : made ? "user" : "grants"))
        mysql_reading_refuse(x, "what the server knows of a password");
}

/* The statement that is explained is judged as if it ran: some are. */
static void read_explain(struct mysql_reading *x)
{
    static const char *const words[] = {"extended", "partitions", "analyze"};
    for (;;) {
        skip_words(x, words, ARRAY_LEN(words));
        if (!mysql_is_word(&x->token, "format"))
            break;
        for (int i = 0; i < 3 && !mysql_reading_end(x); i++)
            mysql_reading_next(x);
    }
    if (mysql_is_word(&x->token, "for")) {
        mysql_reading_activity(x);
        return;
    }
    const struct head *h = head_of(&x->token);
    if (h && h->classes & (MYSQL_READ | MYSQL_WRITE) && h->read != read_explain) {
        x->ret->classes |= h->classes;
        if (h->classes & MYSQL_WRITE)
            mysql_reading_tables(x);
        mysql_reading_next(x);
        if (h->read)
            h->read(x);
    }
}

/* MariaDB's ANALYZE runs what it explains; ANALYZE TABLE is another thing. */
static void read_analyze(struct mysql_reading *x)
{
    static const char *const tables[] = {"table", "tables", "local", "no_write_to_binlog"};
    if (x->token.kind == MYSQL_WORD && mysql_is_one(x->token.text, tables, ARRAY_LEN(tables))) {
        x->ret->classes |= MYSQL_DEFINE;
        read_maintain(x);
    } else {
        read_explain(x);
    }
}

static const struct head heads[] = {
    {"select", MYSQL_READ, NULL},
    {"with", 0, read_with},
    {"table", MYSQL_READ, NULL},
    {"values", MYSQL_READ, NULL},
    {"show", MYSQL_READ, read_show},
    {"do", MYSQL_READ, NULL},
    {"describe", MYSQL_READ, read_explain},
    {"desc", MYSQL_READ, read_explain},
    {"explain", MYSQL_READ, read_explain},
    {"analyze", MYSQL_READ, read_analyze},
    {"checksum", MYSQL_READ, read_checksum},
    {"insert", MYSQL_WRITE, read_change},
    {"replace", MYSQL_WRITE, read_change},
    {"update", MYSQL_WRITE, read_change},
    {"delete", MYSQL_WRITE, read_change},
    {"call", MYSQL_WRITE, read_change},
    {"load", MYSQL_WRITE, read_load},
    {"lock", MYSQL_WRITE, read_lock},
    {"unlock", MYSQL_TRANSACTION, read_lock},
    {"create", MYSQL_DEFINE, read_define},
    {"alter", MYSQL_DEFINE, read_define},
    {"drop", MYSQL_DEFINE, read_define},
    {"rename", MYSQL_DEFINE, read_rename},
    {"truncate", MYSQL_DEFINE | MYSQL_WRITE, read_change},
    {"optimize", MYSQL_DEFINE, read_maintain},
    {"repair", MYSQL_DEFINE, read_maintain},
    {"check", MYSQL_DEFINE, read_maintain},
    {"begin", MYSQL_TRANSACTION, read_begin},
    {"start", MYSQL_TRANSACTION, read_start},
    {"commit", MYSQL_TRANSACTION, NULL},
    {"rollback", MYSQL_TRANSACTION, NULL},
    {"savepoint", MYSQL_TRANSACTION, NULL},
    {"release", MYSQL_TRANSACTION, read_release},
    {"set", MYSQL_SETTING, mysql_set_read},
    {"use", MYSQL_SETTING, read_use},
    {"kill", 0, read_kill},
};

static const struct head *head_of(const struct mysql_token *t)
{
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        if (mysql_is_word(t, heads[i].word))
            return &heads[i];
    return NULL;
}

/* ---- one after another ---- */

static void read_text(struct mysql_reading *x);

/* All of it is a comment that some servers run, and others do not: it is judged as if it ran. */
static void read_comment(struct mysql_reading *x)
{
    struct mysql_reading inner = {.lexer = {x->token.text},
                                  .terms = x->terms,
                                  .database = x->database,
                                  .ret = x->ret,
                                  .print = x->print,
                                  .commented = true};
    if (x->commented)
        mysql_reading_refuse(x, "a comment within another");
    else
        read_text(&inner);
    x->last = (struct mysql_token){.kind = MYSQL_SIGN, .text = SLICE("/")};
    x->token = x->last;
    mysql_reading_next(x);
    if (!mysql_reading_end(x))
        mysql_reading_refuse(x, "a comment that servers of some version run");
}

static void read_head(struct mysql_reading *x)
{
    if (x->token.kind == MYSQL_VERSIONED) {
        read_comment(x);
        return;
    }
    while (mysql_is_sign(&x->token, '('))
        mysql_reading_next(x);
    const struct head *h = head_of(&x->token);
    if (h == NULL) {
        not_carried(x);
        return;
    }
    x->ret->classes |= h->classes;
    if (h->read == read_change || h->read == read_explain)
        mysql_reading_tables(x);
    mysql_reading_next(x);
    if (h->read)
        h->read(x);
}

static void read_text(struct mysql_reading *x)
{
    bool again = false;
    for (;;) {
        x->defines = false;
        x->list[0] = x->table[0] = false;
        mysql_reading_next(x);
        if (x->token.kind == MYSQL_END)
            return;
        if (again && !(x->terms->multi_statements && !x->commented))
            mysql_reading_refuse(x, "several statements in one text");
        if (again && x->ret->kills)
            mysql_reading_refuse(x, "KILL with more behind it");
        if (!mysql_reading_end(x))
            read_head(x);
        while (!mysql_reading_end(x))
            mysql_reading_next(x);
        if (again && x->ret->restores)
            mysql_reading_refuse(x, "a mode that is restored, and other statements beside it");
        if (x->token.kind == MYSQL_END && x->depth > 0)
            mysql_reading_refuse(x, "parentheses that do not match");
        if (x->token.kind == MYSQL_END || x->ret->refused)
            return;
        again = true;
    }
}

/* ---- the rule ---- */

static void judge(const struct mysql_terms *t, struct mysql_statement *ret)
{
    unsigned left = t->statements;
    if (ret->refused)
        return;
    if (t->read_only && ret->classes & (MYSQL_WRITE | MYSQL_DEFINE))
        ret->refused = "a statement that writes";
    else if (ret->classes & ~left)
        ret->refused = "a statement of a class that its rule does not allow";
}

void mysql_statement_read(struct slice text, const struct mysql_terms *terms, struct slice database,
                          bool prepared, struct mysql_statement *ret)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    struct mysql_terms own = *terms;
    own.multi_statements = own.multi_statements && !prepared;
    own.local_infile = own.local_infile && !prepared;
    struct mysql_reading x = {.lexer = {text},
                              .terms = &own,
                              .database = database,
                              .ret = ret,
                              .print = EVP_MD_CTX_new()};
    memset(ret, 0, sizeof *ret);
    if (x.print == NULL || EVP_DigestInit_ex(x.print, EVP_sha256(), NULL) != 1)
        ret->refused = "its fingerprint cannot be made";
    else
        read_text(&x);
    if (prepared && ret->kills)
        ret->refused = "KILL that is prepared";
    if (prepared && ret->restores)
        ret->refused = "a mode that is restored, prepared";
    judge(&own, ret);
    if (x.print && EVP_DigestFinal_ex(x.print, hash, NULL) == 1)
        for (size_t i = 0; i < MYSQL_PRINT / 2; i++)
            snprintf(ret->print + 2 * i, 3, "%02x", hash[i]);
    EVP_MD_CTX_free(x.print);
}
