/* Reads a rule whose patterns are of ssh://: repositories under a path, commands, a shell, files,
 * and the keys that the server may have. */
#include "rule_broker.h"
#include "ssh_rule.h"

#include <stdio.h>
#include <string.h>

#include "base64.h"

/* ---- what the server may show ---- */

/* A key's bytes begin with its type, too (RFC 4253, 6.6). */
static bool is_key_of(const char *type, struct slice blob)
{
    unsigned char key[SSH_BLOB_MAX];
    size_t len = strlen(type);
    ssize_t n = blob.n > SSH_BLOB_MAX ? -1 : base64_read(blob, key, sizeof key);
    return n > (ssize_t)len + 4 && key[0] == 0 && key[1] == 0 && key[2] == 0 && key[3] == len &&
           memcmp(key + 4, type, len) == 0;
}

static int read_key(struct arena *a, const struct node *at, const char *text,
                    struct ssh_host_key *ret, struct err *err)
{
    static const char *const types[] = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                        "ecdsa-sha2-nistp521", "ssh-rsa"};
    size_t type = strcspn(text, " "), i = 0;
    while (i < ARRAY_LEN(types) && (strlen(types[i]) != type || strncmp(types[i], text, type) != 0))
        i++;
    const char *blob = text + type + (text[type] == ' ');
    struct slice key = {blob, strcspn(blob, " ")}; /* a comment may follow */
    if (i == ARRAY_LEN(types) || !is_key_of(types[i], key))
        return node_fail(at, err,
                         "'%.60s' is not a host key: TYPE BASE64, as `ssh-keyscan HOST` prints it "
                         "after the host (ssh-ed25519, ecdsa-sha2-nistp256, 384, 521 or ssh-rsa)",
                         text);
    ret->type = types[i];
    ret->blob = arena_slice(a, key);
    return 0;
}

static int read_host_keys(struct rule_broker_reading *r, struct err *err)
{
    const struct rule_entry *e = r->entry;
    struct ssh_terms *t = r->terms;
    struct node n;
    size_t count;
    if (!node_get(r->rule, "host_keys", &n)) {
        for (size_t i = 0; i < e->n_arms; i++) {
            const struct pattern *p = &e->arms[i].pattern;
            const struct ssh_host_key *of = NULL;
            size_t k = p->subdomains || p->port != 22 ? 0 : ssh_known_host(p->host.p, &of);
            if (k == 0 || (t->keys && t->keys != of))
                return node_fail(r->rule, err,
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
    struct ssh_host_key *keys = arena_zalloc(r->arena, count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(&n, i, &item, &text, err) < 0 ||
            read_key(r->arena, &item, text, &keys[i], err) < 0)
            return -1;
    }
    t->keys = keys;
    t->n_keys = count;
    return 0;
}

/* ---- commands ---- */

int rule_commands_read(struct arena *a, const struct node *n, const char *const **ret,
                       size_t *n_ret, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > SSH_COMMANDS_MAX)
        return node_fail(n, err, "more than %d commands", SSH_COMMANDS_MAX);
    const char **list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0)
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
    *ret = list;
    *n_ret = count;
    return 0;
}

static int read_commands(struct arena *a, const struct node *rule, struct ssh_terms *t,
                         struct err *err)
{
    struct node n;
    return node_get(rule, "commands", &n)
               ? rule_commands_read(a, &n, &t->commands, &t->n_commands, err)
               : 0;
}

/* ---- files ---- */

static int check_path(const struct node *item, const char *text, struct err *err)
{
    return ssh_file_pattern_ok(slice_str(text))
               ? 0
               : node_fail(item, err,
                           "'%.100s' is not a path of the server's as '/srv/app/*.log', "
                           "'/srv/app/**' or '~/reports/**' ('**' only at the end)",
                           text);
}

static bool has_files(const struct ssh_files *f)
{
    return f->n[SSH_FILE_READ] || f->n[SSH_FILE_WRITE] || f->n[SSH_FILE_REMOVE];
}

