/* Reads a rule's mapping: its patterns, methods, git endpoints and guards. Other keys have readers
 * in rule_*.c, which rule_read calls in the order in which they depend on one another. */
#include "rule.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "nearest.h"
#include "quantity.h"
#include "rule_broker.h"

/* on: which rules may have it. */
#define RULE_KEY(key, type, on, standard, meaning) KEY(key, type, standard, meaning)
const struct key rule_keys[] = {
    RULE_KEY("allow", AS(strings), "", "", "list or one of patterns, at most 4096"),
    RULE_KEY("deny", AS(strings), "", "", "list or one of patterns"),
    RULE_KEY("use", AS(text), "", "", "the name of a preset, see *Presets*"),
    RULE_KEY("secret", AS(name), "", "", ""),
    RULE_KEY("access", WORDS("read-only"), "allow", "every method",
             "`read-only`: the methods GET, HEAD, OPTIONS"),
    RULE_KEY("methods", AS(methods), "allow, deny", "every method",
             "list or one of methods, in capitals. Not beside `access`"),
    RULE_KEY("with", REF(credential), "allow", "none", "the credential, see *Credentials*"),
    RULE_KEY("commands", AS(strings), "allow of `ssh://`, `redis://`", "none",
             "list or one of commands that the server may be asked to run, at most 64 of 256 "
             "bytes; `*` is a part of one word. See *SSH* and *Redis*"),
    RULE_KEY(
        "shell", AS(bool), "allow of `ssh://`", "`false`",
        "`true`: an interactive shell, in which nobody reads what is typed, and any command. See "
        "*SSH*"),
    RULE_KEY("terminal", AS(bool), "allow of `ssh://`", "`false`",
             "`true`: the commands may have a terminal, on which pagers and editors give a shell. "
             "See *SSH*"),
    RULE_KEY("read_files", AS(strings), "allow of `ssh://`", "none",
             "list or one of paths on the server that may be read and listed over SFTP, at most 64 "
             "of 256 bytes: `/srv/app/*.log`, `~/reports/**`. See *Files over SSH*"),
    RULE_KEY("write_files", AS(strings), "allow of `ssh://`", "none",
             "the same of those that may be written and made. See *Files over SSH*"),
    RULE_KEY("remove_files", AS(strings), "allow of `ssh://`", "none",
             "the same of those that may be removed and renamed. See *Files over SSH*"),
    RULE_KEY("hidden_files", AS(bool), "allow of `ssh://`", "`false`",
             "`true`: a `*` in these stands for names that begin with a dot, too"),
    RULE_KEY("file_megabytes", UINT(1, 1000000), "allow of `ssh://`", "any number",
             "how much of one file may be read or written over SFTP, 1 to 1000000 (of 1000000 "
             "bytes)"),
    RULE_KEY("record", WORDS("output", "all"), "allow of `ssh://`", "nothing",
             "`output`: what commands and shells say goes into the log, as a recording of a "
             "terminal; `all`: what is typed, too, passwords among it. See *SSH*"),
    RULE_KEY("record_redact", AS(strings), "allow of `ssh://`", "nothing",
             "list or one of detectors (as of `redact`): what they find is made unreadable in the "
             "recording, and nowhere else. See *SSH*"),
    RULE_KEY("record_megabytes", UINT(1, 100), "allow of `ssh://`", "1",
             "how large a recording may get, 1 to 100 (of 1000000 bytes); then it stops"),
    RULE_KEY("forward", AS(strings), "allow of `ssh://`", "none",
             "list or one of targets that the server may connect to for the sandbox, at most 64: "
             "`db.internal:5432`, `.internal:443`, `10.0.0.0/8:22`, `[fd00::1]:*`. See *SSH*"),
    RULE_KEY("host_keys", AS(strings), "allow of `ssh://`",
             "those that github.com, gitlab.com and bitbucket.org publish",
             "list or one of the server's public keys, `TYPE BASE64`, at most 16. A server that "
             "shows another one gets nothing"),
    RULE_KEY("role", AS(text), "allow of `postgres://`", "that of the login",
             "the role that a session has and may not leave. See *PostgreSQL*"),
    RULE_KEY("user", AS(text), "allow of `postgres://`", "the certificate's common name",
             "as whom to log in where `with` has a `client_certificate` alone. See *PostgreSQL*"),
    RULE_KEY("statements", AS(strings), "allow of `postgres://`, `mysql://`", "all of them",
             "list or one of `read`, `write`, `define`, `transaction`, `session`, `listen`: what "
             "statements a session may use; `listen` is PostgreSQL's alone. See *PostgreSQL* and "
             "*MySQL*"),
    RULE_KEY("multi_statements", AS(bool), "allow of `mysql://`", "`false`",
             "`true`: several statements may stand in one text. See *MySQL*"),
    RULE_KEY("local_infile", AS(bool), "allow of `mysql://`", "`false`",
             "`true`: `LOAD DATA LOCAL INFILE`; the server names the file of the sandbox's that it "
             "then reads, and is believed. See *MySQL*"),
    RULE_KEY("activity", AS(bool), "allow of `postgres://`, `mysql://`", "`false`",
             "`true`: a session sees what other sessions of its login say, those of other "
             "sandboxes among them. See *PostgreSQL* and *MySQL*"),
    RULE_KEY("rows", UINT(1, 1000000000), "allow of `postgres://`, `mysql://`", "any number",
             "rows that a session may get, 1 to 1000000000; then it ends"),
    RULE_KEY("keys", AS(strings), "allow of `redis://`", "any",
             "list or one of patterns of keys and channels that commands may name, at most 64 of "
             "256 bytes; `*` is any part. See *Redis*"),
    RULE_KEY("database", UINT(0, 1000000), "allow of `redis://`", "any",
             "the number of the database that a session has and may not leave"),
    RULE_KEY("megabytes", UINT(1, 1000000),
             "allow of `postgres://`, `redis://`, `mysql://`, `imap://`", "any number",
             "what a session may get, 1 to 1000000 (of 1000000 bytes); then it ends"),
    RULE_KEY("seconds", UINT(1, 604800),
             "allow of `postgres://`, `redis://`, `mysql://`, `imap://`", "as long as it likes",
             "how long a session may last, 1 to 604800"),
    RULE_KEY("recipients", AS(strings), "allow of `smtp://`", "any",
             "list or one of addresses to which messages may go, at most 64: `ops@example.com`, "
             "`*@example.com`, `*@*.example.com`. See *Mail*"),
    RULE_KEY("senders", AS(strings), "allow of `smtp://`", "any",
             "the same of the address from which they come, that of the envelope. See *Mail*"),
    RULE_KEY("message_recipients", UINT(1, 100), "allow of `smtp://`", "100",
             "to how many one message may go, 1 to 100"),
    RULE_KEY("message_megabytes", UINT(1, 150), "allow of `smtp://`, `imap://`", "25",
             "how large a message may be, 1 to 150 (of 1000000 bytes)"),
    RULE_KEY("folders", AS(strings), "allow of `imap://`", "any",
             "list or one of patterns of mailboxes, at most 64 of 256 bytes: `INBOX`, `Archive/*`; "
             "`*` is any part. See *Mailboxes*"),
    RULE_KEY("actions", AS(strings), "allow of `imap://`", "all of them",
             "list or one of `read`, `flag`, `append`, `copy`, `delete`, `manage`: what a session "
             "may do beside reading. See *Mailboxes*"),
    RULE_KEY("session_commands", UINT(1, 1000000), "allow of `imap://`", "any number",
             "how many commands a session may say to the server, 1 to 1000000; then it ends"),
    RULE_KEY("git", WORDS("fetch", "push"), "allow", "", "`fetch` or `push`, see *Git*"),
    RULE_KEY("set_headers", OWN, "allow", "none",
             "mapping of request header to value, at most 64 edits"),
    RULE_KEY("remove_headers", AS(strings), "allow", "none", "list or one of request headers"),
    RULE_KEY("not_credentials", AS(strings), "allow with `with`", "none",
             "list or one of request headers that look like a credential of the client's own and "
             "are none (`x-foo-token`). Fields that known APIs read keys from (`authorization`, "
             "`x-api-key`, cookies, ...) cannot stand here; a value in the shape of a published "
             "token is refused in these fields too"),
    RULE_KEY("client_credential", WORDS("refuse", "replace", "pass"), "allow with `with`",
             "`refuse`",
             "what happens when the client sends a credential of its own that is not its "
             "placeholder: `refuse` (403), `replace`, `pass`"),
    RULE_KEY(
        "cookies", WORDS("drop", "pass"), "allow with `with`", "`drop`",
        "`drop` or `pass`: the fields Cookie and Set-Cookie. On a rule without `with` they pass"),
    RULE_KEY("websocket", AS(bool), "allow", "`false`",
             "`true`: a request may become a WebSocket. Its frames are read and checked, "
             "extensions (compression) are never agreed on"),
    RULE_KEY(
        "ranges", AS(bool), "allow", "`false`",
        "`true`: Range passes as it came. Only for origins that reflect nothing: a part that cuts "
        "a reflected secret in two cannot be searched for it. Where it is `false`, one plain part "
        "is asked for with 48 KiB more on each side, and the client gets what it asked for; of "
        "several parts at once, and where replies are captured or messages read (`capture`, `mcp`, "
        "`llm`), the whole is answered. On a rule without `with` Range passes "
        "anyway, unless another rule sends a secret to the same host, see *What comes back*"),
    RULE_KEY("ask", AS(strings), "", "",
             "the same: such a request is held until somebody lets it go, see *Approval*. Deny "
             "goes before ask, and ask before allow, however narrow they are"),
    RULE_KEY("budget", REF(budget), "allow", "none",
             "mapping of `requests`, `upload`, `download`, `tokens`, `cost`, see *Budgets*"),
    RULE_KEY("to", AS(strings), "allow", "none",
             "list or one of address ranges (`10.0.0.0/8`, `fd00::/8`; at most a /8, IPv6 /7, 64 "
             "of them): private, loopback or other special addresses that the rule's hosts may "
             "lead to. Other names stay barred from them, and no rule opens Durward's own "
             "listeners. It holds for the whole host and port, not for the rule's path alone; "
             "rules with a credential and rules without open for themselves only, but at a host "
             "that gets a secret (*What comes back*) for both"),
    RULE_KEY("refs", OWN, "allow with `git: push`, or of `ssh://`", "every one",
             "list or one of references, or a mapping, see *Git*"),
    RULE_KEY("query", OWN, "allow", "any query",
             "mapping of parameter to `\"*\"`, a value, or a list of values. Only these parameters "
             "may be there, each at most once; `{}` allows no query at all. Names and values are "
             "compared with their percent escapes decoded once; a query that readers could take "
             "apart differently (`;`, `+`, a broken or nested escape) is refused. Code `query`"),
    RULE_KEY("headers", OWN, "allow", "no condition",
             "mapping of header to `\"*\"`, a value, or a list of values: each must be there, "
             "once, with such a value. Not for headers that carry credentials or frame the "
             "message. Code `header`"),
    RULE_KEY("graphql", OWN, "allow", "",
             "`read-only`, a list of operation names, or a mapping, see *Bodies*"),
    RULE_KEY(
        "tunnel", AS(bool), "allow", "`false`",
        "`true`: the TLS of client and origin passes unread, for clients that pin certificates or "
        "speak no HTTP. Patterns are one host each (with a port or without), no path; beside it "
        "only `to`. **Nothing is known of what goes through but its size**, nor does the name that "
        "TLS says bind what is asked inside. A load error beside any rule that sends a credential "
        "to the same host, or is about its paths or methods on the same port. The connection must "
        "begin with a ClientHello whose name agrees"),
    RULE_KEY("mcp", OWN, "allow", "",
             "mapping of `tools`, `methods`, `resources`, `prompts`, `on_refused`, `server`, see "
             "*Bodies*"),
    RULE_KEY(
        "kubernetes", OWN, "allow, ask", "",
        "mapping, or a list of them, of `verbs`, `resources`, `namespaces`, `names`, `commands`: "
        "what the API server of a cluster may be asked, see *Kubernetes*"),
    RULE_KEY("llm", OWN, "allow", "",
             "whose form calls to models have here, or a mapping of `api`, `models`, `max_tokens`, "
             "`assume`, see *Calls to models*"),
    RULE_KEY("capture", OWN, "allow with `with`", "none",
             "new secrets in replies, see *Secrets in replies*"),
    RULE_KEY("on_reflect", WORDS("redact", "block", "kill"), "allow with `with`", "`redact`",
             "what becomes of a reply in which the secret comes back: `redact` (taken out, same "
             "length), or `block`: 502 `secret_reflected` where it stands in a field, else the "
             "reply is cut off before it, or `kill`: as `block`, and the sandbox ends (of a remote "
             "one the token is revoked). `websocket` goes with `redact` alone"),
    RULE_KEY("allow_plaintext", AS(bool), "allow with `with`", "`false`",
             "`true`: the credential may go over `http://`"),
    RULE_KEY("allow_public_suffix", AS(bool), "allow", "`false`",
             "`true`: a leading dot on a name under which anybody may get one"),
    RULE_KEY("server_tools", OWN, "allow",
             "`[]` on a rule with a credential for a known model API, or with `llm`",
             "list of tools, or `any`, see *Bodies*"),
    RULE_KEY("redact", AS(strings), "allow, ask", "nothing",
             "list or one of detectors: what they find in the body of a request is made unreadable "
             "there, see *What leaves in bodies*"),
    RULE_KEY("refuse", AS(strings), "allow, ask", "nothing",
             "list or one of detectors: a request in whose body they find something is refused, "
             "code `pattern`, see *What leaves in bodies*"),
    RULE_KEY("capture_body", AS(kilobytes), "allow, ask", "nothing",
             "so much of each body, the request's and the reply's, goes into the log (1KB to "
             "16KB): for a rule with a credential as the sandbox sent it and as the sandbox got "
             "it, without the secret. Where no credential is added, a body with a placeholder of "
             "the sandbox is not recorded; where one is, a placeholder, which is not a secret, may "
             "stand in what is recorded. Nor are messages of a WebSocket, nor what was denied. Not "
             "beside `capture` or `with: { placeholder: … }`"),
};
const size_t rule_n_keys = ARRAY_LEN(rule_keys);

