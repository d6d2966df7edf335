/* Reads a rule whose patterns are of ssh://: repositories under a path, commands, a shell, and the
 * keys that the server may have. */
#include "rule.h"
#include "ssh_rule.h"

#include <stdio.h>
#include <string.h>

static const struct slice mark = SLICE_INIT("ssh://");

bool rule_ssh_is(const struct node *patterns)
{
    size_t count;
    struct node item;
    const char *text;
    if (node_strings(patterns, &count, NULL) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (node_strings_at(patterns, i, &item, &text, NULL) == 0 &&
            slice_starts(slice_str(text), mark))
            return true;
    return false;
}

/* Of an HTTP rule: what only these have. */
int rule_ssh_absent(const struct node *rule, const struct rule *r, struct err *err)
{
    static const char *const keys[] = {"commands", "shell", "terminal", "host_keys"};
    struct node n;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (node_get(rule, keys[i], &n))
            return node_fail(&n, err, "'%s' goes with patterns of ssh://", keys[i]);
    if (r->credential && r->credential->kind == CREDENTIAL_SSH_KEY && node_get(rule, "with", &n))
        return node_fail(&n, err, "'ssh_key' goes with patterns of ssh://");
    return 0;
}

static int check_keys(const struct node *rule, bool deny, struct err *err)
{
    static const char *const fit[] = {"allow",    "with",      "access", "commands", "shell",
                                      "terminal", "host_keys", "refs",   "to"};
    for (void *it = json_object_iter(rule->value); it;
         it = json_object_iter_next(rule->value, it)) {
        const char *key = json_object_iter_key(it);
        struct node at;
        size_t i = 0;
        while (!deny && i < ARRAY_LEN(fit) && strcmp(key, fit[i]) != 0)
            i++;
        if (deny ? strcmp(key, "deny") == 0 : i < ARRAY_LEN(fit))
            continue;
        node_get(rule, key, &at);
        if (strcmp(key, "ask") == 0)
            return node_fail(&at, err, "nobody can be asked about ssh:// yet; 'allow' or 'deny'");
        return node_fail(&at, err, "'%s' has no meaning for ssh://", key);
    }
    return 0;
}

/* ---- what the server may show ---- */

static int read_key(struct arena *a, const struct node *at, const char *text,
                    struct ssh_host_key *ret, struct err *err)
{
    static const char *const types[] = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                        "ecdsa-sha2-nistp521", "ssh-rsa"};
    static const char base64[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    size_t type = strcspn(text, " "), i = 0;
    while (i < ARRAY_LEN(types) && (strlen(types[i]) != type || strncmp(types[i], text, type) != 0))
        i++;
    const char *blob = text + type + (text[type] == ' ');
    size_t n = strspn(blob, base64);
    if (i == ARRAY_LEN(types) || n < 40 || n > SSH_BLOB_MAX || (blob[n] && blob[n] != ' '))
        return node_fail(at, err,
                         "'%.60s' is not a host key: TYPE BASE64, as `ssh-keyscan HOST` prints it "
                         "after the host (ssh-ed25519, ecdsa-sha2-nistp256, 384, 521 or ssh-rsa)",
                         text);
    ret->type = types[i];
    ret->blob = arena_slice(a, (struct slice){blob, n});
    return 0;
}

static int read_host_keys(struct arena *a, const struct node *rule, const struct rule_entry *e,
                          struct ssh_terms *t, struct err *err)
{
    struct node n;
    size_t count;
    if (!node_get(rule, "host_keys", &n)) {
        for (size_t i = 0; i < e->n_arms; i++) {
            const struct pattern *p = &e->arms[i].pattern;
            const struct ssh_host_key *of = NULL;
            size_t k = p->subdomains || p->port != 22 ? 0 : ssh_known_host(p->host.p, &of);
            if (k == 0 || (t->keys && t->keys != of))
                return node_fail(rule, err,
                                 "%s: no key is known for this server; write 'host_keys', a list "
                                 "of what `ssh-keyscan HOST` prints after the host, once you have "
                                 "compared it with what its owner says",
                                 p->text);
            t->keys = of;
            t->n_keys = k;
        }
        return 0;
    }
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > SSH_KEYS_MAX)
        return node_fail(&n, err, "more than %d keys", SSH_KEYS_MAX);
    struct ssh_host_key *keys = arena_zalloc(a, count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(&n, i, &item, &text, err) < 0 ||
            read_key(a, &item, text, &keys[i], err) < 0)
            return -1;
    }
    t->keys = keys;
    t->n_keys = count;
    return 0;
}

