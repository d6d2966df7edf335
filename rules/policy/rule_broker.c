/* Reads what rules of brokers' protocols have in common: whose patterns they are, which keys they
 * may have, and the credential that goes with them. */
#include "rule_broker.h"

#include <stdio.h>
#include <string.h>

static const struct rule_broker *const brokers[] = {
    &rule_ssh,   &rule_ssh_agent, &rule_postgres, &rule_redis, &rule_rediss,
    &rule_mysql, &rule_smtp,      &rule_smtps,    &rule_imap,  &rule_imaps};

const struct rule_broker *rule_broker_of(const struct node *patterns)
{
    size_t count;
    struct node item;
    const char *text;
    if (node_strings(patterns, &count, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < ARRAY_LEN(brokers); b++)
            if (node_strings_at(patterns, i, &item, &text, NULL) == 0 &&
                slice_starts(slice_str(text), brokers[b]->mark))
                return brokers[b];
    return NULL;
}

/* The key under `with` of a kind that this protocol takes; NULL: it takes none of that kind. */
static const char *word_of(const struct rule_broker *b, enum credential_kind kind)
{
    for (size_t i = 0; i < b->n_others; i++)
        if (b->others[i].kind == kind)
            return b->others[i].with;
    return b->kind == kind ? b->with : NULL;
}

/* "ssh_key: SECRET }' or 'with: { ssh_certificate: SECRET": what may stand there. */
static const char *words_of(const struct rule_broker *b, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%s: SECRET", b->with);
    for (size_t i = 0; i < b->n_others && n > 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, " }' or 'with: { %s: SECRET", b->others[i].with);
    return buf;
}

int rule_broker_absent(const struct node *rule, const struct rule *r, struct err *err)
{
    struct node n;
    for (size_t b = 0; b < ARRAY_LEN(brokers); b++) {
        const struct rule_broker *of = brokers[b];
        for (size_t i = 0; i < of->n_keys; i++)
            if (node_get(rule, of->keys[i], &n))
                return node_fail(&n, err, "'%s' goes with patterns of %.*s", of->keys[i],
                                 SL(of->mark));
        const char *with = r->credential ? word_of(of, r->credential->kind) : NULL;
        if (with && node_get(rule, "with", &n))
            return node_fail(&n, err, "'%s' goes with patterns of %.*s", with, SL(of->mark));
    }
    return 0;
}

static bool is_one(const char *key, const char *const *list, size_t n)
{
    size_t i = 0;
    while (i < n && strcmp(key, list[i]) != 0)
        i++;
    return i < n;
}

static int check_keys(const struct rule_broker *b, const struct node *rule, bool deny,
                      struct err *err)
{
    static const char *const denies[] = {"deny"}, *const allows[] = {"allow",  "ask",    "with",
                                                                     "access", "budget", "to"};
    for (void *it = json_object_iter(rule->value); it;
         it = json_object_iter_next(rule->value, it)) {
        const char *key = json_object_iter_key(it);
        struct node at;
        if (deny ? is_one(key, denies, ARRAY_LEN(denies))
                 : is_one(key, allows, ARRAY_LEN(allows)) || is_one(key, b->keys, b->n_keys) ||
                       is_one(key, &b->also, b->also ? 1 : 0))
            continue;
        node_get(rule, key, &at);
        return node_fail(&at, err, "'%s' has no meaning for %.*s", key, SL(b->mark));
    }
    return 0;
}

static int read_patterns(const struct rule_broker *b, struct rule_broker_reading *r,
                         const struct node *patterns, struct err *err)
{
    struct node item;
    size_t count;
    const char *text;
    if (node_strings(patterns, &count, err) < 0)
        return -1;
    r->entry->arms = arena_zalloc(r->arena, count * b->arms + 1, sizeof *r->entry->arms);
    for (size_t i = 0; i < count; i++) {
        if (node_strings_at(patterns, i, &item, &text, err) < 0)
            return -1;
        struct slice rest = slice_str(text);
        if (!slice_starts(rest, b->mark))
            return node_fail(&item, err, "'%.200s': a rule has either patterns of %.*s or others",
                             text, SL(b->mark));
        if (rest.n > PATTERN_MAX)
            return node_fail(&item, err, "a pattern is at most %d bytes", PATTERN_MAX);
        rest = (struct slice){rest.p + b->mark.n, rest.n - b->mark.n};
        if (b->pattern(r, &item, text, rest, err) < 0)
            return -1;
    }
    return 0;
}

static int read_budget(const struct rule_broker *b, struct rule_broker_reading *r, struct err *err)
{
    struct node n;
    const struct budget **budget = &r->entry->rule.budget;
    if (!node_get(r->rule, "budget", &n))
        return 0;
    if (budget_read(r->arena, &n, r->rule, budget, err) < 0)
        return -1;
    return budget_of_calls(*budget)
               ? node_fail(&n, err, "'tokens' and 'cost' have no meaning for %.*s", SL(b->mark))
               : 0;
}

static int read_credential(const struct rule_broker *b, struct rule_broker_reading *r,
                           const json_t *secrets, struct err *err)
{
    const struct credential **credential = &r->entry->rule.credential;
    char words[200];
    struct node n;
    if (!node_get(r->rule, "with", &n))
        return node_fail(r->rule, err, "a rule of %.*s needs 'with: { %s }'", SL(b->mark),
                         words_of(b, words, sizeof words));
    if (rule_credential_read(r->arena, &n, secrets, credential, err) < 0)
        return -1;
    const struct credential *c = *credential;
    bool alone = c->kind == CREDENTIAL_CERTIFICATE;
    if ((alone || c->other) && b->certificates == CERTIFICATE_NEVER)
        return node_fail(&n, err, "'client_certificate' has no meaning for %.*s", SL(b->mark));
    if (alone && b->certificates == CERTIFICATE_BESIDE)
        return node_fail(&n, err,
                         "%.*s has a user of its own: write 'with: { client_certificate: SECRET, "
                         "%s: SECRET }'",
                         SL(b->mark), b->with);
    if (!alone && word_of(b, c->kind) == NULL)
        return node_fail(&n, err, "what goes with %.*s is 'with: { %s }'", SL(b->mark),
                         words_of(b, words, sizeof words));
    return 0;
}

int rule_broker_read(const struct rule_broker *b, struct arena *a, const struct node *rule,
                     const struct node *patterns, const json_t *secrets, struct rule_entry *ret,
                     struct err *err)
{
    struct rule_broker_reading r = {.arena = a, .rule = rule, .entry = ret};
    struct node access;
    ret->read_only = node_get(rule, "access", &access);
    if (check_keys(b, rule, ret->deny, err) < 0 || b->terms(&r, err) < 0 ||
        read_patterns(b, &r, patterns, err) < 0)
        return -1;
    if (ret->deny)
        return 0;
    if (read_credential(b, &r, secrets, err) < 0 || read_budget(b, &r, err) < 0 ||
        (b->server && b->server(&r, err) < 0))
        return -1;
    return rule_to_read(a, rule, &ret->rule, err);
}

int rule_broker_arm(struct rule_broker_reading *r, const struct node *n, const char *pattern,
                    const char *shown, uint32_t verbs, struct err *err)
{
    struct err inner = {0};
    struct rule_arm *arm = &r->entry->arms[r->entry->n_arms];
    if (pattern_parse(r->arena, pattern, &arm->pattern, &inner) < 0)
        return node_fail(n, err, "%s", inner.text);
    arm->pattern.text = arena_str(r->arena, shown);
    arm->methods = verbs;
    r->entry->n_arms++;
    return 0;
}

int rule_broker_arm_at(struct rule_broker_reading *r, const struct node *n, const char *text,
                       struct slice rest, unsigned port, struct err *err)
{
    char at[PATTERN_MAX + 8];
    const char *bracket = memrchr(rest.p, ']', rest.n);
    struct slice behind = rest;
    int e = 0;
    if (bracket)
        behind = (struct slice){bracket, rest.n - (size_t)(bracket - rest.p)};
    if (slice_find(behind, ':') < 0)
        e = snprintf(at, sizeof at, "%s:%u", text, port);
    return rule_broker_arm(r, n, e ? at : text, text,
                           r->entry->deny ? METHODS_ANY : verb_bit(SLICE("connect")), err);
}

static int mail_place(const struct rule_broker_mail *m, const struct node *n, const char *text,
                      struct slice rest, struct err *err)
{
    if (slice_find(rest, '@') >= 0)
        return node_fail(n, err,
                         "'%.200s': whom to log in as says the secret: %s://HOST[:PORT] or %ss://",
                         text, m->name, m->name);
    if (slice_find(rest, '/') >= 0)
        return node_fail(n, err, "'%.200s': write %s://HOST[:PORT] or %ss://; %s", text, m->name,
                         m->name, m->paths);
    return 0;
}

int rule_broker_starttls(const struct rule_broker_mail *m, struct rule_broker_reading *r,
                         const struct node *n, const char *text, struct slice rest, struct err *err)
{
    char port[12];
    snprintf(port, sizeof port, ":%u", m->tls_port);
    if (mail_place(m, n, text, rest, err) < 0)
        return -1;
    if (slice_ends(rest, slice_str(port)))
        return node_fail(n, err,
                         "'%.200s': at port %u there is TLS from the first byte: write %ss://HOST",
                         text, m->tls_port, m->name);
    return rule_broker_arm(r, n, text, text,
                           r->entry->deny ? METHODS_ANY : verb_bit(SLICE("connect")), err);
}

int rule_broker_tls(const struct rule_broker_mail *m, struct rule_broker_reading *r,
                    const struct node *n, const char *text, struct slice rest, struct err *err)
{
    if (mail_place(m, n, text, rest, err) < 0)
        return -1;
    return rule_broker_arm_at(r, n, text, rest, m->tls_port, err);
}

static int no_such_word(const struct node *item, const char *text, const char *const *words,
                        size_t n, struct err *err)
{
    char all[128] = "";
    for (size_t k = 0; k < n; k++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? ", " : "", words[k]);
    return node_fail(item, err, "'%.40s' is not one of: %s", text, all);
}

int rule_broker_words(const struct node *rule, const char *key, const char *const *words, size_t n,
                      unsigned *ret, struct err *err)
{
    struct node list, item;
    size_t count, k;
    const char *text;
    *ret = (unsigned)((UINT64_C(1) << n) - 1);
    if (!node_get(rule, key, &list))
        return 0;
    if (node_strings(&list, &count, err) < 0)
        return -1;
    *ret = 0;
    for (size_t i = 0; i < count; i++) {
        if (node_strings_at(&list, i, &item, &text, err) < 0)
            return -1;
        for (k = 0; k < n && strcmp(words[k], text) != 0;)
            k++;
        if (k == n)
            return no_such_word(&item, text, words, n, err);
        *ret |= 1u << k;
    }
    return 0;
}

int rule_broker_patterns(struct arena *a, const struct node *rule, const char *key, size_t most,
                         rule_pattern_check check, const char *const **ret, size_t *n_ret,
                         struct err *err)
{
    struct node n, item;
    size_t count;
    const char *text;
    if (!node_get(rule, key, &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count == 0 || count > most)
        return node_fail(&n, err, "1 to %zu patterns", most);
    const char **list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        if (node_strings_at(&n, i, &item, &text, err) < 0 || check(&item, text, err) < 0)
            return -1;
        list[i] = arena_str(a, text);
    }
    *ret = list;
    *n_ret = count;
    return 0;
}
