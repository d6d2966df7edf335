/* /v1/tokens, and what a token sees of everything else. */
#include "api_internal.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "bearer.h"
#include "fleet_notes.h"
#include "fleet_revocations.h"
#include "proc.h"
#include "snapshot.h"
#include "volumes.h"

enum { POLICIES_MAX = 64 };

/* ---- what is seen ---- */

bool api_sees(const struct api *a, const struct managed_sandbox *r)
{
    return !r->pooled && (a->bearer == NULL || bearer_sees(a->bearer, r->policy, r->labels));
}

static bool sees(const void *api, const struct managed_sandbox *r)
{
    return api_sees(api, r);
}

struct managed_sandbox_sight api_sight(const struct api *a)
{
    return (struct managed_sandbox_sight){sees, a};
}

bool api_sees_policy(const struct api *a, const char *policy)
{
    return a->bearer == NULL || bearer_has_policy(a->bearer, policy);
}

bool api_sees_snapshot(const struct api *a, const struct snapshot *s)
{
    return a->bearer == NULL || bearer_sees(a->bearer, s->layer.policy, s->labels);
}

/* Of a label that both name, the token's value is the one that its sandboxes have. */
bool api_sees_template(const struct api *a, const struct config_template *t)
{
    const char *key;
    json_t *value;
    if (a->bearer == NULL)
        return true;
    json_object_foreach(a->bearer->labels, key, value)
    {
        const json_t *own = json_object_get(t->labels, key);
        if (own && !json_equal(own, value))
            return false;
    }
    return bearer_has_policy(a->bearer, t->policy);
}

bool api_sees_volume(const struct api *a, const struct managed_volume *v)
{
    return a->bearer == NULL || bearer_sees(a->bearer, v->layer.policy, v->labels);
}

const char *api_default_policy(const struct api *a, struct err *err)
{
    if (a->bearer == NULL || json_array_size(a->bearer->policies) == 0)
        return api_only_policy(a->controller->config, err);
    if (json_array_size(a->bearer->policies) == 1)
        return json_string_value(json_array_get(a->bearer->policies, 0));
    err_set(err, ERR_PARSE, "this token is for several policies: say which one");
    return NULL;
}

int api_own_labels(const struct api *a, json_t *body, json_t **labels, struct err *err)
{
    const char *key;
    json_t *value;
    if (a->bearer == NULL || json_object_size(a->bearer->labels) == 0)
        return 0;
    if (*labels == NULL) {
        *labels = json_object();
        if (json_object_set_new(body, "labels", *labels) < 0)
            return err_set(err, ERR_INTERNAL, "out of memory");
    }
    json_object_foreach(a->bearer->labels, key, value)
    {
        json_t *said = json_object_get(*labels, key);
        if (said && !json_equal(said, value))
            return err_set(err, ERR_PARSE, "this token is for the label %s=%s", key,
                           json_string_value(value));
        json_object_set(*labels, key, value);
    }
    return 0;
}

int api_check_sandboxes(const struct api *a, struct err *err)
{
    const struct bearer *b = a->bearer;
    if (b == NULL || b->max_sandboxes < 0)
        return 0;
    size_t n = managed_sandboxes_of_token(a->controller, b->id);
    return n < (uint64_t)b->max_sandboxes
               ? 0
               : err_set(err, ERR_UNREADY,
                         "this token has %zu sandbox%s, and may have %lld at most", n,
                         n == 1 ? "" : "es", (long long)b->max_sandboxes);
}

/* ---- tokens ---- */

static int read_scopes(const json_t *list, unsigned *ret, struct err *err)
{
    size_t i;
    json_t *name;
    *ret = 0;
    json_array_foreach(list, i, name)
    {
        int scope = json_is_string(name) ? bearer_scope_of(json_string_value(name)) : -1;
        if (scope < 0)
            return err_set(err, ERR_PARSE,
                           "scopes are: read, sandboxes, exec, approvals, identities, admin");
        *ret |= (unsigned)scope;
    }
    return *ret ? 0 : err_set(err, ERR_PARSE, "scopes is missing or empty");
}

