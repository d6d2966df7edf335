/* An injection that is a session with a model over a WebSocket (llm_session.h): its client's events
 * judged once more, an estimate taken from the budgets before an answer is asked for, what it took
 * put in its place when it ended; and the record of all of it.
 *
 * Where tokens have no budget nothing is asked of the dialer, and nothing waits. */
#include "injection_internal.h"

#include "body_facts.h"
#include "budget_client.h"
#include "dial_client.h"
#include "llm.h"
#include "llm_session.h"
#include "message_judge.h"
#include "meter.h"
#include "override.h"
#include "pending_approval.h"
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { ANSWERS_MAX = 16 /* that are open at once in a session */ };

/* An answer that is asked for, or goes on. */
struct answer {
    struct injection_session *of;
    struct budget_client *budget; /* NULL: nobody counts it */
    struct quota_part lease;
    uint64_t in, tokens, money; /* the estimate: of what is sent, and of all */
    bool perhaps;               /* nobody has asked for it: audio may begin it */
    bool holds;                 /* its event waits for leave */
    bool begun;                 /* the provider said so, */
    bool over;                  /* and that it has ended */
    bool asked;                 /* the dialer has not answered yet */
    TAILQ_ENTRY(answer) link;
};

struct injection_session {
    struct injection *g;
    struct llm_session session;
    struct llm_events events; /* the provider's */
    struct message_judge *hold;
    struct scrub_frames *frames;
    TAILQ_HEAD(, answer) answers; /* the oldest first */
    unsigned n;
    bool priced;
    struct price price;
    struct llm_usage all;            /* of what is over */
    uint64_t money, seen;            /* seen: of answers that go on */
    bool unknown;                    /* of some it is not known what they took */
    char detail[INSPECT_DETAIL_MAX]; /* why it was ended */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t dearer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- the head ---- */

static const char *price_of_models(struct injection_session *s)
{
    struct slice which;
    s->price = (struct price){.model = NULL};
    s->priced =
        s->session.models[0] && injection_llm_price(s->g, s->session.models, &s->price, &which);
    return s->priced || !injection_llm_counts(s->g, true) ? NULL : "no price of a model";
}

bool injection_session_begin(struct injection *g, struct inspect_result *why)
{
    struct inspect_request facts = body_facts(&g->head);
    struct injection_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        injection_deny(g, 503, "memory", "");
        return false;
    }
    g->session = s;
    s->g = g;
    TAILQ_INIT(&s->answers);
    if (llm_session_begin(&s->session, g->decided.rule->inspection, &facts, why) != INSPECT_PASS) {
        injection_deny(g, why->status, why->code, why->detail);
        return false;
    }
    bool named = s->session.models[0] || s->session.form == LLM_RESPONSES;
    const char *bad = !named && injection_llm_counts(g, false) ? "no model is named"
                      : s->session.models[0]                   ? price_of_models(s)
                                                               : NULL;
    if (bad) {
        injection_deny(g, 403, "llm", bad);
        return false;
    }
    char name[81];
    injection_llm_model(s->session.models, name, sizeof name);
    snprintf(g->message_text, sizeof g->message_text, "session, model %s",
             name[0] ? name : "(each call's)");
    return true;
}

/* ---- answers ---- */

static void answer_free(struct answer *a)
{
    struct injection_session *s = a->of;
    TAILQ_REMOVE(&s->answers, a, link);
    s->n--;
    budget_client_free(a->budget);
    quota_leave(&a->lease);
    free(a);
}

static void end(struct injection_session *s, const char *code, const char *detail)
{
    if (s->detail[0] == 0)
        snprintf(s->detail, sizeof s->detail, "%s", detail);
    tunnel_end(s->g->relay.tunnel, code);
}

static void on_decided(void *arg, unsigned status UNUSED, const char *code, unsigned retry UNUSED)
{
    struct answer *a = arg;
    struct injection_session *s = a->of;
    char limits[128] = "";
    bool holds = a->holds;
    a->holds = a->asked = false;
    if (code == NULL) {
        if (a->over)
            answer_free(a);
        else if (holds)
            tunnel_go_on(s->g->relay.tunnel);
        return;
    }
    const struct budget *b = budget_client_spent(a->budget);
    if (b)
        budget_text(b, limits, sizeof limits);
    answer_free(a);
    end(s, code, limits);
}

static void on_more(void *arg UNUSED, bool up UNUSED)
{
}

static void on_over(void *arg UNUSED, unsigned retry UNUSED)
{
}

