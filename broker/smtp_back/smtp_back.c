/* The main of the mail broker's back. */
#include "smtp_back.h"

int smtp_back_main(void);

static int back_loaded(struct back *b, struct err *err UNUSED)
{
    static struct smtp_back s;
    s.back = b;
    LIST_INIT(&s.sessions);
    b->self = &s;
    return 0;
}

static int back_open(struct back *b, const struct back_asked *asked)
{
    return smtp_session_new(b->self, asked);
}

static void back_policy(struct back *b)
{
    smtp_sessions_again(b->self);
}

int smtp_back_main(void)
{
    static const struct back_life life = {.role = ROLE_SMTP_BACK,
                                          .scheme = SCHEME_SMTP,
                                          .load = back_loaded,
                                          .open = back_open,
                                          .policy = back_policy};
    return back_main(&life);
}
