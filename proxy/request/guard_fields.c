/* Which fields of a message go on. Those of a request are made here, once and before anything is
 * judged of them: what a condition reads and an inspection sees is what the origin will be sent. */
#include "guard_internal.h"

#include "byte_range.h"
#include "condition.h"
#include "field_name.h"
#include "kube_rule.h"

#include <stdio.h>
#include <string.h>

void guard_where(struct guard_answer *a, const char *what, struct slice name)
{
    if (a->where[0] == 0)
        snprintf(a->where, sizeof a->where, "%s%s%.*s", what, name.n ? " " : "",
                 (int)(name.n < 64 ? name.n : 64), name.p);
}

/* The first place that a placeholder may stand in, in words. */
static const char *place_word(const struct credential *c)
{
    if (c->kind == CREDENTIAL_QUERY)
        return "query parameter";
    if (c->kind == CREDENTIAL_COOKIE)
        return "cookie";
    if (c->kind == CREDENTIAL_PLACEHOLDER)
        return c->places & PLACE_HEADER  ? "header"
               : c->places & PLACE_QUERY ? "query parameter"
               : c->places & PLACE_PATH  ? "path"
                                         : "body";
    return c->header[0] ? "header" : "";
}

void guard_rule_place(struct guard_answer *a, const struct credential *c)
{
    size_t n = strlen(a->where);
    bool named = c->kind == CREDENTIAL_QUERY || c->kind == CREDENTIAL_COOKIE ||
                 (c->kind == CREDENTIAL_PLACEHOLDER && c->places & PLACE_QUERY);
    const char *word = place_word(c), *name = named ? c->name : c->header;
    if (word[0] == 0)
        return;
    snprintf(a->where + n, sizeof a->where - n, "%sthe rule fills %s%s%s%s%s", n ? "; " : "", word,
             name[0] ? " " : "", name, c->other ? " or header " : "",
             c->other ? c->other->header : "");
}

/* refused: what also carries a credential stays, to be refused as one. */
static void remove_kinds(struct head *h, unsigned kinds, bool refused)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++) {
        unsigned k = field_kinds(h->fields[i].name) & kinds;
        if (k == 0 || (refused && k == FIELD_ROUTE && field_is_credential(h->fields[i].name)))
            h->fields[kept++] = h->fields[i];
    }
    h->n = kept;
}

/* What Connection does not take off: a credential or a cookie goes through its own checks. */
static bool connection_spares(struct slice name)
{
    return slice_eq(name, SLICE("cookie")) || field_is_credential(name);
}

/* Fields that the message itself calls hop-by-hop (RFC 9110 7.6.1). This comes before anything is
 * injected, so it can take off only what the sender put there. */
