/* /v1/sandboxes and one sandbox. */
#include "api_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pools.h"
#include "publication.h"

/* ---- create ---- */

static bool has_policy(const struct config *c, const char *name)
{
    for (size_t i = 0; i < config_policies(c); i++)
        if (strcmp(config_policy_name(c, i), name) == 0)
            return true;
    return false;
}

struct create {
    struct managed_sandbox_wish wish;
    bool reuse;
    const char *policy, *snapshot, *template; /* as they were asked for, or NULL */
    json_t *publish;                          /* borrowed; or NULL */
};

static int name_ok(const char *name, struct err *err)
{
    for (const char *p = name; *p; p++)
        if (!ascii_is_alnum(*p) && strchr("._-", *p) == NULL)
            return err_set(err, ERR_PARSE, "name must be of A-Z, a-z, 0-9, '.', '_' and '-'");
    return *name ? 0 : err_set(err, ERR_PARSE, "name is empty");
}

static int read_idle(const json_t *body, enum config_idle *ret, struct err *err)
{
    const char *text = NULL;
    if (asked_text(body, "on_idle", 16, &text, err) < 0)
        return -1;
    for (int i = 0; text && i < IDLE_KINDS; i++)
        if (strcmp(text, config_idle_name((enum config_idle)i)) == 0) {
            *ret = (enum config_idle)i;
            return 0;
        }
    return text ? err_set(err, ERR_PARSE, "on_idle must be delete, pause or stop") : 0;
}

static int read_soft(const json_t *body, enum config_idle *ret, struct err *err)
{
    const char *text = NULL;
    if (asked_text(body, "on_soft_ttl", 16, &text, err) < 0)
        return -1;
    if (text == NULL)
        return 0;
    *ret = strcmp(text, "pause") == 0 ? IDLE_PAUSE : IDLE_STOP;
    return strcmp(text, config_idle_name(*ret)) == 0
               ? 0
               : err_set(err, ERR_PARSE, "on_soft_ttl must be pause or stop");
}

/* Of times, on_idle and on_soft: nothing was said. */
enum { UNSAID = -1, IDLE_UNSAID = IDLE_KINDS };

int api_read_wish(const struct api *a, json_t *body, struct managed_sandbox_wish *w,
                  struct err *err)
{
    *w = (struct managed_sandbox_wish){.ttl = UNSAID,
                                       .idle_ttl = UNSAID,
                                       .soft_ttl = UNSAID,
                                       .on_idle = (enum config_idle)IDLE_UNSAID,
                                       .on_soft = (enum config_idle)IDLE_UNSAID,
                                       .token = a->bearer ? a->bearer->id : "",
                                       .auto_resume = true};
    if (asked_text(body, "name", MANAGED_SANDBOX_NAME_MAX, &w->name, err) < 0 ||
        asked_labels(body, "labels", &w->labels, err) < 0 ||
        api_own_labels(a, body, &w->labels, err) < 0 || asked_env(body, "env", &w->env, err) < 0 ||
        asked_integer(body, "ttl", 1, MANAGED_SANDBOX_TTL_MAX, &w->ttl, err) < 0 ||
        asked_integer(body, "idle_ttl", 0, MANAGED_SANDBOX_TTL_MAX, &w->idle_ttl, err) < 0 ||
        asked_integer(body, "soft_ttl", 0, MANAGED_SANDBOX_TTL_MAX, &w->soft_ttl, err) < 0 ||
        asked_flag(body, "auto_resume", &w->auto_resume, err) < 0 ||
        read_idle(body, &w->on_idle, err) < 0 || read_soft(body, &w->on_soft, err) < 0)
        return -1;
    return w->name ? name_ok(w->name, err) : 0;
}

