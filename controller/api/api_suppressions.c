/* /v1/suppressions: findings that notices and the console's first view leave out until a date. */
#include "api_internal.h"

#include <stdio.h>
#include <string.h>

#include "suppressions.h"

/* One of a policy is about all of its sandboxes: a token that is narrowed by labels sees none. */
static bool sees(const struct api *a, const json_t *v)
{
    const char *policy = json_string_value(json_object_get(v, "policy"));
    return a->bearer == NULL || (policy && bearer_sees(a->bearer, policy, NULL));
}

void api_suppressions(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    json_t *v = suppressing_json(a->controller->suppressing);
    json_t *list = json_object_get(v, "suppressions");
    for (size_t i = json_array_size(list); i-- > 0;)
        if (!sees(a, json_array_get(list, i)))
            json_array_remove(list, i);
    api_reply(req, 200, v);
}

/* NULL: there is none, for whoever asks; answered. */
static json_t *find(const struct api *a, struct evhttp_request *req, const struct asked *q)
{
    json_t *v = suppressing_show(a->controller->suppressing, q->args[0]);
    if (v && sees(a, v))
        return v;
    json_decref(v);
    api_refuse(req, 404, "not_found", "there is no such suppression (any more)");
    return NULL;
}

void api_suppression(struct api *a, struct evhttp_request *req, struct asked *q)
{
    json_t *v = find(a, req, q);
    if (v)
        api_reply(req, 200, v);
}

/* ---- written ---- */

struct wish {
    struct suppression what;
    const char *reason;
    int64_t seconds;
};

static int take(const json_t *body, const char *key, char *to, size_t size, struct err *err)
{
    const char *text = NULL;
    if (asked_text(body, key, size - 1, &text, err) < 0)
        return -1;
    snprintf(to, size, "%s", text ? text : "");
    return 0;
}

static int read_wish(struct api *a, const json_t *body, struct wish *w, struct err *err)
{
    struct suppression *s = &w->what;
    if (take(body, "policy", s->policy, sizeof s->policy, err) < 0 ||
        take(body, "code", s->code, sizeof s->code, err) < 0 ||
        take(body, "host", s->host, sizeof s->host, err) < 0 ||
        take(body, "method", s->method, sizeof s->method, err) < 0 ||
        take(body, "path", s->path, sizeof s->path, err) < 0 ||
        take(body, "sandbox", s->sandbox, sizeof s->sandbox, err) < 0 ||
        asked_text(body, "reason", SUPPRESSION_REASON_MAX, &w->reason, err) < 0 ||
        asked_integer(body, "expires_in", 1, SUPPRESSION_SECONDS, &w->seconds, err) < 0)
        return -1;
    if (w->reason == NULL || w->seconds == 0)
        return err_set(err, ERR_PARSE, "'code', 'host', 'reason' and 'expires_in' are needed");
    const char *only = s->policy[0] ? s->policy : api_default_policy(a, err);
    if (only == NULL)
        return -1;
    if (only != s->policy)
        snprintf(s->policy, sizeof s->policy, "%s", only);
    if (config_policy(a->controller->config, s->policy) == NULL ||
        (a->bearer && !bearer_sees(a->bearer, s->policy, NULL)))
        return err_set(err, ERR_PARSE, "there is no policy '%.64s'", s->policy);
    return s->sandbox[0] ? asked_id(s->sandbox, err) : 0;
}

static void answer(struct api *a, struct evhttp_request *req, enum suppression_end end,
                   const char *id, const struct err *err)
{
    switch (end) {
    case SUPPRESSION_DONE:
    case SUPPRESSION_KNOWN:
        api_reply(req, 200, suppressing_show(a->controller->suppressing, id));
        break;
    case SUPPRESSION_NONE:
        api_refuse(req, 404, "not_found", "there is no such suppression (any more)");
        break;
    case SUPPRESSION_OVER:
        api_refuse(req, 409, "conflict", "it is over: it expired or was lifted");
        break;
    case SUPPRESSION_OWN:
        api_refuse(req, 403, "own",
                   "somebody else is to accept it: by another token, or on the daemon's host with "
                   "'durward suppressions accept'");
        break;
    case SUPPRESSION_FULL:
        api_refuse(req, 503, "unavailable",
                   "there are too many suppressions: lift some that are not needed");
        break;
    default:
        api_refuse_err(req, err);
    }
}

void api_suppress(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    struct err err = {0};
    struct wish w = {.reason = NULL};
    char who[120], id[SUPPRESSION_ID_MAX + 1] = "";
    json_t *body = asked_body(req, "policy code host method path sandbox reason expires_in", &err);
    if (body == NULL || read_wish(a, body, &w, &err) < 0) {
        api_refuse_err(req, &err);
        json_decref(body);
        return;
    }
    api_who(a, req, who, sizeof who);
    enum suppression_end end =
        suppressing_add(a->controller->suppressing, &w.what, w.seconds, w.reason, who, id, &err);
    if (end == SUPPRESSION_DONE)
        api_reply(req, 201, suppressing_show(a->controller->suppressing, id));
    else
        answer(a, req, end, id, &err);
    json_decref(body);
}

/* ---- accepted, lifted ---- */

void api_suppression_accept(struct api *a, struct evhttp_request *req, struct asked *q)
{
    char who[120];
    struct err err = {0};
    json_t *v = find(a, req, q);
    if (v == NULL)
        return;
    json_decref(v);
    api_who(a, req, who, sizeof who);
    answer(a, req,
           suppressing_accept(a->controller->suppressing, q->args[0], who,
                              a->listener == LISTENER_SOCKET, &err),
           q->args[0], &err);
}

void api_suppression_lift(struct api *a, struct evhttp_request *req, struct asked *q)
{
    char who[120];
    struct err err = {0};
    json_t *v = find(a, req, q);
    if (v == NULL)
        return;
    json_decref(v);
    api_who(a, req, who, sizeof who);
    answer(a, req, suppressing_lift(a->controller->suppressing, q->args[0], who, &err), q->args[0],
           &err);
}
