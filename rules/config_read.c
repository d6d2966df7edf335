/* The sections of a configuration, but for policies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"

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

/* "90s", "15m", "1h"; at most a day. */
static int read_duration(const struct node *n, unsigned *ret, struct err *err)
{
    const char *text = json_string_value(n->value);
    struct slice s = slice_str(text);
    uint64_t v = 0, unit = 0;
    if (json_is_integer(n->value))
        return node_fail(n, err, "'%s' needs a unit: %llds, or m for minutes, h for hours", n->key,
                         (long long)json_integer_value(n->value));
    if (s.n >= 2)
        unit = s.p[s.n - 1] == 's' ? 1 : s.p[s.n - 1] == 'm' ? 60 : s.p[s.n - 1] == 'h' ? 3600 : 0;
    if (unit == 0 || slice_u64((struct slice){s.p, s.n - 1}, 86400, &v) < 0 || v * unit > 86400)
        return node_fail(n, err, "'%s' is a time such as 90s, 15m or 1h, at most 24h", n->key);
    *ret = (unsigned)(v * unit);
    return 0;
}

static int read_command(struct config *c, const struct node *n, struct config_secret *s,
                        struct err *err)
{
    size_t count;
    if (node_is_array(n, err) < 0)
        return node_fail(n, err, "'command' is a list: [program, argument, ...]; no shell runs it");
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > 64)
        return node_fail(n, err, "'command' has more than 64 words");
    const char **argv = arena_zalloc(c->arena, count + 1, sizeof *argv);
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(n, i);
        const char *word;
        if ((i == 0 ? node_string(&item, &word, err) : node_text(&item, &word, err)) < 0)
            return -1;
        if (i == 0 && strchr(word, '/') && config_file(c, &item, &word, err) < 0)
            return -1;
        argv[i] = arena_str(c->arena, word);
    }
    s->store = STORE_COMMAND;
    s->command = argv;
    s->source = argv[0];
    s->ttl = 300;
    return 0;
}

static bool env_name_ok(const char *s)
{
    if (s[0] == 0 || strlen(s) > 256 || (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '_')
            return false;
    return true;
}

static int read_store(struct config *c, const struct node *n, struct config_secret *s,
                      struct err *err)
{
    struct node env, file, command;
    bool is_env = node_get(n, "env", &env), is_file = node_get(n, "file", &file);
    bool is_command = node_get(n, "command", &command);
    if (is_env + is_file + is_command != 1)
        return node_fail(n, err, "a secret has exactly one of 'env', 'file', 'command'");
    if (is_command)
        return read_command(c, &command, s, err);
    s->store = is_env ? STORE_ENV : STORE_FILE;
    if (is_file)
        return config_file(c, &file, &s->source, err);
    if (node_string(&env, &s->source, err) < 0)
        return -1;
    if (!env_name_ok(s->source))
        return node_fail(&env, err,
                         "'%.60s' is not the name of an environment variable; the value "
                         "itself never stands here",
                         s->source);
    s->source = arena_str(c->arena, s->source);
    return 0;
}

static int read_secret(struct config *c, const struct node *n, struct config_secret *s,
                       struct err *err)
{
    static const struct key keys[] = {
        {"env", NULL},     {"file", NULL},       {"command", NULL}, {"kind", NULL},
        {"ttl", NULL},     {"vault", "M3"},      {"systemd", "M3"}, {"secret_service", "M3"},
        {"openbao", "M3"}, {"kubernetes", "M3"}, {"aws", "M3"},     {"onepassword", "M3"},
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
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 || read_store(c, n, s, err) < 0)
        return -1;
    if (node_get(n, "kind", &at)) {
        if (node_word(&at, secret_kinds, n_secret_kinds, &kind, err) < 0)
            return -1;
        s->kind = secret_kinds[kind];
    }
    if (!node_get(n, "ttl", &at))
        return 0;
    if (s->store == STORE_ENV)
        return node_fail(&at, err, "'ttl' has no meaning with 'env': it is read once, at start");
    return read_duration(&at, &s->ttl, err);
}

int config_read_secrets(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > CONFIG_ENTRIES_MAX)
        return node_fail(n, err, "more than %d secrets", CONFIG_ENTRIES_MAX);
    c->secrets = arena_zalloc(c->arena, json_object_size(n->value) + 1, sizeof *c->secrets);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        if (read_secret(c, &at, &c->secrets[c->n_secrets++], err) < 0)
            return -1;
    }
    return 0;
}

static int read_resolve(struct config *c, const struct node *n, struct err *err)
{
    struct authority host, address;
    char text[HOST_TEXT_MAX + 16];
    const char *value;
    struct slice key = slice_str(n->key);
    bool dot = key.n && key.p[0] == '.';
    if (authority_parse(&host, SCHEME_HTTPS, (struct slice){key.p + dot, key.n - dot}) < 0 ||
        (dot && host.kind != HOST_NAME))
        return node_fail(n, err, "'%.200s' is not HOST, .HOST or HOST:PORT", n->key);
    if (node_string(n, &value, err) < 0)
        return -1;
    if (authority_parse(&address, SCHEME_HTTPS, slice_str(value)) < 0 || address.kind == HOST_NAME)
        return node_fail(n, err, "'%.200s' is not an address such as 127.0.0.1:8443 or [::1]:8443",
                         value);
    ssize_t colon = slice_find(slice_str(strrchr(value, ']') ? strrchr(value, ']') : value), ':');
    if (colon < 0)
        address.port = host.port;
    struct config_resolve *r = &c->resolves[c->n_resolves];
    snprintf(text, sizeof text, "%s%s", dot ? "." : "", host.host);
    *r = (struct config_resolve){arena_str(c->arena, text), host.port, NULL};
    r->address = arena_str(c->arena, authority_text_port(&address, text, sizeof text));
    for (size_t i = 0; i < c->n_resolves; i++)
        if (c->resolves[i].port == r->port && strcmp(c->resolves[i].host, r->host) == 0)
            return node_fail(n, err, "%s port %u is resolved twice", r->host, r->port);
    c->n_resolves++;
    return 0;
}

