/* /v1/sandboxes/{}/services and /previews: what listens in a sandbox by name, and addresses at
 * which it is seen from outside. */
#include "api_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "previews.h"
#include "services.h"

static void on_looked(void *arg, json_t *list)
{
    api_reply(arg, 200, json_pack("{s:o}", "services", list));
}

HANDLER_IN(api_services)
{
    struct err err = {0};
    (void)a;
    (void)q;
    if (services_look(r, on_looked, req, &err) == 0)
        return;
    if (err.code == ERR_UNREADY)
        api_refuse(req, 503, "limit", err.text);
    else
        api_refuse_err(req, &err);
}

/* A name, or a port. */
static const char *read_service(const json_t *body, char number[8], struct err *err)
{
    const char *name = NULL;
    int64_t port = 0;
    if (json_is_integer(json_object_get(body, "service"))) {
        if (asked_integer(body, "service", 1, 65535, &port, err) < 0)
            return NULL;
        snprintf(number, 8, "%d", (int)port);
        return number;
    }
    if (asked_text(body, "service", WIRE_SERVICE_MAX, &name, err) == 0 && name == NULL)
        err_set(err, ERR_PARSE, "service is missing: a name of the policy's services, or a port");
    return name;
}

HANDLER_IN(api_preview)
{
    struct err err = {0};
    char number[8];
    int64_t ttl = PREVIEW_TTL;
    json_t *v = NULL, *body = asked_body(req, "service ttl", &err);
    const char *service = body ? read_service(body, number, &err) : NULL;
    (void)q;
    if (service && asked_integer(body, "ttl", 1, WIRE_PREVIEW_SECONDS, &ttl, &err) == 0)
        v = previews_issue(a->controller->previews, r, service, (unsigned)ttl, &err);
    if (v)
        api_reply(req, 201, v);
    else if (err.code == ERR_DENIED)
        api_refuse(req, 404, "preview_not_found", err.text);
    else if (err.code == ERR_UNREADY)
        api_refuse(req, 503, "limit", err.text);
    else
        api_refuse_err(req, &err);
    json_decref(body);
}

/* Of one service, by its name or its port, or of all: also of one that is none any more. */
HANDLER_IN(api_preview_revoke)
{
    struct err err = {0};
    const char *service = q->args[1];
    size_t n = service ? strspn(service, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
    if (service && (n == 0 || service[n] || n > WIRE_SERVICE_MAX))
        api_refuse(req, 400, "bad_request", "that cannot be a service's name, nor a port");
    else if (previews_revoke(a->controller->previews, r, service, &err) < 0)
        api_refuse(req, 503, "unavailable", err.text);
    else
        api_no_content(req);
}
