/* The table of commands, as Redis 7.0 describes them (COMMAND): what each does, and where its keys
 * are. tests/functional/redis.t compares it with the server that is there. */
#ifndef DURWARD_REDIS_TABLE_H
#define DURWARD_REDIS_TABLE_H

#include "slice.h"

enum redis_class {
    REDIS_READ = 1 << 0,
    REDIS_WRITE = 1 << 1, /* EVAL and PUBLISH too, which the server's flags do not say */
    REDIS_SESSION = 1 << 2,
    REDIS_TRANSACTION = 1 << 3,
    REDIS_PUBSUB = 1 << 4,
    REDIS_SCRIPTING = 1 << 5,
    REDIS_BLOCKING = 1 << 6,
    REDIS_NAMED = 1 << 7,     /* only by a rule that names it: it is of the server's administration,
                               * runs code, or is dangerous in Redis' own words */
    REDIS_NEVER = 1 << 8,     /* its answers are no replies, or it ends the login */
    REDIS_HIDDEN = 1 << 9,    /* it has keys that its positions do not say */
    REDIS_BROAD = 1 << 10,    /* it is about keys, and names none */
    REDIS_CONTAINER = 1 << 11 /* its first argument is a part of its name */
};

enum redis_find { REDIS_FIND_NONE = 0, REDIS_FIND_RANGE, REDIS_FIND_COUNT };

/* As in the reply to COMMAND: begun at an index or behind a keyword that is looked for from there;
 * then a range (last, step, limit) or a count (where it is, the first key, step). */
struct redis_keys {
    const char *keyword;
    int begin;
    enum redis_find find;
    int a, b, c;
};

enum { REDIS_KEYS_MAX = 3, REDIS_COMMAND_NAME_MAX = 48 };

struct redis_command {
    const char *name; /* "config|get" */
    int arity;        /* arguments, the name's too; negative: at least */
    unsigned classes;
    struct redis_keys keys[REDIS_KEYS_MAX];
};

size_t redis_commands(void);
const struct redis_command *redis_command_at(size_t i);
/* By name in small letters; NULL: there is none. */
const struct redis_command *redis_command_find(const char *name);

#endif
