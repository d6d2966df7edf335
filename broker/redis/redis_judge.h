/* What a rule leaves of commands, argument by argument as they are read. Front and back both ask:
 * the front answers what is refused, the back ends a session whose front hands on what it should
 * have refused. */
#ifndef DURWARD_REDIS_JUDGE_H
#define DURWARD_REDIS_JUDGE_H

#include "redis_rule.h"
#include "redis_table.h"
#include "resp_command.h"

/* The name of a command that no server has: what stands in the place of a refused one. */
#define REDIS_WORD "DURWARD-REFUSED-"

enum { REDIS_CLIENT_NAME_MAX = 256 };

/* "HELLO [VERSION [AUTH USER PASSWORD] [SETNAME NAME]]", what of it goes on: VERSION and NAME. */
struct redis_hello {
    char version; /* 0: none */
    bool has_name, has_login;
    char name[REDIS_CLIENT_NAME_MAX];
    size_t n_name;
    int next; /* what the next argument is */
};

/* Where the keys of one description are in this command. */
struct redis_span {
    bool looking; /* for the keyword in front of them */
    int count;    /* the argument that says how many; 0: none, or it was read */
    int first, last, step;
};

struct redis_judged {
    const struct redis_terms *terms;
    const struct redis_command *command; /* NULL: not known, or not yet */
    const char *why;                     /* NULL: nothing against it so far */
    bool login;                          /* it is AUTH: answered here, and goes nowhere */
    bool settled;                        /* nothing is against it, whatever comes */
    int n;                               /* arguments that it has */
    char name[REDIS_COMMAND_NAME_MAX];
    struct redis_span keys[REDIS_KEYS_MAX];
    struct redis_hello hello;
};

/* A command of n arguments. */
void redis_judge_begin(struct redis_judged *j, const struct redis_terms *t, size_t n);
/* Its argument i, the next; NULL: one that was too long to be read whole. */
void redis_judge_argument(struct redis_judged *j, size_t i, const struct slice *argument);
/* All of them were there. */
void redis_judge_end(struct redis_judged *j);
bool redis_judged_hello(const struct redis_judged *j);

#endif
