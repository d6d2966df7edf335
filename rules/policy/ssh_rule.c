/* Decides about a request to an SSH server: writes it as the engine's path, and holds a command
 * against the patterns of the rule that was found. */
#include "ssh_rule.h"

#include "sshsig.h"

#include <string.h>

/* As these publish them; `ssh-keyscan HOST | ssh-keygen -lf -` and their pages say the same. */
static const struct {
    const char *host;
    struct ssh_host_key keys[2];
} known[] = {
    {"github.com",
     {{"ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"},
      {"ecdsa-sha2-nistp256",
       "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYM"
       "jNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg="}}},
    {"gitlab.com",
     {{"ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf"}}},
    {"bitbucket.org",
     {{"ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIIazEu89wgQZ4bqs3d63QSMzYVa0MuJ2e2gKTKqu+UUO"}}},
};

size_t ssh_known_host(const char *host, const struct ssh_host_key **ret)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].host, host) == 0) {
            *ret = known[i].keys;
            return known[i].keys[1].type ? 2 : 1;
        }
    return 0;
}

const char *ssh_verb_name(enum ssh_verb v)
{
    static const char *const names[SSH_VERBS] = {"",     "fetch", "push",  "exec", "shell",
                                                 "sftp", "fetch", "fetch", "push", "connect"};
    return (unsigned)v < SSH_VERBS ? names[v] : "";
}

bool ssh_user_ok(struct slice user)
{
    if (user.n == 0 || user.n > SSH_USER_MAX || user.p[0] == '-' || user.p[0] == '.')
        return false;
    for (size_t i = 0; i < user.n; i++)
        if (!ascii_is_alnum(user.p[i]) && strchr("_.-", user.p[i]) == NULL)
            return false;
    return memchr(user.p, 0, user.n) == NULL;
}

/* ---- commands ---- */

static bool in_word(char c)
{
    return ascii_is_alnum(c) || (c && strchr("_.:=@%+,-", c));
}

/* Greedy from the left, and back to the last star: whatever an earlier star could take more, the
 * last one takes. */
static bool match(const char *pattern, struct slice s)
{
    const char *p = pattern, *star = NULL;
    size_t i = 0, taken = 0;
    for (;;) {
        if (*p == '*') {
            bool first = p == pattern || (!in_word(p[-1]) && p[-1] != '/');
            if (i >= s.n || !in_word(s.p[i]) || (first && s.p[i] == '-'))
                p = NULL;
            else {
                star = p++;
                taken = ++i;
                continue;
            }
        } else if (i == s.n && *p == 0) {
            return true;
        } else if (i < s.n && *p && *p == s.p[i]) {
            p++;
            i++;
            continue;
        }
        if (star == NULL || taken >= s.n || !in_word(s.p[taken]))
            return false;
        i = ++taken;
        p = star + 1;
    }
}

bool ssh_command_matches(const char *pattern, struct slice command)
{
    if (command.n == 0 || command.n > SSH_TEXT_MAX)
        return false;
    for (size_t i = 0; i < command.n; i++)
        if (command.p[i] < ' ' || command.p[i] > '~')
            return false;
    if (slice_find_slice(command, SLICE("..")) >= 0 && strstr(pattern, "..") == NULL)
        return false;
    return match(pattern, command);
}

static bool any_matches(const struct ssh_terms *t, struct slice command)
{
    for (size_t i = 0; i < t->n_commands; i++)
        if (ssh_command_matches(t->commands[i], command))
            return true;
    return false;
}

static bool is_target(const struct ssh_terms *t, struct slice text)
{
    struct authority at;
    if (ssh_target_read(text, &at) < 0)
        return false;
    for (size_t i = 0; i < t->n_targets; i++)
        if (ssh_target_matches(&t->targets[i], &at))
            return true;
    return false;
}

/* ---- the engine's path ---- */

enum { PATH_MAX_ENGINE = 2 + SSH_USER_MAX + 1 + 3 * SSH_TEXT_MAX };

