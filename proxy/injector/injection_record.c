/* What of an injection is on record: the request, its refusal, its end. */
#include "injection_internal.h"

#include "pending_approval.h"
#include "meter.h"
#include "budget_client.h"
#include "request_record.h"
#include "tunnel.h"

#include <string.h>

void injection_record_request(struct injection *g, struct record *r, enum record_kind kind)
{
    const struct rule *rule = g->decided.rule;
    const struct credential *credential = g->decided.credential;
    const struct request_record q = {.authority = &g->authority,
                                     .head = &g->head,
                                     .hides_path = placement_hides_path(&g->placement),
                                     .shown_path = placement_path(&g->placement, &g->head),
                                     .hides_command = placement_hides_query(&g->placement),
                                     .kubernetes = rule ? rule->kubernetes : NULL,
                                     .rule = rule ? rule->text : NULL,
                                     .credential = credential ? credential->secret : NULL,
                                     .entry = g->entry,
                                     .sandbox = g->relay.sandbox};
    request_record(r, kind, g->counter, &q);
}

void injection_tell_fail(struct injection *g, unsigned status, const char *code)
{
    char id[48] = "-";
    if (g->counter)
        journal_id(g->injector->journal, g->counter, id, sizeof id);
    struct downstream f = g->relay.downstream;
    injection_set_state(g, G_DONE);
    stream_retry(&f, g->retry);
    injection_release(g);
    f.ops->fail(f.self, status, code, id);
}

static void on_denied_recorded(void *arg, bool ok)
{
    struct injection *g = arg;
    g->wait = NULL;
    if (ok)
        injection_tell_fail(g, g->refuse_status, g->refuse_code);
    else
        injection_tell_fail(g, 503, "audit_unwritable");
}

void injection_deny(struct injection *g, unsigned status, const char *code, const char *detail)
{
    struct record r;
    g->refuse_status = status;
    g->refuse_code = code;
    TRACE(&g->relay.trace, "refused", "%u %s", status, code);
    injection_set_state(g, G_RECORDING);
    g->counter = journal_next(g->injector->journal);
    injection_record_request(g, &r, RECORD_DENIED);
    record_put_str(&r, RF_CODE, code);
    record_put_u64(&r, RF_STATUS, status);
    record_put_str(&r, RF_DETAIL, detail);
    struct journal_wait *w = journal_append(g->injector->journal, &r, on_denied_recorded, g);
    if (w)
        g->wait = w;
}

/* How often the reply held the secret. */
uint64_t injection_hits(const struct injection *g)
{
    return g->head_hits + g->frames.hits + (g->scrub ? scrub_hits(g->scrub) : 0);
}

void injection_end_record(struct injection *g, enum record_kind kind, const char *code)
{
    struct record r;
    if (!g->admitted)
        return;
    g->admitted = false;
    if (injection_hits(g) > 0 && g->on_reflect == REFLECT_KILL)
        pending_approvals_kill(g->injector->pending_approvals, g->decided.sandbox,
                               "a secret came back in a reply");
    tunnel_verdict(g->relay.tunnel, &kind, &code);
    meter_add(METER_SCRUB_HITS, injection_hits(g));
    if (kind == RECORD_COMPLETED && injection_hits(g) > 0)
        code = "secret_reflected";
    relay_record_bodies(&g->relay, g->injector->journal, g->counter, NULL, NULL);
    relay_record(&g->relay, &r, kind, g->counter, code);
    injection_mcp_record(g, &r);
    if (injection_hits(g) > 0)
        record_put_u64(&r, RF_COUNT, injection_hits(g));
    const struct origin_facts *facts = g->origin ? origin_facts(g->origin) : &g->facts;
    injection_llm_record(g, facts, &r);
    injection_session_record(g, &r);
    origin_record(facts, relay_begun(&g->relay), &r);
    journal_note(g->injector->journal, &r);
}