static void remove_named(struct head *h)
{
    bool drop[HEAD_FIELDS_MAX] = {false};
    for (size_t c = 0; c < h->n; c++) {
        if (!slice_eq_str(h->fields[c].name, "connection"))
            continue;
        struct slice v = h->fields[c].value;
        for (ssize_t comma = 0; comma >= 0 && v.n > 0;) {
            comma = slice_find(v, ',');
            struct slice t = slice_trim((struct slice){v.p, comma < 0 ? v.n : (size_t)comma});
            for (size_t i = 0; i < h->n; i++)
                drop[i] |= slice_ieq(h->fields[i].name, t);
            if (comma >= 0)
                v = (struct slice){v.p + comma + 1, v.n - (size_t)comma - 1};
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!drop[i] || connection_spares(h->fields[i].name))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
}

void guard_clean_request(struct head *h)
{
    remove_named(h);
    remove_kinds(h, FIELD_HOP | FIELD_ROUTE, false);
}

size_t guard_strip_overrides(struct head *h)
{
    size_t before = h->n;
    remove_kinds(h, FIELD_OVERRIDE, false);
    return before - h->n;
}

void guard_clean_reply(struct head *h, bool credentialed, bool keep_cookies)
{
    remove_named(h);
    remove_kinds(h, FIELD_HOP, false);
    http_head_remove(h, "alt-svc");
    http_head_remove(h, "via");
    http_head_remove(h, "durward-denied");
    http_head_remove(h, "x-proxy-error");
    if (h->body != BODY_NONE)
        http_head_remove(h, "content-length");
    if (credentialed && !keep_cookies)
        http_head_remove(h, "set-cookie");
}

/* Of the codings of bodies and of messages in them (gRPC, Connect): only none at all can be
 * searched. */
static int ask_identity(struct head *h)
{
    static const char *const messages[] = {"grpc-accept-encoding", "connect-accept-encoding"};
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        if (http_head_find(h, messages[i]) && http_head_set(h, messages[i], SLICE("identity")) < 0)
            return -1;
    return http_head_set(h, "accept-encoding", SLICE("identity"));
}

/* One plain part stays: the injector asks for it with a margin. */
static void drop_ranges(struct head *h, const struct rule *rule)
{
    struct byte_range r;
    byte_range_drop_twins(h);
    byte_range_read(h, &r);
    if (r.name == NULL || rule->n_captures || rule_read_again(rule))
        byte_range_drop(h);
}

static int drop_beside_credential(struct head *h, const struct rule *rule)
{
    if (!rule->cookies)
        http_head_remove(h, "cookie");
    if (!rule->ranges)
        drop_ranges(h, rule);
    if (rule->n_captures) /* Vault and OpenBao: the secret would lie where the token says */
        http_head_remove(h, "x-vault-wrap-ttl");
    return ask_identity(h);
}

static size_t find_field(const void *head, const char *name, struct slice *value)
{
    const struct field *f = http_head_find(head, name);
    if (f)
        *value = f->value;
    return http_head_count(head, name);
}

/* Another spelling of a name that the rule speaks of: many servers read both as one. */
static bool is_spoken_twin(const struct rule *rule, struct slice name)
{
    const struct credential *c = rule->credential;
    size_t n_signs = c ? c->n_signs : 0;
    for (size_t i = 0; i < rule->n_not_credentials; i++) {
        struct slice known = slice_str(rule->not_credentials[i]);
        if (!slice_eq(name, known) && field_same(name, known))
            return true;
    }
    for (size_t i = 0; i < rule->n_headers + rule->n_edits + n_signs; i++) {
        size_t e = i - rule->n_headers;
        struct slice known = slice_str(i < rule->n_headers ? rule->headers[i].name
                                       : e < rule->n_edits ? rule->edits[e].name
                                                           : c->signs[e - rule->n_edits].name);
        if (!slice_eq(name, known) && field_same(name, known))
            return true;
    }
    return false;
}

/* To act as somebody else is a verb of its own, which no rule allows. */
static const char *kube_refused(const struct head *h, const struct rule *rule, struct slice query,
                                struct guard_answer *ret)
{
    struct kube_facts f;
    for (size_t i = 0; i < h->n; i++)
        if (slice_istarts(h->fields[i].name, SLICE("impersonate-"))) {
            guard_where(ret, "header", h->fields[i].name);
            return "kubernetes";
        }
    if (kube_read(h->method, h->path, query, &f) < 0 || kube_decide(rule->kubernetes, &f) < 0)
        return "kubernetes";
    const struct field *type = http_head_find(h, "content-type");
    bool one = type && http_head_count(h, "content-type") == 1;
    if (!kube_may_make(&f, one ? type->value : SLICE("")))
        return NULL;
    f.verb = KUBE_CREATE;
    return kube_decide(rule->kubernetes, &f) >= 0 ? NULL : "kubernetes";
}

const char *guard_conditions(const struct head *h, const struct rule *rule, struct slice query,
                             bool has_query, struct guard_answer *ret)
{
    for (size_t i = 0; i < h->n; i++)
        if (is_spoken_twin(rule, h->fields[i].name)) {
            guard_where(ret, "header", h->fields[i].name);
            return "header";
        }
    const char *code = condition_query(rule, query, has_query);
    if (code == NULL)
        code = condition_headers(rule, find_field, h);
    return code || rule->kubernetes == NULL ? code : kube_refused(h, rule, query, ret);
}

int guard_fields(struct head *h, const struct rule *rule, bool searched)
{
    bool credentialed = rule->credential != NULL;
    remove_named(h);
    remove_kinds(h, FIELD_HOP | FIELD_ROUTE,
                 credentialed && rule->client_credential == CLIENT_REFUSE);
    if ((credentialed || rule->n_captures || searched) && drop_beside_credential(h, rule) < 0)
        return -1;
    return rule_read_again(rule) ? ask_identity(h) : 0;
}

int guard_edit(struct head *h, const struct rule *rule)
{
    for (size_t i = 0; i < rule->n_edits; i++) {
        const struct header_edit *e = &rule->edits[i];
        if (e->value == NULL)
            http_head_remove(h, e->name);
        else if (http_head_set(h, e->name, slice_str(e->value)) < 0)
            return -1;
    }
    return 0;
}
