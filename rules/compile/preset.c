/* Presets: the rules of APIs that many programs speak with. Each is a file of rules/presets/:
 *
 *   kind      the shape of the secret's placeholder, if it has one
 *   hosts     ROLE: HOST, or a list of hosts; [] where the user has to name them
 *   under     ends of host names that `--secret NAME@host` knows as the first role
 *   found     the package manager (rules/registries) whose configuration on this host names the
 *             hosts of the first role, where the user does not; these may begin with "http://"
 *   file      where below a home that program looks for it
 *   write     what to write there where it names none
 *   captured  "token": its secret is one that comes in replies, and need not be declared
 *   rules     rules, in which "{{ROLE}}" begins a pattern and "{{secret}}" is the secret's name
 *   one_host  the rules instead where all of it is served by one host of the user's ("{{host}}")
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "built_in.h"
#include "config_tree.h"
#include "yaml_tree.h"

#define SECRET_MARK "{{secret}}"

const char *const secret_kinds[SECRET_KINDS] = {"github-pat", "openai", "anthropic",
                                                "anthropic-oauth"};

const char *preset_name(size_t i)
{
    return built_in_name(preset_files, i);
}

const char *preset_text(const char *name)
{
    return built_in_text(preset_files, name);
}

void preset_names(char *to, size_t n)
{
    size_t used = 0;
    to[0] = 0;
    for (const struct built_in *f = preset_files; f->name && used + 1 < n; f++)
        used += (size_t)snprintf(to + used, n - used, "%s%s",
                                 f == preset_files ? ""
                                 : f[1].name       ? ", "
                                                   : " and ",
                                 f->name);
}

/* The preset's file as a tree; NULL: there is none of this name. */
static json_t *read_file(const char *name)
{
    const char *text = preset_text(name);
    json_t *root, *lines;
    if (text == NULL)
        return NULL;
    if (yaml_tree_parse(slice_str(text), name, &root, &lines, NULL) < 0)
        abort(); /* our own text: every preset is parsed by the unit tests */
    json_decref(lines);
    return root;
}

static const char *kind_of(const json_t *file)
{
    const char *kind = json_string_value(json_object_get(file, "kind"));
    for (size_t i = 0; kind && i < SECRET_KINDS; i++)
        if (strcmp(secret_kinds[i], kind) == 0)
            return secret_kinds[i];
    return "";
}

const char *preset_kind(const char *name)
{
    json_t *file = read_file(name);
    const char *kind = file ? kind_of(file) : NULL;
    json_decref(file);
    return kind;
}

/* A list of one where there is no list. */
static json_t *as_list(json_t *v)
{
    return json_is_array(v) ? json_incref(v) : json_pack("[O]", v);
}

static const char *first_role(const json_t *hosts)
{
    return json_object_iter_key(json_object_iter((json_t *)(uintptr_t)hosts));
}

bool preset_says(const char *name, const char *key, char to[PRESET_WORD_MAX])
{
    json_t *file = read_file(name);
    const char *word = json_string_value(json_object_get(file, key));
    if (word)
        snprintf(to, PRESET_WORD_MAX, "%s", word);
    json_decref(file);
    return word != NULL;
}

void preset_first_role(const char *name, char to[PRESET_WORD_MAX])
{
    json_t *file = read_file(name);
    snprintf(to, PRESET_WORD_MAX, "%s", first_role(json_object_get(file, "hosts")));
    json_decref(file);
}

bool preset_takes_secret(const char *name)
{
    const char *text = preset_text(name);
    return text && strstr(text, SECRET_MARK);
}

/* "{{api}}/v1/x": of each host of that role one pattern. */
static void add_pattern(json_t *to, const json_t *hosts, const char *pattern)
{
    const char *end = strstr(pattern, "}}");
    char role[32];
    if (strncmp(pattern, "{{", 2) != 0 || end == NULL || (size_t)(end - pattern - 2) >= sizeof role)
        abort(); /* our own text, as above */
    snprintf(role, sizeof role, "%.*s", (int)(end - pattern - 2), pattern + 2);
    json_t *list = json_object_get(hosts, role), *all = list ? as_list(list) : json_array(), *host;
    size_t i;
    json_array_foreach(
        all, i, host) if (json_array_append_new(to, json_sprintf("%s%s", json_string_value(host),
                                                                 end + 2)) < 0) abort();
    json_decref(all);
}

