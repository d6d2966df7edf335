/* The sections of a configuration that have no file of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"
#include "quantity.h"

int config_file(struct config *c, const struct node *n, const char **ret, struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    if (text[0] == '~')
        return node_fail(n, err, "'%.200s': '~' is your shell's; write the whole path", text);
    if (text[0] != '/' && c->base == NULL)
        return node_fail(n, err, "'%.200s': an absolute path is needed here", text);
    size_t size = strlen(text) + (c->base ? strlen(c->base) : 0) + 2;
    char *whole = arena_zalloc(c->arena, size, 1);
    if (text[0] == '/')
        snprintf(whole, size, "%s", text);
    else
        snprintf(whole, size, "%s%s%s", c->base, strcmp(c->base, "/") == 0 ? "" : "/",
                 strncmp(text, "./", 2) == 0 ? text + 2 : text);
    if (strlen(whole) > 4000)
        return node_fail(n, err, "this path is longer than 4000 bytes");
    int r = n->key ? json_object_set_new(n->up->value, n->key, json_string(whole))
                   : json_array_set_new(n->up->value, n->index, json_string(whole));
    if (r < 0)
        abort(); /* memory is out */
    *ret = whole;
    return 0;
}

/* What it is read from, or made of. */
static int read_source(struct config *c, const struct node *n, struct config_secret *s,
                       struct err *err)
{
    size_t others = json_object_size(n->value) - 1;
    if (!config_is_minted(n->value))
        return config_read_store(c, n, s, err);
    others -= json_object_get(n->value, "kind") != NULL;
    others -= json_object_get(n->value, "ttl") != NULL;
    if (others > 0)
        return node_fail(n, err, "a secret has one source: a store, or one kind of token or key");
    return config_read_mint(c, n, s, err);
}

static int read_secret(struct config *c, const struct node *n, struct config_secret *s,
                       struct err *err)
{
    static const struct key keys[] = {
        {"env", NULL},           {"file", NULL},           {"command", NULL},
        {"kind", NULL},          {"oauth2", NULL},         {"jwt", NULL},
        {"google", NULL},        {"github_app", NULL},     {"entra", NULL},
        {"aws_key", NULL},       {"aws_role", NULL},       {"ttl", NULL},
        {"systemd", NULL},       {"secret_service", NULL}, {"kubernetes", NULL},
        {"vault", NULL},         {"openbao", NULL},        {"aws_secret", NULL},
        {"aws_parameter", NULL}, {"onepassword", NULL},    {"client_certificate", NULL},
        {"captured", NULL},      {"hmac_key", NULL},       {"signature_key", NULL},
        {"azure_key", NULL},
    };
    struct node at;
    size_t kind;
    if (!node_name_ok(n->key))
        return node_fail(n, err, "'%.60s' is not a secret's name (letters, digits, _ . -)", n->key);
    s->name = arena_str(c->arena, n->key);
    s->kind = "";
    if (json_is_string(n->value))
        return node_fail(n, err,
                         "a secret is a mapping such as { env: NAME }; its value never "
                         "stands here");
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 || read_source(c, n, s, err) < 0)
        return -1;
    if (node_get(n, "kind", &at)) {
        if (node_word(&at, secret_kinds, n_secret_kinds, &kind, err) < 0)
            return -1;
        s->kind = secret_kinds[kind];
    }
    if (!node_get(n, "ttl", &at))
        return 0;
    if (config_is_remote(s))
        return 0; /* it was read with the rest */
    if (s->store == STORE_MINT)
        return node_fail(&at, err,
                         "'ttl' has no meaning here: a token says itself how long it lasts");
    if (s->store == STORE_ENV)
        return node_fail(&at, err, "'ttl' has no meaning with 'env': it is read once, at start");
    return quantity_duration(&at, &s->ttl, err);
}

/* The vault and the injectors are told of all in a message each. */
static int fits(const struct config *c, const struct node *n, struct err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->n_secrets; i++)
        bytes += strlen(c->secrets[i].name) + strlen(c->secrets[i].source) + CONFIG_ENTRY_BYTES;
    if (c->n_secrets > CONFIG_SECRETS_MAX)
        return node_fail(n, err, "more than %d secrets and logins of their stores together",
                         CONFIG_SECRETS_MAX);
    if (bytes > CONFIG_SECRETS_BYTES)
        return node_fail(n, err,
                         "what is said of secrets takes %zu bytes, of %d: fewer, or shorter names",
                         bytes, CONFIG_SECRETS_BYTES);
    return 0;
}

int config_read_secrets(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > CONFIG_SECRETS_MAX)
        return node_fail(n, err, "more than %d secrets", CONFIG_SECRETS_MAX);
    /* and as many logins */
    c->secrets = arena_zalloc(c->arena, 2 * json_object_size(n->value) + 1, sizeof *c->secrets);
    c->n_secrets = json_object_size(n->value);
    size_t i = 0;
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        if (read_secret(c, &at, &c->secrets[i++], err) < 0)
            return -1;
    }
    config_mark_keys(c);
    return fits(c, n, err);
}

static int read_file(struct config *c, const struct node *n, const char *key, const char **ret,
                     struct err *err)
{
    struct node at;
    return node_get(n, key, &at) ? config_file(c, &at, ret, err) : 0;
}

int config_read_ca(struct config *c, const struct node *n, struct err *err)
{
    static const struct key keys[] = {{"dir", NULL}, {"cert", NULL}, {"key", NULL}};
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        read_file(c, n, "dir", &c->ca_dir, err) < 0 ||
        read_file(c, n, "cert", &c->ca_cert, err) < 0 ||
        read_file(c, n, "key", &c->ca_key, err) < 0)
        return -1;
    if (!c->ca_cert != !c->ca_key)
        return node_fail(n, err, "'cert' and 'key' go together");
    if (c->ca_dir && c->ca_cert)
        return node_fail(n, err, "either 'dir', or 'cert' and 'key' of your own");
    return 0;
}

int config_read_controller(struct config *c, const struct node *n, struct err *err)
{
    static const struct key keys[] = {
        {"socket", NULL}, {"state", NULL}, {"https", NULL}, {"name", NULL}};
    struct node at;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        read_file(c, n, "socket", &c->socket, err) < 0 ||
        read_file(c, n, "state", &c->state, err) < 0)
        return -1;
    if (c->socket && strlen(c->socket) > 107 && node_get(n, "socket", &at))
        return node_fail(&at, err, "a unix socket's path is at most 107 bytes");
    return config_read_api(c, n, err);
}
