/* The main of the PostgreSQL broker's back. */
#include "postgres_back.h"

int postgres_back_main(void);

static int back_loaded(struct back *b, struct err *err)
{
    static struct postgres_back s;
    s.back = b;
    LIST_INIT(&s.sessions);
    b->self = &s;
    return back_certificate_setup(err);
}

static int back_open(struct back *b, const struct back_asked *asked)
{
    return postgres_session_new(b->self, asked);
}

static void back_policy(struct back *b)
{
    postgres_sessions_again(b->self);
}

int postgres_back_main(void)
{
    static const struct back_life life = {.role = ROLE_POSTGRES_BACK,
                                          .scheme = SCHEME_POSTGRES,
                                          .load = back_loaded,
                                          .open = back_open,
                                          .policy = back_policy};
    return back_main(&life);
}