enum { RULE_PATTERNS_MAX = 4096, RULE_TEXT_MAX = 256, GIT_ENDPOINTS = 8 };
enum git_access { GIT_NONE = 0, GIT_FETCH, GIT_PUSH };

static int read_methods(const struct node *rule, bool deny, uint32_t *ret, bool *scoped,
                        struct err *err)
{
    struct node access, methods;
    bool has_access = node_get(rule, "access", &access);
    bool has_methods = node_get(rule, "methods", &methods);
    *ret = deny ? METHODS_ANY : METHODS_ALL;
    *scoped = has_access || has_methods;
    if (has_access && has_methods)
        return node_fail(&methods, err, "'access' and 'methods' say the same thing; keep one");
    if (has_access) {
        size_t word;
        if (deny)
            return node_fail(&access, err, "a deny rule takes 'methods', not 'access'");
        *ret = methods_read_only();
        return node_key_word(rule, rule_keys, "access", &word, err);
    }
    if (!has_methods)
        return 0;
    size_t n;
    *ret = 0;
    if (node_strings(&methods, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct node item;
        const char *name;
        if (node_strings_at(&methods, i, &item, &name, err) < 0)
            return -1;
        uint32_t bit = method_bit(slice_str(name));
        if (bit == 0)
            return node_fail(&item, err,
                             "'%.40s' is not a method that Durward lets through; "
                             "methods are written in capitals (CONNECT and TRACE never "
                             "pass)",
                             name);
        *ret |= bit;
    }
    return 0;
}

static int read_git(const struct node *rule, enum git_access *ret, struct err *err)
{
    struct node git, other;
    size_t word = 0;
    *ret = GIT_NONE;
    if (!node_get(rule, "git", &git))
        return 0;
    if (node_get(rule, "methods", &other) || node_get(rule, "access", &other))
        return node_fail(&other, err, "a git rule has its methods already; leave '%s' out",
                         other.key);
    if (node_key_word(rule, rule_keys, "git", &word, err) < 0)
        return -1;
    *ret = word == 0 ? GIT_FETCH : GIT_PUSH;
    return 0;
}

struct reader {
    struct arena *arena;
    struct rule_entry *entry;
    enum git_access git;
    uint32_t methods;
    bool public_suffix;
};

/* The smart-HTTP endpoints of one repository path (gitprotocol-http(5)), and those of git-lfs. */
static int add_git(struct reader *r, const struct pattern *p, const char *path, struct err *err)
{
    static const struct {
        const char *suffix, *method;
        enum git_access least;
    } endpoints[GIT_ENDPOINTS] = {
        {"/info/refs", "GET", GIT_FETCH},
        {"/git-upload-pack", "POST", GIT_FETCH},
        {"/git-receive-pack", "POST", GIT_PUSH},
        {"/info/lfs/objects/batch", "POST", GIT_FETCH}, /* its operation: inspect_git.c */
        {"/info/lfs/locks", "GET", GIT_FETCH},
        {"/info/lfs/locks", "POST", GIT_PUSH},
        {"/info/lfs/locks/verify", "POST", GIT_PUSH},
        {"/info/lfs/locks/*/unlock", "POST", GIT_PUSH},
    };
    char text[PATTERN_MAX + 64];
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        if (r->git < endpoints[i].least)
            continue;
        struct rule_arm *arm = &r->entry->arms[r->entry->n_arms];
        snprintf(text, sizeof text, "%s%s", path, endpoints[i].suffix);
        if (pattern_with_path(r->arena, p, slice_str(text), &arm->pattern, err) < 0)
            return -1;
        arm->methods = method_bit(slice_str(endpoints[i].method));
        r->entry->n_arms++;
    }
    return 0;
}

