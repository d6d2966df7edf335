/* Which path and method is answered by whom. */
#include "api_internal.h"

#include <stdio.h>
#include <string.h>

struct route {
    enum evhttp_cmd_type method;
    const char *method_name, *pattern;
    const char *params; /* of the query, separated by spaces */
    void (*fn)(struct api *a, struct evhttp_request *req, struct asked *q);
    void (*in)(struct api *a, struct evhttp_request *req, struct asked *q, struct resident *r);
    bool console; /* the console may ask it too */
};

#define GET    EVHTTP_REQ_GET, "GET"
#define POST   EVHTTP_REQ_POST, "POST"
#define PUT    EVHTTP_REQ_PUT, "PUT"
#define PATCH  EVHTTP_REQ_PATCH, "PATCH"
#define DELETE EVHTTP_REQ_DELETE, "DELETE"

/* Those with `in` are about a sandbox that exists. */
static const struct route routes[] = {
    {GET, "/v1/health", "", api_health, NULL, true},
    {GET, "/v1/status", "", api_status, NULL, true},
    {POST, "/v1/reload", "", api_reload, NULL},
    {GET, "/v1/policies", "", api_policies, NULL, true},
    {GET, "/v1/events", "after limit", api_events, NULL, true},
    {GET, "/metrics", "", api_metrics, NULL},
    {GET, "/v1/audit/stream", "", api_watch, NULL, true},
    {GET, "/v1/policy", "name", api_policy, NULL, true},
    {POST, "/v1/explain", "", api_explain, NULL, true},
    {POST, "/v1/console", "", api_console, NULL},
    {GET, "/openapi.json", "", api_openapi, NULL},
    {POST, "/v1/identities", "", api_issue, NULL},
    {DELETE, "/v1/identities/{}", "", api_revoke, NULL},
    {GET, "/v1/approvals", "after wait", api_approvals, NULL, true},
    {GET, "/v1/approvals/{}", "", api_approval, NULL, true},
    {POST, "/v1/approvals/{}/allow", "", api_approve, NULL, true},
    {POST, "/v1/approvals/{}/deny", "", api_disapprove, NULL, true},
    {POST, "/v1/sandboxes", "", api_create, NULL},
    {GET, "/v1/sandboxes", "label state limit after", api_list, NULL, true},
    {GET, "/v1/sandboxes/{}", "", NULL, api_show, true},
    {PATCH, "/v1/sandboxes/{}", "", NULL, api_change},
    {DELETE, "/v1/sandboxes/{}", "", api_delete, NULL},
    {POST, "/v1/sandboxes/{}/pause", "", NULL, api_pause},
    {POST, "/v1/sandboxes/{}/resume", "", NULL, api_pause},
    {GET, "/v1/sandboxes/{}/exec", "", NULL, api_execs},
    {POST, "/v1/sandboxes/{}/exec", "", NULL, api_exec},
    {DELETE, "/v1/sandboxes/{}/exec/{}", "", NULL, api_cancel},
    {GET, "/v1/sandboxes/{}/files", "path", NULL, api_file_read},
    {PUT, "/v1/sandboxes/{}/files", "path mode", NULL, api_file_write},
    {DELETE, "/v1/sandboxes/{}/files", "path recursive", NULL, api_file_delete},
    {GET, "/v1/sandboxes/{}/files/list", "path", NULL, api_file_list},
    {POST, "/v1/sandboxes/{}/files/batch", "", NULL, api_batch},
    {GET, "/v1/sandboxes/{}/tar", "path", NULL, api_tar_read},
    {PUT, "/v1/sandboxes/{}/tar", "path", NULL, api_tar_write},
    {POST, "/v1/sandboxes/{}/forward", "port", NULL, api_forward},
};

static void serve(struct api *a, struct evhttp_request *req, const struct route *t, struct asked *q)
{
    struct err err = {0};
    struct resident *r = NULL;
    if (asked_only(q, t->params, &err) < 0) {
        api_refuse_err(req, &err);
        return;
    }
    if (t->fn) {
        t->fn(a, req, q);
        return;
    }
    if (asked_id(q->args[0], &err) == 0)
        r = resident_find(a->controller, q->args[0]);
    if (r)
        t->in(a, req, q, r);
    else
        api_refuse(req, 404, "sandbox_not_found", "there is no such sandbox");
}

/* Of one pattern, which methods there are. */
static void method_not_allowed(struct evhttp_request *req, const char *pattern)
{
    char allow[64] = "";
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        if (strcmp(routes[i].pattern, pattern) == 0) {
            size_t at = strlen(allow);
            snprintf(allow + at, sizeof allow - at, "%s%s", at ? ", " : "", routes[i].method_name);
        }
    evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allow);
    api_refuse(req, 405, "method", "this path does not take that method");
}

void api_route(struct api *a, struct evhttp_request *req, enum api_door door)
{
    struct asked q;
    struct err err = {0};
    const char *known = NULL;
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    a->door = door;
    if (asked_read(&q, evhttp_request_get_uri(req), &err) < 0) {
        api_refuse_err(req, &err);
        asked_done(&q);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct asked copy = q; /* fitting cuts its path; parameters stay q's */
        if (!asked_fits(&copy, routes[i].pattern) || (door == DOOR_CONSOLE && !routes[i].console))
            continue;
        known = routes[i].pattern;
        if (routes[i].method == method) {
            serve(a, req, &routes[i], &copy);
            asked_done(&q);
            return;
        }
    }
    asked_done(&q);
    if (known)
        method_not_allowed(req, known);
    else
        api_refuse(req, 404, "not_found", "there is no such path");
}
