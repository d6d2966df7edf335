/* Which path and method is answered by whom. */
#include "api_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct route {
    enum evhttp_cmd_type method;
    const char *method_name, *pattern;
    const char *params; /* of the query, separated by spaces */
    unsigned scope;     /* a token must have it (bearer.h) */
    void (*fn)(struct api *a, struct evhttp_request *req, struct asked *q);
    void (*in)(struct api *a, struct evhttp_request *req, struct asked *q,
               struct managed_sandbox *r);
    bool console; /* the console may ask it too */
    bool wakes;   /* needs a sandbox that runs: one that sleeps is resumed, if it may be */
};

/* Not for a token that is narrowed to some policies or labels: what it shows is of all. */
enum { SCOPE_WIDE = 1 << 16 };

#define GET    EVHTTP_REQ_GET, "GET"
#define POST   EVHTTP_REQ_POST, "POST"
#define PUT    EVHTTP_REQ_PUT, "PUT"
#define PATCH  EVHTTP_REQ_PATCH, "PATCH"
#define DELETE EVHTTP_REQ_DELETE, "DELETE"

/* WIRE_LOG_ASK_NAMES, and how many. */
#define LOG_PARAMS \
    "since until kind sandbox policy host method rule credential status code id text limit"

/* Those with `in` are about a sandbox that exists. */
static const struct route routes[] = {
    {GET, "/v1/health", "", SCOPE_READ, api_health, NULL, true},
    {GET, "/v1/status", "", SCOPE_READ | SCOPE_WIDE, api_status, NULL, true},
    {GET, "/v1/fleet", "", SCOPE_READ | SCOPE_WIDE, api_fleet, NULL, true},
    {POST, "/v1/reload", "", SCOPE_ADMIN, api_reload, NULL},
    {GET, "/v1/policies", "", SCOPE_READ, api_policies, NULL, true},
    {GET, "/v1/events", "after limit", SCOPE_READ | SCOPE_WIDE, api_events, NULL, true},
    {GET, "/metrics", "", SCOPE_READ | SCOPE_WIDE, api_metrics, NULL},
    {GET, "/v1/audit/stream", "", SCOPE_READ | SCOPE_WIDE, api_watch, NULL, true},
    {POST, "/v1/audit/verify", "", SCOPE_READ | SCOPE_WIDE, api_verify, NULL, true},
    {GET, "/v1/audit/query", LOG_PARAMS, SCOPE_READ | SCOPE_WIDE, api_history, NULL, true},
    {GET, "/v1/audit/case", LOG_PARAMS, SCOPE_READ | SCOPE_WIDE, api_case, NULL, true},
    {GET, "/v1/codes", "", SCOPE_READ, api_codes, NULL, true},
    {GET, "/v1/policy", "name", SCOPE_READ, api_policy, NULL, true},
    {POST, "/v1/explain", "", SCOPE_READ, api_explain, NULL, true},
    {POST, "/v1/console", "", SCOPE_ADMIN, api_console, NULL},
    {GET, "/openapi.json", "", SCOPE_READ, api_openapi, NULL},
    {POST, "/v1/identities", "", SCOPE_IDENTITIES, api_issue, NULL},
    {DELETE, "/v1/identities/{}", "", SCOPE_IDENTITIES | SCOPE_WIDE, api_revoke, NULL, true},
    {GET, "/v1/approvals", "after wait", SCOPE_APPROVALS, api_approvals, NULL, true},
    {GET, "/v1/approvals/{}", "", SCOPE_APPROVALS, api_approval, NULL, true},
    {POST, "/v1/approvals/{}/allow", "", SCOPE_APPROVALS, api_approve, NULL, true},
    {POST, "/v1/approvals/{}/deny", "", SCOPE_APPROVALS, api_disapprove, NULL, true},
    {GET, "/v1/proposals", "", SCOPE_APPROVALS, api_proposals, NULL, true},
    {POST, "/v1/proposals", "", SCOPE_APPROVALS, api_propose, NULL, true},
    {GET, "/v1/proposals/{}", "", SCOPE_APPROVALS, api_proposal, NULL, true},
    {POST, "/v1/proposals/{}/accept", "", SCOPE_APPROVALS, api_accept, NULL, true},
    {POST, "/v1/proposals/{}/reject", "", SCOPE_APPROVALS, api_reject, NULL, true},
    {GET, "/v1/suppressions", "", SCOPE_APPROVALS, api_suppressions, NULL, true},
    {POST, "/v1/suppressions", "", SCOPE_APPROVALS, api_suppress, NULL, true},
    {GET, "/v1/suppressions/{}", "", SCOPE_APPROVALS, api_suppression, NULL, true},
    {POST, "/v1/suppressions/{}/accept", "", SCOPE_APPROVALS, api_suppression_accept, NULL, true},
    {DELETE, "/v1/suppressions/{}", "", SCOPE_APPROVALS, api_suppression_lift, NULL, true},
    {POST, "/v1/tokens", "", SCOPE_ADMIN, api_token_new, NULL},
    {GET, "/v1/tokens", "", SCOPE_ADMIN, api_tokens, NULL},
    {DELETE, "/v1/tokens/{}", "", SCOPE_ADMIN, api_token_revoke, NULL},
    {POST, "/v1/sandboxes", "", SCOPE_SANDBOXES, api_create, NULL},
    {GET, "/v1/templates", "", SCOPE_READ, api_templates, NULL, true},
    {GET, "/v1/templates/{}", "", SCOPE_READ, api_template, NULL, true},
    {GET, "/v1/sandboxes", "label state limit after", SCOPE_READ, api_list, NULL, true},
    {GET, "/v1/sandboxes/{}", "", SCOPE_READ, NULL, api_show, true},
    {PATCH, "/v1/sandboxes/{}", "", SCOPE_SANDBOXES, NULL, api_change},
    {DELETE, "/v1/sandboxes/{}", "", SCOPE_SANDBOXES, api_delete, NULL, true},
    {POST, "/v1/snapshots", "", SCOPE_SANDBOXES, api_snapshot, NULL},
    {GET, "/v1/snapshots", "", SCOPE_READ, api_snapshots, NULL},
    {GET, "/v1/snapshots/{}", "", SCOPE_READ, api_snapshot_show, NULL},
    {DELETE, "/v1/snapshots/{}", "", SCOPE_SANDBOXES, api_snapshot_delete, NULL},
    {POST, "/v1/snapshots/{}/export", "", SCOPE_EXEC, api_export, NULL},
    {POST, "/v1/snapshots/{}/import", "", SCOPE_SANDBOXES | SCOPE_WIDE, api_import, NULL},
    {POST, "/v1/volumes", "", SCOPE_SANDBOXES, api_volume, NULL},
    {GET, "/v1/volumes", "", SCOPE_READ, api_volumes, NULL, true},
    {GET, "/v1/volumes/{}", "", SCOPE_READ, api_volume_show, NULL, true},
    {DELETE, "/v1/volumes/{}", "", SCOPE_SANDBOXES, api_volume_delete, NULL},
    {POST, "/v1/volumes/{}/snapshot", "", SCOPE_SANDBOXES, api_volume_snapshot, NULL},
    {POST, "/v1/volumes/{}/restore", "", SCOPE_SANDBOXES, api_volume_restore, NULL},
    {POST, "/v1/volumes/{}/export", "", SCOPE_EXEC, api_volume_export, NULL},
    {POST, "/v1/sandboxes/{}/fork", "", SCOPE_SANDBOXES, NULL, api_fork},
    {POST, "/v1/sandboxes/{}/restore", "", SCOPE_SANDBOXES, NULL, api_restore},
    {POST, "/v1/sandboxes/{}/pause", "", SCOPE_SANDBOXES, NULL, api_pause, true},
    {POST, "/v1/sandboxes/{}/stop", "", SCOPE_SANDBOXES, NULL, api_stop},
    {POST, "/v1/sandboxes/{}/resume", "", SCOPE_SANDBOXES, NULL, api_resume, true},
    {GET, "/v1/sandboxes/{}/exec", "", SCOPE_READ, NULL, api_execs},
    {POST, "/v1/sandboxes/{}/exec", "", SCOPE_EXEC, NULL, api_exec, false, true},
    {POST, "/v1/sandboxes/{}/exec/{}/attach", "", SCOPE_EXEC, NULL, api_attach},
    {DELETE, "/v1/sandboxes/{}/exec/{}", "", SCOPE_EXEC, NULL, api_cancel},
    {GET, "/v1/sandboxes/{}/files", "path", SCOPE_EXEC, NULL, api_file_read, false, true},
    {PUT, "/v1/sandboxes/{}/files", "path mode if_version", SCOPE_EXEC, NULL, api_file_write, false,
     true},
    {DELETE, "/v1/sandboxes/{}/files", "path recursive if_version", SCOPE_EXEC, NULL,
     api_file_delete, false, true},
    {GET, "/v1/sandboxes/{}/files/list", "path", SCOPE_EXEC, NULL, api_file_list, false, true},
    {GET, "/v1/sandboxes/{}/files/stat", "path", SCOPE_EXEC, NULL, api_file_stat, false, true},
    {POST, "/v1/sandboxes/{}/files/watch", "", SCOPE_EXEC, NULL, api_file_watch, false, true},
    {POST, "/v1/sandboxes/{}/files/batch", "", SCOPE_EXEC, NULL, api_batch, false, true},
    {GET, "/v1/sandboxes/{}/tar", "path", SCOPE_EXEC, NULL, api_tar_read, false, true},
    {PUT, "/v1/sandboxes/{}/tar", "path", SCOPE_EXEC, NULL, api_tar_write, false, true},
    {POST, "/v1/sandboxes/{}/trace", "seconds", SCOPE_ADMIN, NULL, api_trace},
    {GET, "/v1/sandboxes/{}/services", "", SCOPE_EXEC, NULL, api_services},
    {POST, "/v1/sandboxes/{}/previews", "", SCOPE_EXEC, NULL, api_preview},
    {DELETE, "/v1/sandboxes/{}/previews", "", SCOPE_EXEC, NULL, api_preview_revoke},
    {DELETE, "/v1/sandboxes/{}/previews/{}", "", SCOPE_EXEC, NULL, api_preview_revoke},
    {POST, "/v1/sandboxes/{}/forward", "port", SCOPE_EXEC, NULL, api_forward, false, true},
};