static int add_repository(struct reader *r, const struct node *n, const struct pattern *p,
                          struct err *err)
{
    struct err inner = {0};
    const char *mark = strstr(p->text, "://"), *path = strchr(mark ? mark + 3 : p->text, '/');
    size_t len = path ? strlen(path) : 0;
    if (len < 2)
        return node_fail(n, err,
                         "a git rule names the repository: HOST/OWNER/REPO, '*' for one "
                         "segment");
    if (p->tail)
        return node_fail(n, err,
                         "no '**' in a git rule; write HOST/OWNER/* for every repository "
                         "of an owner");
    if (path[len - 1] == '/')
        return node_fail(n, err, "a repository's path does not end in a slash");
    char plain[PATTERN_MAX + 1], dotted[PATTERN_MAX + 8];
    if (len > 4 && strcmp(path + len - 4, ".git") == 0 && path[len - 5] != '/')
        len -= 4;
    snprintf(plain, sizeof plain, "%.*s", (int)len, path);
    snprintf(dotted, sizeof dotted, "%s.git", plain);
    bool star = plain[len - 1] == '*'; /* then it covers REPO.git too */
    if (add_git(r, p, plain, &inner) < 0 || (!star && add_git(r, p, dotted, &inner) < 0))
        return node_fail(n, err, "%s", inner.text);
    return 0;
}

