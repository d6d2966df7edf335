/* A request for a metadata service: guarded and recorded as any other, and answered by the gate. */
#include "exchange_internal.h"

#include "guard.h"
#include "metadata.h"
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>

/* What decides here beside the identity: a rule that denies. */
static const struct rule by_identity = {.text = "identity"};

static bool may_ask(struct exchange *x)
{
    struct decision d;
    const char *why;
    struct policy_request q = {&x->authority, x->head.method, x->head.path};
    if (guard_method(x->head.method) < 0) {
        exchange_deny(x, 405, "method");
        return false;
    }
    if (x->head.form == TARGET_ASTERISK || path_check(x->head.path, &why) < 0) {
        exchange_deny(x, 400, "path_ambiguous");
        return false;
    }
    policy_decide(x->policy, &q, &d);
    if (d.rule == NULL)
        return true;
    snprintf(x->rule_text, sizeof x->rule_text, "%s", d.rule->text);
    exchange_deny(x, 403, d.code);
    return false;
}

void exchange_metadata(struct exchange *x)
{
    x->policy = policy_ref(x->who.route->policy);
    x->rule = &by_identity;
    if (!may_ask(x))
        return;
    snprintf(x->rule_text, sizeof x->rule_text, "%s", by_identity.text);
    if (x->head.upgrade != UPGRADE_NONE) {
        exchange_deny(x, 403, "websocket");
        return;
    }
    struct prepared *answer = malloc(sizeof *answer);
    if (answer == NULL) {
        exchange_deny(x, 503, "memory");
        return;
    }
    prepared_init(answer, METADATA_BODY_MAX);
    x->answer = answer;
    const struct metadata q = {.gate = x->gate,
                               .who = &x->who,
                               .cloud = policy_identity(x->policy),
                               .at = &x->authority,
                               .head = &x->head};
    const struct refusal *bad = metadata_answer(&q, answer);
    if (bad)
        exchange_deny(x, bad->status, bad->code);
    else
        exchange_open_plain(x);
}

struct upstream exchange_answer_open(struct exchange *x)
{
    struct downstream f = {&exchange_downstream_ops, x};
    struct upstream answer = metadata_open(x->gate, f, x->answer);
    free(x->answer);
    x->answer = NULL;
    return answer;
}

void exchange_answer_free(struct exchange *x)
{
    if (x->answer)
        prepared_free(x->answer);
    free(x->answer);
}