/* ---- commands ---- */

static int read_commands(struct arena *a, const struct node *rule, struct ssh_terms *t,
                         struct err *err)
{
    struct node n;
    size_t count;
    if (!node_get(rule, "commands", &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > SSH_COMMANDS_MAX)
        return node_fail(&n, err, "more than %d commands", SSH_COMMANDS_MAX);
    const char **list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(&n, i, &item, &text, err) < 0)
            return -1;
        size_t len = strlen(text);
        for (size_t k = 0; k < len; k++)
            if (text[k] < ' ' || text[k] > '~')
                return node_fail(&item, err, "a command is printable ASCII");
        if (len > SSH_PATTERN_MAX)
            return node_fail(&item, err, "a command is at most %d bytes", SSH_PATTERN_MAX);
        if (text[0] == '*')
            return node_fail(&item, err,
                             "a command's first word is written out: '*' would let the sandbox "
                             "choose the program");
        if (strstr(text, "**"))
            return node_fail(&item, err, "'*' is a part of one word; '**' is none");
        list[i] = arena_str(a, text);
    }
    t->commands = list;
    t->n_commands = count;
    return 0;
}

/* ---- patterns ---- */

struct reading {
    struct arena *arena;
    struct rule_entry *entry;
    uint32_t verbs; /* of patterns with a path: repositories */
    uint32_t runs;  /* exec, shell: of those without */
};

static int add(struct reading *r, const struct node *n, const char *text, struct slice host,
               struct slice user, const char *path, const char *suffix, uint32_t verbs,
               struct err *err)
{
    char full[PATTERN_MAX + 160];
    struct err inner = {0};
    struct rule_arm *arm = &r->entry->arms[r->entry->n_arms];
    snprintf(full, sizeof full, "ssh://%.*s%s%.*s%s%s", SL(host), user.n ? "/" : "", SL(user), path,
             suffix);
    if (pattern_parse(r->arena, full, &arm->pattern, &inner) < 0)
        return node_fail(n, err, "%s", inner.text);
    arm->pattern.text = arena_str(r->arena, text);
    arm->methods = verbs;
    r->entry->n_arms++;
    return 0;
}

/* REPO is REPO.git, too; a "*" or "**" at its end covers both. */
static int add_repository(struct reading *r, const struct node *n, const char *text,
                          struct slice host, struct slice user, const char *path, struct err *err)
{
    char plain[PATTERN_MAX + 1];
    size_t len = strlen(path);
    if (path[len - 1] == '/' || len < 2)
        return node_fail(n, err, "'%.200s': a repository's path does not end in a slash", text);
    if (path[len - 1] == '*')
        return add(r, n, text, host, user, path, "", r->verbs, err);
    if (len > 5 && strcmp(path + len - 4, ".git") == 0 && path[len - 5] != '/')
        len -= 4;
    snprintf(plain, sizeof plain, "%.*s", (int)len, path);
    return add(r, n, text, host, user, plain, "", r->verbs, err) < 0
               ? -1
               : add(r, n, text, host, user, plain, ".git", r->verbs, err);
}