static int add_pattern(struct reader *r, const struct node *n, const char *text, struct err *err)
{
    struct err inner = {0};
    struct pattern p;
    if (pattern_parse(r->arena, text, &p, &inner) < 0)
        return node_fail(n, err, "%s", inner.text);
    if (r->entry->rule.tunnel && rule_tunnel_pattern(n, &p, err) < 0)
        return -1;
    if (p.subdomains && !r->entry->deny && !r->public_suffix && pattern_public_suffix(p.host.p))
        return node_fail(n, err,
                         "'%.200s': anyone can get a name under '%s'; name the hosts one by one or "
                         "a longer suffix, or say 'allow_public_suffix: true'",
                         text, p.host.p);
    if (r->entry->rule.credential && p.scheme == SCHEME_HTTP && !r->entry->rule.allow_plaintext)
        return node_fail(n, err,
                         "'%.200s': http:// carries no credential, everybody on the way "
                         "could read it; drop the scheme for https, or say 'allow_plaintext: true'",
                         text);
    if (r->entry->rule.credential && p.scheme == SCHEME_HTTP &&
        r->entry->rule.credential->kind == CREDENTIAL_CERTIFICATE)
        return node_fail(n, err, "'%.200s': a client certificate needs TLS; drop the scheme", text);
    if (r->git != GIT_NONE)
        return add_repository(r, n, &p, err);
    r->entry->arms[r->entry->n_arms++] = (struct rule_arm){p, r->methods};
    return 0;
}

