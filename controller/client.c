/* A client's channel: one W_RUN, then signals and window sizes; its end is the sandbox's end. */
#include "controller_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "approvals.h"
#include "wire.h"

static void client_free(struct client *cl)
{
    LIST_REMOVE(cl, link);
    cl->controller->n_clients--;
    ipc_free(cl->ch);
    free(cl);
}

static void refuse(struct client *cl, const char *text)
{
    static const struct denials none;
    struct msg m;
    msg_init(&m, W_RUN_EXIT);
    msg_put_u32(&m, EXIT_DURWARD_FAILED);
    msg_put_str(&m, text);
    denials_put(&none, &m);
    msg_put_str(&m, "");
    ipc_send(cl->ch, &m);
}

/* Who runs what, and where. Of the command the program alone: what stands behind it may be its
 * user's secret. */
static void note_run(struct controller *c, const struct sandbox *s, const struct run_request *r)
{
    enum { PROGRAM_MAX = 200, FOLDER_MAX = 400 };
    char text[PROGRAM_MAX + FOLDER_MAX + RUN_NAME_MAX + 80];
    snprintf(text, sizeof text, "%.*s (%zu word%s) in %.*s by %s (uid %u)", PROGRAM_MAX,
             r->argv.n ? r->argv.v[0] : "", r->argv.n, r->argv.n == 1 ? "" : "s", FOLDER_MAX,
             r->cwd, r->user, (unsigned)r->uid);
    controller_note(c, sandbox_id(s), "run", text);
}

static int on_run(struct client *cl, struct msg *m)
{
    struct controller *c = cl->controller;
    struct run_request r;
    struct sandbox_plan plan;
    struct err err = {0};
    int bad = run_request_get(&r, m);
    if (bad == 0 && r.uid != c->owner_uid) {
        refuse(cl, "a sandbox's command runs as who started Durward, not as another user");
    } else if (bad == 0 && sandbox_plan_make(c, &r, NULL, &plan, &err) < 0) {
        refuse(cl, err.text);
    } else if (bad == 0) {
        cl->ask = plan.request.ask;
        cl->sandbox = sandbox_new(&c->owner, &plan, cl->ch);
        if (cl->sandbox)
            note_run(c, cl->sandbox, sandbox_request(cl->sandbox));
        sandbox_plan_done(&plan);
        if (cl->sandbox == NULL)
            refuse(cl, "out of memory");
    }
    run_request_done(&r);
    return bad;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct client *cl = arg;
    if (m->type == W_RUN)
        return cl->sandbox ? -1 : on_run(cl, m);
    if (m->type == W_DECIDE)
        return approvals_client_message(cl->controller->approvals, cl, m);
    if (cl->sandbox == NULL) /* before W_RUN, or after W_RUN_EXIT crossed it on the way */
        return m->type == W_RUN_SIGNAL || m->type == W_RUN_WINSIZE || m->type == W_RUN_CONNECT ||
                       m->type == W_RUN_PUBLISHED
                   ? 0
                   : -1;
    return sandbox_client_message(cl->sandbox, m);
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct client *cl = arg;
    struct sandbox *s = cl->sandbox;
    client_free(cl);
    if (s)
        sandbox_client_gone(s);
}

void client_new(struct controller *c, int fd)
{
    struct client *cl = c->n_clients < CONTROLLER_CLIENTS_MAX ? calloc(1, sizeof *cl) : NULL;
    if (cl == NULL) {
        close(fd);
        return;
    }
    cl->controller = c;
    cl->ch = ipc_new(c->base, fd, on_message, on_closed, cl);
    if (cl->ch == NULL) {
        free(cl);
        return;
    }
    LIST_INSERT_HEAD(&c->clients, cl, link);
    c->n_clients++;
}

void client_drop_all(struct controller *c)
{
    struct client *cl;
    while ((cl = LIST_FIRST(&c->clients)) != NULL)
        client_free(cl);
}

void client_sandbox_gone(struct controller *c, const struct sandbox *s)
{
    struct client *cl;
    LIST_FOREACH(cl, &c->clients, link)
    if (cl->sandbox == s)
        cl->sandbox = NULL;
}
