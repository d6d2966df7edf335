/* /v1/approvals: what waits for somebody's word, and the word. */
#include "api_internal.h"

#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "approvals.h"
#include "fleet_approvals.h"

enum { WAIT_SECONDS_MAX = 60 };

struct waiting {
    struct api *api;
    struct evhttp_request *req;
    uint64_t after;
    char token[BEARER_ID_MAX + 1]; /* "": none */
};

/* b NULL: the owner's. */
static bool sees(const struct api *a, const struct bearer *b, const json_t *approval)
{
    const char *sandbox = json_string_value(json_object_get(approval, "sandbox"));
    const char *policy = json_string_value(json_object_get(approval, "policy"));
    const struct managed_sandbox *r = sandbox ? managed_sandbox_find(a->controller, sandbox) : NULL;
    bool hidden = r && r->pooled && b && bearer_is_narrow(b);
    return b == NULL || (policy && !hidden && bearer_sees(b, policy, r ? r->labels : NULL));
}

static void answer_list(struct api *a, const struct bearer *b, struct evhttp_request *req,
                        uint64_t after)
{
    json_t *v = approvals_json(a->controller->approvals, after);
    json_t *list = json_object_get(v, "approvals");
    for (size_t i = json_array_size(list); i-- > 0;)
        if (!sees(a, b, json_array_get(list, i)))
            json_array_remove(list, i);
    api_reply(req, 200, v);
}

static void on_waited(void *arg, bool gone)
{
    struct waiting *w = arg;
    const struct bearer *b = w->token[0] ? bearer_find(w->api->bearers, w->token) : NULL;
    if (gone)
        api_refuse(w->req, 503, "unavailable", "the daemon ends");
    else if (w->token[0] && b == NULL)
        api_refuse(w->req, 401, "token", "the token is not good any more");
    else
        answer_list(w->api, b, w->req, w->after);
    free(w);
}

/* The answer comes when there is one that is newer, or the time is over. */
static int wait_for(struct api *a, struct evhttp_request *req, uint64_t after, unsigned seconds)
{
    struct waiting *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct waiting){a, req, after, ""};
    if (a->bearer)
        memcpy(w->token, a->bearer->id, sizeof w->token);
    if (approvals_await(a->controller->approvals, slice_str(w->token), seconds, on_waited, w) ==
        NULL) {
        free(w);
        return -1;
    }
    return 0;
}

void api_approvals(struct api *a, struct evhttp_request *req, struct asked *q)
{
    struct approvals *all = a->controller->approvals;
    struct err err = {0};
    int64_t after, wait;
    if (asked_number(q, "after", 0, INT64_C(9007199254740991), 0, &after, &err) < 0 ||
        asked_number(q, "wait", 0, WAIT_SECONDS_MAX, 0, &wait, &err) < 0)
        api_refuse_err(req, &err);
    else if (wait == 0 || approvals_any(all, (uint64_t)after))
        answer_list(a, a->bearer, req, (uint64_t)after);
    else if (wait_for(a, req, (uint64_t)after, (unsigned)wait) < 0)
        api_refuse(req, 503, "unavailable", "too many wait for approvals");
}

static void not_found(struct evhttp_request *req)
{
    api_refuse(req, 404, "not_found",
               "nothing of that id waits: it was decided, or its time is over, or its client left");
}

/* NULL: there is none, for whoever asks. */
static json_t *find(const struct api *a, const struct asked *q)
{
    json_t *v = approvals_show(a->controller->approvals, q->args[0]);
    if (v && sees(a, a->bearer, v))
        return v;
    json_decref(v);
    return NULL;
}

void api_approval(struct api *a, struct evhttp_request *req, struct asked *q)
{
    json_t *v = find(a, q);
    if (v)
        api_reply(req, 200, v);
    else
        not_found(req);
}

/* The kernel's word for who is at the other end; of the console its session is all that is known.
 */
void api_who(const struct api *a, struct evhttp_request *req, char *to, size_t size)
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t len = sizeof who;
    struct evhttp_connection *conn = evhttp_request_get_connection(req);
    int fd = conn ? bufferevent_getfd(evhttp_connection_get_bufferevent(conn)) : -1;
    if (a->listener == LISTENER_CONSOLE)
        snprintf(to, size, "console");
    else if (a->bearer)
        snprintf(to, size, "token %.40s %.30s (API)", a->bearer->id, a->bearer->name);
    else if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        snprintf(to, size, "somebody (API)");
    else
        snprintf(to, size, "uid %u (API)", (unsigned)who.uid);
}

/* An answer for a request of another host. */
struct answered {
    struct evhttp_request *req;
    char id[APPROVAL_ID_MAX + 1], host[FLEET_NAME_MAX + 1];
    bool allow;
};

static void on_answered(void *arg, enum fleet_answer end)
{
    struct answered *w = arg;
    if (end == FLEET_ANSWER_OTHER)
        api_refuse(w->req, 409, "conflict", "its host has decided otherwise, or does not hold it");
    else
        api_reply(w->req, end == FLEET_ANSWER_TAKEN ? 200 : 202,
                  json_pack("{s:s, s:s, s:s, s:b}", "id", w->id, "decision",
                            w->allow ? "allowed" : "denied", "host", w->host, "taken",
                            end == FLEET_ANSWER_TAKEN));
    free(w);
}

static void decide_elsewhere(struct api *a, struct evhttp_request *req, const char *id,
                             const char *host, bool allow)
{
    char who[120];
    struct err err = {0};
    struct answered *w = calloc(1, sizeof *w);
    if (w == NULL) {
        api_refuse(req, 503, "unavailable", "out of memory");
        return;
    }
    w->req = req;
    w->allow = allow;
    snprintf(w->id, sizeof w->id, "%s", id);
    snprintf(w->host, sizeof w->host, "%s", host);
    api_who(a, req, who, sizeof who);
    if (fleet_approvals_answer(a->controller->fleet_approvals, id, allow, who, on_answered, w,
                               &err) == 0)
        return;
    free(w);
    if (err.code == ERR_UNREADY)
        api_refuse(req, 503, "unavailable", err.text);
    else
        api_refuse_err(req, &err);
}

static void decide(struct api *a, struct evhttp_request *req, const struct asked *q, bool allow)
{
    char who[120];
    json_t *v = find(a, q);
    bool there = v != NULL;
    const char *host = json_string_value(json_object_get(v, "host"));
    if (host) {
        decide_elsewhere(a, req, q->args[0], host, allow);
        json_decref(v);
        return;
    }
    json_decref(v);
    api_who(a, req, who, sizeof who);
    if (there && approvals_decide(a->controller->approvals, q->args[0], allow, who) == 0)
        api_reply(
            req, 200,
            json_pack("{s:s, s:s}", "id", q->args[0], "decision", allow ? "allowed" : "denied"));
    else
        not_found(req);
}

void api_approve(struct api *a, struct evhttp_request *req, struct asked *q)
{
    decide(a, req, q, true);
}

void api_disapprove(struct api *a, struct evhttp_request *req, struct asked *q)
{
    decide(a, req, q, false);
}
