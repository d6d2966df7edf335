/* An injection of an `ask` rule: held until somebody has decided. Nothing of its body is read
 * meanwhile beyond what the channel's window holds. */
#include "injection_internal.h"

#include "guard.h"
#include "kube_rule.h"
#include "pending_approval.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

enum { RULE_TEXT_MAX = 64 * 1024 };

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

/* What a cluster is asked, and to run. */
static int put_kubernetes(const struct injection *g, struct buf *to)
{
    struct kube_facts f;
    struct buf command;
    if (placement_hides_path(&g->placement) ||
        kube_read(g->head.method, g->head.path, g->head.query, &f) < 0)
        return 0;
    buf_init(&command, KUBE_COMMAND_MAX);
    if (!placement_hides_query(&g->placement))
        kube_command(&f, &command);
    bool some = buf_len(&command) > 0;
    int r = buf_append_str(to, ": ") < 0 || kube_text(&f, to) < 0 ||
                    buf_append_str(to, some ? ": " : "") < 0 ||
                    buf_append_slice(to, buf_slice(&command)) < 0
                ? -1
                : 0;
    buf_free(&command);
    return r;
}

/* The rule, and what of the request is neither in its method nor in its path: a message of MCP, a
 * call to a model, a command. */
static int put_rule(const struct injection *g, char to[PENDING_APPROVAL_TEXT_MAX + 1])
{
    static const char rest[] = PENDING_APPROVAL_CUT;
    const struct rule *rule = g->decided.rule;
    struct buf text;
    buf_init(&text, RULE_TEXT_MAX);
    int r = buf_printf(&text, "%s%s%s", rule->text, g->message_text[0] ? ": " : "",
                       g->message_text) < 0 ||
                    (rule->kubernetes && put_kubernetes(g, &text) < 0)
                ? -1
                : 0;
    bool cut = buf_len(&text) > PENDING_APPROVAL_TEXT_MAX;
    snprintf(to, PENDING_APPROVAL_TEXT_MAX + 1, "%.*s%s",
             cut ? PENDING_APPROVAL_TEXT_MAX - (int)(sizeof rest - 1) : (int)buf_len(&text),
             (const char *)buf_data(&text), cut ? rest : "");
    buf_free(&text);
    return r;
}

void injection_await_approval(struct injection *g)
{
    char at[HOST_TEXT_MAX + 16], rule[PENDING_APPROVAL_TEXT_MAX + 1];
    struct slice path = placement_path(&g->placement, &g->head);
    struct buf shape;
    const struct field *type = http_head_find(&g->head, "content-type");
    buf_init(&shape, 1024);
    if (g->head.has_query)
        guard_query_shape(g->head.query, &shape);
    bool said = put_rule(g, rule) == 0;
    struct pending_approval_summary s = {
        .sandbox = g->decided.sandbox,
        .scheme = scheme_name(g->authority.scheme),
        .authority = authority_text(&g->authority, at, sizeof at),
        .rule = rule,
        .credential = g->decided.credential ? g->decided.credential->secret : "",
        .method = g->head.method,
        .path = path.n > 0 ? path : SLICE("[placeholder]"),
        .query = buf_slice(&shape),
        .type = type ? type->value : SLICE(""),
        .length = body_length(&g->head),
    };
    injection_set_state(g, G_HELD);
    g->waited = true;
    g->pending_approval =
        said ? pending_approval_new(g->injector->pending_approvals, &s, on_decided, g) : NULL;
    buf_free(&shape);
    if (g->pending_approval == NULL)
        injection_deny(g, 503, "approval_full",
                       "as many requests as this sandbox may have are held");
}
