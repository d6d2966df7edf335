/* /v1/approvals: what waits for somebody's word, and the word. */
#include "api_internal.h"

#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "approvals.h"

enum { WAIT_SECONDS_MAX = 60 };

struct waiting {
    struct approvals *approvals;
    struct evhttp_request *req;
    uint64_t after;
};

static void on_waited(void *arg, bool gone)
{
    struct waiting *w = arg;
    if (gone)
        api_refuse(w->req, 503, "unavailable", "the daemon ends");
    else
        api_reply(w->req, 200, approvals_json(w->approvals, w->after));
    free(w);
}

/* The answer comes when there is one that is newer, or the time is over. */
static int wait_for(struct approvals *a, struct evhttp_request *req, uint64_t after,
                    unsigned seconds)
{
    struct waiting *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct waiting){a, req, after};
    if (approvals_await(a, seconds, on_waited, w) == NULL) {
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
        api_reply(req, 200, approvals_json(all, (uint64_t)after));
    else if (wait_for(all, req, (uint64_t)after, (unsigned)wait) < 0)
        api_refuse(req, 503, "unavailable", "too many wait for approvals");
}

static void not_found(struct evhttp_request *req)
{
    api_refuse(req, 404, "not_found",
               "nothing of that id waits: it was decided, or its time is over, or its client left");
}

void api_approval(struct api *a, struct evhttp_request *req, struct asked *q)
{
    json_t *v = approvals_show(a->controller->approvals, q->args[0]);
    if (v)
        api_reply(req, 200, v);
    else
        not_found(req);
}

/* The kernel's word for who is at the other end; of the console its session is all that is known.
 */
static void peer_text(const struct api *a, struct evhttp_request *req, char *to, size_t size)
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t len = sizeof who;
    struct evhttp_connection *conn = evhttp_request_get_connection(req);
    int fd = conn ? bufferevent_getfd(evhttp_connection_get_bufferevent(conn)) : -1;
    if (a->door == DOOR_CONSOLE)
        snprintf(to, size, "console");
    else if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        snprintf(to, size, "somebody (API)");
    else
        snprintf(to, size, "uid %u (API)", (unsigned)who.uid);
}

static void decide(struct api *a, struct evhttp_request *req, const struct asked *q, bool allow)
{
    char who[64];
    peer_text(a, req, who, sizeof who);
    if (approvals_decide(a->controller->approvals, q->args[0], allow, who) == 0)
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
