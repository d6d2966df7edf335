/* A role that ended by itself: how is said on standard error, and goes into the log by way of the
 * controller. While there is none (it may be the one) the newest few are kept for the next. */
#include "parent.h"

#include "assertion.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void how_ended(enum role r, int status, char *to, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(to, size, "%s: signal %d", role_name(r), WTERMSIG(status));
    else if (WEXITSTATUS(status) == EXIT_ASSERTION)
        snprintf(to, size, "%s: assertion failed", role_name(r));
    else
        snprintf(to, size, "%s: status %d", role_name(r), WEXITSTATUS(status));
}

void parent_tell_ended(struct parent *p)
{
    struct child *c = p->controller;
    if (c == NULL || c->ch == NULL || c->state != CHILD_READY)
        return;
    for (size_t i = 0; i < p->n_ended; i++) {
        struct msg m;
        msg_init(&m, W_ROLE_ENDED);
        msg_put_str(&m, p->ended[i].sandbox);
        msg_put_str(&m, p->ended[i].text);
        ipc_send(c->ch, &m);
    }
    p->n_ended = 0;
}

void parent_ended(struct child *c, int status)
{
    struct parent *p = c->parent;
    if (p->n_ended == PARENT_ENDED_MAX)
        memmove(&p->ended[0], &p->ended[1], --p->n_ended * sizeof p->ended[0]);
    struct ended *e = &p->ended[p->n_ended++];
    snprintf(e->sandbox, sizeof e->sandbox, "%s",
             c->sandbox    ? c->sandbox->id
             : c->front_of ? c->front_of->id
                           : "");
    how_ended(c->role, status, e->text, sizeof e->text);
    if (WIFSIGNALED(status))
        proc_log("%s died of signal %d", parent_child_name(c), WTERMSIG(status));
    else
        proc_log("%s ended with status %d%s", parent_child_name(c), WEXITSTATUS(status),
                 WEXITSTATUS(status) == EXIT_ASSERTION ? " (an assertion failed)" : "");
    parent_tell_ended(p);
}