static int read_files(struct arena *a, const struct node *rule, struct ssh_files *f,
                      struct err *err)
{
    static const char *const rights[SSH_FILE_RIGHTS] = {"read_files", "write_files",
                                                        "remove_files"};
    static const char *const beside[] = {"hidden_files", "file_megabytes"};
    unsigned megabytes = 0;
    struct node n;
    for (unsigned r = 0; r < SSH_FILE_RIGHTS; r++)
        if (rule_broker_patterns(a, rule, rights[r], SSH_FILE_PATTERNS_MAX, check_path,
                                 &f->patterns[r], &f->n[r], err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(beside); i++)
        if (!has_files(f) && node_get(rule, beside[i], &n))
            return node_fail(&n, err, "'%s' is about 'read_files', 'write_files', 'remove_files'",
                             beside[i]);
    if (node_key_bool(rule, "hidden_files", &f->hidden, err) < 0 ||
        node_key_uint(rule, rule_keys, "file_megabytes", &megabytes, err) < 0)
        return -1;
    f->most_bytes = (uint64_t)megabytes * 1000000;
    return 0;
}

/* ---- recordings ---- */

static int read_record(const struct node *rule, struct ssh_terms *t, struct err *err)
{
    struct node n;
    size_t word = 0;
    unsigned megabytes = 1;
    bool there = node_get(rule, "record", &n);
    if (there && t->n_commands == 0 && !t->shell)
        return node_fail(&n, err, "'record' is about 'commands' and 'shell'");
    if (!there && node_get(rule, "record_megabytes", &n))
        return node_fail(&n, err, "'record_megabytes' is about 'record'");
    bool redacts = node_get(rule, "record_redact", &n);
    if (!there && redacts)
        return node_fail(&n, err, "'record_redact' is about 'record'");
    if (redacts && rule_detectors_read(&n, &t->record_redact, err) < 0)
        return -1;
    if (node_key_word(rule, rule_keys, "record", &word, err) < 0 ||
        node_key_uint(rule, rule_keys, "record_megabytes", &megabytes, err) < 0)
        return -1;
    t->record_typed = there && word == 1;
    t->record_bytes = there ? (uint64_t)megabytes * 1000000 : 0;
    return 0;
}

/* ---- targets ---- */

static int check_target(const struct node *item, const char *text, struct err *err)
{
    struct ssh_target t;
    if (strlen(text) >= SSH_TARGET_TEXT_MAX || ssh_target_parse(slice_str(text), &t) < 0)
        return node_fail(item, err,
                         "'%.100s' is not a target as 'db.internal:5432', '.internal:443', "
                         "'10.0.0.0/8:22' or '[fd00::1]:*'",
                         text);
    if (t.subdomains && pattern_public_suffix(t.host.host))
        return node_fail(item, err, "'%.100s': anyone can get a name under '%s'; name the hosts",
                         text, t.host.host);
    return 0;
}

static int read_targets(struct arena *a, const struct node *rule, struct ssh_terms *t,
                        struct err *err)
{
    const char *const *texts = NULL;
    if (rule_broker_patterns(a, rule, "forward", SSH_TARGETS_MAX, check_target, &texts,
                             &t->n_targets, err) < 0)
        return -1;
    struct ssh_target *list = arena_zalloc(a, t->n_targets + 1, sizeof *list);
    for (size_t i = 0; i < t->n_targets; i++)
        (void)ssh_target_parse(slice_str(texts[i]), &list[i]); /* it was read once */
    t->targets = list;
    return 0;
}

/* ---- patterns ---- */

static int add(struct rule_broker_reading *r, const struct node *n, const char *text,
               struct slice host, struct slice user, const char *path, const char *suffix,
               uint32_t verbs, struct err *err)
{
    char full[PATTERN_MAX + 160];
    snprintf(full, sizeof full, "ssh://%.*s%s%.*s%s%s", SL(host), user.n ? "/" : "", SL(user), path,
             suffix);
    return rule_broker_arm(r, n, full, text, verbs, err);
}

/* REPO is REPO.git, too; a "*" or "**" at its end covers both. */
static int add_repository(struct rule_broker_reading *r, const struct node *n, const char *text,
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

static int read_pattern(struct rule_broker_reading *r, const struct node *n, const char *text,
                        struct slice rest, struct err *err)
{
    struct slice user = {"", 0};
    bool deny = r->entry->deny;
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
        return node_fail(
            n, err,
            "'%.200s': 'commands', 'shell', files and 'forward' are a user's, whatever "
            "the path; leave it out, and give repositories a rule of their own",
            text);
    if (r->runs)
        return add(r, n, text, host, user, "", "", r->runs, err);
    if (*path == 0)
        return node_fail(n, err,
                         "'%.200s': say what is allowed there: a path (ssh://USER@HOST/OWNER/**) "
                         "for git, 'commands', 'shell: true', 'read_files' and 'write_files', or "
                         "'forward'",
                         text);
    return add_repository(r, n, text, host, user, path, err);
}

static int read_terms(struct rule_broker_reading *r, struct err *err)
{
    struct ssh_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    struct node n;
    size_t word;
    r->entry->rule.ssh = r->terms = t;
    if (read_commands(r->arena, r->rule, t, err) < 0 ||
        read_files(r->arena, r->rule, &t->files, err) < 0 ||
        read_targets(r->arena, r->rule, t, err) < 0 ||
        node_key_bool(r->rule, "shell", &t->shell, err) < 0 ||
        node_key_bool(r->rule, "terminal", &t->terminal, err) < 0 ||
        read_record(r->rule, t, err) < 0 ||
        node_key_word(r->rule, rule_keys, "access", &word, err) < 0)
        return -1;
    r->verbs = verb_bit(SLICE("fetch"));
    if (r->entry->deny || !node_get(r->rule, "access", &n))
        r->verbs |= verb_bit(SLICE("push"));
    r->runs = (t->n_commands || t->shell ? verb_bit(SLICE("exec")) : 0) |
              (t->shell ? verb_bit(SLICE("shell")) : 0) |
              (has_files(&t->files) ? verb_bit(SLICE("sftp")) : 0) |
              (t->n_targets ? verb_bit(SLICE("connect")) : 0);
    if (t->n_commands == 0 && node_get(r->rule, "terminal", &n))
        return node_fail(&n, err, "'terminal' is about 'commands'; a shell has one");
    t->terminal = t->terminal || t->shell;
    if (r->runs && node_get(r->rule, "access", &n))
        return node_fail(&n, err, "'access' is about repositories alone");
    if (node_get(r->rule, "refs", &n) && (r->runs || !(r->verbs & verb_bit(SLICE("push")))))
        return node_fail(&n, err, "'refs' narrows pushes; %s",
                         r->runs ? "commands and shells have none" : "this rule fetches");
    return 0;
}

static int read_server(struct rule_broker_reading *r, struct err *err)
{
    return rule_refs_read(r->arena, r->rule, r->entry, err) < 0 ? -1 : read_host_keys(r, err);
}

static const char *const keys[] = {
    "commands",     "shell",        "terminal",       "host_keys", "read_files", "write_files",
    "remove_files", "hidden_files", "file_megabytes", "forward",   "record",     "record_megabytes",
    "record_redact"};

static const struct rule_broker_with others[] = {
    {"ssh_certificate", CREDENTIAL_SSH_CERTIFICATE},
    {"ssh_password", CREDENTIAL_SSH_PASSWORD},
};

const struct rule_broker rule_ssh = {
    .mark = SLICE_INIT("ssh://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .also = "refs",
    .with = "ssh_key",
    .kind = CREDENTIAL_SSH_KEY,
    .others = others,
    .n_others = ARRAY_LEN(others),
    .arms = 2, /* a repository and its other name */
    .terms = read_terms,
    .pattern = read_pattern,
    .server = read_server,
};