/* Its estimate is asked for; NULL: *bad says why not. */
static struct answer *answer_new(struct injection_session *s, uint64_t in, uint64_t out,
                                 const char **bad)
{
    struct injection *g = s->g;
    struct budget_channel *channel = dial_client_budget_channel(g->injector->dial);
    struct answer *a = s->n < ANSWERS_MAX ? calloc(1, sizeof *a) : NULL;
    *bad = "overload";
    if (a == NULL)
        return NULL;
    a->of = s;
    a->in = least(in, LLM_TOKENS_MAX);
    a->tokens = a->in + least(out, LLM_TOKENS_MAX);
    if (s->priced)
        a->money = price_of(s->price.in, a->in) + price_of(s->price.out, a->tokens - a->in);
    TAILQ_INSERT_TAIL(&s->answers, a, link);
    s->n++;
    if (!injection_llm_counts(g, false))
        return a;
    struct slice who = slice_str(g->decided.sandbox);
    enum quota_end q = quota_take(budget_channel_leases(channel), &a->lease, who, 1);
    const struct budget_client_owner owner = {on_decided, on_more, on_over, a};
    struct budget_call call = {.sandbox = g->decided.sandbox[0] ? g->decided.sandbox : "-",
                               .tokens = a->tokens,
                               .cost = a->money};
    struct budget_need need = {.known = true, .call = &call};
    if (q == QUOTA_TAKEN)
        a->budget = budget_client_new(channel, g->decided.rule->budget,
                                      policy_budget(g->decided.policy), &need, &owner);
    a->asked = true;
    if (a->budget)
        return a;
    *bad = q == QUOTA_SHARE ? "share_used" : "overload";
    answer_free(a);
    return NULL;
}

/* None whose event waits: the provider cannot speak of that. */
static struct answer *find(const struct injection_session *s, bool begun)
{
    struct answer *a;
    TAILQ_FOREACH(a, &s->answers, link)
    if (a->begun == begun && !a->over && !a->holds)
        return a;
    return NULL;
}

static struct answer *find_perhaps(const struct injection_session *s)
{
    struct answer *a;
    TAILQ_FOREACH(a, &s->answers, link)
    if (a->perhaps && !a->begun && !a->over && !a->holds)
        return a;
    return NULL;
}

/* ---- the client's events ---- */

static const char *ask(struct injection_session *s, const struct llm_call *call, enum llm_asks asks,
                       bool *wait)
{
    const char *bad = price_of_models(s);
    uint64_t out = call->max_said ? call->max : s->g->decided.rule->inspection->llm->assumed;
    struct answer *old = find_perhaps(s);
    if (bad) {
        snprintf(s->detail, sizeof s->detail, "%s", bad);
        return "llm";
    }
    if (asks == LLM_ASKS_PERHAPS && old)
        return NULL;
    if (call->hides && injection_llm_counts(s->g, false)) {
        snprintf(s->detail, sizeof s->detail,
                 "tokens have a budget here, and %s hides what is taken", call->hides);
        return "llm";
    }
    if (call->dear && injection_llm_counts(s->g, true)) {
        snprintf(s->detail, sizeof s->detail, "money has a budget here, and %s sets another price",
                 call->dear);
        return "llm";
    }
    if (old) { /* that is the one that is asked for now */
        budget_client_took(old->budget, 0, 0);
        answer_free(old);
    }
    struct answer *a = answer_new(s, call->estimate, out, &bad);
    if (a == NULL)
        return bad;
    a->perhaps = asks == LLM_ASKS_PERHAPS;
    a->holds = *wait = a->budget != NULL;
    return NULL;
}

static const char *judge(void *arg, struct slice event, bool *wait)
{
    struct injection_session *s = arg;
    struct inspect_result why = {.rpc_id = ""};
    enum llm_asks asks;
    if (llm_session_event(&s->session, s->g->decided.rule->inspection, event, &asks, &why) !=
        INSPECT_PASS) {
        snprintf(s->detail, sizeof s->detail, "%s", why.detail);
        return why.code;
    }
    return asks == LLM_ASKS_NOTHING ? NULL : ask(s, &why.call, asks, wait);
}

/* ---- the provider's ---- */

static void settle(struct injection_session *s, struct answer *a, const struct llm_usage *u)
{
    struct injection *g = s->g;
    uint64_t in = least(u->in, LLM_TOKENS_MAX), out = least(u->out, LLM_TOKENS_MAX), tokens, money;
    uint64_t cached = least(u->cached, in);
    if (u->known) {
        tokens = in + out;
        money = s->priced ? price_of(s->price.in, in - cached) + price_of(s->price.cached, cached) +
                                price_of(s->price.out, out)
                          : 0;
        s->session.context = dearer(in + out, 1);
    } else {
        tokens = dearer(a->tokens, a->in + least(s->seen, LLM_TOKENS_MAX));
        money = dearer(a->money, s->priced ? price_of(s->price.in, a->in) +
                                                 price_of(s->price.out, tokens - a->in)
                                           : 0);
        s->unknown = true;
        meter_add(METER_USAGE_UNKNOWN, 1);
    }
    budget_client_took(a->budget, tokens, money);
    a->over = true;
    if (!a->asked) /* else it ends the session where there was no leave for it */
        answer_free(a);
    s->all.in += u->known ? in : 0;
    s->all.out += u->known ? out : 0;
    s->all.cached += u->known ? cached : 0;
    s->money += money;
    s->seen = 0;
    meter_add(METER_MODEL_CALLS, 1);
    meter_add(METER_TOKENS_IN, u->known ? in : 0);
    meter_add(METER_TOKENS_OUT, u->known ? out : 0);
    meter_add(METER_TOKENS_CACHED, u->known ? cached : 0);
    meter_add(METER_COST, money);
    if (g->decided.sandbox[0])
        pending_approvals_called(g->injector->pending_approvals, g->decided.sandbox,
                                 u->known ? in : 0, u->known ? out : 0, money);
}