/* A request that a sleeping sandbox was resumed for. */
struct waking {
    struct api *api;
    struct evhttp_request *req;
    enum api_listener listener;
    char token[BEARER_ID_MAX + 1]; /* "": none */
};

static void on_awake(void *arg, struct managed_sandbox *r, const char *why)
{
    struct waking w = *(struct waking *)arg;
    free(arg);
    w.api->bearer = w.token[0] ? bearer_find(w.api->bearers, w.token) : NULL;
    if (w.token[0] && w.api->bearer == NULL)
        api_refuse(w.req, 401, "token", "the token is not good any more");
    else if (r)
        api_route(w.api, w.req, w.listener); /* from the beginning: much may have changed */
    else
        api_refuse(w.req, 503, "resume_failed", why);
    w.api->bearer = NULL;
}

static bool sleeps(const struct managed_sandbox *r)
{
    return r->auto_resume &&
           (r->state == MANAGED_SANDBOX_PAUSED || r->state == MANAGED_SANDBOX_RESUMING ||
            r->pausing || (r->state == MANAGED_SANDBOX_STOPPED && r->kept));
}

static void wake(struct api *a, struct evhttp_request *req, struct managed_sandbox *r)
{
    struct err err = {0};
    struct waking *w = malloc(sizeof *w);
    if (w == NULL) {
        api_refuse(req, 503, "unavailable", "out of memory");
        return;
    }
    *w = (struct waking){a, req, a->listener, ""};
    if (a->bearer)
        memcpy(w->token, a->bearer->id, sizeof w->token);
    if (managed_sandbox_wake(r, &err) < 0 || managed_sandbox_await(r, on_awake, w) < 0) {
        free(w);
        api_refuse(req, 503, "resume_failed", err.code ? err.text : "out of memory");
    }
}