void api_settle_times(const struct config_sandbox *s, struct managed_sandbox_wish *w)
{
    w->ttl = w->ttl == UNSAID ? s->ttl : w->ttl;
    w->idle_ttl = w->idle_ttl == UNSAID ? s->idle_ttl : w->idle_ttl;
    w->soft_ttl = w->soft_ttl == UNSAID ? s->soft_ttl : w->soft_ttl;
    w->on_soft = w->on_soft == (enum config_idle)IDLE_UNSAID ? s->on_soft : w->on_soft;
    w->on_idle = w->on_idle == (enum config_idle)IDLE_UNSAID ? s->on_idle : w->on_idle;
}

void api_settle_wish(const struct controller *c, struct managed_sandbox_wish *w)
{
    const struct config_sandbox *s = config_policy_sandbox(c->config, w->policy);
    enum config_backend b = w->backend ? config_backend_named(w->backend) : s->backend;
    api_settle_times(s, w);
    if (w->image == NULL && w->snapshot == NULL && w->parent == NULL && config_backend_lays_out(b))
        w->image = s->image; /* an engine's is the engine's own name of it */
}

static enum publisher publisher(const struct api *a)
{
    if (a->bearer == NULL || bearer_may(a->bearer, SCOPE_ADMIN))
        return PUBLISHER_OWNER;
    return bearer_is_narrow(a->bearer) ? PUBLISHER_NARROW : PUBLISHER_TOKEN;
}

/* A token for some sandboxes has the image that their policy names, whatever others there are. */
static int check_image(const struct api *a, const struct create *w, struct err *err)
{
    const struct config_sandbox *s = config_policy_sandbox(a->controller->config, w->wish.policy);
    const char *wish = w->wish.image, *bwrap = *s->image ? s->image : "host";
    if (wish == NULL || *wish == 0 || a->bearer == NULL || !bearer_is_narrow(a->bearer) ||
        bearer_may(a->bearer, SCOPE_ADMIN) || strcmp(wish, bwrap) == 0 ||
        (s->docker.given && strcmp(wish, s->docker.image) == 0) ||
        (s->kubernetes.given && strcmp(wish, s->kubernetes.image) == 0))
        return 0;
    return err_set(err, ERR_PARSE, "this token is good for its policy's own image only");
}

static int read_create(const struct api *a, json_t *body, struct create *w, struct err *err)
{
    *w = (struct create){.reuse = false};
    if (api_read_wish(a, body, &w->wish, err) < 0 ||
        asked_text(body, "policy", 64, &w->policy, err) < 0 ||
        asked_flag(body, "get_or_create", &w->reuse, err) < 0 ||
        asked_text(body, "backend", RUN_WORD_MAX - 1, &w->wish.backend, err) < 0 ||
        asked_text(body, "image", RUN_NAME_MAX - 1, &w->wish.image, err) < 0 ||
        asked_text(body, "snapshot", SANDBOX_SPEC_NAME_MAX, &w->snapshot, err) < 0 ||
        asked_text(body, "template", CONFIG_TEMPLATE_NAME_MAX, &w->template, err) < 0)
        return -1;
    w->publish = json_object_get(body, "publish");
    if (w->publish && publications_read(w->publish, publisher(a), err) < 0)
        return -1;
    w->wish.volumes = json_object_get(body, "volumes");
    if (w->reuse && json_object_size(w->wish.labels) == 0)
        return err_set(err, ERR_PARSE, "get_or_create needs labels to look for");
    if (w->wish.image && w->snapshot)
        return err_set(err, ERR_PARSE, "a snapshot brings its image: leave `image` out");
    if (w->policy &&
        (!has_policy(a->controller->config, w->policy) || !api_sees_policy(a, w->policy)))
        return err_set(err, ERR_PARSE, "there is no policy '%s'", w->policy);
    if (w->template && (w->wish.backend || w->wish.image || w->snapshot || w->wish.volumes))
        return err_set(err, ERR_PARSE,
                       "a template says what its sandboxes are made of: leave `backend`, `image`, "
                       "`snapshot` and `volumes` out");
    return 0;
}

/* Who may use the API does not choose an engine by that: the operator has named it in the policy.
 */
