/* KILL QUERY: by another connection, as the same login. */
#include "mysql_back.h"

#include <stdio.h>
#include <stdlib.h>

struct mysql_killing {
    struct mysql_session *of;
    struct mysql_login login;
};

void mysql_kill_end(struct mysql_session *s)
{
    if (s->killing == NULL)
        return;
    mysql_login_end(&s->killing->login);
    free(s->killing);
    s->killing = NULL;
}

/* Whatever it answers, nobody waits for it. */
static void on_io(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct mysql_killing *k = arg;
    if (ev != IO_DRAINED && ev != IO_CONNECTED)
        mysql_kill_end(k->of);
}

static void on_login(void *arg, const char *code, const char *detail UNUSED)
{
    struct mysql_killing *k = arg;
    char text[40];
    int n = snprintf(text, sizeof text, "KILL QUERY %u", k->of->login.id);
    struct io *io = k->login.link.io;
    if (code || mysql_put_query(io_out(io), (struct slice){text, (size_t)n}) < 0) {
        mysql_kill_end(k->of);
        return;
    }
    io_callback(io, on_io, k);
    io_deadline(io, MYSQL_LOGIN_SECONDS);
    io_flush_soon(io);
}

void mysql_kill_begin(struct mysql_session *s)
{
    char id[48];
    if (s->killing || s->state != SESSION_RUNNING || s->quitting)
        return;
    s->killing = calloc(1, sizeof *s->killing);
    if (s->killing == NULL)
        return;
    s->killing->of = s;
    struct mysql_login *l = &s->killing->login;
    l->back = s->of->back;
    l->sandbox = s->request.sandbox;
    l->secret = s->request.rule->credential->secret;
    l->certificate = rule_certificate(s->request.rule);
    l->user = s->user;
    l->facts = (struct mysql_facts){.charset = s->charset, .database = SLICE("")};
    l->done = on_login;
    l->arg = s->killing;
    back_request_id(&s->request, id, sizeof id);
    mysql_login_begin(l, &s->request.at, id);
}
