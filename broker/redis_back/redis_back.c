/* The main of the Redis broker's back. */
#include "redis_back.h"

int redis_back_main(void);

static int back_loaded(struct back *b, struct err *err)
{
    static struct redis_back s;
    s.back = b;
    LIST_INIT(&s.sessions);
    b->self = &s;
    return back_certificate_setup(err);
}

static int back_open(struct back *b, const struct back_asked *asked)
{
    return redis_session_new(b->self, asked);
}

static void back_policy(struct back *b)
{
    redis_sessions_again(b->self);
}

int redis_back_main(void)
{
    static const struct back_life life = {.role = ROLE_REDIS_BACK,
                                          .scheme = SCHEME_REDIS,
                                          .load = back_loaded,
                                          .open = back_open,
                                          .policy = back_policy};
    return back_main(&life);
}
