/* /v1/templates: what sandboxes can be asked for by name, and how many are ready. */
#include "api_internal.h"

#include "pools.h"

/* Ready is what who asks may have; what its pool went through is for whoever sees all. */
static json_t *template_json(const struct api *a, const struct config_template *t)
{
    const struct config_sandbox *s = &t->sandbox;
    bool whole = a->bearer == NULL || !bearer_is_narrow(a->bearer);
    json_t *ports = json_array(), *volumes = json_array();
    for (unsigned i = 0; i < t->n_ports; i++)
        json_array_append_new(ports, json_integer(t->ports[i]));
    for (unsigned i = 0; i < s->n_volumes; i++)
        json_array_append_new(volumes, json_string(s->volumes[i]));
    json_t *v = json_pack(
        "{s:s, s:s, s:s, s:s?, s:b, s:o, s:o, s:o, s:I, s:I, s:s, s:I, s:s}", "name", t->name,
        "policy", t->policy, "image", *s->image ? s->image : "host", "snapshot", t->snapshot,
        "warm_up", t->warm_up != NULL, "labels", t->labels ? json_incref(t->labels) : json_object(),
        "ports", ports, "volumes", volumes, "ttl", (json_int_t)s->ttl, "idle_ttl",
        (json_int_t)s->idle_ttl, "on_idle", config_idle_name(s->on_idle), "soft_ttl",
        (json_int_t)s->soft_ttl, "on_soft_ttl", config_idle_name(s->on_soft));
    json_t *pool = pools_json(a->controller->pools, t, whole);
    if (v && pool)
        json_object_update(v, pool);
    json_decref(pool);
    return v;
}

json_t *api_templates_json(const struct api *a)
{
    size_t n;
    const struct config_template *t = config_templates(a->controller->config, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (api_sees_template(a, &t[i]))
            json_array_append_new(list, template_json(a, &t[i]));
    return list;
}

HANDLER(api_templates)
{
    (void)q;
    api_reply(req, 200, json_pack("{s:o}", "templates", api_templates_json(a)));
}

HANDLER(api_template)
{
    const struct config_template *t = config_template(a->controller->config, q->args[0]);
    if (t && api_sees_template(a, t))
        api_reply(req, 200, template_json(a, t));
    else
        api_refuse(req, 404, "template_not_found", "there is no such template");
}