static int check_policies(const struct config *c, const json_t *list, struct err *err)
{
    size_t i;
    json_t *name;
    if (list && (!json_is_array(list) || json_array_size(list) > POLICIES_MAX))
        return err_set(err, ERR_PARSE, "policies is a list of names, at most %d", POLICIES_MAX);
    json_array_foreach(list, i, name)
    {
        const char *text = json_string_value(name);
        if (text == NULL || config_policy(c, text) == NULL)
            return err_set(err, ERR_PARSE, "there is no policy '%.64s'", text ? text : "");
    }
    return 0;
}

static int read_wish(const struct config *c, const json_t *body, struct bearer_wish *w,
                     struct err *err)
{
    json_t *labels = NULL;
    *w = (struct bearer_wish){
        .name = "", .ttl = BEARER_TTL_DEFAULT, .volume_bytes = -1, .max_sandboxes = -1};
    w->policies = json_object_get(body, "policies");
    if (asked_text(body, "name", BEARER_NAME_MAX, &w->name, err) < 0 ||
        read_scopes(json_object_get(body, "scopes"), &w->scopes, err) < 0 ||
        check_policies(c, w->policies, err) < 0 || asked_labels(body, "labels", &labels, err) < 0 ||
        asked_integer(body, "ttl", 1, BEARER_TTL_MAX, &w->ttl, err) < 0 ||
        asked_integer(body, "volume_bytes", 0, MANAGED_VOLUME_SIZE_MAX, &w->volume_bytes, err) <
            0 ||
        asked_integer(body, "max_sandboxes", 0, MANAGED_SANDBOXES_MAX, &w->max_sandboxes, err) < 0)
        return -1;
    w->labels = labels;
    if ((w->scopes & SCOPE_ADMIN) && (json_array_size(w->policies) || json_object_size(labels)))
        return err_set(err, ERR_PARSE, "admin is of everything: leave policies and labels out");
    return 0;
}

HANDLER(api_token_new)
{
    struct err err = {0};
    struct bearer_wish w;
    char text[BEARER_TEXT_MAX];
    const struct bearer *b = NULL;
    (void)q;
    json_t *body =
        asked_body(req, "name scopes policies labels ttl volume_bytes max_sandboxes", &err);
    if (body && read_wish(a->controller->config, body, &w, &err) == 0)
        b = bearer_new(a->bearers, &w, text, &err);
    if (b) {
        json_t *v = bearer_json(b);
        json_object_set_new(v, "token", json_string(text));
        controller_record(a->controller, b->id, "token_created", b->name);
        api_reply(req, 201, v);
    } else {
        api_refuse_err(req, &err);
    }
    OPENSSL_cleanse(text, sizeof text);
    json_decref(body);
}

HANDLER(api_tokens)
{
    (void)q;
    api_reply(req, 200, json_pack("{s:o}", "tokens", bearers_json(a->bearers)));
}

void api_fleet_revoked(void *arg, const char *id)
{
    struct api *a = arg;
    struct err err = {0};
    int r = bearer_revoke(a->bearers, id, &err);
    if (r < 0) {
        proc_log("a token that another host has revoked: %s", err.text);
        fleet_notes_again(a->controller->fleet);
    }
    if (r != 0)
        return;
    controller_record(a->controller, id, "token_revoked", "by another host of the fleet");
    streams_check(a);
}

/* One that is not of this host may be of another one of the fleet. */
HANDLER(api_token_revoke)
{
    struct err err = {0};
    char id[BEARER_ID_MAX + 1];
    snprintf(id, sizeof id, "%s", q->args[0]);
    int r = bearer_revoke(a->bearers, id, &err);
    if (r == 1 && fleet_revocations_foreign(a->controller->revocations, id, &err) < 0)
        r = -1;
    a->bearer = NULL; /* it may have been this one */
    if (r < 0 && err.code == ERR_UNREADY) {
        api_refuse(req, 503, "unavailable", err.text);
        return;
    }
    if (r < 0) {
        api_refuse_err(req, &err);
        return;
    }
    if (r == 0) {
        controller_record(a->controller, id, "token_revoked", "");
        streams_check(a);
    }
    api_no_content(req);
}
