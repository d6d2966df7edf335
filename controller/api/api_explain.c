/* What a policy says, and what it would say to a request. Nothing is sent; secrets are names. */
#include "api_internal.h"

#include <stdlib.h>
#include <string.h>

#include "policy_query.h"

static const char *policy_wanted(struct api *a, const char *name, struct err *err)
{
    const struct config *c = a->controller->config;
    if (name == NULL)
        return api_default_policy(a, err);
    if (config_policy(c, name) == NULL || !api_sees_policy(a, name)) {
        err_set(err, ERR_PARSE, "there is no policy '%.64s'", name);
        return NULL;
    }
    return name;
}

/* GET /v1/policy?name=: its rules as they were read, presets expanded. */
void api_policy(struct api *a, struct evhttp_request *req, struct asked *q)
{
    struct err err = {0};
    const char *name = policy_wanted(a, asked_param(q, "name"), &err);
    char *text = name ? config_policy_json(a->controller->config, name) : NULL;
    json_t *v = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (v)
        api_reply(req, 200, json_pack("{s:s, s:o}", "name", name, "policy", v));
    else
        api_refuse_err(req, &err);
}

/* POST /v1/explain {"method", "url", "text"?, "policy"?} */
void api_explain(struct api *a, struct evhttp_request *req, struct asked *asked UNUSED)
{
    struct err err = {0};
    const char *method = NULL, *url = NULL, *text = NULL, *name = NULL;
    struct policy_query q = {0};
    struct answer w;
    json_t *v = NULL, *body = asked_body(req, "method url text policy", &err);
    if (body && asked_text(body, "method", 64, &method, &err) == 0 &&
        asked_text(body, "url", 8192, &url, &err) == 0 &&
        asked_text(body, "text", 8192, &text, &err) == 0 &&
        asked_text(body, "policy", RUN_NAME_MAX - 1, &name, &err) == 0) {
        q.method = slice_str(method);
        q.text = slice_str(text);
        if (method == NULL || url == NULL)
            err_set(&err, ERR_PARSE, "'method' and 'url' are needed");
        else if (policy_query_read(url, &q, &err) == 0 &&
                 (name = policy_wanted(a, name, &err)) != NULL) {
            const struct policy *p = config_policy(a->controller->config, name);
            policy_query_decide(p, &q, &w);
            v = policy_query_json(p, &q, &w, name);
        }
    }
    if (v)
        api_reply(req, 200, v);
    else
        api_refuse_err(req, &err);
    json_decref(body);
}
