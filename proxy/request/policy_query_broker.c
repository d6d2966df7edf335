/* The same question for what is not HTTP: a command over SSH, a file, a database, a mail. What a
 * statement or a command does in a session is judged where it is said, and asked of nobody here. */
#include "policy_query_broker.h"

#include "imap_rule.h"
#include "mysql_rule.h"
#include "postgres_rule.h"
#include "redis_rule.h"
#include "smtp_rule.h"
#include "ssh_rule.h"

#include <string.h>

static const char connect_word[] = "connect";

static const struct {
    const char *mark;
    enum scheme scheme;
    uint16_t port; /* another one than the scheme's; 0: its own */
} marks[] = {
    {"ssh://", SCHEME_SSH, 0},
    {"postgres://", SCHEME_POSTGRES, 0},
    {"postgresql://", SCHEME_POSTGRES, 0},
    {"redis://", SCHEME_REDIS, 0},
    {"rediss://", SCHEME_REDIS, 0},
    {"mysql://", SCHEME_MYSQL, 0},
    {"smtp://", SCHEME_SMTP, 0},
    {"smtps://", SCHEME_SMTP, 465},
    {"imap://", SCHEME_IMAP, 0},
    {"imaps://", SCHEME_IMAP, 993},
};

int policy_query_broker_url(const char *url, struct policy_query *q, struct err *err)
{
    size_t i = 0;
    while (i < ARRAY_LEN(marks) && !slice_istarts(slice_str(url), slice_str(marks[i].mark)))
        i++;
    if (i == ARRAY_LEN(marks))
        return 0;
    const char *at = url + strlen(marks[i].mark);
    size_t n = strcspn(at, "/?#");
    const char *sign = memchr(at, '@', n);
    if (sign) {
        q->user = (struct slice){at, (size_t)(sign - at)};
        n -= q->user.n + 1;
        at = sign + 1;
    }
    struct slice host = {at, n};
    if (sign && marks[i].scheme != SCHEME_SSH)
        return err_set(err, ERR_PARSE, "no user stands in this URL: the rule's login says who: %s",
                       url);
    if (authority_parse(&q->authority, marks[i].scheme, host) < 0)
        return err_set(err, ERR_PARSE, "not a canonical host[:port]: %.*s", SL(host));
    bool said = n > 0 && at[n - 1] != ']' && memchr(at, ':', n);
    if (marks[i].port && !said)
        q->authority.port = marks[i].port;
    q->path = slice_str(at + n);
    if (slice_find(q->path, '?') >= 0 || slice_find(q->path, '#') >= 0)
        return err_set(err, ERR_PARSE, "this URL has no query and no fragment: %s", url);
    return 1;
}

/* ---- SSH ---- */

static int file_verb(struct slice method, enum ssh_file_verb *ret)
{
    for (unsigned v = 0; v < SSH_FILE_RENAME; v++)
        if (slice_eq_str(method, ssh_file_verb_name((enum ssh_file_verb)v))) {
            *ret = (enum ssh_file_verb)v;
            return 0;
        }
    return -1;
}

/* The first of that name: what is fetched in other ways is a fetch to the rules. */
static enum ssh_verb ssh_verb_of(struct slice method)
{
    for (unsigned v = SSH_FETCH; v < SSH_VERBS; v++)
        if (slice_eq_str(method, ssh_verb_name((enum ssh_verb)v)))
            return (enum ssh_verb)v;
    return SSH_VERBS;
}