/* "allow A, B (read-only)", cut when it is long. */
static char *rule_text(struct reader *r, const struct node *patterns, size_t n)
{
    struct buf b;
    bool whole = true;
    buf_init(&b, RULE_TEXT_MAX);
    const char *verb = r->entry->deny ? "deny " : r->entry->rule.ask ? "ask " : "allow ";
    whole = buf_append_str(&b, verb) == 0;
    for (size_t i = 0; whole && i < n; i++) {
        struct node item;
        const char *text;
        whole = node_strings_at(patterns, i, &item, &text, NULL) == 0 &&
                buf_printf(&b, "%s%s", i ? ", " : "", text) == 0;
    }
    if (whole && r->entry->rule.tunnel)
        whole = buf_append_str(&b, " tunnel") == 0;
    if (whole && r->entry->rule.kubernetes)
        whole = buf_append_str(&b, " kubernetes") == 0;
    if (whole && (r->entry->rule.postgres || r->entry->rule.redis || r->entry->rule.mysql) &&
        r->entry->read_only)
        whole = buf_append_str(&b, " read-only") == 0;
    if (whole && r->entry->rule.ssh && r->entry->read_only)
        whole = buf_append_str(&b, " fetch") == 0;
    if (whole && r->git != GIT_NONE)
        whole = buf_printf(&b, " git %s", r->git == GIT_FETCH ? "fetch" : "push") == 0;
    else if (whole && r->entry->rule.method_scoped && !r->entry->rule.kubernetes)
        for (unsigned i = 0, any = 0; whole && method_name(i); i++)
            if (r->methods & 1u << i)
                whole = buf_printf(&b, "%s%s", any++ ? "," : " ", method_name(i)) == 0;
    char *text = arena_zalloc(r->arena, buf_len(&b) + 5, 1);
    memcpy(text, buf_data(&b), buf_len(&b));
    if (!whole)
        memcpy(text + buf_len(&b), " ...", 4);
    buf_free(&b);
    return text;
}

