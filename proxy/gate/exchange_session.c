/* A session with a model over a WebSocket, as its gate reads it: what the rule does not allow ends
 * it here. The injector reads it again, and counts. */
#include "exchange_internal.h"

#include "body_facts.h"
#include "llm_session.h"
#include "message_judge.h"
#include "policy.h"

#include <stdlib.h>

struct exchange_session {
    const struct inspection *inspection;
    struct llm_session session;
    struct message_judge *hold;
};

static const char *judge(void *arg, struct slice event, bool *wait UNUSED)
{
    struct exchange_session *s = arg;
    struct inspect_result why = {.rpc_id = ""};
    enum llm_asks asks;
    bool passes = llm_session_event(&s->session, s->inspection, event, &asks, &why) == INSPECT_PASS;
    return passes ? NULL : why.code;
}

int exchange_session(struct exchange *x, const struct tunnel_filter *inner,
                     struct tunnel_filter *up)
{
    struct inspect_result why = {.rpc_id = ""};
    struct inspect_request facts = body_facts(&x->head);
    struct exchange_session *s = x->session = calloc(1, sizeof *s);
    if (s == NULL)
        return -1;
    s->inspection = x->rule->inspection;
    struct message_judge_order o = {.total = &x->gate->inspected,
                                    .owner = x->who.sandbox,
                                    .max = LLM_EVENT_MAX,
                                    .judge = judge,
                                    .arg = s,
                                    .inner = inner};
    /* its head has passed before, so that this says the same */
    if (llm_session_begin(&s->session, s->inspection, &facts, &why) == INSPECT_PASS)
        s->hold = message_judge_new(&o);
    if (s->hold == NULL)
        return -1;
    *up = message_judge_filter(s->hold);
    return 0;
}

void exchange_session_free(struct exchange *x)
{
    if (x->session)
        message_judge_free(x->session->hold);
    free(x->session);
    x->session = NULL;
}
