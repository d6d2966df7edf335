/* The list of admission checks, in their order: what is refused first names the refusal. */
#include "admission.h"

#include "target.h"

#include <string.h>

/* A request on its way through the list. */
struct candidate {
    const struct admission_request *q;
    struct head *head;
    struct admission *found;
};

static const struct rule *rule_of(const struct candidate *c)
{
    return c->found->decision.rule;
}

static const char *check_method(struct candidate *c)
{
    return guard_method(c->head->method) < 0 ? "method" : NULL;
}

static const char *check_path(struct candidate *c)
{
    const char *why;
    bool bad = c->head->form == TARGET_ASTERISK || path_check_asked(c->head->path, &why) < 0;
    return bad ? "path_ambiguous" : NULL;
}

static const char *check_policy(struct candidate *c)
{
    const struct admission_request *q = c->q;
    const struct policy_request r = {q->authority, c->head->method, c->head->path};
    struct decision *d = &c->found->decision;
    policy_decide(q->policy, &r, d);
    if (d->verdict == VERDICT_DENY)
        return d->code;
    c->found->by_injector = policy_by_injector(q->policy, d->rule, q->authority);
    return NULL;
}

/* What is asked of the body goes by the path, and an origin may read that without its empty
 * segments. */
static const char *check_segments(struct candidate *c)
{
    const struct rule *r = rule_of(c);
    bool by_path = r->inspection || r->kubernetes;
    return by_path && path_has_empty(c->head->path) ? "path_ambiguous" : NULL;
}

/* In clear to us is not what a tunnel is for. */
static const char *check_tunnel(struct candidate *c)
{
    return rule_of(c)->tunnel && !c->q->as_tunnel ? "tunnel" : NULL;
}

static const char *check_fields(struct candidate *c)
{
    bool searched = policy_tainted(c->q->policy, c->q->authority);
    return guard_fields(c->head, rule_of(c), searched) < 0 ? "too_many_headers" : NULL;
}

static const char *check_conditions(struct candidate *c)
{
    const struct head *h = c->head;
    return guard_conditions(h, rule_of(c), h->query, h->has_query, &c->found->answer);
}

static const char *check_destination(struct candidate *c)
{
    const struct admission_request *q = c->q;
    return guard_destination(q->policy, q->authority, c->head, rule_of(c)) ? NULL : "destination";
}

static const char *check_plaintext(struct candidate *c)
{
    const struct rule *r = rule_of(c);
    bool clear = c->q->authority->scheme != SCHEME_HTTPS;
    return r->credential && clear && !r->allow_plaintext ? "secret_needs_tls" : NULL;
}

/* Only a gate has the target as it was received: what it sends on is spelled as it will be written,
 * so respelled is false in the injector. */
static const char *check_signed_target(struct candidate *c)
{
    return c->head->respelled && target_is_signed(c->head, rule_of(c)) ? "signed_target" : NULL;
}

/* Another method in the query. In fields it is taken off; in a body the role looks for it. Where a
 * Destination stands the method matters always: by another one that place would be written. */
static const char *check_override(struct candidate *c)
{
    struct decision *d = &c->found->decision;
    d->methods_matter = d->methods_matter || http_head_find(c->head, "destination");
    if (!d->methods_matter)
        return NULL;
    c->found->stripped = guard_strip_overrides(c->head);
    return guard_query_override(c->head->query) ? "method_override" : NULL;
}

static const char *check_upgrade(struct candidate *c)
{
    return c->head->upgrade != UPGRADE_NONE && !rule_of(c)->websocket ? "websocket" : NULL;
}

static const char *check_own(struct candidate *c)
{
    const struct admission_request *q = c->q;
    return q->own && q->own(q->role, c->head, c->found) < 0 ? c->found->answer.code : NULL;
}

/* After the role's own checks: they have taken off what stood in the rule's places. */
static const char *check_foreign(struct candidate *c)
{
    const struct rule *r = rule_of(c);
    bool found = r->credential && guard_foreign(c->head, r, &c->found->answer);
    return found ? "foreign_credential" : NULL;
}

/* Last: conditions and credentials are judged as the client wrote them. */
static const char *check_edits(struct candidate *c)
{
    return guard_edit(c->head, rule_of(c)) < 0 ? "too_many_headers" : NULL;
}

static const struct {
    const char *(*refuses)(struct candidate *c); /* NULL: no */
    unsigned status;
} list[] = {
    {check_method, 405},        {check_path, 400},        {check_policy, 403},
    {check_segments, 400},      {check_tunnel, 403},      {check_fields, 431},
    {check_conditions, 403},    {check_destination, 403}, {check_plaintext, 403},
    {check_signed_target, 400}, {check_override, 403},    {check_upgrade, 403},
    {check_own, 403},           {check_foreign, 403},     {check_edits, 431},
};

int admission_check(const struct admission_request *q, struct head *h, struct admission *ret)
{
    struct candidate c = {q, h, ret};
    ret->decision = (struct decision){.code = "", .rule = NULL};
    ret->by_injector = ret->answer.inject = false;
    ret->stripped = 0;
    ret->answer.status = 0;
    ret->answer.where[0] = 0;
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        const char *code = list[i].refuses(&c);
        if (code == NULL)
            continue;
        ret->answer.code = code;
        if (ret->answer.status == 0)
            ret->answer.status = list[i].status;
        return -1;
    }
    return 0;
}
