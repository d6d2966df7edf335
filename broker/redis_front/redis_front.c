/* The main of the Redis broker's front. */
#include "redis_front.h"

int redis_front_main(void);

static void front_accept(struct front *f, const struct authority *at, int fd)
{
    redis_client_new(f->self, at, fd);
}

static int front_loaded(struct front *f, struct slice key UNUSED, struct err *err UNUSED)
{
    static struct redis_front s;
    s.front = f;
    LIST_INIT(&s.clients);
    f->self = &s;
    return 0;
}

int redis_front_main(void)
{
    static const struct front_life life = {.role = ROLE_REDIS_FRONT,
                                           .scheme = SCHEME_REDIS,
                                           .tls = true,
                                           .load = front_loaded,
                                           .accept = front_accept};
    return front_main(&life);
}
