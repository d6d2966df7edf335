/* From a profile to the rules, secrets and variables of a policy. Lines of the profile's file stand
 * in errors about them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"
#include "profile_tree.h"

enum { WHERE_MAX = 400 };

static void put(json_t *object, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(object, key, value) < 0)
        abort(); /* memory is out */
}

static json_t *member(json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);
    if (v == NULL) {
        v = json_object();
        put(object, key, v);
    }
    return v;
}

/* What lies at `at` of the profile is at `path` of the configuration: their lines are the same. */
static void carry_lines(const struct profile_into *into, const struct node *at, const char *path)
{
    char from[WHERE_MAX], to[WHERE_MAX], where[WHERE_MAX];
    const char *key;
    json_t *line;
    node_path(at, from, sizeof from);
    node_where(at, where, sizeof where);
    put(into->lines, path, json_string(where));
    size_t n = strlen(from);
    json_object_foreach(at->source->lines, key, line)
    {
        if (strncmp(key, from, n) != 0 || (key[n] != '.' && key[n] != '['))
            continue;
        snprintf(to, sizeof to, "%s%s", path, key + n);
        snprintf(where, sizeof where, "%s:%lld", at->source->name,
                 (long long)json_integer_value(line));
        put(into->lines, to, json_string(where));
    }
}

/* Takes the reference. */
static void add_rule(const struct profile_into *into, json_t *rule, const struct node *at)
{
    char path[WHERE_MAX];
    snprintf(path, sizeof path, "policies.%s.rules[%zu]", into->policy_name,
             json_array_size(into->rules));
    carry_lines(into, at, path);
    if (rule == NULL || json_array_append_new(into->rules, rule) < 0)
        abort(); /* memory is out */
}

static void add_rules(const struct profile_into *into, const struct node *list)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct node item = node_item(list, i);
        add_rule(into, json_deep_copy(item.value), &item);
    }
}

static void add_variable(const struct profile_into *into, const char *name, const char *value,
                         const struct node *at)
{
    json_t *env = member(into->policy, "env");
    char path[WHERE_MAX];
    if (json_object_get(env, name))
        return; /* the configuration's own */
    snprintf(path, sizeof path, "policies.%s.env.%s", into->policy_name, name);
    carry_lines(into, at, path);
    put(env, name, json_string(value));
}

/* ---- the keys of a model ---- */

struct source_of_key {
    struct node at, env;
    const char *secret, *use; /* use: NULL, if it has rules of its own */
    const char *variable;     /* of the host, that has it; NULL: none has */
};

static const char *variable_set(const struct node *list)
{
    size_t n = json_is_string(list->value) ? 1 : json_array_size(list->value);
    for (size_t i = 0; i < n; i++) {
        struct node item;
        const char *name;
        if (node_strings_at(list, i, &item, &name, NULL) < 0)
            return NULL;
        const char *v = getenv(name);
        if (v && *v)
            return name;
    }
    return NULL;
}

/* Nodes point to those above them: s stays where it is. */
static void source_at(const struct node *model, size_t i, struct source_of_key *s)
{
    struct node from;
    s->at = node_item(model, i);
    s->use = json_string_value(json_object_get(s->at.value, "use"));
    s->secret = json_string_value(json_object_get(s->at.value, "secret"));
    if (s->secret == NULL)
        s->secret = s->use;
    node_get(&s->at, "env", &s->env);
    s->variable = variable_set(&s->env);
    if (s->variable == NULL && node_get(&s->at, "from", &from))
        s->variable = variable_set(&from);
}

static const char *first_of(const json_t *v)
{
    return json_string_value(json_is_array(v) ? json_array_get(v, 0) : v);
}

static bool is_there(const struct profile_into *into, const struct source_of_key *s)
{
    return into->all || s->variable ||
           json_object_get(json_object_get(into->root, "secrets"), s->secret);
}

static void declare(const struct profile_into *into, const struct source_of_key *s)
{
    json_t *secrets = member(into->root, "secrets");
    char path[WHERE_MAX];
    if (json_object_get(secrets, s->secret))
        return;
    json_t *kind = json_object_get(s->at.value, "kind"), *made = json_object();
    put(made, "env", json_string(s->variable ? s->variable : first_of(s->env.value)));
    if (kind)
        put(made, "kind", json_incref(kind));
    snprintf(path, sizeof path, "secrets.%s", s->secret);
    carry_lines(into, &s->at, path);
    put(secrets, s->secret, made);
}

