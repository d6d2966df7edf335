#include <stdlib.h>
#include <string.h>

#include "config_tree.h"
#include "yaml_tree.h"

#define SECRET_MARK "{{secret}}"

static const char github[] =
    "# github: REST, GraphQL, uploads, and git over https with one token. Downloads that GitHub\n"
    "# redirects to carry no credential. `access: read-only` narrows git to fetch.\n"
    "kind: github-pat\n"
    "rules:\n"
    "  - allow: [api.github.com, uploads.github.com]\n"
    "    with: { bearer: \"{{secret}}\" }\n"
    "  - allow: github.com/*/*\n"
    "    git: push\n"
    "    with: { basic: { user: x-access-token, password: \"{{secret}}\" } }\n"
    "  - allow:\n"
    "      - github.com/*/*/releases/download/**\n"
    "      - github.com/*/*/archive/**\n"
    "      - codeload.github.com\n"
    "      - objects.githubusercontent.com\n"
    "      - release-assets.githubusercontent.com\n"
    "      - raw.githubusercontent.com\n"
    "    access: read-only\n";

static const char openai[] = "# openai: the API, with a bearer key.\n"
                             "kind: openai\n"
                             "rules:\n"
                             "  - allow: api.openai.com/v1/**\n"
                             "    with: { bearer: \"{{secret}}\" }\n";

static const char anthropic[] =
    "# anthropic: the API, with its key header.\n"
    "kind: anthropic\n"
    "rules:\n"
    "  - allow: api.anthropic.com/v1/**\n"
    "    with: { header: { name: x-api-key, secret: \"{{secret}}\" } }\n";

static const struct {
    const char *name, *kind, *text;
    const char *hosts[4]; /* to which its rules send the secret */
} presets[] = {
    {"github", "github-pat", github, {"api.github.com", "uploads.github.com", "github.com"}},
    {"openai", "openai", openai, {"api.openai.com"}},
    {"anthropic", "anthropic", anthropic, {"api.anthropic.com"}},
};

const char *const secret_kinds[] = {"github-pat", "openai", "anthropic"};
const size_t n_secret_kinds = ARRAY_LEN(secret_kinds);

static ssize_t by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
            return (ssize_t)i;
    return -1;
}

static ssize_t by_host(const char *host)
{
    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        for (size_t j = 0; j < ARRAY_LEN(presets[i].hosts) && presets[i].hosts[j]; j++)
            if (strcasecmp(presets[i].hosts[j], host) == 0)
                return (ssize_t)i;
    return -1;
}

const char *preset_name(size_t i)
{
    return i < ARRAY_LEN(presets) ? presets[i].name : NULL;
}

const char *preset_text(const char *name)
{
    ssize_t i = by_name(name);
    return i < 0 ? NULL : presets[i].text;
}

const char *preset_kind(const char *name)
{
    ssize_t i = by_name(name);
    return i < 0 ? NULL : presets[i].kind;
}

const char *preset_kind_for_host(const char *host)
{
    ssize_t i = by_host(host);
    return i < 0 ? "" : presets[i].kind;
}

/* Put the name wherever the mark stands. */
static void fill(json_t *v, const char *secret)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(v) && strcmp(json_string_value(v), SECRET_MARK) == 0) {
        if (json_string_set(v, secret) < 0)
            abort(); /* memory is out */
    }
    json_object_foreach(v, key, item) fill(item, secret);
    json_array_foreach(v, i, item) fill(item, secret);
}

/* The preset's rules as they stand in its text. */
static json_t *rules_of(size_t preset)
{
    json_t *root, *lines;
    if (yaml_tree_parse(slice_str(presets[preset].text), presets[preset].name, &root, &lines,
                        NULL) < 0)
        abort(); /* our own text: every preset is parsed by the unit tests */
    json_t *rules = json_incref(json_object_get(root, "rules"));
    json_decref(root);
    json_decref(lines);
    return rules;
}

json_t *preset_rules(const char *name, const char *secret, bool read_only)
{
    ssize_t preset = by_name(name);
    if (preset < 0)
        return NULL;
    json_t *rules = rules_of((size_t)preset), *rule;
    size_t i;
    fill(rules, secret);
    json_array_foreach(rules, i, rule)
    {
        bool git = json_object_get(rule, "git") != NULL;
        if (read_only && json_object_set_new(rule, git ? "git" : "access",
                                             json_string(git ? "fetch" : "read-only")) < 0)
            abort();
    }
    return rules;
}

/* Leave in `allow` only the patterns of this host. */
static bool keep_host(json_t *rule, const char *host)
{
    json_t *allow = json_object_get(rule, "allow"), *kept = json_array(), *item;
    size_t i, n = strlen(host);
    json_t *all = json_is_array(allow) ? json_incref(allow) : json_pack("[O]", allow);
    json_array_foreach(all, i, item)
    {
        const char *text = json_string_value(item);
        if (strncasecmp(text, host, n) == 0 && (text[n] == 0 || text[n] == '/'))
            json_array_append(kept, item);
    }
    bool any = json_array_size(kept) > 0;
    json_decref(all);
    json_object_set_new(rule, "allow", kept);
    return any;
}

json_t *preset_rules_for_host(const char *host, const char *secret)
{
    ssize_t preset = by_host(host);
    if (preset < 0)
        return NULL;
    json_t *rules = rules_of((size_t)preset);
    fill(rules, secret);
    for (size_t i = json_array_size(rules); i-- > 0;) {
        json_t *rule = json_array_get(rules, i);
        if (!json_object_get(rule, "with") || !keep_host(rule, host))
            json_array_remove(rules, i);
    }
    return rules;
}
