/* The main of the PostgreSQL broker's front. */
#include "postgres_front.h"

int postgres_front_main(void);

static void front_accept(struct front *f, const struct authority *at, int fd)
{
    postgres_client_new(f->self, at, fd);
}

static int front_loaded(struct front *f, struct slice key UNUSED, struct err *err)
{
    static struct postgres_front s;
    s.front = f;
    s.cache = statement_cache_new();
    if (s.cache == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    LIST_INIT(&s.clients);
    f->self = &s;
    return 0;
}

int postgres_front_main(void)
{
    static const struct front_life life = {.role = ROLE_POSTGRES_FRONT,
                                           .scheme = SCHEME_POSTGRES,
                                           .tls = true,
                                           .protocols = "\x0apostgresql",
                                           .load = front_loaded,
                                           .accept = front_accept};
    return front_main(&life);
}