/* One that nobody asked for has its estimate asked for as it begins: there is no event to hold. */
static struct answer *unasked(struct injection_session *s)
{
    const char *bad;
    uint64_t assumed = s->g->decided.rule->inspection->llm->assumed;
    struct answer *a = answer_new(s, s->session.context, assumed, &bad);
    if (a == NULL)
        end(s, bad, "");
    return a;
}

static void begun(struct injection_session *s)
{
    struct answer *a = find(s, false);
    if (a == NULL)
        a = unasked(s);
    if (a)
        a->begun = true;
}

static const char *told(void *self, bool *wait UNUSED)
{
    struct injection_session *s = self;
    struct llm_usage u;
    struct answer *a;
    enum llm_tells tells = llm_events_end(&s->events, &u);
    s->seen += tells == LLM_TELLS_NOTHING ? u.seen : 0;
    switch (tells) {
    case LLM_TELLS_BEGUN:
        begun(s);
        break;
    case LLM_TELLS_ENDED:
    case LLM_TELLS_HEARD:
        a = tells == LLM_TELLS_HEARD ? find_perhaps(s) : find(s, true);
        if (a == NULL && tells == LLM_TELLS_ENDED)
            a = find(s, false);
        if (a == NULL)
            a = unasked(s);
        if (a)
            settle(s, a, &u);
        break;
    case LLM_TELLS_ERROR: /* if an answer is to come all the same, it is one that nobody asked for
                           */
        a = find(s, false);
        if (a && !a->holds) {
            budget_client_took(a->budget, 0, 0);
            answer_free(a);
        }
        break;
    case LLM_TELLS_NOTHING:
        break;
    }
    return NULL;
}

static const char *piece(void *self, struct slice in, struct slice *out)
{
    struct injection_session *s = self;
    struct tunnel_filter f = scrub_frames_filter(s->frames);
    llm_events_feed(&s->events, in);
    *out = in;
    return s->frames->scrub ? f.piece(f.self, in, out) : NULL;
}

static const char *rest(void *self, struct slice *out)
{
    struct injection_session *s = self;
    struct tunnel_filter f = scrub_frames_filter(s->frames);
    return s->frames->scrub && f.held(f.self) > 0 ? f.rest(f.self, out) : NULL;
}

static const char *control(void *self, char *p, size_t n)
{
    struct injection_session *s = self;
    struct tunnel_filter f = scrub_frames_filter(s->frames);
    return s->frames->scrub ? f.control(f.self, p, n) : NULL;
}

static size_t held(const void *self)
{
    const struct injection_session *s = self;
    struct tunnel_filter f = scrub_frames_filter(s->frames);
    return s->frames->scrub ? f.held(f.self) : 0;
}

int injection_session_filters(struct injection *g, struct tunnel_filter *up,
                              struct tunnel_filter *down)
{
    struct injection_session *s = g->session;
    struct message_judge_order o = {.total = &g->injector->gathered,
                                    .owner = g->decided.sandbox,
                                    .max = LLM_EVENT_MAX,
                                    .judge = judge,
                                    .arg = s};
    s->hold = message_judge_new(&o);
    if (s->hold == NULL)
        return -1;
    s->frames = &g->frames;
    *up = message_judge_filter(s->hold);
    *down = (struct tunnel_filter){piece, rest, control, held, s, told};
    return 0;
}

/* ---- the end ---- */

void injection_session_record(struct injection *g, struct record *r)
{
    struct injection_session *s = g->session;
    struct llm_usage nothing = {.known = false};
    struct answer *a;
    char model[LLM_MODEL_MAX + 1];
    if (s == NULL)
        return;
    while ((a = TAILQ_FIRST(&s->answers)) != NULL) {
        if (a->over) {
            answer_free(a);
        } else if (a->holds || (a->perhaps && !a->begun)) { /* it never went, or never began */
            budget_client_took(a->budget, 0, 0);
            answer_free(a);
        } else {
            a->asked = false;
            settle(s, a, &nothing);
        }
    }
    injection_llm_model(s->session.models, model, sizeof model);
    record_put_str(r, RF_MODEL, model);
    record_put_u64(r, RF_TOKENS_IN, s->all.in);
    record_put_u64(r, RF_TOKENS_OUT, s->all.out);
    if (s->all.cached)
        record_put_u64(r, RF_TOKENS_CACHED, s->all.cached);
    if (s->priced)
        record_put_u64(r, RF_COST, s->money);
    if (s->unknown)
        record_put_str(r, RF_USAGE, "unknown");
    if (s->detail[0])
        record_put_str(r, RF_DETAIL, s->detail);
}

void injection_session_end(struct injection *g)
{
    struct injection_session *s = g->session;
    struct answer *a;
    if (s == NULL)
        return;
    while ((a = TAILQ_FIRST(&s->answers)) != NULL)
        answer_free(a);
    message_judge_free(s->hold);
    free(s);
    g->session = NULL;
}