void preset_fill(json_t *v, const char *secret)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(v) && strcmp(json_string_value(v), SECRET_MARK) == 0) {
        if (json_string_set(v, secret) < 0)
            abort(); /* memory is out */
    }
    json_object_foreach(v, key, item) preset_fill(item, secret);
    json_array_foreach(v, i, item) preset_fill(item, secret);
}

/* What only reads; a WebSocket does more. */
static void narrow(json_t *rules)
{
    for (size_t i = json_array_size(rules); i-- > 0;) {
        json_t *rule = json_array_get(rules, i);
        bool git = json_object_get(rule, "git") != NULL;
        if (json_object_get(rule, "websocket"))
            json_array_remove(rules, i);
        else if (json_object_set_new(rule, git ? "git" : "access",
                                     json_string(git ? "fetch" : "read-only")) < 0)
            abort();
    }
}

/* The rules with these hosts and this secret. One whose hosts are none is left out. */
static json_t *make(const json_t *file, const char *which, const json_t *hosts, const char *secret)
{
    json_t *rules = json_incref(json_object_get(file, which)), *rule, *item;
    for (size_t i = json_array_size(rules); i-- > 0;) {
        size_t k;
        rule = json_array_get(rules, i);
        json_t *allow = as_list(json_object_get(rule, "allow")), *made = json_array();
        json_array_foreach(allow, k, item) add_pattern(made, hosts, json_string_value(item));
        json_decref(allow);
        bool any = json_array_size(made) > 0;
        if (json_object_set_new(rule, "allow", made) < 0)
            abort();
        if (!any)
            json_array_remove(rules, i);
    }
    preset_fill(rules, secret);
    return rules;
}

json_t *preset_rules(const char *name, const char *secret, const json_t *hosts, bool read_only)
{
    json_t *file = read_file(name), *own = json_object_get(file, "hosts"), *one = NULL;
    if (file == NULL)
        return NULL;
    bool is_one = json_is_string(hosts) && json_object_get(file, "one_host");
    if (hosts && !json_is_object(hosts))
        one = json_pack("{s:O}", is_one ? "host" : first_role(own), hosts);
    json_t *rules = make(file, is_one ? "one_host" : "rules",
                         one     ? one
                         : hosts ? hosts
                                 : own,
                         secret);
    if (read_only)
        narrow(rules);
    json_decref(one);
    json_decref(file);
    return rules;
}

static bool is_under(const json_t *file, const char *host)
{
    json_t *end;
    size_t i;
    json_array_foreach(json_object_get(file, "under"), i, end)
    {
        struct slice suffix = slice_str(json_string_value(end)), h = slice_str(host);
        if (h.n > suffix.n && slice_ieq((struct slice){h.p + h.n - suffix.n, suffix.n}, suffix))
            return true;
    }
    return false;
}

/* The hosts that its rules send the secret to, of which this is one. */
static bool sends_to(const json_t *rules, const char *host)
{
    size_t i, k, n = strlen(host);
    json_t *rule, *item;
    json_array_foreach(rules, i, rule) if (json_object_get(rule, "with"))
        json_array_foreach(json_object_get(rule, "allow"), k, item)
    {
        const char *text = json_string_value(item);
        if (strncasecmp(text, host, n) == 0 && (text[n] == 0 || text[n] == '/'))
            return true;
    }
    return false;
}

/* Of the first preset that knows the host: all its rules, for the hosts it has or, under one of its
 * ends, for this host. NULL: none does. */
static json_t *rules_by_host(const char *host, const char *secret, const char **kind)
{
    json_t *rules = NULL;
    for (const struct built_in *f = preset_files; f->name && rules == NULL; f++) {
        json_t *file = read_file(f->name), *own = json_object_get(file, "hosts");
        json_t *one = is_under(file, host) ? json_pack("{s:s}", first_role(own), host) : NULL;
        *kind = kind_of(file);
        rules = make(file, "rules", one ? one : own, secret);
        if (!sends_to(rules, host)) {
            json_decref(rules);
            rules = NULL;
        }
        json_decref(one);
        json_decref(file);
    }
    return rules;
}