static int check_backend(struct controller *c, const struct managed_sandbox_wish *w,
                         struct err *err)
{
    const struct config_sandbox *s = config_policy_sandbox(c->config, w->policy);
    enum config_backend b = w->backend ? config_backend_named(w->backend) : s->backend;
    if (b == BACKEND_DOCKER && !s->docker.given)
        return err_set(err, ERR_PARSE,
                       "the policy '%s' names no engine: give it sandbox: { docker: { socket: PATH "
                       "} }",
                       w->policy);
    if (b == BACKEND_KUBERNETES && !s->kubernetes.given)
        return err_set(err, ERR_PARSE,
                       "the policy '%s' names no namespace of a cluster: give it sandbox: { "
                       "kubernetes: { namespace: NAME } }",
                       w->policy);
    return 0;
}

static struct managed_sandbox *make(const struct api *a, struct create *w, struct err *err)
{
    struct controller *c = a->controller;
    w->wish.policy = w->policy ? w->policy : api_default_policy(a, err);
    struct managed_sandbox_sight sight = api_sight(a);
    if (w->wish.policy == NULL || api_check_sandboxes(a, err) < 0 ||
        check_backend(c, &w->wish, err) < 0 || check_image(a, w, err) < 0 ||
        api_check_volumes(a, w->wish.volumes, w->wish.policy, err) < 0)
        return NULL;
    w->wish.sight = &sight;
    api_settle_wish(c, &w->wish);
    struct managed_sandbox *r = managed_sandbox_new(c, &w->wish, err);
    if (r && w->publish && publications_open(r, w->publish, err) < 0) {
        (void)managed_sandbox_delete(r, "cannot publish", NULL, NULL);
        return NULL;
    }
    return r;
}

static const char create_keys[] =
    "policy name labels env ttl idle_ttl get_or_create backend image snapshot on_idle auto_resume "
    "soft_ttl on_soft_ttl publish volumes template";

static void refuse_create(struct evhttp_request *req, const char *why)
{
    static const char no_image[] = "there is no image "; /* as the builder says it */
    if (strncmp(why, no_image, sizeof no_image - 1) == 0)
        api_refuse(req, 404, "image_not_found", why);
    else if (strncmp(why, "cannot publish", strlen("cannot publish")) == 0)
        api_refuse(req, 409, "conflict", why);
    else if (api_unsupported(why))
        api_refuse(req, 501, "unsupported", why);
    else
        api_refuse(req, 503, "create_failed", why);
}

static void answer_created(void *arg, struct managed_sandbox *r, const char *why)
{
    if (r)
        api_reply(arg, 201, managed_sandbox_json(r));
    else
        refuse_create(arg, why);
}

static void answer_found(void *arg, struct managed_sandbox *r, const char *why)
{
    if (r)
        api_reply(arg, 200, managed_sandbox_json(r));
    else
        refuse_create(arg, why);
}

/* By a template, perhaps out of its pool; on_made answers. */
static struct managed_sandbox *take(const struct api *a, const struct create *w,
                                    managed_sandbox_fn on_made, struct evhttp_request *req,
                                    struct err *err)
{
    struct controller *c = a->controller;
    const struct config_template *t = config_template(c->config, w->template);
    if (t == NULL || !api_sees_template(a, t)) {
        err_set(err, ERR_PARSE, "there is no template '%s'", w->template);
        return NULL;
    }
    if (w->policy && strcmp(w->policy, t->policy) != 0) {
        err_set(err, ERR_PARSE, "the template %s is of the policy '%s'", t->name, t->policy);
        return NULL;
    }
    struct managed_sandbox_sight sight = api_sight(a);
    struct pools_wish asked = {w->wish, w->publish};
    asked.wish.sight = &sight;
    asked.wish.policy = t->policy;
    api_settle_times(&t->sandbox, &asked.wish);
    if (api_check_sandboxes(a, err) < 0)
        return NULL;
    return pools_take(c->pools, t, &asked, on_made, req, err);
}

