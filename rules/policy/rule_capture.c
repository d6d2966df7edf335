/* `capture`: secrets that stand in a reply, and what they are called from there on. */
#include <string.h>

#include "rule.h"

/* Names of members, or "*" for any member or element, with dots between. */
static bool path_ok(const char *s)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    unsigned depth = 0;
    if (strlen(s) > CAPTURE_PATH_MAX)
        return false;
    for (;;) {
        size_t n = s[0] == '*' ? 1 : strspn(s, letters);
        if (n == 0 || ++depth > CAPTURE_DEPTH_MAX || (s[n] && s[n] != '.'))
            return false;
        if (s[n] == 0)
            return true;
        s += n + 1;
    }
}

static int read_target(struct arena *a, const struct node *n, const json_t *secrets,
                       const char **ret, struct err *err)
{
    const char *name;
    if (node_string(n, &name, err) < 0 || rule_secret_known(n, name, secrets, err) < 0)
        return -1;
    if (secrets && !json_object_get(json_object_get(secrets, name), "captured"))
        return node_fail(n, err,
                         "'%s' has a value of its own; declare '%s-token: { captured: {} }' under "
                         "'secrets' and name that",
                         name, name);
    *ret = arena_str(a, name);
    return 0;
}

int rule_capture_read(struct arena *a, const struct node *rule, const json_t *secrets,
                      struct rule *ret, struct err *err)
{
    struct node n;
    if (!node_get(rule, "capture", &n))
        return 0;
    if (ret->credential == NULL)
        return node_fail(&n, err, "'capture' goes with 'with': this rule has no credential");
    if (node_get(rule, "websocket", &n))
        return node_fail(&n, err, "'capture' is for whole replies, not for a WebSocket");
    node_get(rule, "capture", &n);
    if (node_is_object(&n, err) < 0)
        return -1;
    size_t count = json_object_size(n.value);
    if (count == 0 || count > CAPTURES_MAX)
        return node_fail(&n, err,
                         "'capture' names 1 to %d fields, such as { access_token: SECRET }",
                         CAPTURES_MAX);
    struct capture *all = arena_zalloc(a, count, sizeof *all);
    ret->captures = all;
    for (void *it = json_object_iter(n.value); it; it = json_object_iter_next(n.value, it)) {
        struct node at;
        const char *path = json_object_iter_key(it);
        node_get(&n, path, &at);
        if (!path_ok(path))
            return node_fail(&at, err,
                             "'%.60s' is not a field of a reply (NAME, NAME.NAME, *.NAME)", path);
        all[ret->n_captures].path = arena_str(a, path);
        if (read_target(a, &at, secrets, &all[ret->n_captures++].secret, err) < 0)
            return -1;
    }
    return 0;
}

static bool captures(struct rule_entry *const *rules, size_t n, const char *secret)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < rules[i]->rule.n_captures; k++)
            if (strcmp(rules[i]->rule.captures[k].secret, secret) == 0)
                return true;
    return false;
}

void rule_capture_mark(struct arena *a, struct rule *r)
{
    struct credential *own = arena_zalloc(a, 1, sizeof *own);
    *own = *r->credential;
    own->captured = true;
    r->credential = own;
}

int rule_captures_settle(struct arena *a, struct rule_entry *const *rules, size_t n,
                         const json_t *secrets, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct credential *c = rules[i]->rule.credential;
        if (c == NULL)
            continue;
        bool made = json_object_get(json_object_get(secrets, c->secret), "captured");
        if (!captures(rules, n, c->secret)) {
            if (made)
                return err_set(err, ERR_PARSE,
                               "%s: '%s' is captured, but no rule of this policy captures it; add "
                               "'capture: { FIELD: %s }' to the rule whose replies hold it",
                               rules[i]->where, c->secret, c->secret);
            continue;
        }
        if (c->kind != CREDENTIAL_BEARER && c->kind != CREDENTIAL_BASIC &&
            c->kind != CREDENTIAL_HEADER && c->kind != CREDENTIAL_PLACEHOLDER &&
            c->kind != CREDENTIAL_AWS)
            return err_set(
                err, ERR_PARSE,
                "%s: a captured secret goes as bearer, basic, header, aws or placeholder",
                rules[i]->where);
        rule_capture_mark(a, &rules[i]->rule);
    }
    return 0;
}