static int read_patterns(struct reader *r, const struct node *n, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > RULE_PATTERNS_MAX)
        return node_fail(n, err, "more than 4096 patterns in a rule");
    r->entry->arms =
        arena_zalloc(r->arena, count * (r->git ? 2 * GIT_ENDPOINTS : 1), sizeof(struct rule_arm));
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0 || add_pattern(r, &item, text, err) < 0)
            return -1;
    }
    r->entry->rule.text = rule_text(r, n, count);
    return 0;
}

static int read_client(const struct node *rule, struct rule *ret, struct err *err)
{
    struct node n;
    size_t cookies = 0, word = CLIENT_REFUSE;
    ret->cookies = ret->credential == NULL;
    if (ret->credential == NULL) {
        if (node_get(rule, "cookies", &n) || node_get(rule, "client_credential", &n))
            return node_fail(&n, err,
                             "'%s' goes with 'with': without a credential of ours the client's own "
                             "pass as they are",
                             n.key);
        return 0;
    }
    if (node_key_word(rule, rule_keys, "cookies", &cookies, err) < 0 ||
        node_key_word(rule, rule_keys, "client_credential", &word, err) < 0)
        return -1;
    ret->cookies = cookies == 1;
    if (word != CLIENT_REFUSE && (ret->credential->kind == CREDENTIAL_PLACEHOLDER ||
                                  ret->credential->kind == CREDENTIAL_AWS)) {
        node_get(rule, "client_credential", &n);
        return node_fail(&n, err,
                         "'client_credential: %s' does not go with this kind of credential: what "
                         "the client sends says where ours belongs",
                         json_string_value(n.value));
    }
    ret->client_credential = (enum client_credential)word;
    return 0;
}

