/* A connection to the fleet's database: dialled by the dialer, in TLS that was verified for its
 * name, logged in by proofs of the vault's, made again when it ends. Questions are answered in
 * order; each is one simple query, whose statements are one transaction. */
#ifndef DURWARD_DATABASE_H
#define DURWARD_DATABASE_H

#include "authority.h"
#include "slice.h"

#include <openssl/ssl.h>

struct database;
struct dial_client;
struct event_base;
struct secret_client;

enum {
    DATABASE_ASKED_MAX = 4096,
    DATABASE_ROW_MAX = 24 * 1024,
    DATABASE_ROWS_MAX = 512 * 1024,
    DATABASE_NAME_MAX = 63
};

struct database_place {
    struct authority at;
    char name[DATABASE_NAME_MAX + 1]; /* of the database */
    char login[65];                   /* a secret's name */
    unsigned dial_seconds;
};

struct database_means {
    struct event_base *base;
    struct dial_client *dial;
    struct secret_client *secrets;
    SSL_CTX *tls; /* with the roots */
};

struct database_owner {
    void (*up)(void *arg);   /* it may be asked */
    void (*down)(void *arg); /* what was asked is over, each with ok false */
    /* a NOTIFY of anybody's, our own included */
    void (*notified)(void *arg, struct slice channel);
    void *arg;
};

/* What an answer belongs to; its owner's. */
struct database_tag {
    uint32_t number, of;
    uint64_t held, need;
};
/* rows: the only value of each row, and a line feed behind it. */
typedef void (*database_fn)(void *arg, const struct database_tag *tag, bool ok, struct slice rows);

/* It begins to connect once the loop runs. means live longer. NULL: out of memory. */
struct database *database_new(const struct database_means *means,
                              const struct database_place *place,
                              const struct database_owner *owner);
void database_free(struct database *d); /* no callback runs; NULL is fine */
bool database_is_up(const struct database *d);
size_t database_open(const struct database *d); /* questions */
/* fn runs later; where it is not up at once, with ok false. tag NULL: none. fn NULL: nobody asks
 * what came of it. */
void database_ask(struct database *d, const char *text, database_fn fn, void *arg,
                  const struct database_tag *tag);

#endif
