/* /v1/proposals: what somebody would like a policy to allow, and what is said to that. Nothing here
 * changes a policy: whoever may write the configuration does. */
#include "api_internal.h"

#include <stdio.h>
#include <string.h>

#include "policy_query.h"
#include "proposals.h"

static bool sees(const struct api *a, const json_t *proposal)
{
    const char *sandbox = json_string_value(json_object_get(proposal, "sandbox"));
    const char *policy = json_string_value(json_object_get(proposal, "policy"));
    const struct managed_sandbox *r = sandbox ? managed_sandbox_find(a->controller, sandbox) : NULL;
    bool hidden = r && r->pooled && a->bearer && bearer_is_narrow(a->bearer);
    return a->bearer == NULL ||
           (policy && !hidden && bearer_sees(a->bearer, policy, r ? r->labels : NULL));
}

void api_proposals(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    json_t *v = proposals_json(a->controller->proposals);
    json_t *list = json_object_get(v, "proposals");
    for (size_t i = json_array_size(list); i-- > 0;)
        if (!sees(a, json_array_get(list, i)))
            json_array_remove(list, i);
    api_reply(req, 200, v);
}

/* NULL: there is none, for whoever asks; answered. */
static json_t *find(const struct api *a, struct evhttp_request *req, const struct asked *q)
{
    json_t *v = proposals_show(a->controller->proposals, q->args[0]);
    if (v && sees(a, v))
        return v;
    json_decref(v);
    api_refuse(req, 404, "not_found", "there is no such proposal (any more)");
    return NULL;
}

void api_proposal(struct api *a, struct evhttp_request *req, struct asked *q)
{
    json_t *v = find(a, req, q);
    if (v)
        api_reply(req, 200, v);
}

/* ---- made by an operator ---- */

static void answer_added(struct api *a, struct evhttp_request *req, enum wire_proposed end,
                         const char *id)
{
    switch (end) {
    case WIRE_PROPOSED_TAKEN:
        api_reply(req, 201, proposals_show(a->controller->proposals, id));
        break;
    case WIRE_PROPOSED_KNOWN:
    case WIRE_PROPOSED_ACCEPTED:
    case WIRE_PROPOSED_REJECTED:
        api_reply(req, 200, proposals_show(a->controller->proposals, id));
        break;
    case WIRE_PROPOSED_ALLOWED:
        api_refuse(req, 409, "conflict",
                   "the policy allows that as it is, perhaps under conditions");
        break;
    case WIRE_PROPOSED_FULL:
        api_refuse(req, 503, "unavailable",
                   "too many proposals wait, or this one came within a second of another");
        break;
    default:
        api_refuse(req, 400, "bad_request", "that cannot be written as a rule");
    }
}

/* A record may be of a sandbox that is gone, and of none that was ever managed; but a token names
 * only what it sees. */
static int check_sandbox(const struct api *a, const char *id, struct err *err)
{
    if (id == NULL || *id == 0)
        return 0;
    if (asked_id(id, err) < 0)
        return -1;
    const struct managed_sandbox *r = a->bearer ? managed_sandbox_find(a->controller, id) : NULL;
    return a->bearer && (r == NULL || !api_sees(a, r))
               ? err_set(err, ERR_PARSE, "there is no sandbox '%.64s'", id)
               : 0;
}

static int read_ask(struct api *a, const json_t *body, struct proposal_ask *ask, const char **url,
                    struct err *err)
{
    if (asked_text(body, "policy", RUN_NAME_MAX - 1, &ask->policy, err) < 0 ||
        asked_text(body, "method", 23, &ask->method, err) < 0 ||
        asked_text(body, "url", 1024, url, err) < 0 ||
        asked_text(body, "sandbox", SANDBOX_ID_MAX, &ask->sandbox, err) < 0 ||
        asked_text(body, "reason", PROPOSAL_REASON_MAX, &ask->reason, err) < 0)
        return -1;
    if (check_sandbox(a, ask->sandbox, err) < 0)
        return -1;
    if (ask->method == NULL || *url == NULL)
        return err_set(err, ERR_PARSE, "'method' and 'url' are needed");
    if (ask->policy == NULL && (ask->policy = api_default_policy(a, err)) == NULL)
        return -1;
    if (config_policy(a->controller->config, ask->policy) == NULL ||
        !api_sees_policy(a, ask->policy))
        return err_set(err, ERR_PARSE, "there is no policy '%.64s'", ask->policy);
    return 0;
}

void api_propose(struct api *a, struct evhttp_request *req, struct asked *asked UNUSED)
{
    struct err err = {0};
    struct proposal_ask ask = {.sandbox = NULL};
    struct policy_query q = {0};
    const char *url = NULL;
    char who[120], id[PROPOSAL_ID_MAX + 1], authority[HOST_TEXT_MAX + 16], path[1025];
    json_t *body = asked_body(req, "policy method url sandbox reason", &err);
    if (body == NULL || read_ask(a, body, &ask, &url, &err) < 0 ||
        policy_query_url(url, &q, &err) < 0) {
        api_refuse_err(req, &err);
        json_decref(body);
        return;
    }
    api_who(a, req, who, sizeof who);
    snprintf(path, sizeof path, "%.*s", SL(q.path));
    ask.scheme = scheme_name(q.authority.scheme);
    ask.authority = authority_text(&q.authority, authority, sizeof authority);
    ask.path = path;
    ask.by = who;
    answer_added(a, req, proposals_add(a->controller->proposals, &ask, id), id);
    json_decref(body);
}

/* ---- decided ---- */

static void decide(struct api *a, struct evhttp_request *req, const struct asked *q, bool accept)
{
    char who[120];
    json_t *v = find(a, req, q);
    if (v == NULL)
        return;
    json_decref(v);
    api_who(a, req, who, sizeof who);
    if (proposals_decide(a->controller->proposals, q->args[0], accept, who) != 0)
        api_refuse(req, 409, "conflict", "it was decided otherwise before");
    else
        api_reply(req, 200, proposals_show(a->controller->proposals, q->args[0]));
}

void api_accept(struct api *a, struct evhttp_request *req, struct asked *q)
{
    decide(a, req, q, true);
}

void api_reject(struct api *a, struct evhttp_request *req, struct asked *q)
{
    decide(a, req, q, false);
}