static size_t put(char *to, size_t n, struct slice s)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (ascii_is_alnum(s.p[i]) || (c && strchr("-._~/", c))) {
            to[n++] = s.p[i];
        } else {
            to[n++] = '%';
            to[n++] = hex[c >> 4];
            to[n++] = hex[c & 15];
        }
    }
    return n;
}

/* git opens the repository around a directory of this name: REPO/.git is REPO. */
static bool has_git(struct slice path)
{
    static const struct slice name = SLICE_INIT("/.git");
    for (size_t i = 0; i + name.n <= path.n; i++)
        if (slice_ieq((struct slice){path.p + i, name.n}, name) &&
            (i + name.n == path.n || path.p[i + name.n] == '/'))
            return true;
    return false;
}

/* "/acme/app.git", "~/app.git": a "~" anywhere else in front is another user's home to a server.
 * What the server's shell could read is in none. */
static bool repository_ok(struct slice path)
{
    if (slice_starts(path, SLICE("~/")))
        path = (struct slice){path.p + 1, path.n - 1};
    for (size_t i = 0; i < path.n; i++)
        if (!ascii_is_alnum(path.p[i]) && (path.p[i] == 0 || !strchr("/-._~+@=:,", path.p[i])))
            return false;
    return path.n > 1 && path.n <= SSH_TEXT_MAX && path.p[0] == '/' && path.p[1] != '~' &&
           !has_git(path);
}

static bool is_repository(enum ssh_verb v)
{
    return v == SSH_FETCH || v == SSH_PUSH || (v >= SSH_ARCHIVE && v <= SSH_LFS_PUSH);
}

void policy_ssh_decide(const struct policy *p, const struct authority *a,
                       const struct ssh_asked *asked, struct decision *ret)
{
    char path[PATH_MAX_ENGINE];
    size_t n = 0;
    *ret = (struct decision){VERDICT_DENY, NULL, "ssh_user", false};
    if (!ssh_user_ok(asked->user))
        return;
    ret->code = "ssh_path";
    if (is_repository(asked->verb) && !repository_ok(asked->text))
        return;
    path[n++] = '/';
    n = put(path, n, asked->user);
    if (is_repository(asked->verb) && asked->text.p[0] == '~')
        path[n++] = '/';
    if (is_repository(asked->verb))
        n = put(path, n, asked->text);
    const struct policy_request r = {
        .authority = a,
        .method = slice_str(ssh_verb_name(asked->verb)),
        .path = {path, n},
    };
    policy_decide(p, &r, ret);
    if (asked->verb == SSH_FORWARD && strcmp(ret->code, "method") == 0)
        ret->code = "ssh_forwarding";
    if (ret->verdict == VERDICT_DENY)
        return;
    if (ret->rule->ssh == NULL || ret->rule->ssh->signs || ret->rule->credential == NULL)
        *ret = (struct decision){VERDICT_DENY, ret->rule, "no_rule", false};
    else if (asked->verb == SSH_EXEC && !ret->rule->ssh->shell &&
             !any_matches(ret->rule->ssh, asked->text))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "command", false};
    else if (asked->verb == SSH_FORWARD && !is_target(ret->rule->ssh, asked->text))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "ssh_target", false};
    else if (asked->terminal && asked->verb != SSH_SHELL && !ret->rule->ssh->terminal)
        *ret = (struct decision){VERDICT_DENY, ret->rule, "ssh_terminal", false};
}

void policy_ssh_decide_signature(const struct policy *p, const struct authority *a,
                                 struct slice space, struct decision *ret)
{
    char path[1 + SSHSIG_NAMESPACE_MAX];
    *ret = (struct decision){VERDICT_DENY, NULL, "ssh_agent_namespace", false};
    if (!sshsig_space_ok(space))
        return;
    path[0] = '/';
    memcpy(path + 1, space.p, space.n);
    const struct policy_request r = {
        .authority = a, .method = SLICE(SSH_AGENT_VERB), .path = {path, 1 + space.n}};
    policy_decide(p, &r, ret);
    if (ret->verdict != VERDICT_DENY &&
        (ret->rule->ssh == NULL || !ret->rule->ssh->signs || ret->rule->credential == NULL))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "no_rule", false};
}
