/* Reads `templates`: kinds of sandboxes of the daemon that are asked for by one name, and how many
 * of each are kept ready. */
#include <string.h>

#include "config_tree.h"
#include "quantity.h"

enum {
    WARM_UP_TIMEOUT = 60,
    WARM_UP_TIMEOUT_MAX = 3600,
    PAIRS_MAX = 32,
    TEXT_BYTES = 8192,
    LABEL_NAME_BYTES = 63,
    LABEL_BYTES = 256
};

static const struct key template_keys[] = {
    KEY("policy", AS(name), "required", "what its sandboxes may reach, and what they may use"),
    KEY("pool", UINT(0, CONFIG_POOL_MAX), "0",
        "how many are kept ready for the next who ask; of all templates together at most 512"),
    KEY("warm_up", AS(command), "none",
        "a program and its arguments, run inside once the sandbox is there and before anybody has "
        "it; no shell runs it. What it leaves running stays frozen until somebody has the sandbox, "
        "where the host can freeze. If it fails there is no sandbox"),
    KEY("warm_up_timeout", AS(lasting), "`60s`", "how long it may take, at most 1h"),
    KEY("snapshot", AS(snapshot), "none",
        "begin with the files, and the image, of a snapshot (`durward sandbox snapshot`) of a "
        "sandbox of this policy; then no `image`"),
    KEY("labels", OWN, "none",
        "mapping of labels that its sandboxes have, beside those that are asked for. A token that "
        "is "
        "for another value of one of them does not see the template"),
    KEY("env", OWN, "none", "mapping of variables, beside the policy's; values are text"),
    KEY("ports", OWN, "none",
        "list of at most 16 ports inside that are reached at free ports of 127.0.0.1 from when "
        "somebody has the sandbox"),
    KEY("image", AS(image), "the policy's", "as of `sandbox`"),
    KEY("volumes", AS(volumes), "none", "beside the policy's"),
    KEY("ttl", AS(lasting), "the policy's", "as of `sandbox`, from when somebody has it"),
    KEY("idle_ttl", AS(idle), "the policy's", "as of `sandbox`"),
    KEY("on_idle", WORDS("delete", "pause", "stop"), "the policy's", "as of `sandbox`"),
    KEY("soft_ttl", AS(idle), "the policy's", "as of `sandbox`"),
    KEY("on_soft_ttl", WORDS("stop", "pause"), "the policy's", "as of `sandbox`"),
};

/* It stands in paths of the API. */
static bool name_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= CONFIG_TEMPLATE_NAME_MAX && s[0] != '-' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static bool label_ok(const char *key, const char *value)
{
    size_t n = strlen(key);
    if (n == 0 || n > LABEL_NAME_BYTES || strlen(value) > LABEL_BYTES)
        return false;
    for (const char *p = key; *p; p++)
        if (!ascii_is_alnum(*p) && strchr("._/-", *p) == NULL)
            return false;
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

/* A mapping of texts, borrowed from the tree. */
static int read_pairs(const struct node *n, bool labels, json_t **ret, struct err *err)
{
    const char *key, *text;
    json_t *value;
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > PAIRS_MAX)
        return node_fail(n, err, "more than %d of them", PAIRS_MAX);
    json_object_foreach(n->value, key, value)
    {
        struct node at;
        node_get(n, key, &at);
        if (node_text(&at, &text, err) < 0)
            return -1;
        if (labels && !label_ok(key, text))
            return node_fail(&at, err, "'%.63s' is not a label's name, or its value is too long",
                             key);
        if (!labels && (!config_env_name_ok(key) || strlen(text) > TEXT_BYTES))
            return node_fail(&at, err, "'%.63s' is not a variable's name, or its value is too long",
                             key);
    }
    *ret = n->value;
    return 0;
}

static int read_ports(const struct node *n, struct config_template *t, struct err *err)
{
    if (node_is_array(n, err) < 0)
        return -1;
    if (json_array_size(n->value) > CONFIG_TEMPLATE_PORTS_MAX)
        return node_fail(n, err, "more than %d ports", CONFIG_TEMPLATE_PORTS_MAX);
    for (size_t i = 0; i < json_array_size(n->value); i++) {
        unsigned port;
        struct node item = node_item(n, i);
        if (node_uint(&item, 1, UINT16_MAX, &port, err) < 0)
            return -1;
        t->ports[t->n_ports++] = (uint16_t)port;
    }
    return 0;
}