/* May the token do this? Else answers. */
static bool allowed(const struct api *a, struct evhttp_request *req, unsigned scope)
{
    if (a->bearer == NULL)
        return true;
    if (!bearer_may(a->bearer, scope & ~(unsigned)SCOPE_WIDE)) {
        char text[80];
        snprintf(text, sizeof text, "this token is not for that: it lacks the scope '%s'",
                 bearer_scope_name(scope));
        api_refuse(req, 403, "scope", text);
    } else if ((scope & SCOPE_WIDE) && bearer_is_narrow(a->bearer))
        api_refuse(req, 403, "scope", "this token is for some sandboxes only, and that is of all");
    else
        return true;
    return false;
}

/* What somebody does by the console is recorded: its session says that it was there, not who. */
static void note_console(const struct api *a, const struct route *t, const struct asked *q)
{
    char what[160];
    if (a->listener != LISTENER_CONSOLE || t->method == EVHTTP_REQ_GET || q->args[0] == NULL)
        return;
    snprintf(what, sizeof what, "%s %.120s", t->method_name, t->pattern);
    controller_note(a->controller, q->args[0], "console_asked", what);
}

static void serve(struct api *a, struct evhttp_request *req, const struct route *t, struct asked *q)
{
    struct err err = {0};
    struct managed_sandbox *r = NULL;
    if (!allowed(a, req, t->scope))
        return;
    if (asked_only(q, t->params, &err) < 0) {
        api_refuse_err(req, &err);
        return;
    }
    note_console(a, t, q);
    if (t->fn) {
        t->fn(a, req, q);
        return;
    }
    if (asked_id(q->args[0], &err) == 0)
        r = managed_sandbox_find(a->controller, q->args[0]);
    if (r && !api_sees(a, r))
        r = NULL;
    if (r && t->wakes && sleeps(r))
        wake(a, req, r);
    else if (r)
        t->in(a, req, q, r);
    else if (strncmp(q->args[0], "sb-", 3) != 0)
        api_refuse(
            req, 404, "sandbox_not_found",
            "a sandbox is found by its id here, which begins with sb-; list the sandboxes to "
            "find the id of a name");
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

void api_route(struct api *a, struct evhttp_request *req, enum api_listener listener)
{
    struct asked q;
    struct err err = {0};
    const char *known = NULL;
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    a->listener = listener;
    if (asked_read(&q, evhttp_request_get_uri(req), &err) < 0) {
        api_refuse_err(req, &err);
        asked_done(&q);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct asked copy = q; /* fitting cuts its path; parameters stay q's */
        if (!asked_fits(&copy, routes[i].pattern) ||
            (listener == LISTENER_CONSOLE && !routes[i].console))
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
