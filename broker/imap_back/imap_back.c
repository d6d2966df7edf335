/* The main of the mailbox broker's back. */
#include "imap_back.h"

int imap_back_main(void);

static int back_loaded(struct back *b, struct err *err UNUSED)
{
    static struct imap_back s;
    s.back = b;
    LIST_INIT(&s.sessions);
    b->self = &s;
    return 0;
}

static int back_open(struct back *b, const struct back_asked *asked)
{
    return imap_session_new(b->self, asked);
}

static void back_policy(struct back *b)
{
    imap_sessions_again(b->self);
}

int imap_back_main(void)
{
    static const struct back_life life = {.role = ROLE_IMAP_BACK,
                                          .scheme = SCHEME_IMAP,
                                          .load = back_loaded,
                                          .open = back_open,
                                          .policy = back_policy};
    return back_main(&life);
}
