/* The main of the MySQL broker's back. */
#include "mysql_back.h"

int mysql_back_main(void);

static int back_loaded(struct back *b, struct err *err)
{
    static struct mysql_back s;
    s.back = b;
    LIST_INIT(&s.sessions);
    b->self = &s;
    return back_certificate_setup(err);
}

static int back_open(struct back *b, const struct back_asked *asked)
{
    return mysql_session_new(b->self, asked);
}

static void back_policy(struct back *b)
{
    mysql_sessions_again(b->self);
}

int mysql_back_main(void)
{
    static const struct back_life life = {.role = ROLE_MYSQL_BACK,
                                          .scheme = SCHEME_MYSQL,
                                          .load = back_loaded,
                                          .open = back_open,
                                          .policy = back_policy};
    return back_main(&life);
}
