/* The daemon itself, policies, events, identities of remote sandboxes. */
#include "api_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base64.h"
#include "fleet_hosts.h"
#include "fleet_revocations.h"
#include "sandbox_events.h"
#include "identities.h"
#include "wire.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

enum { ROLES_MAX = 8192 };

/* ---- questions that the parent answers ---- */

/* m is sent, or done with. */
static void ask_parent(struct api *a, struct evhttp_request *req, struct api_waits *q,
                       struct msg *m)
{
    struct api_wait *w = malloc(sizeof *w);
    if (w == NULL)
        msg_done(m);
    if (w == NULL || ipc_send(a->controller->owner.parent, m) < 0) {
        free(w);
        api_refuse(req, 503, "unavailable", "the parent does not answer");
        return;
    }
    w->req = req;
    STAILQ_INSERT_TAIL(q, w, link);
}

void api_ask_parent(struct api *a, struct evhttp_request *req, struct api_waits *q, uint16_t type)
{
    struct msg m;
    msg_init(&m, type);
    ask_parent(a, req, q, &m);
}

struct evhttp_request *api_first_waiting(struct api_waits *q)
{
    struct api_wait *w = STAILQ_FIRST(q);
    if (w == NULL)
        return NULL;
    struct evhttp_request *req = w->req;
    STAILQ_REMOVE_HEAD(q, link);
    free(w);
    return req;
}

static json_t *listeners(const struct config *c)
{
    size_t n;
    const struct config_listen *l = config_listens(c, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s?}", "kind",
                                              l[i].kind == LISTEN_HTTPS ? "https" : "http",
                                              "address", l[i].address, "policy", l[i].policy));
    return list;
}

/* Nobody has it yet: it is counted with its template. */
static bool is_pooled(const struct controller *c, const struct sandbox *s)
{
    const struct managed_sandbox *r;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    if (r->sandbox == s)
        return r->pooled;
    return false;
}

static json_t *sandboxes(struct controller *c)
{
    json_t *list = json_array();
    for (struct sandbox *s = NULL; (s = sandbox_next(&c->owner, s)) != NULL;)
        if (!is_pooled(c, s))
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "id", sandbox_id(s), "policy",
                                                  sandbox_policy(s), "state",
                                                  sandbox_state_name(sandbox_state(s))));
    return list;
}

/* Where it writes and where it is asked, by its parent's word. */
struct places {
    char audit[PATH_MAX], socket[PATH_MAX];
};

static json_t *roles(struct msg *m, struct places *at)
{
    uint32_t n, pid;
    json_t *list = json_array();
    if (msg_get_str(m, at->audit, sizeof at->audit) < 0 ||
        msg_get_str(m, at->socket, sizeof at->socket) < 0 || msg_get_u32(m, &n) < 0 ||
        n > ROLES_MAX)
        goto bad;
    for (uint32_t i = 0; i < n; i++) {
        char role[32], sandbox[SANDBOX_ID_MAX + 1];
        if (msg_get_str(m, role, sizeof role) < 0 || msg_get_u32(m, &pid) < 0 ||
            msg_get_str(m, sandbox, sizeof sandbox) < 0)
            goto bad;
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "role", role, "pid",
                                              (json_int_t)pid, "sandbox", sandbox));
    }
    if (msg_end(m) == 0)
        return list;
bad:
    json_decref(list);
    return NULL;
}

/* By which other hosts of the fleet know what this one says. */
static void put_fleet_key(const struct controller *c, json_t *v)
{
    struct buf text;
    if (c->fleet == NULL)
        return;
    buf_init(&text, 64);
    if (base64_append(&text, (struct slice){(const char *)c->keys.fleet_public,
                                            sizeof c->keys.fleet_public}) == 0)
        json_object_set_new(v, "fleet_key",
                            json_stringn((const char *)buf_data(&text), buf_len(&text)));
    buf_free(&text);
}

