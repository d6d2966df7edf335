/* Reads a rule whose patterns are of imap:// or imaps://: which mailboxes a session may use, for
 * what, and as whom. */
#include "imap_rule.h"
#include "rule_broker.h"

#include <stdio.h>
#include <string.h>

static int check_folder(const struct node *item, const char *text, struct err *err)
{
    return imap_pattern_ok(slice_str(text))
               ? 0
               : node_fail(item, err,
                           "a pattern of mailboxes has 1 to %d bytes, as 'INBOX' or 'Archive/*', "
                           "without '%%'",
                           IMAP_PATTERN_MAX);
}

static int read_actions(struct rule_broker_reading *r, struct imap_terms *t, struct err *err)
{
    static const char *const words[] = {"read", "flag", "append", "copy", "delete", "manage"};
    struct node actions;
    size_t word;
    if (node_key_word(r->rule, rule_keys, "access", &word, err) < 0 ||
        rule_broker_words(r->rule, "actions", words, ARRAY_LEN(words), &t->actions, err) < 0)
        return -1;
    if (r->entry->read_only && node_get(r->rule, "actions", &actions))
        return node_fail(&actions, err, "'access' and 'actions' say the same thing; keep one");
    if (r->entry->read_only)
        t->actions = 0;
    t->actions |= IMAP_READ;
    return 0;
}

static int read_terms(struct rule_broker_reading *r, bool implicit, struct err *err)
{
    struct imap_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    unsigned megabytes = IMAP_MEGABYTES;
    r->entry->rule.imap = t;
    t->implicit = implicit;
    if (rule_broker_patterns(r->arena, r->rule, "folders", IMAP_PATTERNS_MAX, check_folder,
                             &t->folders, &t->n_folders, err) < 0 ||
        read_actions(r, t, err) < 0 ||
        node_key_uint(r->rule, rule_keys, "message_megabytes", &megabytes, err) < 0 ||
        node_key_uint(r->rule, rule_keys, "megabytes", &t->megabytes, err) < 0 ||
        node_key_uint(r->rule, rule_keys, "seconds", &t->seconds, err) < 0 ||
        node_key_uint(r->rule, rule_keys, "session_commands", &t->commands, err) < 0 ||
        node_key_bool(r->rule, "allow_plaintext", &t->plain, err) < 0)
        return -1;
    t->most_bytes = (uint64_t)megabytes * 1000000;
    r->entry->rule.allow_plaintext = t->plain;
    return 0;
}

static int read_starttls(struct rule_broker_reading *r, struct err *err)
{
    return read_terms(r, false, err);
}

static int read_implicit(struct rule_broker_reading *r, struct err *err)
{
    return read_terms(r, true, err);
}

static const struct rule_broker_mail mail = {"imap", 993, "mailboxes are 'folders'"};

static int read_pattern(struct rule_broker_reading *r, const struct node *n, const char *text,
                        struct slice rest, struct err *err)
{
    return rule_broker_starttls(&mail, r, n, text, rest, err);
}

static int read_pattern_implicit(struct rule_broker_reading *r, const struct node *n,
                                 const char *text, struct slice rest, struct err *err)
{
    return rule_broker_tls(&mail, r, n, text, rest, err);
}

static const char *const keys[] = {"folders",   "actions", "message_megabytes",
                                   "megabytes", "seconds", "session_commands"};

const struct rule_broker rule_imap = {
    .mark = SLICE_INIT("imap://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .also = "allow_plaintext",
    .with = "imap_login",
    .kind = CREDENTIAL_IMAP,
    .arms = 1,
    .terms = read_starttls,
    .pattern = read_pattern,
};

const struct rule_broker rule_imaps = {
    .mark = SLICE_INIT("imaps://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .with = "imap_login",
    .kind = CREDENTIAL_IMAP,
    .arms = 1,
    .terms = read_implicit,
    .pattern = read_pattern_implicit,
};
