/* A statement that is being read: its words one by one, each of which is looked at wherever it
 * stands. Internal to this room. */
#ifndef DURWARD_MYSQL_READING_H
#define DURWARD_MYSQL_READING_H

#include "mysql_lex.h"
#include "mysql_statement.h"

#include <openssl/evp.h>

struct mysql_reading {
    struct mysql_lexer lexer;
    struct mysql_token token, last; /* this word, and the one before */
    const struct mysql_terms *terms;
    struct slice database;
    struct mysql_statement *ret;
    EVP_MD_CTX *print;
    bool value;              /* the last that went into the fingerprint stood for a value */
    bool commented;          /* it is the inside of a comment with a version */
    bool defines;            /* tables are described: engines, places, connections */
    bool named;              /* the last word was a name where a table's stands */
    struct slice owner;      /* of the name behind a dot, n 0: there is none */
    unsigned depth;          /* of parentheses; of each: */
    bool list[MYSQL_DEPTH];  /* behind FROM and the like: a comma is followed by a table, */
    bool table[MYSQL_DEPTH]; /* one stands next, */
    bool plain[MYSQL_DEPTH]; /* FROM is a part of a function's arguments */
};

void mysql_reading_next(struct mysql_reading *x);
void mysql_reading_refuse(struct mysql_reading *x, const char *why);
/* This shows what other sessions say, which a rule leaves or not. */
void mysql_reading_activity(struct mysql_reading *x);
static inline bool mysql_reading_end(const struct mysql_reading *x)
{
    return x->token.kind == MYSQL_END || (mysql_is_sign(&x->token, ';') && x->depth == 0);
}
/* From here on tables are named. */
void mysql_reading_tables(struct mysql_reading *x);
/* mysql_set.c: what SET sets, from the word behind it. */
void mysql_set_read(struct mysql_reading *x);

#endif
