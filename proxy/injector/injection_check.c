/* The injector's own decision: nothing that the gate said is believed. */
#include "injection.h"

#include "guard.h"
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
    if (revoked_has(i->revoked, t.sandbox, t.expiry))
        return "token_revoked";
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

const char *injection_check(const struct injector *i, const struct injection_request *r,
                            struct head *h, struct authority *authority,
                            struct injection_decided *ret)
{
    const char *why, *bad;
    struct authority a = *authority;
    struct decision d;
    snprintf(ret->sandbox, sizeof ret->sandbox, "%s", r->sandbox);
    if ((bad = check_token(i, r, ret)) != NULL)
        return bad;
    if (canonical_host(&a) < 0 || strcmp(a.host, authority->host) != 0)
        return "grant_authority";
    authority->kind = a.kind;
    memcpy(authority->ip, a.ip, sizeof a.ip);
    if (guard_method(h->method) < 0 || path_check(h->path, &why) < 0)
        return "grant_request";
    struct policy_request q = {authority, h->method, h->path};
    ret->policy = policy_ref(i->policy);
    policy_decide(ret->policy, &q, &d);
    if (d.verdict == VERDICT_DENY || d.rule == NULL ||
        !policy_by_injector(ret->policy, d.rule, authority))
        return "grant_denied";
    ret->rule = d.rule;
    ret->methods_matter = d.methods_matter;
    if (d.rule->credential && authority->scheme != SCHEME_HTTPS && !d.rule->allow_plaintext)
        return "grant_authority";
    struct guard_answer answer = {.where = ""};
    if (guard_fields(h, d.rule, policy_tainted(ret->policy, authority), &answer) < 0 ||
        !guard_destination(ret->policy, authority, h, d.rule))
        return "grant_request";
    if (h->upgrade != UPGRADE_NONE && !d.rule->websocket)
        return "grant_denied";
    if (r->blanks.n != d.rule->n_captures)
        return "grant_request";
    if (d.rule->credential == NULL)
        return r->secret[0] == 0 ? NULL : "grant_denied";
    if (r->secret[0] == 0)
        return d.rule->client_credential == CLIENT_PASS || d.rule->credential->captured
                   ? NULL
                   : "grant_denied";
    if (strcmp(d.rule->credential->secret, r->secret) != 0)
        return "grant_denied";
    ret->credential = d.rule->credential;
    return NULL;
}
