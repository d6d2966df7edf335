/* Reads a rule whose patterns are of smtp:// or smtps://: to whom messages may go and from whom,
 * how large they may be, and as whom they are handed over. */
#include "rule_broker.h"
#include "smtp_rule.h"

static int check_address(const struct node *item, const char *text, struct err *err)
{
    return smtp_pattern_ok(slice_str(text))
               ? 0
               : node_fail(item, err,
                           "'%.100s' is not an address as 'ops@example.com' or '*@example.com', "
                           "nor one of the names below a domain, '*@*.example.com'",
                           text);
}

static int read_terms(struct rule_broker_reading *r, bool implicit, struct err *err)
{
    struct smtp_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    struct node access;
    unsigned megabytes = SMTP_MEGABYTES;
    r->entry->rule.smtp = t;
    t->implicit = implicit;
    t->most_recipients = SMTP_RECIPIENTS_MAX;
    if (node_get(r->rule, "access", &access))
        return node_fail(&access, err, "'access' has no meaning for mail");
    if (rule_broker_patterns(r->arena, r->rule, "recipients", SMTP_PATTERNS_MAX, check_address,
                             &t->recipients, &t->n_recipients, err) < 0 ||
        rule_broker_patterns(r->arena, r->rule, "senders", SMTP_PATTERNS_MAX, check_address,
                             &t->senders, &t->n_senders, err) < 0 ||
        node_key_uint(r->rule, rule_keys, "message_recipients", &t->most_recipients, err) < 0 ||
        node_key_uint(r->rule, rule_keys, "message_megabytes", &megabytes, err) < 0 ||
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

static const struct rule_broker_mail mail = {"smtp", 465, "to whom messages go is 'recipients'"};

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

static const char *const keys[] = {"recipients", "senders", "message_recipients",
                                   "message_megabytes"};

const struct rule_broker rule_smtp = {
    .mark = SLICE_INIT("smtp://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .also = "allow_plaintext",
    .with = "smtp_login",
    .kind = CREDENTIAL_SMTP,
    .arms = 1,
    .terms = read_starttls,
    .pattern = read_pattern,
};

const struct rule_broker rule_smtps = {
    .mark = SLICE_INIT("smtps://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .with = "smtp_login",
    .kind = CREDENTIAL_SMTP,
    .arms = 1,
    .terms = read_implicit,
    .pattern = read_pattern_implicit,
};