/* What loosens a guard, or says what comes of one. Before the patterns, which depend on it. */
static int read_guards(struct reader *r, const struct node *rule, struct err *err)
{
    struct rule *to = &r->entry->rule;
    struct node n;
    size_t word = to->on_reflect;
    if (node_key_bool(rule, "allow_plaintext", &to->allow_plaintext, err) < 0 ||
        node_key_bool(rule, "allow_public_suffix", &r->public_suffix, err) < 0)
        return -1;
    if (to->credential == NULL &&
        (node_get(rule, "allow_plaintext", &n) || node_get(rule, "on_reflect", &n)))
        return node_fail(&n, err, "'%s' goes with 'with': this rule has no credential", n.key);
    if (node_key_word(rule, rule_keys, "on_reflect", &word, err) < 0)
        return -1;
    to->on_reflect = (enum on_reflect)word;
    return 0;
}

/* What goes into the log. Where the client writes a placeholder into a body, or a reply is made
 * anew, there is none of it. */
static int read_capture_body(const struct node *rule, struct rule *ret, struct err *err)
{
    struct node n;
    uint64_t bytes;
    if (!node_get(rule, "capture_body", &n))
        return 0;
    if (quantity_bytes(&n, &bytes, err) < 0)
        return -1;
    if (bytes == 0 || bytes > CAPTURE_BODY_MAX)
        return node_fail(&n, err, "'capture_body' is 1KB to %dKB, of each body",
                         CAPTURE_BODY_MAX / 1000);
    if (ret->n_captures || (ret->credential && ret->credential->kind == CREDENTIAL_PLACEHOLDER))
        return node_fail(&n, err,
                         "'capture_body' stands beside neither 'capture' nor 'with: { placeholder: "
                         "... }': their bodies hold what no record may");
    ret->capture_body = (unsigned)bytes;
    return 0;
}

/* websocket and ranges: what a rule lets pass beyond plain requests and whole replies. */
static int read_more(const struct node *rule, const struct rule_entry *e, struct rule *ret,
                     struct err *err)
{
    struct node n;
    if (node_key_bool(rule, "websocket", &ret->websocket, err) < 0 ||
        node_key_bool(rule, "ranges", &ret->ranges, err) < 0)
        return -1;
    if (ret->websocket && e->git) {
        node_get(rule, "websocket", &n);
        return node_fail(&n, err, "git speaks no WebSocket; leave 'websocket' out of a git rule");
    }
    if (ret->websocket && ret->on_reflect != REFLECT_REDACT) {
        node_get(rule, "on_reflect", &n);
        return node_fail(&n, err, "messages of a WebSocket can only be redacted");
    }
    return 0;
}

/* A deny rule has patterns and methods, nothing else: anything more would be without effect. */
static int check_deny(const struct node *n, struct err *err)
{
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        const char *key = json_object_iter_key(it);
        struct node at;
        if (strcmp(key, "deny") == 0 || strcmp(key, "methods") == 0 || strcmp(key, "access") == 0)
            continue;
        node_get(n, key, &at);
        return node_fail(&at, err, "'%s' has no meaning on a deny rule", key);
    }
    return 0;
}