static void use(const struct profile_into *into, const struct source_of_key *s)
{
    char placeholder[120];
    struct node rules;
    declare(into, s);
    if (s->use) {
        json_t *rule = json_pack("{s:s, s:s}", "use", s->use, "secret", s->secret);
        json_t *hosts = json_object_get(s->at.value, "preset_hosts");
        if (hosts)
            put(rule, "preset_hosts", json_deep_copy(hosts));
        add_rule(into, rule, &s->at);
    }
    if (node_get(&s->at, "rules", &rules)) {
        size_t from = json_array_size(into->rules);
        add_rules(into, &rules);
        for (; from < json_array_size(into->rules); from++)
            preset_fill(json_array_get(into->rules, from), s->secret);
    }
    snprintf(placeholder, sizeof placeholder, "{{placeholder %s}}", s->secret);
    size_t n = json_is_string(s->env.value) ? 1 : json_array_size(s->env.value);
    for (size_t i = 0; i < n; i++) {
        struct node item;
        const char *name;
        if (node_strings_at(&s->env, i, &item, &name, NULL) == 0)
            add_variable(into, name, placeholder, &s->env);
    }
}

static int none_there(const struct profile *p, const struct node *model, struct err *err)
{
    char names[400] = "", first[80] = "";
    size_t n = json_array_size(model->value);
    const char *login = profile_login(p);
    char other[280] = "";
    if (login)
        snprintf(other, sizeof other,
                 "; or let it use the login of the program on this host: "
                 "durward run --login %s %s",
                 login, p->name);
    if (profile_inside(p))
        snprintf(other + strlen(other), sizeof other - strlen(other),
                 "; or let it log in by itself, inside: durward run --login-inside %s", p->name);
    for (size_t i = 0; i < n; i++) {
        struct source_of_key s;
        struct node from;
        source_at(model, i, &s);
        bool also = node_get(&s.at, "from", &from);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.60s%s%.60s%s",
                 i == 0       ? ""
                 : i == n - 1 ? " or "
                              : ", ",
                 first_of(s.env.value), also ? " (or " : "", also ? first_of(from.value) : "",
                 also ? ")" : "");
        if (i == 0)
            snprintf(first, sizeof first, "%.60s", s.secret);
    }
    return err_set(err, ERR_UNREADY,
                   "profile '%s' needs %s and %s: export %s before 'durward run', or declare the "
                   "secret '%s' in your configuration, as in secrets: { %s: { file: /PATH } }%s",
                   p->name, n > 1 ? "the key of a model" : "a key",
                   n > 1 ? "none of its variables is set" : "its variable is not set", names, first,
                   first, other);
}

static int apply_model(const struct profile *p, const struct node *model,
                       const struct profile_into *into, struct err *err)
{
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(model->value); i++) {
        struct source_of_key s;
        source_at(model, i, &s);
        if (!is_there(into, &s))
            continue;
        use(into, &s);
        used++;
    }
    return used ? 0 : none_there(p, model, err);
}

/* ---- a login made inside ---- */

static void apply_inside(const struct node *n, const struct profile_into *into)
{
    json_t *secrets = member(into->root, "secrets");
    struct node given, rules;
    node_get(n, "secrets", &given);
    for (void *it = json_object_iter(given.value); it;
         it = json_object_iter_next(given.value, it)) {
        char path[WHERE_MAX];
        struct node at;
        node_get(&given, json_object_iter_key(it), &at);
        if (json_object_get(secrets, at.key))
            continue; /* the configuration's own */
        snprintf(path, sizeof path, "secrets.%s", at.key);
        carry_lines(into, &at, path);
        put(secrets, at.key, json_deep_copy(at.value));
    }
    node_get(n, into->inside == PROFILE_KEPT ? "kept" : "login", &rules);
    add_rules(into, &rules);
    node_get(n, "rules", &rules);
    add_rules(into, &rules);
}

/* ---- the rest ---- */

static void add_variables(const struct profile_into *into, const struct node *n)
{
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        add_variable(into, at.key, json_string_value(at.value), &at);
    }
}

int profile_apply(const struct profile *p, const struct profile_into *into, struct err *err)
{
    struct node root = node_root(&p->source, p->root), at, part;
    bool inside = into->inside && node_get(&root, "inside", &at);
    if (inside)
        apply_inside(&at, into);
    else if (!into->logged_in && node_get(&root, "model", &at) &&
             apply_model(p, &at, into, err) < 0)
        return -1;
    if (node_get(&root, "rules", &at))
        add_rules(into, &at);
    if (node_get(&root, "env", &at))
        add_variables(into, &at);
    if (!node_get(&root, "telemetry", &at))
        return 0;
    if (into->telemetry && node_get(&at, "rules", &part))
        add_rules(into, &part);
    if (!into->telemetry && node_get(&at, "quiet", &part))
        add_variables(into, &part);
    return 0;
}

int profile_check(const struct profile *p, struct err *err)
{
    int r = 0;
    for (int way = 0; r == 0 && way < (profile_inside(p) ? 6 : 2); way++) {
        struct config_flags flags = {.profile = p,
                                     .policy = p->name,
                                     .telemetry = way % 2,
                                     .inside = (unsigned)way / 2,
                                     .profile_alone = true};
        struct config *c = config_with_flags(NULL, &flags, err);
        r = c ? 0 : -1;
        config_unref(c);
    }
    return r;
}