const char *preset_kind_for_host(const char *host)
{
    const char *kind = "";
    json_t *rules = rules_by_host(host, "", &kind);
    bool known = rules != NULL;
    json_decref(rules);
    return known ? kind : "";
}

/* Leave in `allow` only the patterns of this host. */
static bool keep_host(json_t *rule, const char *host)
{
    json_t *kept = json_array(), *item;
    size_t i, n = strlen(host);
    json_array_foreach(json_object_get(rule, "allow"), i, item)
    {
        const char *text = json_string_value(item);
        if (strncasecmp(text, host, n) == 0 && (text[n] == 0 || text[n] == '/'))
            json_array_append(kept, item);
    }
    bool any = json_array_size(kept) > 0;
    json_object_set_new(rule, "allow", kept);
    return any;
}

json_t *preset_rules_for_host(const char *host, const char *secret)
{
    const char *kind;
    json_t *rules = rules_by_host(host, secret, &kind);
    for (size_t i = json_array_size(rules); i-- > 0;) {
        json_t *rule = json_array_get(rules, i);
        if (!json_object_get(rule, "with") || !keep_host(rule, host))
            json_array_remove(rules, i);
    }
    return rules;
}

/* ---- preset_hosts ---- */

/* plain: a registry without TLS may be named, too; no preset that sends a secret has such hosts. */
static int host_ok(const struct node *n, const char *text, bool plain, struct err *err)
{
    const char *host = plain && strncmp(text, "http://", 7) == 0 ? text + 7 : text;
    if (host[0] && !strpbrk(host, "/{}*? "))
        return 0;
    return node_fail(n, err, "'%.60s' is not a host: write the name alone (and a port, if need be)",
                     text);
}

static int hosts_ok(const struct node *n, bool plain, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0 || host_ok(&item, text, plain, err) < 0)
            return -1;
    }
    return 0;
}

/* { api: HOST, git: [HOST] }: a role that is not named has no host, so that a secret of yours never
 * goes to where the preset would have sent it. */
static int roles_ok(const struct node *n, const json_t *own, const char *name, bool plain,
                    struct err *err)
{
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        if (!json_object_get(own, at.key))
            return node_fail(&at, err,
                             "preset '%s' has no host called '%.40s'; `durward preset "
                             "show %s` says which it has",
                             name, at.key, name);
        if (hosts_ok(&at, plain, err) < 0)
            return -1;
    }
    return 0;
}

/* No host was given for the first role, and none is known. */
static int no_hosts(const json_t *file, const char *name, const struct node *use, struct err *err)
{
    const char *write = json_string_value(json_object_get(file, "write"));
    if (write == NULL)
        return node_fail(use, err, "preset '%s' needs 'preset_hosts': which hosts are yours", name);
    return node_fail(use, err,
                     "preset '%s' takes its hosts from the configuration of its program on this "
                     "host, which names none; write %s; or name them with 'preset_hosts'. `durward "
                     "preset show %s` says where it looks",
                     name, write, name);
}

int preset_hosts_check(const char *name, const struct node *use, const struct node *hosts,
                       struct err *err)
{
    json_t *file = read_file(name), *own = json_object_get(file, "hosts");
    bool roles = hosts && json_is_object(hosts->value), found = json_object_get(file, "found");
    bool plain = found && !preset_takes_secret(name);
    const json_t *first = json_object_get(own, first_role(own));
    int r = 0;
    if (roles)
        r = roles_ok(hosts, own, name, plain, err);
    else if (hosts)
        r = hosts_ok(hosts, plain, err);
    if (r == 0 && hosts && !roles && json_object_size(own) > 1 && !found &&
        !(json_is_string(hosts->value) && json_object_get(file, "one_host")))
        r = node_fail(hosts, err,
                      "preset '%s' has several hosts; say which is which: `durward "
                      "preset show %s`",
                      name, name);
    if (r == 0 &&
        (hosts == NULL || (roles && found && !json_object_get(hosts->value, first_role(own)))) &&
        json_is_array(first) && json_array_size(first) == 0)
        r = no_hosts(file, name, use, err);
    json_decref(file);
    return r;
}