/* A rule of a protocol that a broker carries, by that protocol's reader. */
static int read_brokered(struct reader *r, const struct rule_broker *b, const struct node *n,
                         const struct node *patterns, const json_t *secrets, struct err *err)
{
    size_t count = json_is_array(patterns->value) ? json_array_size(patterns->value) : 1;
    if (rule_broker_read(b, r->arena, n, patterns, secrets, r->entry, err) < 0)
        return -1;
    r->entry->rule.ask = strcmp(patterns->key, "ask") == 0;
    r->entry->rule.text = rule_text(r, patterns, count);
    return 0;
}

int rule_read(struct arena *a, const struct node *n, const json_t *secrets, struct rule_entry *ret,
              struct err *err)
{
    struct node allow, ask, deny, with, use, budget;
    struct reader r = {.arena = a, .entry = ret};
    char where[512];
    if (node_get(n, "client_certificate", &with))
        return node_fail(&with, err,
                         "a client certificate is a credential: 'with: { client_certificate: NAME "
                         "}', and nothing beside it");
    if (node_keys(n, rule_keys, rule_n_keys, err) < 0)
        return -1;
    bool allows = node_get(n, "allow", &allow), denies = node_get(n, "deny", &deny),
         asks = node_get(n, "ask", &ask);
    if (node_get(n, "use", &use) || node_get(n, "secret", &use))
        return node_fail(&use, err,
                         "'%s' belongs to a preset: { use: github, secret: NAME } and "
                         "nothing beside it but 'access'",
                         use.key);
    if (allows + denies + asks != 1)
        return node_fail(denies ? &deny
                         : asks ? &ask
                                : n,
                         err, "a rule has one of 'allow', 'ask', 'deny' or 'use'");
    *ret = (struct rule_entry){.deny = denies};
    node_where(n, where, sizeof where);
    ret->where = arena_str(a, where);
    const struct node *patterns = denies ? &deny : asks ? &ask : &allow;
    const struct rule_broker *broker = rule_broker_of(patterns);
    if (broker)
        return read_brokered(&r, broker, n, patterns, secrets, err);
    if (denies && check_deny(n, err) < 0)
        return -1;
    if (read_git(n, &r.git, err) < 0 ||
        read_methods(n, denies, &r.methods, &ret->rule.method_scoped, err) < 0)
        return -1;
    ret->rule.ask = asks;
    ret->read_only = node_get(n, "access", &with);
    ret->git = r.git != GIT_NONE;
    ret->push = r.git == GIT_PUSH;
    ret->rule.method_scoped = ret->rule.method_scoped || ret->git;
    if (node_get(n, "with", &with) &&
        rule_credential_read(a, &with, secrets, &ret->rule.credential, err) < 0)
        return -1;
    if (rule_not_credentials_read(a, n, &ret->rule, err) < 0 || read_guards(&r, n, err) < 0 ||
        rule_conditions_read(a, n, &ret->rule, err) < 0 ||
        rule_kube_read(a, n, &ret->rule, err) < 0 || rule_to_read(a, n, &ret->rule, err) < 0 ||
        rule_tunnel_read(n, &ret->rule, err) < 0)
        return -1;
    if (rule_broker_absent(n, &ret->rule, err) < 0 || read_patterns(&r, patterns, err) < 0 ||
        rule_inspection_read(a, n, ret, err) < 0)
        return -1;
    if (read_more(n, ret, &ret->rule, err) < 0 || rule_outward_read(a, n, ret, err) < 0 ||
        rule_capture_read(a, n, secrets, &ret->rule, err) < 0 ||
        read_capture_body(n, &ret->rule, err) < 0 ||
        (node_get(n, "budget", &budget) && budget_read(a, &budget, n, &ret->rule.budget, err) < 0))
        return -1;
    if (budget_of_calls(ret->rule.budget) && !rule_reads_calls(&ret->rule))
        return node_fail(&budget, err, "tokens and cost are counted where a rule has 'llm'");
    return read_client(n, &ret->rule, err) < 0 ? -1 : rule_edits_read(a, n, &ret->rule, err);
}
