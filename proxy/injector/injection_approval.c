/* An injection of an `ask` rule: held until somebody has decided. Nothing of its body is read
 * meanwhile beyond what the channel's window holds. */
#include "injection_internal.h"

#include "guard.h"
#include "pending_approval.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

/* Does the policy of now still say what somebody was asked about? */
static bool still_so(const struct injection *g)
{
    struct policy_request q = {&g->authority, g->head.method, g->head.path};
    const struct credential *c = g->decided.credential;
    struct decision d;
    if (g->injector->policy == g->decided.policy)
        return true;
    policy_decide(g->injector->policy, &q, &d);
    if (d.verdict == VERDICT_DENY || strcmp(d.rule->text, g->decided.rule->text) != 0)
        return false;
    if (injection_judges(g) ? !injection_judge_still(g, d.rule) : d.verdict != VERDICT_ASK)
        return false;
    return c == NULL || (d.rule->credential && strcmp(d.rule->credential->secret, c->secret) == 0);
}

static void on_decided(void *arg, enum pending_approval_end end, const char *who)
{
    struct injection *g = arg;
    g->pending_approval = NULL;
    TRACE(&g->relay.trace, "approval", "%s",
          end == PENDING_APPROVAL_ALLOWED  ? "allowed"
          : end == PENDING_APPROVAL_DENIED ? "denied"
                                           : "nobody decided");
    if (end == PENDING_APPROVAL_ALLOWED && !still_so(g)) {
        injection_deny(g, 403, "policy_changed", "while it was held");
    } else if (end == PENDING_APPROVAL_ALLOWED) {
        snprintf(g->approval, sizeof g->approval, "approved by %s", who);
        injection_proceed(g);
    } else if (end == PENDING_APPROVAL_DENIED) {
        snprintf(g->approval, sizeof g->approval, "denied by %s", who);
        injection_deny(g, 403, "approval_denied", g->approval);
    } else if (end == PENDING_APPROVAL_FULL) {
        injection_deny(g, 503, "approval_full", "too many requests are held already");
    } else {
        injection_deny(g, 403, "approval_timeout", "nobody decided in time");
    }
}

static uint64_t body_length(const struct head *h)
{
    return h->body == BODY_LENGTH ? h->length : h->body == BODY_NONE ? 0 : PENDING_APPROVAL_UNKNOWN;
}

void injection_await_approval(struct injection *g)
{
    char at[HOST_TEXT_MAX + 16], rule[sizeof g->message_text + 300];
    struct buf shape;
    const struct field *type = http_head_find(&g->head, "content-type");
    buf_init(&shape, 1024);
    if (g->head.has_query)
        guard_query_shape(g->head.query, &shape);
    snprintf(rule, sizeof rule, "%s%s%s", g->decided.rule->text, g->message_text[0] ? ": " : "",
             g->message_text);
    struct pending_approval_summary s = {
        .sandbox = g->decided.sandbox,
        .scheme = scheme_name(g->authority.scheme),
        .authority = authority_text(&g->authority, at, sizeof at),
        .rule = rule,
        .credential = g->decided.credential ? g->decided.credential->secret : "",
        .method = g->head.method,
        .path = placement_hides_path(&g->placement) ? SLICE("[placeholder]") : g->head.path,
        .query = buf_slice(&shape),
        .type = type ? type->value : SLICE(""),
        .length = body_length(&g->head),
    };
    injection_set_state(g, G_HELD);
    g->waited = true;
    g->pending_approval = pending_approval_new(g->injector->pending_approvals, &s, on_decided, g);
    buf_free(&shape);
    if (g->pending_approval == NULL)
        injection_deny(g, 503, "approval_full",
                       "as many requests as this sandbox may have are held");
}