static int read_pattern(struct reading *r, const struct node *n, const char *text, struct err *err)
{
    struct slice rest = slice_str(text), user = {"", 0};
    bool deny = r->entry->deny;
    if (!slice_starts(rest, mark))
        return node_fail(n, err, "'%.200s': a rule has either patterns of ssh:// or others", text);
    if (rest.n > PATTERN_MAX)
        return node_fail(n, err, "a pattern is at most %d bytes", PATTERN_MAX);
    rest = (struct slice){rest.p + mark.n, rest.n - mark.n};
    ssize_t slash = slice_find(rest, '/');
    struct slice host = {rest.p, slash < 0 ? rest.n : (size_t)slash};
    const char *path = slash < 0 ? "" : rest.p + slash;
    ssize_t at = slice_find(host, '@');
    if (at >= 0) {
        user = (struct slice){host.p, (size_t)at};
        host = (struct slice){host.p + at + 1, host.n - (size_t)at - 1};
    }
    if (at >= 0 ? !ssh_user_ok(user) : !deny)
        return node_fail(n, err, "'%.200s': write ssh://USER@HOST, with the user to log in as",
                         text);
    if (at < 0 && *path)
        return node_fail(n, err, "'%.200s': a path is a user's: ssh://USER@HOST/PATH", text);
    if (deny && *path == 0)
        return add(r, n, text, host, user, user.n ? "/**" : "", "", METHODS_ANY, err);
    if (r->runs && *path)
        return node_fail(n, err,
                         "'%.200s': 'commands' and 'shell' are a user's, whatever the path; leave "
                         "it out, and give repositories a rule of their own",
                         text);
    if (r->runs)
        return add(r, n, text, host, user, "", "", r->runs, err);
    if (*path == 0)
        return node_fail(n, err,
                         "'%.200s': say what is allowed there: a path (ssh://USER@HOST/OWNER/**) "
                         "for git, 'commands' or 'shell: true'",
                         text);
    return add_repository(r, n, text, host, user, path, err);
}

static int read_runs(const struct node *rule, struct ssh_terms *t, struct reading *r,
                     struct err *err)
{
    bool shell = false;
    struct node n;
    size_t word;
    if (node_key_bool(rule, "shell", &shell, err) < 0 ||
        node_key_bool(rule, "terminal", &t->terminal, err) < 0 ||
        node_key_word(rule, rule_keys, "access", &word, err) < 0)
        return -1;
    r->verbs = verb_bit(SLICE("fetch"));
    if (r->entry->deny || !node_get(rule, "access", &n))
        r->verbs |= verb_bit(SLICE("push"));
    r->runs =
        (t->n_commands ? verb_bit(SLICE("exec")) : 0) | (shell ? verb_bit(SLICE("shell")) : 0);
    if (t->n_commands == 0 && node_get(rule, "terminal", &n))
        return node_fail(&n, err, "'terminal' is about 'commands'; a shell has one");
    t->terminal = t->terminal || shell;
    if (r->runs && node_get(rule, "access", &n))
        return node_fail(&n, err, "'access' is about repositories, not about commands");
    if (node_get(rule, "refs", &n) && (r->runs || !(r->verbs & verb_bit(SLICE("push")))))
        return node_fail(&n, err, "'refs' narrows pushes; %s",
                         r->runs ? "commands and shells have none" : "this rule fetches");
    return 0;
}

int rule_ssh_read(struct arena *a, const struct node *rule, const struct node *patterns,
                  const json_t *secrets, struct rule_entry *ret, struct err *err)
{
    struct ssh_terms *t = arena_zalloc(a, 1, sizeof *t);
    struct reading r = {.arena = a, .entry = ret};
    struct node n;
    size_t count;
    ret->rule.ssh = t;
    if (check_keys(rule, ret->deny, err) < 0 || read_commands(a, rule, t, err) < 0 ||
        read_runs(rule, t, &r, err) < 0 || node_strings(patterns, &count, err) < 0)
        return -1;
    ret->read_only = node_get(rule, "access", &n);
    ret->arms = arena_zalloc(a, count * 2 + 1, sizeof *ret->arms);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(patterns, i, &item, &text, err) < 0 ||
            read_pattern(&r, &item, text, err) < 0)
            return -1;
    }
    if (ret->deny)
        return 0;
    if (!node_get(rule, "with", &n))
        return node_fail(rule, err, "a rule of ssh:// needs 'with: { ssh_key: SECRET }'");
    if (rule_credential_read(a, &n, secrets, &ret->rule.credential, err) < 0)
        return -1;
    if (ret->rule.credential->kind != CREDENTIAL_SSH_KEY)
        return node_fail(&n, err, "what goes with ssh:// is 'with: { ssh_key: SECRET }'");
    if (rule_refs_read(a, rule, ret, err) < 0)
        return -1;
    return read_host_keys(a, rule, ret, t, err) < 0 ? -1 : rule_to_read(a, rule, &ret->rule, err);
}