static int check_ssh(const struct policy_query *q, struct err *err)
{
    enum ssh_file_verb file;
    enum ssh_verb v = ssh_verb_of(q->method);
    bool is_file = file_verb(q->method, &file) == 0, git = v == SSH_FETCH || v == SSH_PUSH,
         bare = q->path.n == 0 || slice_eq(q->path, SLICE("/"));
    if (v == SSH_VERBS && !is_file)
        return err_set(
            err, ERR_PARSE,
            "for ssh:// the method is fetch or push, exec, shell, connect, sftp, or what "
            "is done to a file, such as read, write or list");
    if (q->user.n == 0)
        return err_set(err, ERR_PARSE, "say who logs in: ssh://USER@HOST");
    if (git == bare)
        return err_set(
            err, ERR_PARSE,
            git ? "say which repository: ssh://USER@HOST/PATH"
                : "a path names a repository, for fetch and push; a file, a command or a "
                  "target stands behind the URL");
    bool wants = is_file || v == SSH_EXEC || v == SSH_FORWARD;
    if (wants != (q->text.n > 0))
        return err_set(err, ERR_PARSE,
                       wants ? "say what, behind the URL: a command, a target (HOST:PORT), a file"
                             : "nothing stands behind the URL for this method");
    return 0;
}

/* HOST:PORT as a client writes it, in its one form. False: it has none. */
static bool read_target(struct slice text, char to[SSH_TARGET_TEXT_MAX])
{
    struct authority at;
    uint64_t port;
    const char *colon = memrchr(text.p, ':', text.n);
    size_t n = colon ? (size_t)(colon - text.p) : 0;
    struct slice host = {text.p, n}, digits = {text.p + n + 1, colon ? text.n - n - 1 : 0};
    if (n > 2 && host.p[0] == '[' && host.p[n - 1] == ']')
        host = (struct slice){host.p + 1, n - 2};
    if (colon == NULL || slice_u64(digits, 65535, &port) < 0 ||
        ssh_target_asked(host, (unsigned)port, &at) < 0)
        return false;
    authority_text_port(&at, to, SSH_TARGET_TEXT_MAX);
    return true;
}

static void decide_ssh(const struct policy *p, const struct policy_query *q, struct decision *ret)
{
    char target[SSH_TARGET_TEXT_MAX];
    struct ssh_file_asked file = {.path = q->text};
    enum ssh_verb v = ssh_verb_of(q->method);
    bool is_file = v == SSH_VERBS && file_verb(q->method, &file.verb) == 0,
         home = slice_starts(q->path, SLICE("/~"));
    struct slice path = home ? (struct slice){q->path.p + 1, q->path.n - 1} : q->path;
    struct ssh_asked asked = {.user = q->user,
                              .verb = is_file ? SSH_SFTP : v,
                              .text = v == SSH_FETCH || v == SSH_PUSH ? path
                                      : is_file                       ? SLICE("")
                                                                      : q->text,
                              .terminal = v == SSH_SHELL};
    if (v == SSH_FORWARD && !read_target(q->text, target)) {
        *ret = (struct decision){VERDICT_DENY, NULL, "ssh_target_form", false};
        return;
    }
    if (v == SSH_FORWARD)
        asked.text = slice_str(target);
    policy_ssh_decide(p, &q->authority, &asked, ret);
    if (!is_file || ret->verdict == VERDICT_DENY)
        return;
    const char *code = ssh_files_refused(&ret->rule->ssh->files, SLICE(""), &file);
    if (code)
        *ret = (struct decision){VERDICT_DENY, ret->rule, code, false};
}

/* ---- the others ---- */

static struct slice database_of(const struct policy_query *q)
{
    return q->path.n > 0 ? (struct slice){q->path.p + 1, q->path.n - 1} : q->path;
}

/* Words are recipients, one that begins with "from:" is the sender. */
static void decide_mail(const struct policy *p, const struct policy_query *q, struct decision *ret)
{
    struct slice rest = q->text;
    policy_smtp_decide(p, &q->authority, NULL, ret);
    while (rest.n > 0 && ret->verdict != VERDICT_DENY) {
        ssize_t blank = slice_find(rest, ' ');
        struct slice word = {rest.p, blank < 0 ? rest.n : (size_t)blank};
        size_t n = word.n + (blank >= 0);
        rest = (struct slice){rest.p + n, rest.n - n};
        bool from = slice_starts(word, SLICE("from:"));
        const char *code =
            word.n == 0 ? NULL
            : from ? smtp_sender_refused(ret->rule->smtp, (struct slice){word.p + 5, word.n - 5})
                   : smtp_recipient_refused(ret->rule->smtp, word);
        if (code)
            *ret = (struct decision){VERDICT_DENY, ret->rule, code, false};
    }
}

