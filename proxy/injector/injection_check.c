/* The injector's own decision: nothing that the gate said is believed. The list of admission is
 * asked again, of this process's policy; what a gate says beside the request is checked here. */
#include "injection.h"

#include "admission.h"
#include "policy.h"
#include "revoked.h"
#include "token.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *check_token(const struct injector *i, const struct injection_request *r,
                               struct injection_decided *d)
{
    struct token t;
    if (!r->needs_token)
        return NULL;
    if (i->token_public == NULL ||
        token_verify(i->token_public, slice_str(r->token), (uint64_t)time(NULL), &t, NULL) < 0)
        return "token_invalid";
    const char *why = revoked_why(i->revoked, t.sandbox, t.expiry);
    if (why)
        return why;
    if (strcmp(t.policy, i->name) != 0)
        return "token_policy";
    snprintf(d->sandbox, sizeof d->sandbox, "%s", t.sandbox);
    return NULL;
}

/* The host as the message has it: IPv6 without brackets. */
static int canonical_host(struct authority *a)
{
    char host[HOST_TEXT_MAX + 2];
    bool v6 = strchr(a->host, ':') != NULL;
    snprintf(host, sizeof host, v6 ? "[%s]" : "%s", a->host);
    return authority_host(a, slice_str(host));
}

static int refuse(struct guard_answer *a, const char *code)
{
    a->code = code;
    return -1;
}

/* What a gate says beside the request. Only a gate that lies, or has another policy than this
 * process, is refused here. */
struct said {
    const struct injection_request *r;
    struct injection_decided *decided;
    struct placement *placement;
};

/* Nothing of ours goes. Unless the client's own may, none does. */
static int check_without(const struct rule *rule, struct head *h, struct guard_answer *ret)
{
    if (rule->credential == NULL || rule->client_credential == CLIENT_PASS)
        return 0;
    if (!rule->credential->captured || rule->credential->beside[0])
        return refuse(ret, "grant_denied");
    for (const struct credential *c = rule->credential; c; c = c->other)
        http_head_remove(h, c->header);
    return 0;
}

static int check_said(void *self, struct head *h, struct admission *a)
{
    struct said *s = self;
    const struct rule *rule = a->decision.rule;
    const char *secret = s->r->secret;
    if (!a->by_injector)
        return refuse(&a->answer, "grant_denied");
    if (s->r->blanks.n != rule->n_captures)
        return refuse(&a->answer, "grant_request");
    if (secret[0] == 0)
        return check_without(rule, h, &a->answer);
    if (rule->credential == NULL || strcmp(rule->credential->secret, secret) != 0)
        return refuse(&a->answer, "grant_denied");
    s->decided->credential = rule->credential;
    const char *bad = placement_begin(s->placement, rule->credential, &s->r->marks, h);
    return bad ? refuse(&a->answer, bad) : 0;
}

/* 0, or -1: what a gate may not say of itself. */
static int check_sender(const struct injector *i, const struct injection_request *r,
                        struct authority *authority, struct injection_decided *ret)
{
    struct authority a = *authority;
    const char *bad = check_token(i, r, ret);
    if (bad)
        return refuse(&ret->answer, bad);
    if (canonical_host(&a) < 0 || strcmp(a.host, authority->host) != 0)
        return refuse(&ret->answer, "grant_authority");
    authority->kind = a.kind;
    memcpy(authority->ip, a.ip, sizeof a.ip);
    return 0;
}

int injection_check(const struct injector *i, const struct injection_request *r, struct head *h,
                    struct authority *authority, struct placement *placement,
                    struct injection_decided *ret)
{
    struct said said = {r, ret, placement};
    struct admission found;
    snprintf(ret->sandbox, sizeof ret->sandbox, "%s", r->sandbox);
    ret->answer = (struct guard_answer){.status = 403, .where = ""};
    if (check_sender(i, r, authority, ret) < 0)
        return -1;
    ret->policy = policy_ref(i->policy);
    const struct admission_request q = {
        .policy = ret->policy, .authority = authority, .own = check_said, .role = &said};
    int admitted = admission_check(&q, h, &found);
    ret->answer = found.answer;
    ret->rule = found.decision.rule;
    ret->methods_matter = found.decision.methods_matter;
    return admitted;
}
