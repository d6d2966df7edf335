/* The main of the mailbox broker's front. */
#include "imap_front.h"

int imap_front_main(void);

static void front_accept(struct front *f, const struct authority *at, int fd)
{
    imap_client_new(f->self, at, fd);
}

static int front_loaded(struct front *f, struct slice key UNUSED, struct err *err UNUSED)
{
    static struct imap_front s;
    s.front = f;
    LIST_INIT(&s.clients);
    f->self = &s;
    return 0;
}

int imap_front_main(void)
{
    static const struct front_life life = {.role = ROLE_IMAP_FRONT,
                                           .scheme = SCHEME_IMAP,
                                           .tls = true,
                                           .load = front_loaded,
                                           .accept = front_accept};
    return front_main(&life);
}