int config_read_upstream(struct config *c, const struct node *n, struct err *err)
{
    static const struct key keys[] = {
        {"ca", NULL}, {"resolve", NULL}, {"proxy", "M2"}, {"no_proxy", "M2"}};
    struct node ca, resolve, at;
    const char *text;
    size_t count = 0;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    if (node_get(n, "ca", &ca)) {
        if (node_strings(&ca, &count, err) < 0)
            return -1;
        c->upstream_ca = arena_zalloc(c->arena, count + 1, sizeof *c->upstream_ca);
        for (size_t i = 0; i < count; i++)
            if (node_strings_at(&ca, i, &at, &text, err) < 0 ||
                config_file(c, &at, &c->upstream_ca[i], err) < 0)
                return -1;
    }
    if (!node_get(n, "resolve", &resolve))
        return 0;
    if (node_is_object(&resolve, err) < 0)
        return -1;
    if (json_object_size(resolve.value) > CONFIG_ENTRIES_MAX)
        return node_fail(&resolve, err, "more than %d names", CONFIG_ENTRIES_MAX);
    c->resolves = arena_zalloc(c->arena, json_object_size(resolve.value) + 1, sizeof *c->resolves);
    for (void *it = json_object_iter(resolve.value); it;
         it = json_object_iter_next(resolve.value, it)) {
        node_get(&resolve, json_object_iter_key(it), &at);
        if (read_resolve(c, &at, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_loopback(const struct authority *a)
{
    static const unsigned char one[16] = {[15] = 1};
    return a->kind == HOST_IPV4 ? a->ip[0] == 127 : memcmp(a->ip, one, sizeof one) == 0;
}

static int read_listener(struct config *c, const struct node *n, struct config_listen *l,
                         struct err *err)
{
    static const struct key keys[] = {{"http", NULL},  {"policy", NULL}, {"insecure", NULL},
                                      {"https", "M2"}, {"socks5", "M2"}, {"metrics", "M5"}};
    struct node at;
    struct authority a;
    char text[HOST_TEXT_MAX + 16];
    const char *value;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    if (!node_get(n, "http", &at))
        return node_fail(n, err, "a listener has an address: { http: 127.0.0.1:3128 }");
    l->kind = LISTEN_HTTP;
    if (node_get(n, "insecure", &at) && node_bool(&at, &l->insecure, err) < 0)
        return -1;
    node_get(n, "http", &at);
    if (node_string(&at, &value, err) < 0)
        return -1;
    if (authority_parse(&a, SCHEME_HTTP, slice_str(value)) < 0 || a.kind == HOST_NAME ||
        (a.port == 80 && (strlen(value) < 3 || strcmp(value + strlen(value) - 3, ":80") != 0)))
        return node_fail(&at, err, "'%.200s' is not ADDRESS:PORT, such as 127.0.0.1:3128", value);
    l->address = arena_str(c->arena, authority_text_port(&a, text, sizeof text));
    bool bound = node_get(n, "policy", &at);
    if (bound) {
        if (node_string(&at, &value, err) < 0)
            return -1;
        if (config_policy_find(c, value) == NULL)
            return node_fail(&at, err, "there is no policy '%.60s'; add it under 'policies'",
                             value);
        l->policy = config_policy_find(c, value)->name;
    }
    if (!is_loopback(&a) && !l->insecure)
        return node_fail(n, err,
                         "%s is not a loopback address: %s; listen on 127.0.0.1, or say "
                         "'insecure: true' if you mean it",
                         l->address,
                         bound ? "whoever reaches it would be that policy, without a token"
                               : "tokens would go over the network in clear");
    return 0;
}

int config_read_listen(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_array(n, err) < 0)
        return -1;
    size_t count = json_array_size(n->value);
    if (count > 64)
        return node_fail(n, err, "more than 64 listeners");
    c->listens = arena_zalloc(c->arena, count + 1, sizeof *c->listens);
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(n, i);
        if (read_listener(c, &item, &c->listens[i], err) < 0)
            return -1;
        for (size_t j = 0; j < i; j++)
            if (strcmp(c->listens[i].address, c->listens[j].address) == 0)
                return node_fail(&item, err, "%s is listened on twice", c->listens[i].address);
        c->n_listens++;
    }
    return 0;
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
        {"socket", NULL}, {"state", NULL}, {"https", "M4"}, {"tokens", "M4"}};
    struct node at;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        read_file(c, n, "socket", &c->socket, err) < 0 ||
        read_file(c, n, "state", &c->state, err) < 0)
        return -1;
    if (c->socket && strlen(c->socket) > 107 && node_get(n, "socket", &at))
        return node_fail(&at, err, "a unix socket's path is at most 107 bytes");
    return 0;
}