/* 1: there is one and it was answered; 0: none; -1. */
static int reuse(const struct api *a, struct evhttp_request *req, const struct create *w,
                 struct err *err)
{
    struct managed_sandbox_sight sight =
        api_sight(a); /* what is not for this token is not there for it */
    struct managed_sandbox *r =
        w->reuse ? managed_sandbox_by_labels(a->controller, w->wish.labels, &sight) : NULL;
    if (r == NULL)
        return 0;
    if (w->policy && strcmp(r->policy, w->policy) != 0)
        return err_set(err, ERR_DENIED, "the sandbox with these labels has the policy '%s'",
                       r->policy);
    if (w->template && strcmp(r->template, w->template) != 0)
        return err_set(err, ERR_DENIED, "the sandbox with these labels is of another template");
    if (managed_sandbox_wake(r, err) < 0)
        return -1;
    if (managed_sandbox_await(r, answer_found, req) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return 1;
}

HANDLER(api_create)
{
    struct create w;
    struct err err = {0};
    struct managed_sandbox *r = NULL;
    (void)q;
    json_t *body = asked_body(req, create_keys, &err);
    int found = body && read_create(a, body, &w, &err) == 0 ? reuse(a, req, &w, &err) : -1;
    if (found == 0 && w.snapshot &&
        (w.wish.snapshot = api_find_snapshot(a, req, w.snapshot)) == NULL) {
        json_decref(body); /* it is answered */
        return;
    }
    if (found == 0)
        r = w.template ? take(a, &w, answer_created, req, &err) : make(a, &w, &err);
    if (r && !w.template && managed_sandbox_await(r, answer_created, req) < 0)
        err_set(&err, ERR_INTERNAL, "out of memory");
    else if (r == NULL && found == 0 && api_unsupported(err.text))
        api_refuse(req, 501, "unsupported", err.text);
    else if (r == NULL && found == 0 && err.code == ERR_UNREADY)
        api_refuse(req, 503, "limit", err.text);
    else if (r == NULL && found <= 0)
        api_refuse_err(req, &err);
    json_decref(body);
}

/* ---- list ---- */

struct filter {
    json_t *labels;
    const char *state;
    int64_t limit, after;
};

static int read_label(json_t *labels, const char *text, struct err *err)
{
    char key[64];
    size_t n = strcspn(text, "=");
    if (n >= sizeof key || text[n] == 0)
        return err_set(err, ERR_PARSE, "label must be KEY=VALUE");
    snprintf(key, sizeof key, "%.*s", (int)n, text);
    if (!asked_label_ok(key, text + n + 1) ||
        json_object_set_new(labels, key, json_string(text + n + 1)) < 0)
        return err_set(err, ERR_PARSE, "label must be KEY=VALUE");
    return 0;
}

static int read_filter(const struct asked *q, struct filter *f, struct err *err)
{
    const char *after = asked_param(q, "after");
    f->state = asked_param(q, "state");
    for (unsigned i = 0; i < q->n_params; i++)
        if (strcmp(q->params[i].name, "label") == 0 &&
            read_label(f->labels, q->params[i].value, err) < 0)
            return -1;
    if (f->state && managed_sandbox_state_of(f->state) < 0)
        return err_set(err, ERR_PARSE, "there is no state '%.32s'", f->state);
    if (after && strlen(after) > 18)
        return err_set(err, ERR_PARSE, "after must be what `next` said");
    if (asked_number(q, "limit", 1, 1000, 100, &f->limit, err) < 0)
        return -1;
    return asked_number(q, "after", 0, INT64_C(999999999999999999), 0, &f->after, err);
}

HANDLER(api_list)
{
    struct filter f = {.labels = json_object()};
    struct err err = {0};
    struct managed_sandbox *r;
    char next[24] = "";
    int64_t last = 0;
    json_t *list = json_array();
    if (read_filter(q, &f, &err) < 0) {
        api_refuse_err(req, &err);
        json_decref(list);
        json_decref(f.labels);
        return;
    }
    TAILQ_FOREACH(r, &a->controller->managed_sandboxes, link)
    {
        if (r->seq <= f.after || !api_sees(a, r) || !managed_sandbox_has_labels(r, f.labels) ||
            (f.state && strcmp(f.state, managed_sandbox_state_name(r->state)) != 0))
            continue;
        if (json_array_size(list) == (size_t)f.limit) {
            snprintf(next, sizeof next, "%lld", (long long)last);
            break;
        }
        json_array_append_new(list, managed_sandbox_json(r));
        last = r->seq;
    }
    json_decref(f.labels);
    api_reply(req, 200, json_pack("{s:o, s:s?}", "sandboxes", list, "next", *next ? next : NULL));
}

/* ---- one ---- */

HANDLER_IN(api_show)
{
    (void)a;
    (void)q;
    api_reply(req, 200, managed_sandbox_json(r));
}

HANDLER_IN(api_change)
{
    struct err err = {0};
    json_t *labels = NULL, *body = asked_body(req, "labels ttl idle_ttl soft_ttl", &err);
    struct managed_sandbox_times t = {-1, -1, -1};
    (void)q;
    if (body == NULL || asked_labels(body, "labels", &labels, &err) < 0 ||
        (labels && api_own_labels(a, body, &labels, &err) < 0) ||
        asked_integer(body, "ttl", 1, MANAGED_SANDBOX_TTL_MAX, &t.ttl, &err) < 0 ||
        asked_integer(body, "idle_ttl", 0, MANAGED_SANDBOX_TTL_MAX, &t.idle_ttl, &err) < 0 ||
        asked_integer(body, "soft_ttl", 0, MANAGED_SANDBOX_TTL_MAX, &t.soft_ttl, &err) < 0)
        api_refuse_err(req, &err);
    else if (r->state == MANAGED_SANDBOX_STOPPING)
        api_refuse(req, 409, "not_running", "the sandbox is being deleted");
    else if (managed_sandbox_change(r, labels, &t, &err) < 0)
        api_refuse_err(req, &err);
    else
        api_reply(req, 200, managed_sandbox_json(r));
    json_decref(body);
}

static void answer_deleted(void *arg, struct managed_sandbox *r, const char *why)
{
    if (r)
        api_no_content(arg);
    else
        api_refuse(arg, 503, "unavailable", why);
}

HANDLER(api_delete)
{
    struct err err = {0};
    struct managed_sandbox *r = NULL;
    if (asked_id(q->args[0], &err) < 0) {
        api_refuse(req, 404, "sandbox_not_found", err.text);
        return;
    }
    r = managed_sandbox_find(a->controller, q->args[0]);
    if (r == NULL || !api_sees(a, r))
        api_no_content(req);
    else if (managed_sandbox_delete(r, "deleted", answer_deleted, req) < 0)
        api_refuse(req, 503, "unavailable", "out of memory");
}

/* ---- asleep and awake ---- */

static void answer_one(void *arg, struct managed_sandbox *r, const char *why)
{
    bool never = r == NULL && api_unsupported(why);
    if (r)
        api_reply(arg, 200, managed_sandbox_json(r));
    else
        api_refuse(arg, never ? 501 : 503, never ? "unsupported" : "unavailable", why);
}

HANDLER_IN(api_pause)
{
    struct err err = {0};
    (void)a;
    (void)q;
    if (managed_sandbox_pause(r, answer_one, req, &err) < 0)
        api_refuse_err(req, &err);
}

HANDLER_IN(api_stop)
{
    struct err err = {0};
    (void)a;
    (void)q;
    if (managed_sandbox_stop(r, "stopped", answer_one, req, &err) < 0)
        api_refuse_err(req, &err);
}

HANDLER_IN(api_resume)
{
    struct err err = {0};
    (void)a;
    (void)q;
    if (managed_sandbox_wake(r, &err) < 0)
        api_refuse_err(req, &err);
    else if (managed_sandbox_await(r, answer_one, req) < 0)
        api_refuse(req, 503, "unavailable", "out of memory");
}