static int answer_status(struct api *a, struct msg *m)
{
    struct controller *c = a->controller;
    struct timespec now;
    struct evhttp_request *req = api_first_waiting(&a->status);
    struct places at;
    json_t *list = roles(m, &at);
    if (list == NULL || req == NULL) {
        json_decref(list);
        if (req)
            api_refuse(req, 500, "internal", "the parent's answer is malformed");
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    const struct config_listen *tls = config_api(c->config);
    json_t *v =
        json_pack("{s:I, s:s?, s:s?, s:s?, s:s?, s:s?, s:o, s:o, s:o, s:o}", "uptime_seconds",
                  (json_int_t)(now.tv_sec - c->started), "audit_dir", at.audit, "socket", at.socket,
                  "console", config_console(c->config), "metrics", config_metrics(c->config), "api",
                  tls ? tls->reached_at : NULL, "roles", list, "listeners", listeners(c->config),
                  "sandboxes", sandboxes(c), "templates", api_templates_json(a));
    put_fleet_key(c, v);
    api_reply(req, 200, v);
    return 0;
}

static int answer_reload(struct api *a, struct msg *m)
{
    uint8_t ok;
    char text[1024];
    struct evhttp_request *req = api_first_waiting(&a->reload);
    if (req == NULL || msg_get_u8(m, &ok) < 0 || msg_get_str(m, text, sizeof text) < 0 ||
        msg_end(m) < 0) {
        if (req)
            api_refuse(req, 500, "internal", "the parent's answer is malformed");
        return -1;
    }
    if (ok)
        api_reply(req, 200, json_pack("{s:b}", "reloaded", 1));
    else
        api_refuse(req, 422, "bad_configuration", text);
    return 0;
}

static int answer_revoked(struct api *a, struct msg *m)
{
    char id[65];
    struct evhttp_request *req = api_first_waiting(&a->revoked);
    if (req == NULL || msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0) {
        if (req)
            api_refuse(req, 500, "internal", "the parent's answer is malformed");
        return -1;
    }
    api_reply(req, 200, json_pack("{s:s}", "revoked", id));
    return 0;
}

int api_answer(struct api *a, struct msg *m)
{
    if (m->type == W_REVOKED_TAKEN)
        return answer_revoked(a, m);
    if (m->type == W_METERS_ALL)
        return api_answer_metrics(a, m);
    if (m->type == W_VERIFIED)
        return api_answer_verified(a, m);
    if (m->type == W_LOG_SAID)
        return api_answer_log(a, m);
    return m->type == W_STATUS ? answer_status(a, m) : answer_reload(a, m);
}

/* ---- identities ---- */

/* Without a policy: the only one there is. */
const char *api_only_policy(const struct config *c, struct err *err)
{
    if (config_policies(c) == 1)
        return config_policy_name(c, 0);
    char list[300] = "";
    for (size_t i = 0; i < config_policies(c); i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", config_policy_name(c, i));
    }
    err_set(err, ERR_PARSE, "the configuration has %zu policies: say which one%s%s",
            config_policies(c), *list ? ": " : "", list);
    return NULL;
}

void api_issue(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    struct err err = {0};
    const char *policy = NULL;
    int64_t ttl = IDENTITY_TTL_DEFAULT;
    bool remote = false;
    json_t *v = NULL, *body = asked_body(req, "policy ttl remote", &err);
    if (body && asked_text(body, "policy", RUN_NAME_MAX - 1, &policy, &err) == 0 &&
        asked_integer(body, "ttl", 1, IDENTITY_TTL_MAX, &ttl, &err) == 0 &&
        asked_flag(body, "remote", &remote, &err) == 0) {
        if (policy == NULL)
            policy = api_default_policy(a, &err);
        if (policy && a->bearer && !bearer_sees(a->bearer, policy, NULL))
            err_set(&err, ERR_PARSE, "this token is not for identities of that policy");
        else if (policy)
            v = identities_issue(a->controller, policy, (unsigned)ttl, remote, &err);
    }
    if (v)
        api_reply(req, 201, v);
    else
        api_refuse_err(req, &err);
    json_decref(body);
}

/* Answered once each role refuses it: whoever reads the answer need not wait for anything more. */
void api_revoke(struct api *a, struct evhttp_request *req, struct asked *q)
{
    struct msg m;
    struct err err = {0};
    const char *id = q->args[0];
    int r = identities_revoke(a->controller, id, &err);
    /* it may be another host's; tokens for the API are an admin's matter (api_token_revoke) */
    if (r == 1 && strncmp(id, "rt-", 3) == 0)
        r = fleet_revocations_foreign(a->controller->revocations, id, &err);
    if (r == 0) {
        msg_init(&m, W_REVOKED_TAKEN);
        msg_put_str(&m, id);
        ask_parent(a, req, &a->revoked, &m);
    } else if (r == 1)
        api_refuse(req, 404, "not_found", "there is no such identity, or it was revoked before");
    else if (err.code == ERR_UNREADY)
        api_refuse(req, 503, "unavailable", err.text);
    else
        api_refuse(req, 500, "internal", err.text);
}

/* ---- the daemon ---- */

void api_status(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_ask_parent(a, req, &a->status, W_STATUS);
}

void api_reload(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_ask_parent(a, req, &a->reload, W_RELOAD);
}

void api_health(struct api *a UNUSED, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_reply(req, 200, json_pack("{s:s, s:s}", "status", "ok", "version", PACKAGE_VERSION));
}

void api_policies(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    const struct config *c = a->controller->config;
    json_t *list = json_array();
    for (size_t i = 0; i < config_policies(c); i++)
        if (api_sees_policy(a, config_policy_name(c, i)))
            json_array_append_new(list, json_pack("{s:s}", "name", config_policy_name(c, i)));
    api_reply(req, 200, json_pack("{s:o}", "policies", list));
}

/* What this host has read of the others; none is asked. */
void api_fleet(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_reply(req, 200, fleet_hosts_json(a->controller->fleet_hosts));
}

void api_events(struct api *a, struct evhttp_request *req, struct asked *q)
{
    struct err err = {0};
    int64_t after, limit;
    if (asked_number(q, "after", 0, INT64_C(9007199254740991), 0, &after, &err) < 0 ||
        asked_number(q, "limit", 1, SANDBOX_EVENTS_MAX, 100, &limit, &err) < 0)
        api_refuse_err(req, &err);
    else
        api_reply(
            req, 200,
            sandbox_events_json(a->controller->sandbox_events, (uint64_t)after, (unsigned)limit));
}

void api_openapi(struct api *a UNUSED, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_send(req, 200, "application/json", api_document, strlen(api_document));
}
