/* A grant of an `ask` rule: held until somebody has decided. Nothing of its body is read meanwhile
 * beyond what the channel's window holds. */
#include "grant_internal.h"

#include "guard.h"
#include "hold.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

/* Does the policy of now still say what somebody was asked about? */
static bool still_so(const struct grant *g)
{
    struct policy_request q = {&g->authority, g->head.method, g->head.path};
    const struct credential *c = g->decided.credential;
    struct decision d;
    if (g->injector->policy == g->decided.policy)
        return true;
    policy_decide(g->injector->policy, &q, &d);
    if (d.verdict != VERDICT_ASK || strcmp(d.rule->text, g->decided.rule->text) != 0)
        return false;
    return c == NULL || (d.rule->credential && strcmp(d.rule->credential->secret, c->secret) == 0);
}

static void on_decided(void *arg, enum hold_end end, const char *who)
{
    struct grant *g = arg;
    g->hold = NULL;
    if (end == HOLD_ALLOWED && !still_so(g)) {
        grant_deny(g, 403, "policy_changed", "while it was held");
    } else if (end == HOLD_ALLOWED) {
        snprintf(g->approval, sizeof g->approval, "approved by %s", who);
        grant_proceed(g);
    } else if (end == HOLD_DENIED) {
        snprintf(g->approval, sizeof g->approval, "denied by %s", who);
        grant_deny(g, 403, "approval_denied", g->approval);
    } else if (end == HOLD_FULL) {
        grant_deny(g, 503, "approval_full", "too many requests are held already");
    } else {
        grant_deny(g, 403, "approval_timeout", "nobody decided in time");
    }
}

static uint64_t body_length(const struct head *h)
{
    return h->body == BODY_LENGTH ? h->length : h->body == BODY_NONE ? 0 : HOLD_UNKNOWN;
}

void grant_hold(struct grant *g)
{
    char at[HOST_TEXT_MAX + 16];
    struct buf shape;
    const struct field *type = http_head_find(&g->head, "content-type");
    buf_init(&shape, 1024);
    if (g->head.has_query)
        guard_query_shape(g->head.query, &shape);
    struct hold_summary s = {
        .sandbox = g->decided.sandbox,
        .scheme = scheme_name(g->authority.scheme),
        .authority = authority_text(&g->authority, at, sizeof at),
        .rule = g->decided.rule->text,
        .credential = g->decided.credential ? g->decided.credential->secret : "",
        .method = g->head.method,
        .path = fill_hides_path(&g->fill) ? SLICE("[placeholder]") : g->head.path,
        .query = buf_slice(&shape),
        .type = type ? type->value : SLICE(""),
        .length = body_length(&g->head),
    };
    grant_set_state(g, G_HELD);
    g->waited = true;
    g->hold = hold_new(g->injector->holds, &s, on_decided, g);
    buf_free(&shape);
    if (g->hold == NULL)
        grant_deny(g, 503, "approval_full", "too many requests are held already");
}
