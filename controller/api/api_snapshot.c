/* Snapshots, and what is made of them: restored and forked sandboxes. */
#include "api_internal.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

bool api_unsupported(const char *why)
{
    return strncmp(why, "unsupported", strlen("unsupported")) == 0;
}

static void refuse(struct evhttp_request *req, const struct err *err)
{
    if (api_unsupported(err->text))
        api_refuse(req, 501, "unsupported", err->text);
    else
        api_refuse_err(req, err);
}

static void refuse_absent(struct evhttp_request *req)
{
    api_refuse(req, 404, "snapshot_not_found", "there is no such snapshot");
}

/* ---- snapshots ---- */

void api_answer_layer(struct evhttp_request *req, int status, const struct named_layer *l,
                      const char *why, const char *code)
{
    if (l)
        api_reply(req, status, l->kind->json(l));
    else
        api_refuse(req, 503, code, why);
}

static void answer_made(void *arg, struct named_layer *l, const char *why)
{
    api_answer_layer(arg, 201, l, why, "snapshot_failed");
}

static void answer_found(void *arg, struct named_layer *l, const char *why)
{
    api_answer_layer(arg, 200, l, why, "snapshot_failed");
}

struct snapshot_wish {
    const char *sandbox, *name;
    bool reuse;
};

static int read_wish(const json_t *body, struct snapshot_wish *w, struct err *err)
{
    *w = (struct snapshot_wish){NULL, NULL, false};
    if (asked_text(body, "sandbox", SANDBOX_ID_MAX, &w->sandbox, err) < 0 ||
        asked_text(body, "name", SANDBOX_SPEC_NAME_MAX, &w->name, err) < 0 ||
        asked_flag(body, "get_or_create", &w->reuse, err) < 0)
        return -1;
    if (w->name == NULL || !sandbox_spec_name_ok(w->name))
        return err_set(err, ERR_PARSE, "name must be of A-Z, a-z, 0-9, '_', '.' and '-'");
    return w->sandbox ? 0 : err_set(err, ERR_PARSE, "sandbox is missing");
}

static void make_snapshot(struct api *a, struct evhttp_request *req, const struct snapshot_wish *w)
{
    struct err err = {0};
    struct snapshot *s = w->reuse ? snapshot_find(a->controller, w->name) : NULL;
    if (s && api_sees_snapshot(a, s)) {
        if (named_layer_await(&s->layer, answer_found, req) < 0)
            api_refuse(req, 503, "unavailable", "out of memory");
        return;
    }
    struct managed_sandbox *r = managed_sandbox_find(a->controller, w->sandbox);
    if (r == NULL || !api_sees(a, r)) {
        api_refuse(req, 404, "sandbox_not_found", "there is no such sandbox");
        return;
    }
    s = snapshot_new(r, w->name, &err);
    if (s == NULL)
        refuse(req, &err);
    else if (named_layer_await(&s->layer, answer_made, req) < 0)
        api_refuse(req, 503, "unavailable", "out of memory");
}

HANDLER(api_snapshot)
{
    struct err err = {0};
    struct snapshot_wish w;
    (void)q;
    json_t *body = asked_body(req, "sandbox name get_or_create", &err);
    if (body && read_wish(body, &w, &err) == 0)
        make_snapshot(a, req, &w);
    else
        api_refuse_err(req, &err);
    json_decref(body);
}

HANDLER(api_snapshots)
{
    const struct named_layer *l;
    json_t *list = json_array();
    (void)q;
    TAILQ_FOREACH(l, &a->controller->snapshots.list, link)
    if (api_sees_snapshot(a, (const struct snapshot *)l))
        json_array_append_new(list, l->kind->json(l));
    api_reply(req, 200, json_pack("{s:o}", "snapshots", list));
}

HANDLER(api_snapshot_show)
{
    struct snapshot *s = snapshot_find(a->controller, q->args[0]);
    if (s && api_sees_snapshot(a, s))
        api_reply(req, 200, s->layer.kind->json(&s->layer));
    else
        refuse_absent(req);
}

