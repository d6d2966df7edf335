/* What the flags of `durward run` add to a configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"

struct additions {
    json_t *root, *lines, *policy, *rules;
    const char *name; /* of the policy */
};

/* The member, made when it is not there. */
static json_t *member(json_t *object, const char *key, bool list)
{
    json_t *v = json_object_get(object, key);
    if (v)
        return v;
    v = list ? json_array() : json_object();
    if (json_object_set_new(object, key, v) < 0)
        abort(); /* memory is out */
    return v;
}

/* The policy to add to: the one named, the only one, or a new one when there is none at all. */
static int choose_policy(const struct config *c, const char *wanted, const char **ret,
                         struct err *err)
{
    size_t n = c ? config_policies(c) : 0;
    *ret = wanted;
    if (n == 0) {
        *ret = wanted ? wanted : "default";
        return node_name_ok(*ret) ? 0
                                  : err_set(err, ERR_PARSE,
                                            "--policy %.60s: not a policy's name "
                                            "(letters, digits, _ . -)",
                                            wanted);
    }
    if (wanted && config_policy_find(c, wanted))
        return 0;
    *ret = config_policy_name(c, 0);
    if (!wanted && n == 1)
        return 0;
    char list[300] = "";
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", config_policy_name(c, i));
    }
    if (wanted)
        return err_set(err, ERR_PARSE, "--policy %.60s: %s has no such policy; it has: %s", wanted,
                       c->source.name, list);
    return err_set(err, ERR_PARSE, "%s has several policies; name one with --policy: %s",
                   c->source.name, list);
}

/* Append a rule; errors about it name the flag that brought it. Takes the reference. */
static void add_rule(struct additions *a, json_t *rule, const char *flag, const char *value)
{
    char path[200], text[400];
    snprintf(path, sizeof path, "policies.%s.rules[%zu]", a->name, json_array_size(a->rules));
    snprintf(text, sizeof text, "%s %.300s", flag, value);
    if (rule == NULL || json_array_append_new(a->rules, rule) < 0 ||
        json_object_set_new(a->lines, path, json_string(text)) < 0)
        abort(); /* memory is out */
}

static int add_allow(struct additions *a, const char *value, struct err *err)
{
    json_t *rule = json_pack("{s:s}", "allow", value);
    if (rule == NULL)
        return err_set(err, ERR_PARSE, "--allow: not UTF-8 text");
    add_rule(a, rule, "--allow", value);
    return 0;
}

/* The rules of one host: its preset's, or bearer to all of it. Returns the kind. */
static int add_host(struct additions *a, const char *name, const char *host, const char *value,
                    struct err *err)
{
    if (host[0] == 0 || strchr(host, '/'))
        return err_set(err, ERR_PARSE,
                       "--secret %.300s: after '@' stand hosts, NAME@host[,host]; "
                       "for paths write a configuration",
                       value);
    json_t *rules = preset_rules_for_host(host, name), *rule;
    size_t i;
    json_array_foreach(rules, i, rule) add_rule(a, json_incref(rule), "--secret", value);
    json_decref(rules);
    if (rules)
        return 0;
    rule = json_pack("{s:s, s:{s:s}}", "allow", host, "with", "bearer", name);
    if (rule == NULL)
        return err_set(err, ERR_PARSE, "--secret: not UTF-8 text");
    add_rule(a, rule, "--secret", value);
    return 0;
}

static int declare(struct additions *a, const char *name, const char *kind, const char *value,
                   struct err *err)
{
    json_t *secrets = member(a->root, "secrets", false), *env = member(a->policy, "env", false);
    char placeholder[120];
    if (json_object_get(secrets, name))
        return err_set(err, ERR_PARSE,
                       "--secret %.300s: a secret '%.60s' is there already; rename "
                       "one of them",
                       value, name);
    json_t *secret = kind[0] ? json_pack("{s:s, s:s}", "env", name, "kind", kind)
                             : json_pack("{s:s}", "env", name);
    snprintf(placeholder, sizeof placeholder, "{{placeholder %s}}", name);
    if (json_object_set_new(secrets, name, secret) < 0 ||
        (!json_object_get(env, name) &&
         json_object_set_new(env, name, json_string(placeholder)) < 0))
        abort(); /* memory is out */
    return 0;
}

/* NAME@host[,host] */
static int add_secret(struct additions *a, const char *value, struct err *err)
{
    const char *at = strchr(value, '@'), *kind = "";
    size_t n = at ? (size_t)(at - value) : 0;
    if (strchr(value, '=') || n == 0 || n > 64)
        return err_set(err, ERR_PARSE,
                       "--secret: write NAME@host[,host], where NAME is an "
                       "environment variable that holds the value; the value itself "
                       "does not belong on a command line");
    char *name = strndup(value, n), *hosts = strdup(at + 1), *rest = hosts;
    int r = name && hosts ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    if (r == 0 && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
                      strlen(name))
        r = err_set(err, ERR_PARSE, "--secret: '%.64s' is not the name of an environment variable",
                    name);
    while (r == 0 && rest) {
        char *host = strsep(&rest, ",");
        const char *its = preset_kind_for_host(host);
        kind = kind[0] ? kind : its;
        r = add_host(a, name, host, value, err);
    }
    if (r == 0)
        r = declare(a, name, kind, value, err);
    free(name);
    free(hosts);
    return r;
}

struct config *config_with_flags(const struct config *c, const struct config_flags *f,
                                 struct err *err)
{
    struct additions a = {0};
    if (choose_policy(c, f->policy, &a.name, err) < 0)
        return NULL;
    a.root = c ? json_deep_copy(c->root) : json_pack("{s:i}", "version", 1);
    a.lines = c && c->source.lines ? json_copy(c->source.lines) : json_object();
    if (a.root == NULL || a.lines == NULL)
        abort(); /* memory is out */
    a.policy = member(member(a.root, "policies", false), a.name, false);
    a.rules = member(a.policy, "rules", true);
    int r = 0;
    for (size_t i = 0; r == 0 && i < f->n_allow; i++)
        r = add_allow(&a, f->allow[i], err);
    for (size_t i = 0; r == 0 && i < f->n_secret; i++)
        r = add_secret(&a, f->secret[i], err);
    if (r < 0) {
        json_decref(a.root);
        json_decref(a.lines);
        return NULL;
    }
    struct config *made =
        config_build(c ? c->source.name : "the command line", NULL, a.root, a.lines, err);
    if (made && f->ret_policy)
        *f->ret_policy = config_policy_find(made, a.name)->name;
    return made;
}
