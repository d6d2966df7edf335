#include "api_internal.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "identities.h"
#include "wire.h"

enum { ROLES_MAX = 4096 };

/* ---- questions that the parent answers ---- */

static int ask_parent(struct api *a, struct evhttp_request *req, struct api_waits *q, uint16_t type)
{
    struct msg m;
    struct api_wait *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    msg_init(&m, type);
    if (ipc_send(a->controller->owner.parent, &m) < 0) {
        free(w);
        return -1;
    }
    w->req = req;
    STAILQ_INSERT_TAIL(q, w, link);
    return 0;
}

static void ask(struct api *a, struct evhttp_request *req, struct api_waits *q, uint16_t type)
{
    if (ask_parent(a, req, q, type) < 0)
        api_refuse(req, 503, "unavailable", "the parent does not answer");
}

static struct evhttp_request *first_waiting(struct api_waits *q)
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

static json_t *sandboxes(struct controller *c)
{
    json_t *list = json_array();
    for (struct sandbox *s = NULL; (s = sandbox_next(&c->owner, s)) != NULL;)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "id", sandbox_id(s), "policy",
                                              sandbox_policy(s), "state",
                                              sandbox_state_name(sandbox_state(s))));
    return list;
}

static json_t *roles(struct msg *m)
{
    uint32_t n, pid;
    json_t *list = json_array();
    if (msg_get_u32(m, &n) < 0 || n > ROLES_MAX)
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

static int answer_status(struct api *a, struct msg *m)
{
    struct controller *c = a->controller;
    struct timespec now;
    struct evhttp_request *req = first_waiting(&a->status);
    json_t *list = roles(m);
    if (list == NULL || req == NULL) {
        json_decref(list);
        if (req)
            api_refuse(req, 500, "internal", "the parent's answer is malformed");
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    api_reply(req, 200,
              json_pack("{s:I, s:o, s:o, s:o}", "uptime_seconds",
                        (json_int_t)(now.tv_sec - c->started), "roles", list, "listeners",
                        listeners(c->config), "sandboxes", sandboxes(c)));
    return 0;
}

static int answer_reload(struct api *a, struct msg *m)
{
    uint8_t ok;
    char text[1024];
    struct evhttp_request *req = first_waiting(&a->reload);
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

int api_answer(struct api *a, struct msg *m)
{
    return m->type == W_STATUS ? answer_status(a, m) : answer_reload(a, m);
}

/* ---- identities ---- */

static json_t *read_body(struct evhttp_request *req, struct err *err)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(in);
    json_error_t why;
    const char *p = n ? (const char *)evbuffer_pullup(in, -1) : "";
    json_t *v = json_loadb(p, n, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(v)) {
        err_set(err, ERR_PARSE, "the body must be a JSON object%s%s", v ? "" : ": ",
                v ? "" : why.text);
        json_decref(v);
        return NULL;
    }
    return v;
}

/* {policy: text, ttl: seconds?} and nothing else. */
static int read_wish(const json_t *body, const char **policy, unsigned *ttl, struct err *err)
{
    const char *key;
    json_t *value;
    *policy = NULL;
    *ttl = IDENTITY_TTL_DEFAULT;
    json_object_foreach((json_t *)body, key, value)
    {
        json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;
        if (strcmp(key, "policy") == 0 && json_is_string(value))
            *policy = json_string_value(value);
        else if (strcmp(key, "ttl") == 0 && n >= 1 && n <= IDENTITY_TTL_MAX)
            *ttl = (unsigned)n;
        else if (strcmp(key, "ttl") == 0)
            return err_set(err, ERR_PARSE, "ttl must be 1 to %d seconds", IDENTITY_TTL_MAX);
        else
            return err_set(err, ERR_PARSE, "unknown or mistyped key '%.64s'", key);
    }
    return 0;
}

/* Without a policy: the only one there is. */
static const char *only_policy(const struct config *c, struct err *err)
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

static void issue(struct api *a, struct evhttp_request *req)
{
    struct err err = {0};
    const char *policy;
    unsigned ttl;
    json_t *v = NULL, *body = read_body(req, &err);
    if (body && read_wish(body, &policy, &ttl, &err) == 0) {
        if (policy == NULL)
            policy = only_policy(a->controller->config, &err);
        if (policy)
            v = identities_issue(a->controller, policy, ttl, &err);
    }
    if (v)
        api_reply(req, 201, v);
    else if (err.code == ERR_PARSE || err.code == ERR_LIMIT)
        api_refuse(req, 400, "bad_request", err.text);
    else
        api_refuse(req, 500, "internal", err.text);
    json_decref(body);
}

static void revoke(struct api *a, struct evhttp_request *req, const char *id)
{
    struct err err = {0};
    int r = identities_revoke(a->controller, id, &err);
    if (r == 0)
        api_reply(req, 200, json_pack("{s:s}", "revoked", id));
    else if (r == 1)
        api_refuse(req, 404, "not_found", "there is no such identity, or it was revoked before");
    else
        api_refuse(req, 500, "internal", err.text);
}

/* ---- the table ---- */

static void method_not_allowed(struct evhttp_request *req, const char *allow)
{
    evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allow);
    api_refuse(req, 405, "method", "this path does not take that method");
}

void api_route(struct api *a, struct evhttp_request *req)
{
    static const char identity[] = "/v1/identities/";
    const char *path = evhttp_request_get_uri(req); /* as it came: no query is ever used */
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    if (strcmp(path, "/v1/status") == 0) {
        if (method == EVHTTP_REQ_GET)
            ask(a, req, &a->status, W_STATUS);
        else
            method_not_allowed(req, "GET");
    } else if (strcmp(path, "/v1/reload") == 0) {
        if (method == EVHTTP_REQ_POST)
            ask(a, req, &a->reload, W_RELOAD);
        else
            method_not_allowed(req, "POST");
    } else if (strcmp(path, "/v1/identities") == 0) {
        if (method == EVHTTP_REQ_POST)
            issue(a, req);
        else
            method_not_allowed(req, "POST");
    } else if (strncmp(path, identity, sizeof identity - 1) == 0) {
        if (method == EVHTTP_REQ_DELETE)
            revoke(a, req, path + sizeof identity - 1);
        else
            method_not_allowed(req, "DELETE");
    } else {
        api_refuse(req, 404, "not_found", "there is no such path");
    }
}
