/* /v1/volumes: volumes and snapshots of volumes, made, shown, restored and removed. */
#include "api_internal.h"

#include <stdlib.h>
#include <string.h>

#include "volumes.h"

static void refuse_absent(struct evhttp_request *req)
{
    api_refuse(req, 404, "volume_not_found", "there is no such volume");
}

static void refuse(struct evhttp_request *req, const struct err *err)
{
    if (err->code == ERR_UNREADY)
        api_refuse(req, 409, "volume_in_use", err->text);
    else
        api_refuse_err(req, err);
}

/* For whoever asks; NULL: there is none. */
static struct managed_volume *seen(const struct api *a, const char *name)
{
    struct managed_volume *v = managed_volume_find(a->controller, name);
    return v && api_sees_volume(a, v) ? v : NULL;
}

struct managed_volume *api_find_volume(struct api *a, struct evhttp_request *req, const char *name)
{
    struct managed_volume *v = seen(a, name);
    if (v && v->layer.state == LAYER_READY)
        return v;
    if (v)
        api_refuse(req, 409, "not_ready", "the volume is being made, restored or removed");
    else
        refuse_absent(req);
    return NULL;
}

int api_check_volumes(const struct api *a, const json_t *list, const char *policy, struct err *err)
{
    size_t i;
    json_t *text;
    const struct managed_volume *v;
    if (list && (!json_is_array(list) || json_array_size(list) > SANDBOX_SPEC_VOLUMES_MAX))
        return err_set(err, ERR_PARSE, "volumes is a list of at most %d texts NAME:/path[:ro]",
                       SANDBOX_SPEC_VOLUMES_MAX);
    json_array_foreach(list, i, text)
    {
        if (!json_is_string(text) || strlen(json_string_value(text)) != json_string_length(text))
            return err_set(err, ERR_PARSE, "volumes is a list of texts NAME:/path[:ro]");
        int r = managed_volume_wanted(a->controller, json_string_value(text), policy, &v, err);
        if (r < 0 && err->code == ERR_PARSE)
            return -1;
        if (v && !api_sees_volume(a, v)) /* as if there were none, whatever it is at */
            return err_set(err, ERR_PARSE, "there is no volume '%.64s' of the policy '%s'",
                           v->layer.name, policy);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* ---- making ---- */

static void answer_made(void *arg, struct named_layer *l, const char *why)
{
    api_answer_layer(arg, 201, l, why, "volume_failed");
}

static void answer_found(void *arg, struct named_layer *l, const char *why)
{
    api_answer_layer(arg, 200, l, why, "volume_failed");
}

struct wish {
    struct managed_volume_wish wish;
    const char *access, *from;
    bool reuse;
};

static int read_wish(const struct api *a, json_t *body, struct wish *w, struct err *err)
{
    struct managed_volume_wish *v = &w->wish;
    *w = (struct wish){.wish = {.size = -1, .token = a->bearer ? a->bearer->id : ""}};
    if (asked_text(body, "name", SANDBOX_SPEC_NAME_MAX, &v->name, err) < 0 ||
        asked_text(body, "policy", 64, &v->policy, err) < 0 ||
        asked_text(body, "access", 8, &w->access, err) < 0 ||
        asked_text(body, "from", SANDBOX_SPEC_NAME_MAX, &w->from, err) < 0 ||
        asked_integer(body, "size", MANAGED_VOLUME_SIZE_MIN, MANAGED_VOLUME_SIZE_MAX, &v->size,
                      err) < 0 ||
        asked_flag(body, "get_or_create", &w->reuse, err) < 0 ||
        asked_labels(body, "labels", &v->labels, err) < 0 ||
        api_own_labels(a, body, &v->labels, err) < 0)
        return -1;
    if (v->name == NULL || !sandbox_spec_name_ok(v->name))
        return err_set(err, ERR_PARSE, "name must be of A-Z, a-z, 0-9, '_', '.' and '-'");
    if (w->access && strcmp(w->access, "one") != 0 && strcmp(w->access, "many") != 0)
        return err_set(err, ERR_PARSE, "access must be one or many");
    v->many = w->access && strcmp(w->access, "many") == 0;
    if (v->policy &&
        (!api_sees_policy(a, v->policy) || config_policy(a->controller->config, v->policy) == NULL))
        return err_set(err, ERR_PARSE, "there is no policy '%s'", v->policy);
    return 0;
}

/* A copy is its original's in all that is not said, and stays with its policy. */
static int settle(const struct api *a, struct wish *w, struct err *err)
{
    struct managed_volume_wish *v = &w->wish;
    v->from = w->from ? seen(a, w->from) : NULL;
    if (w->from && v->from == NULL)
        return err_set(err, ERR_PARSE, "there is no volume '%s'", w->from);
    if (v->from && v->policy && strcmp(v->policy, v->from->layer.policy) != 0)
        return err_set(err, ERR_PARSE, "the volume '%s' is of the policy '%s'", w->from,
                       v->from->layer.policy);
    if (v->from)
        v->policy = v->from->layer.policy;
    else if (v->policy == NULL)
        v->policy = api_default_policy(a, err);
    if (v->policy == NULL)
        return -1;
    if (v->size < 0)
        v->size = v->from ? v->from->size : MANAGED_VOLUME_SIZE_DEFAULT;
    if (v->from && w->access == NULL)
        v->many = v->from->many;
    return 0;
}

/* What volumes of the token may have together. */
static int check_quota(const struct api *a, int64_t size, struct err *err)
{
    const struct bearer *b = a->bearer;
    if (b == NULL || b->volume_bytes < 0)
        return 0;
    int64_t used = managed_volumes_of_token(a->controller, b->id);
    return size <= b->volume_bytes && used <= b->volume_bytes - size
               ? 0
               : err_set(err, ERR_LIMIT,
                         "this token's volumes may have %lld bytes together, and have %lld",
                         (long long)b->volume_bytes, (long long)used);
}

static void make(struct api *a, struct evhttp_request *req, const struct managed_volume_wish *w)
{
    struct err err = {0};
    struct managed_volume *v =
        check_quota(a, w->size, &err) == 0 ? managed_volume_new(a->controller, w, &err) : NULL;
    if (v == NULL && err.code == ERR_UNREADY)
        api_refuse(req, 503, "limit", err.text);
    else if (v == NULL)
        api_refuse_err(req, &err);
    else if (named_layer_await(&v->layer, answer_made, req) < 0)
        api_refuse(req, 503, "unavailable", "out of memory");
}

/* 1: there is one and it was answered; 0: none; -1. */
static int reuse(struct api *a, struct evhttp_request *req, const struct wish *w, struct err *err)
{
    struct managed_volume *v = w->reuse ? seen(a, w->wish.name) : NULL;
    if (v == NULL)
        return 0;
    if ((w->wish.policy && strcmp(w->wish.policy, v->layer.policy) != 0) || v->snapshot_of[0])
        return err_set(err, ERR_DENIED, "the volume %s is of the policy '%s', or a snapshot",
                       v->layer.name, v->layer.policy);
    return named_layer_await(&v->layer, answer_found, req) < 0
               ? err_set(err, ERR_INTERNAL, "out of memory")
               : 1;
}

HANDLER(api_volume)
{
    struct err err = {0};
    struct wish w;
    (void)q;
    json_t *body = asked_body(req, "name policy size access labels from get_or_create", &err);
    int found = body && read_wish(a, body, &w, &err) == 0 ? reuse(a, req, &w, &err) : -1;
    if (found == 0 && settle(a, &w, &err) == 0)
        make(a, req, &w.wish);
    else if (found <= 0)
        api_refuse_err(req, &err);
    json_decref(body);
}

HANDLER(api_volume_snapshot)
{
    struct err err = {0};
    const char *name = NULL;
    struct managed_volume *v = api_find_volume(a, req, q->args[0]);
    if (v == NULL)
        return;
    json_t *body = asked_body(req, "name", &err);
    struct managed_volume_wish w = {.policy = v->layer.policy,
                                    .size = v->size,
                                    .labels = v->labels,
                                    .token = a->bearer ? a->bearer->id : "",
                                    .from = v,
                                    .snapshot = true};
    if (body == NULL || asked_text(body, "name", SANDBOX_SPEC_NAME_MAX, &name, &err) < 0)
        api_refuse_err(req, &err);
    else if (name == NULL || !sandbox_spec_name_ok(name))
        api_refuse(req, 400, "bad_request", "name must be of A-Z, a-z, 0-9, '_', '.' and '-'");
    else if (v->snapshot_of[0])
        api_refuse(req, 400, "bad_request", "that is a snapshot already");
    else {
        w.name = name;
        make(a, req, &w);
    }
    json_decref(body);
}

/* ---- what there is ---- */

HANDLER(api_volumes)
{
    const struct named_layer *l;
    json_t *list = json_array();
    (void)q;
    TAILQ_FOREACH(l, &a->controller->volumes.list, link)
    if (api_sees_volume(a, (const struct managed_volume *)l))
        json_array_append_new(list, l->kind->json(l));
    api_reply(req, 200, json_pack("{s:o}", "volumes", list));
}

struct showing {
    struct api *api;
    struct evhttp_request *req;
    char name[SANDBOX_SPEC_NAME_MAX + 1];
};

static void answer_used(void *arg, enum layer_result result, const char *text)
{
    struct showing s = *(struct showing *)arg;
    uint64_t used;
    free(arg);
    const struct named_layer *l = named_layer_find(&s.api->controller->volumes, s.name);
    json_t *reply = l ? l->kind->json(l) : NULL;
    if (reply && result == LAYER_DONE && slice_u64(slice_str(text), INT64_MAX, &used) == 0)
        json_object_set_new(reply, "used", json_integer((json_int_t)used));
    if (reply)
        api_reply(s.req, 200, reply);
    else
        refuse_absent(s.req);
}

HANDLER(api_volume_show)
{
    struct managed_volume *v = seen(a, q->args[0]);
    struct showing *s = v ? malloc(sizeof *s) : NULL;
    if (v == NULL) {
        refuse_absent(req);
        return;
    }
    if (s)
        *s = (struct showing){.api = a, .req = req};
    if (s)
        memcpy(s->name, v->layer.name, sizeof s->name);
    if (s && layer_queue_add(a->controller->layers, LAYER_VOLUME_USED, v->layer.name, "",
                             answer_used, s) == 0)
        return;
    free(s);
    api_refuse(req, 503, "unavailable", "out of memory");
}

/* ---- restoring, removing ---- */

static void answer_restored(void *arg, struct named_layer *l, const char *why)
{
    api_answer_layer(arg, 200, l, why, "restore_failed");
}

HANDLER(api_volume_restore)
{
    struct err err = {0};
    const char *name = NULL;
    struct managed_volume *v = api_find_volume(a, req, q->args[0]);
    if (v == NULL)
        return;
    json_t *body = asked_body(req, "snapshot", &err);
    const struct managed_volume *from = NULL;
    if (body && asked_text(body, "snapshot", SANDBOX_SPEC_NAME_MAX, &name, &err) == 0 && name)
        from = seen(a, name);
    if (err.code != ERR_NONE)
        api_refuse_err(req, &err);
    else if (from == NULL || !from->snapshot_of[0] ||
             strcmp(from->layer.policy, v->layer.policy) != 0)
        api_refuse(req, 404, "volume_not_found", "there is no such snapshot of a volume");
    else if (managed_volume_restore(v, from, answer_restored, req, &err) < 0)
        refuse(req, &err);
    json_decref(body);
}

static void answer_deleted(void *arg, struct named_layer *l, const char *why)
{
    if (l)
        api_no_content(arg);
    else
        api_refuse(arg, 409, "volume_in_use", why);
}

HANDLER(api_volume_delete)
{
    struct err err = {0};
    struct managed_volume *v = seen(a, q->args[0]);
    if (v == NULL)
        api_no_content(req);
    else if (managed_volume_delete(v, answer_deleted, req, &err) < 0)
        refuse(req, &err);
}