static void answer_deleted(void *arg, struct named_layer *l, const char *why)
{
    if (l)
        api_no_content(arg);
    else
        api_refuse(arg, 503, "unavailable", why);
}

HANDLER(api_snapshot_delete)
{
    struct snapshot *s = snapshot_find(a->controller, q->args[0]);
    if (s == NULL || !api_sees_snapshot(a, s))
        api_no_content(req);
    else if (named_layer_delete(&s->layer, answer_deleted, req) < 0)
        api_refuse(req, 503, "unavailable", "out of memory");
}

/* ---- sandboxes of them ---- */

struct snapshot *api_find_snapshot(struct api *a, struct evhttp_request *req, const char *name)
{
    struct snapshot *s = snapshot_find(a->controller, name);
    if (s && !api_sees_snapshot(a, s))
        s = NULL;
    if (s && s->layer.state == LAYER_READY)
        return s;
    if (s)
        api_refuse(req, 409, "not_ready", "the snapshot is being made or removed");
    else
        refuse_absent(req);
    return NULL;
}

static void answer_restored(void *arg, struct managed_sandbox *r, const char *why)
{
    if (r)
        api_reply(arg, 200, managed_sandbox_json(r));
    else
        api_refuse(arg, 503, "restore_failed", why);
}

HANDLER_IN(api_restore)
{
    struct err err = {0};
    const char *name = NULL;
    struct snapshot *s;
    (void)q;
    json_t *body = asked_body(req, "snapshot", &err);
    if (body == NULL || asked_text(body, "snapshot", SANDBOX_SPEC_NAME_MAX, &name, &err) < 0)
        api_refuse_err(req, &err);
    else if (name == NULL)
        api_refuse(req, 400, "bad_request", "snapshot is missing");
    else if ((s = api_find_snapshot(a, req, name)) != NULL &&
             managed_sandbox_restore(r, s, answer_restored, req, &err) < 0)
        refuse(req, &err);
    json_decref(body);
}

struct fork {
    struct evhttp_request *req;
    bool pause;
};

static void answer_paused(void *arg, struct managed_sandbox *r, const char *why)
{
    if (r)
        api_reply(arg, 201, managed_sandbox_json(r));
    else
        api_refuse(arg, 503, "create_failed", why);
}

static void answer_forked(void *arg, struct managed_sandbox *r, const char *why)
{
    struct fork f = *(struct fork *)arg;
    struct err err = {0};
    free(arg);
    if (r == NULL || !f.pause)
        answer_paused(f.req, r, why);
    else if (managed_sandbox_pause(r, answer_paused, f.req, &err) < 0)
        api_refuse(f.req, 503, "create_failed", err.text);
}

static void await_fork(struct evhttp_request *req, struct managed_sandbox *made, bool pause)
{
    struct fork *f = malloc(sizeof *f);
    if (f)
        *f = (struct fork){req, pause};
    if (f && managed_sandbox_await(made, answer_forked, f) == 0)
        return;
    free(f);
    api_refuse(req, 503, "unavailable", "out of memory");
}

HANDLER_IN(api_fork)
{
    struct err err = {0};
    struct managed_sandbox_wish w;
    struct managed_sandbox_sight sight = api_sight(a);
    struct managed_sandbox *made = NULL;
    (void)q;
    json_t *body = asked_body(
        req, "name labels env ttl idle_ttl on_idle soft_ttl on_soft_ttl auto_resume", &err);
    bool full = body && api_check_sandboxes(a, &err) < 0;
    if (body && !full && api_read_wish(a, body, &w, &err) == 0) {
        w.policy = r->policy;
        w.parent = r;
        w.sight = &sight;
        api_settle_wish(a->controller, &w);
        if (w.env == NULL)
            w.env = r->env;
        made = managed_sandbox_new(a->controller, &w, &err);
    }
    if (made)
        await_fork(req, made, r->state == MANAGED_SANDBOX_PAUSED);
    else if (full)
        api_refuse(req, 503, "limit", err.text);
    else
        refuse(req, &err);
    json_decref(body);
}