static void decide_mailbox(const struct policy *p, const struct policy_query *q,
                           struct decision *ret)
{
    policy_imap_decide(p, &q->authority, ret);
    if (ret->verdict != VERDICT_DENY && q->text.n > 0 &&
        !imap_folder_allowed(ret->rule->imap, q->text))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "imap_folder", false};
}

int policy_query_broker_check(const struct policy_query *q, struct err *err)
{
    bool says_more = q->authority.scheme == SCHEME_SMTP || q->authority.scheme == SCHEME_IMAP;
    if (q->authority.scheme == SCHEME_SSH)
        return check_ssh(q, err);
    if (!slice_eq_str(q->method, connect_word))
        return err_set(err, ERR_PARSE, "for %s:// the method is connect",
                       scheme_name(q->authority.scheme));
    if (q->text.n > 0 && !says_more)
        return err_set(err, ERR_PARSE,
                       "what is said in a session is judged there; leave it out here");
    return 0;
}

static const char *why_of(const struct decision *d)
{
    static const struct {
        const char *code, *why;
    } reasons[] = {
        {"no_rule", "no rule names this destination; what is not allowed is denied"},
        {"denied_by_rule", "a deny rule matches, and deny goes before ask and allow"},
        {"method", "rules name this destination, but not for this"},
        {"command", "no pattern of the rule's `commands` matches it"},
        {"ssh_path", "a repository's path has no empty part, no '.' and no '..'"},
        {"ssh_user", "no user of an SSH server has such a name"},
        {"ssh_terminal", "the rule gives no terminal"},
        {"ssh_forwarding", "no rule of that user's has targets (`forward`)"},
        {"ssh_target", "no target of the rule's `forward` is this one"},
        {"ssh_target_form", "a target is HOST:PORT, and an address in its one form"},
        {"file", "no pattern of the rule's files allows it"},
        {"file_path", "a file's path is from the root, without '.', '..' and backslashes"},
        {"postgres_database", "a database's name in a URL is plain"},
        {"mysql_database", "a database's name in a URL is plain"},
        {"smtp_sender", "the rule's `senders` do not have it"},
        {"smtp_recipient", "the rule's `recipients` do not have it"},
        {"imap_folder", "the rule's `folders` do not have it"},
    };
    if (d->verdict == VERDICT_ASK)
        return "an ask rule matches, and ask goes before allow";
    if (d->verdict == VERDICT_ALLOW)
        return "the narrowest matching rule allows it";
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strcmp(reasons[i].code, d->code) == 0)
            return reasons[i].why;
    return d->code;
}

void policy_query_broker_decide(const struct policy *p, const struct policy_query *q,
                                struct answer *ret)
{
    struct decision d = {.verdict = VERDICT_DENY, .code = "no_rule"};
    switch (q->authority.scheme) {
    case SCHEME_SSH:
        decide_ssh(p, q, &d);
        break;
    case SCHEME_POSTGRES:
        policy_postgres_decide(p, &q->authority, database_of(q), &d);
        break;
    case SCHEME_MYSQL:
        policy_mysql_decide(p, &q->authority, database_of(q), &d);
        break;
    case SCHEME_REDIS:
        policy_redis_decide(p, &q->authority, &d);
        break;
    case SCHEME_SMTP:
        decide_mail(p, q, &d);
        break;
    case SCHEME_IMAP:
        decide_mailbox(p, q, &d);
        break;
    default:
        break;
    }
    *ret = (struct answer){d.verdict, d.code, why_of(&d), d.rule};
}
