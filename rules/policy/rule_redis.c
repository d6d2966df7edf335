/* Reads a rule whose patterns are of redis:// or rediss://: which commands a session may use, on
 * which keys, and as whom. */
#include "redis_rule.h"
#include "rule_broker.h"

#include <stdio.h>
#include <string.h>

static bool command_ok(struct slice s)
{
    if (s.n && s.p[0] == '!')
        s = (struct slice){s.p + 1, s.n - 1};
    if (s.n && s.p[0] == '@') {
        static const char *const classes[] = {"read",        "write",  "session",
                                              "transaction", "pubsub", "blocking"};
        for (size_t i = 0; i < ARRAY_LEN(classes); i++)
            if (slice_eq_str((struct slice){s.p + 1, s.n - 1}, classes[i]))
                return true;
        return false;
    }
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == 0 || strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.|*", s.p[i]) == NULL)
            return false;
    return s.n > 0;
}

static int check_key(const struct node *item, const char *text, struct err *err)
{
    return *text && strlen(text) <= REDIS_PATTERN_MAX
               ? 0
               : node_fail(item, err, "a pattern has 1 to %d bytes", REDIS_PATTERN_MAX);
}

static int check_command(const struct node *item, const char *text, struct err *err)
{
    if (check_key(item, text, err) < 0)
        return -1;
    return command_ok(slice_str(text))
               ? 0
               : node_fail(item, err,
                           "'%.60s' is not a command as 'get', 'config|get' or 'h*' in small "
                           "letters, nor one of @read, @write, @session, @transaction, @pubsub, "
                           "@blocking; '!' before it takes it away",
                           text);
}

static int read_database(const struct node *rule, struct redis_terms *t, struct err *err)
{
    struct node n;
    t->has_database = node_get(rule, "database", &n);
    return node_key_uint(rule, rule_keys, "database", &t->database, err);
}

static int read_terms(struct rule_broker_reading *r, bool tls, struct err *err)
{
    struct redis_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    size_t word;
    r->entry->rule.redis = t;
    t->tls = tls;
    t->read_only = r->entry->read_only;
    return rule_broker_patterns(r->arena, r->rule, "commands", REDIS_PATTERNS_MAX, check_command,
                                &t->commands, &t->n_commands, err) < 0 ||
                   rule_broker_patterns(r->arena, r->rule, "keys", REDIS_PATTERNS_MAX, check_key,
                                        &t->keys, &t->n_keys, err) < 0 ||
                   read_database(r->rule, t, err) < 0 ||
                   node_key_bool(r->rule, "allow_plaintext", &r->entry->rule.allow_plaintext, err) <
                       0 ||
                   node_key_word(r->rule, rule_keys, "access", &word, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "megabytes", &t->megabytes, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "seconds", &t->seconds, err) < 0
               ? -1
               : 0;
}

static int read_plain(struct rule_broker_reading *r, struct err *err)
{
    return read_terms(r, false, err);
}

static int read_tls(struct rule_broker_reading *r, struct err *err)
{
    return read_terms(r, true, err);
}

static int read_pattern(struct rule_broker_reading *r, const struct node *n, const char *text,
                        struct slice rest, struct err *err)
{
    if (slice_find(rest, '@') >= 0)
        return node_fail(n, err,
                         "'%.200s': whom to log in as says the secret: rediss://HOST[:PORT]", text);
    if (slice_find(rest, '/') >= 0)
        return node_fail(n, err, "'%.200s': write rediss://HOST[:PORT]; the database is 'database'",
                         text);
    return rule_broker_arm(r, n, text, text,
                           r->entry->deny ? METHODS_ANY : verb_bit(SLICE("connect")), err);
}

static int check_plain(struct rule_broker_reading *r, struct err *err)
{
    if (r->entry->rule.allow_plaintext)
        return 0;
    return node_fail(r->rule, err,
                     "redis:// sends the password in clear, everybody on the way could read it; "
                     "write rediss://, or say 'allow_plaintext: true'");
}

static const char *const keys[] = {"commands", "keys", "database", "megabytes", "seconds"};

const struct rule_broker rule_redis = {
    .mark = SLICE_INIT("redis://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .also = "allow_plaintext",
    .with = "redis_login",
    .kind = CREDENTIAL_REDIS,
    .arms = 1,
    .terms = read_plain,
    .pattern = read_pattern,
    .server = check_plain,
};

const struct rule_broker rule_rediss = {
    .mark = SLICE_INIT("rediss://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .with = "redis_login",
    .kind = CREDENTIAL_REDIS,
    .certificates = CERTIFICATE_ALONE,
    .arms = 1,
    .terms = read_tls,
    .pattern = read_pattern,
};
