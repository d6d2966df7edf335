/* The main of the mail broker's front. */
#include "smtp_front.h"

int smtp_front_main(void);

static void front_accept(struct front *f, const struct authority *at, int fd)
{
    smtp_client_new(f->self, at, fd);
}

static int front_loaded(struct front *f, struct slice key UNUSED, struct err *err UNUSED)
{
    static struct smtp_front s;
    s.front = f;
    LIST_INIT(&s.clients);
    f->self = &s;
    return 0;
}

int smtp_front_main(void)
{
    static const struct front_life life = {.role = ROLE_SMTP_FRONT,
                                           .scheme = SCHEME_SMTP,
                                           .tls = true,
                                           .load = front_loaded,
                                           .accept = front_accept};
    return front_main(&life);
}
