/* What the flags of `durward run` add to a configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"
#include "login.h"
#include "profile_tree.h"

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

static int add_use(struct additions *a, const char *value, struct err *err)
{
    json_t *rule = json_pack("{s:s}", "use", value);
    if (rule == NULL)
        return err_set(err, ERR_PARSE, "--use: not UTF-8 text");
    add_rule(a, rule, "--use", value);
    return 0;
}

/* Behind the host, where no port stands: the header that the value goes in, or "bearer". Cut off;
 * NULL: nothing is said. */
static char *cut_field(char *host)
{
    char *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');
    if (colon == NULL || strchr(colon, '/') || (bracket && bracket > colon) ||
        strspn(colon + 1, "0123456789") == strlen(colon + 1))
        return NULL;
    *colon = 0;
    return colon + 1;
}

/* The rules of one host: one for the field that was said, else its preset's, else bearer to all of
 * it. */
static int add_host(struct additions *a, const char *name, const char *host, const char *field,
                    const char *value, struct err *err)
{
    bool bearer = field == NULL || strcmp(field, "bearer") == 0;
    if (host[0] == 0 || strchr(host, '/'))
        return err_set(err, ERR_PARSE,
                       "--secret %.300s: after '@' stand hosts, NAME@host[:header][,host]; "
                       "for paths write a configuration",
                       value);
    json_t *rules = field ? NULL : preset_rules_for_host(host, name), *rule;
    size_t i;
    json_array_foreach(rules, i, rule) add_rule(a, json_incref(rule), "--secret", value);
    json_decref(rules);
    if (rules)
        return 0;
    rule = bearer ? json_pack("{s:s, s:{s:s}}", "allow", host, "with", "bearer", name)
                  : json_pack("{s:s, s:{s:{s:s, s:s}}}", "allow", host, "with", "header", "name",
                              field, "secret", name);
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

/* NAME@host[:header][,host] */
static int add_secret(struct additions *a, const char *value, struct err *err)
{
    const char *at = strchr(value, '@'), *kind = "";
    size_t n = at ? (size_t)(at - value) : 0;
    if (strchr(value, '=') || n == 0 || n > 64)
        return err_set(err, ERR_PARSE,
                       "--secret: write NAME@host[:header][,host], where NAME is an "
                       "environment variable that holds the value; the value itself "
                       "does not belong on a command line");
    char *name = slice_dup((struct slice){value, n}), *hosts = strdup(at + 1), *rest = hosts;
    int r = name && hosts ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    if (r == 0 && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
                      strlen(name))
        r = err_set(err, ERR_PARSE, "--secret: '%.64s' is not the name of an environment variable",
                    name);
    while (r == 0 && rest) {
        char *host = strsep(&rest, ","), *field = cut_field(host);
        const char *its = preset_kind_for_host(host);
        kind = kind[0] ? kind : its;
        r = add_host(a, name, host, field, value, err);
    }
    if (r == 0)
        r = declare(a, name, kind, value, err);
    free(name);
    free(hosts);
    return r;
}

static int add_identity(struct additions *a, const struct login_use *u, struct err *err)
{
    json_t *given = login_identity(u), *one;
    const char *cloud;
    int r = 0;
    json_object_foreach(given, cloud, one)
    {
        json_t *own = member(a->policy, "identity", false);
        if (json_object_get(own, cloud))
            r = err_set(err, ERR_PARSE,
                        "--login %s: policy '%s' says already who it is to %s; leave one of the "
                        "two out",
                        login_name(u->format), a->name, cloud);
        else if (json_object_set(own, cloud, one) < 0)
            abort(); /* memory is out */
    }
    json_decref(given);
    return r;
}

static int add_login(struct additions *a, const struct login_use *u, struct err *err)
{
    json_t *rules = json_array(), *rule;
    size_t i;
    if (rules == NULL)
        abort(); /* memory is out */
    int r = login_expand(u, member(a->root, "secrets", false), rules, err);
    json_array_foreach(rules, i, rule)
        add_rule(a, json_incref(rule), "--login", login_name(u->format));
    json_decref(rules);
    return r < 0 ? r : add_identity(a, u, err);
}

/* With a profile and no policy named: the one that is called as the profile, which need not be
 * there yet. What another policy allows is not this program's. */
static int choose(const struct config *c, const struct config_flags *f, const char **ret,
                  struct err *err)
{
    if (f->profile == NULL || f->policy)
        return choose_policy(c, f->policy, ret, err);
    *ret = profile_name(f->profile);
    return 0;
}

bool config_flags_login(const struct config_flags *f)
{
    const char *name = f->profile ? profile_login(f->profile) : NULL;
    for (size_t i = 0; name && i < f->n_logins; i++)
        if (strcmp(login_name(f->logins[i].format), name) == 0)
            return true;
    return false;
}

static int add_profile(const struct additions *a, const struct config_flags *f, struct err *err)
{
    struct profile_into into = {.root = a->root,
                                .lines = a->lines,
                                .policy = a->policy,
                                .rules = a->rules,
                                .policy_name = a->name,
                                .telemetry = f->telemetry,
                                .logged_in = config_flags_login(f),
                                .inside = (enum profile_inside)f->inside,
                                .all = f->profile_alone};
    return f->profile ? profile_apply(f->profile, &into, err) : 0;
}

struct config *config_with_flags(const struct config *c, const struct config_flags *f,
                                 struct err *err)
{
    struct additions a = {0};
    if (choose(c, f, &a.name, err) < 0)
        return NULL;
    a.root = c ? json_deep_copy(c->root) : json_pack("{s:i}", "version", 1);
    a.lines = c && c->source.lines ? json_copy(c->source.lines) : json_object();
    if (a.root == NULL || a.lines == NULL)
        abort(); /* memory is out */
    a.policy = member(member(a.root, "policies", false), a.name, false);
    a.rules = member(a.policy, "rules", true);
    int r = 0;
    for (size_t i = 0; r == 0 && i < f->n_logins; i++)
        r = add_login(&a, &f->logins[i], err);
    if (r == 0)
        r = add_profile(&a, f, err);
    for (size_t i = 0; r == 0 && i < f->n_allow; i++)
        r = add_allow(&a, f->allow[i], err);
    for (size_t i = 0; r == 0 && i < f->n_secret; i++)
        r = add_secret(&a, f->secret[i], err);
    for (size_t i = 0; r == 0 && i < f->n_use; i++)
        r = add_use(&a, f->use[i], err);
    json_t *found = c && c->found ? json_copy(c->found) : json_object();
    if (r == 0)
        r = config_fill_hosts(a.root, found, err);
    if (r < 0) {
        json_decref(found);
        json_decref(a.root);
        json_decref(a.lines);
        return NULL;
    }
    struct config *made =
        config_build(c ? c->source.name : "the command line", NULL, a.root, a.lines, err);
    if (made)
        made->found = json_incref(found);
    json_decref(found);
    if (made && f->ret_policy)
        *f->ret_policy = config_policy_find(made, a.name)->name;
    return made;
}
