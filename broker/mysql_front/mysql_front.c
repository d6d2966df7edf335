/* The main of the MySQL broker's front. */
#include "mysql_front.h"

int mysql_front_main(void);

static void front_accept(struct front *f, const struct authority *at, int fd)
{
    mysql_client_new(f->self, at, fd);
}

static int front_loaded(struct front *f, struct slice key UNUSED, struct err *err UNUSED)
{
    static struct mysql_front s;
    s.front = f;
    LIST_INIT(&s.clients);
    f->self = &s;
    return 0;
}

int mysql_front_main(void)
{
    static const struct front_life life = {.role = ROLE_MYSQL_FRONT,
                                           .scheme = SCHEME_MYSQL,
                                           .tls = true,
                                           .load = front_loaded,
                                           .accept = front_accept};
    return front_main(&life);
}