static int read_policy(struct config *c, const struct node *n, struct config_template *t,
                       struct err *err)
{
    const struct config_policy *p;
    if (config_policy_named(c, n, &p, err) < 0)
        return -1;
    t->policy = p->name;
    t->sandbox = p->sandbox;
    t->sandbox.n_volumes = 0; /* a sandbox has its policy's anyway */
    return 0;
}

static int read_start(struct config *c, const struct node *n, struct config_template *t,
                      struct err *err)
{
    struct node at, image;
    const char *text;
    t->warm_up_timeout = WARM_UP_TIMEOUT;
    if (node_get(n, "warm_up", &at) &&
        config_read_command(c, &at, CONFIG_PROGRAM_INSIDE, &t->warm_up, err) < 0)
        return -1;
    if (node_get(n, "warm_up_timeout", &at) &&
        quantity_long_duration(&at, WARM_UP_TIMEOUT_MAX, &t->warm_up_timeout, err) < 0)
        return -1;
    if (t->warm_up_timeout == 0)
        return node_fail(&at, err, "'warm_up_timeout' must be at least 1s");
    if (!node_get(n, "snapshot", &at))
        return 0;
    if (node_string(&at, &text, err) < 0)
        return -1;
    if (!name_ok(text))
        return node_fail(&at, err, "must be the name of a snapshot (a-z, 0-9, '-'; at most %d)",
                         CONFIG_TEMPLATE_NAME_MAX);
    if (node_get(n, "image", &image))
        return node_fail(&image, err, "a snapshot brings its image: leave 'image' out");
    t->snapshot = arena_str(c->arena, text);
    return 0;
}

static int read_template(struct config *c, const struct node *n, struct config_template *t,
                         struct err *err)
{
    struct node at;
    if (!name_ok(n->key))
        return node_fail(n, err, "'%.60s' is not a template's name (a-z, 0-9, '-'; at most %d)",
                         n->key, CONFIG_TEMPLATE_NAME_MAX);
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(template_keys), err) < 0)
        return -1;
    t->name = arena_str(c->arena, n->key);
    if (!node_get(n, "policy", &at))
        return node_fail(n, err, "a template needs a 'policy'");
    if (read_policy(c, &at, t, err) < 0 || config_read_life(n, &t->sandbox, err) < 0 ||
        read_start(c, n, t, err) < 0)
        return -1;
    if (node_get(n, "labels", &at) && read_pairs(&at, true, &t->labels, err) < 0)
        return -1;
    if (node_get(n, "env", &at) && read_pairs(&at, false, &t->env, err) < 0)
        return -1;
    if (node_get(n, "ports", &at) && read_ports(&at, t, err) < 0)
        return -1;
    return node_key_uint(n, template_keys, "pool", &t->pool, err);
}

int config_read_templates(struct config *c, const struct node *n, struct err *err)
{
    unsigned pooled = 0;
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > CONFIG_TEMPLATES_MAX)
        return node_fail(n, err, "more than %d templates", CONFIG_TEMPLATES_MAX);
    c->templates = arena_zalloc(c->arena, json_object_size(n->value) + 1, sizeof *c->templates);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        struct config_template *t = &c->templates[c->n_templates++];
        if (read_template(c, &at, t, err) < 0)
            return -1;
        pooled += t->pool;
    }
    if (pooled <= CONFIG_POOLED_MAX)
        return 0;
    return node_fail(n, err, "the pools are of %u sandboxes together; at most %d", pooled,
                     CONFIG_POOLED_MAX);
}

const struct config_template *config_templates(const struct config *c, size_t *n)
{
    *n = c->n_templates;
    return c->templates;
}

const struct config_template *config_template(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_templates; i++)
        if (strcmp(c->templates[i].name, name) == 0)
            return &c->templates[i];
    return NULL;
}
