/* What a rule leaves of commands. Front and back both ask: the front answers what is refused, the
 * back ends a session whose front hands on what it should have refused. */
#ifndef DURWARD_REDIS_JUDGE_H
#define DURWARD_REDIS_JUDGE_H

#include "redis_rule.h"
#include "redis_table.h"
#include "resp_command.h"

/* The name of a command that no server has: what stands in the place of a refused one. */
#define REDIS_WORD "DURWARD-REFUSED-"

struct redis_judged {
    const struct redis_command *command; /* NULL: not known */
    const char *why;                     /* NULL: it may go on */
    bool login;                          /* it is AUTH: answered here, and goes nowhere */
};

void redis_judge(const struct redis_terms *t, const struct resp_commands *c,
                 struct redis_judged *ret);
/* "HELLO [VERSION [AUTH USER PASSWORD] [SETNAME NAME]]", what of it goes on: VERSION and NAME (p
 * NULL: none). has_login: AUTH was there. 0, or -1: it is none. */
struct redis_hello {
    struct slice version, name;
    bool has_login;
};
int redis_hello_read(const struct resp_commands *c, struct redis_hello *ret);

#endif
