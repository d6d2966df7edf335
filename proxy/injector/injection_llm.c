/* An injection that is a call to a model (`llm`): what it is estimated to take, before anybody is
 * asked for it; what its reply says that it took, as that passes; and the record of both. */
#include "injection_internal.h"

#include "body_facts.h"
#include "budget_client.h"
#include "llm.h"
#include "llm_reply.h"
#include "llm_usage.h"
#include "meter.h"
#include "override.h"
#include "pending_approval.h"
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LLM_WHY_MAX = 112 };

struct injection_call {
    struct llm_call asked;
    struct llm_reply *reply;   /* NULL: there is none yet, or it is not read */
    bool requested;            /* what it takes, by us */
    struct llm_usage_cut *cut; /* NULL: its reply goes on as it is */
    bool ended;                /* and what it took was said */
    bool priced;
    struct price price; /* the dearest of all models that it names */
    uint64_t in;        /* the estimate of what is sent; of all: */
    uint64_t tokens, money;
};

static const struct budget *own(const struct injection *g)
{
    return g->decided.rule->budget;
}

static const struct budget *whole(const struct injection *g)
{
    return policy_budget(g->decided.policy);
}

static bool is_metered(const struct injection *g)
{
    return budget_of_calls(own(g)) || budget_of_calls(whole(g));
}

bool injection_llm_counts(const struct injection *g, bool money)
{
    return money ? budget_has(own(g), BUDGET_COST) || budget_has(whole(g), BUDGET_COST)
                 : is_metered(g);
}

const char *injection_llm_barred(const struct injection *g, bool unread)
{
    bool asks = g->head.body != BODY_NONE || g->head.upgrade != UPGRADE_NONE;
    if (!asks || !is_metered(g) || (!unread && !g->decided.rule->uncounted))
        return NULL;
    return unread ? "no call to a model whose tokens can be counted"
                  : "tokens have a budget here, and this rule's calls are not counted";
}

/* ---- the estimate ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t dearer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t answer_tokens(const struct injection *g, const struct llm_call *c)
{
    uint64_t assumed = g->decided.rule->inspection->llm->assumed,
             each = c->max_said ? c->max : dearer(c->max, assumed);
    uint64_t most = LLM_TOKENS_MAX; /* of each factor, so that the product has room */
    return c->form == LLM_EMBEDDINGS ? 0 : least(least(each, most) * least(c->many, most), most);
}

bool injection_llm_price(const struct injection *g, const char *models, struct price *ret,
                         struct slice *which)
{
    const struct price_table *table = policy_prices(g->decided.policy);
    bool all = true;
    for (const char *at = models; all; at += which->n + 1) {
        *which = (struct slice){at, strcspn(at, "\n")};
        const struct price *p = price_find(table, *which);
        all = p != NULL;
        if (p)
            *ret = (struct price){.in = dearer(ret->in, p->in),
                                  .out = dearer(ret->out, p->out),
                                  .cached = dearer(ret->cached, p->cached),
                                  .written = dearer(ret->written, p->written)};
        if (at[which->n] == 0)
            break;
    }
    return all;
}

/* Names as the client wrote them, in letters that need no escape. */
static void put_name(char *to, size_t size, struct slice name)
{
    size_t n = 0;
    for (; n < name.n && n + 1 < size; n++) {
        char c = name.p[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c && strchr("_-./:@", c));
        to[n] = plain ? c : '?';
    }
    to[n] = 0;
}

void injection_llm_model(const char *models, char *to, size_t size)
{
    put_name(to, size, (struct slice){models, strcspn(models, "\n")});
}

static void describe(struct injection *g, const struct llm_call *c)
{
    char name[81], tools[40] = "", most[48] = "";
    injection_llm_model(c->models, name, sizeof name);
    if (c->tools)
        snprintf(tools, sizeof tools, ", %u tools", c->tools);
    if (c->max_said)
        snprintf(most, sizeof most, ", at most %llu tokens", (unsigned long long)c->max);
    snprintf(g->message_text, sizeof g->message_text, "model %s%s%s%s", name[0] ? name : "(none)",
             tools, c->streamed ? ", streamed" : "", most);
}

/* A parameter of the query: Google's APIs take a mask of the reply's fields there. */
static bool is_mask(struct slice name)
{
    char text[8];
    size_t n = 0;
    for (size_t i = 0; i < name.n; n++) {
        if (n == sizeof text)
            return false;
        text[n] = parameter_byte(name, &i);
    }
    struct slice said = {text, n};
    return slice_ieq_str(said, "fields") || slice_ieq_str(said, "$fields");
}

/* What keeps the reply from saying what it took, or NULL. Google's APIs take a mask of fields in
 * the query and in a header. */
static const char *hides_usage(const struct injection *g, const struct llm_call *asked)
{
    struct slice q = g->head.query;
    if (asked->hides)
        return asked->hides;
    if ((g->decided.rule->inspection->llm->apis & LLM_API_GEMINI) == 0)
        return NULL;
    while (q.n > 0) {
        size_t n = 0, name = 0;
        while (n < q.n && q.p[n] != '&' && q.p[n] != ';')
            n++;
        while (name < n && q.p[name] != '=')
            name++;
        if (is_mask((struct slice){q.p, name}))
            return "fields";
        n += n < q.n;
        q = (struct slice){q.p + n, q.n - n};
    }
    return http_head_find(&g->head, "x-goog-fieldmask") ? "x-goog-fieldmask" : NULL;
}

/* What asks for another price, in the body or in a field, or NULL. */
static const char *asks_dear(const struct injection *g, const struct llm_call *asked)
{
    static const char *const names[] = {"x-amzn-bedrock-service-tier",
                                        "x-amzn-bedrock-performanceconfig-latency",
                                        "x-vertex-ai-llm-shared-request-type"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct field *f = http_head_find(&g->head, names[i]);
        if (f && (http_head_count(&g->head, names[i]) > 1 || !llm_price_is_plain(f->value)))
            return names[i];
    }
    return asked->dear;
}

/* Why it may not go where tokens or money have a budget, or NULL. */
static const char *uncountable(const struct injection *g, const struct llm_call *asked,
                               char text[LLM_WHY_MAX])
{
    const char *hides = is_metered(g) ? hides_usage(g, asked) : NULL,
               *dear = injection_llm_counts(g, true) ? asks_dear(g, asked) : NULL;
    if (hides == NULL && dear == NULL)
        return NULL;
    snprintf(text, LLM_WHY_MAX,
             hides ? "tokens have a budget here, and %s hides what is taken"
                   : "money has a budget here, and %s sets another price",
             hides ? hides : dear);
    return text;
}

/* Something says what the body is: it is the client's, to the byte. */
static bool is_signed(const struct injection *g)
{
    static const char *const names[] = {"content-digest",  "repr-digest",
                                        "digest",          "content-md5",
                                        "signature-input", "x-amz-content-sha256"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (http_head_find(&g->head, names[i]))
            return true;
    const struct field *f = http_head_find(&g->head, "authorization");
    return (f && slice_istarts(f->value, SLICE("AWS4-"))) ||
           (g->decided.credential &&
            (placement_signs(&g->placement) || placement_body_limit(&g->placement, &g->head) > 0));
}

static void request_usage(struct injection *g)
{
    struct injection_call *c = g->call;
    struct buf body;
    if (!g->decided.rule->inspection->llm->request_usage || c->asked.form != LLM_CHAT ||
        !c->asked.streamed || is_signed(g) || llm_usage_ask(buf_slice(&g->body.body), &body) < 0)
        return;
    body_buffer_replace(&g->body, &body);
    g->head.length = buf_len(&g->body.body);
    c->requested = true;
    size_t n = strlen(g->message_text);
    snprintf(g->message_text + n, sizeof g->message_text - n, ", usage requested");
}

bool injection_llm_take(struct injection *g, const struct llm_call *asked)
{
    struct slice which;
    char text[LLM_WHY_MAX], name[64];
    if (asked->form == LLM_NONE) {
        const char *bad = injection_llm_barred(g, false);
        return bad ? (injection_deny(g, 403, "llm", bad), false) : true;
    }
    if (uncountable(g, asked, text)) {
        injection_deny(g, 403, "llm", text);
        return false;
    }
    struct injection_call *c = calloc(1, sizeof *c);
    if (c == NULL) {
        injection_deny(g, 503, "memory", "");
        return false;
    }
    g->call = c;
    c->asked = *asked;
    describe(g, asked);
    c->priced = injection_llm_price(g, c->asked.models, &c->price, &which);
    if (!c->priced && injection_llm_counts(g, true)) {
        put_name(name, sizeof name, which);
        snprintf(text, sizeof text, "no price of %s", name);
        injection_deny(g, 403, "llm", text);
        return false;
    }
    uint64_t in = least(asked->estimate, LLM_TOKENS_MAX), out = answer_tokens(g, asked);
    c->in = in;
    c->tokens = in + out;
    if (c->priced)
        c->money = price_of(c->price.in, in) + price_of(c->price.out, out);
    request_usage(g);
    return true;
}

bool injection_llm_call(const struct injection *g, struct budget_call *ret)
{
    if (g->call == NULL || !is_metered(g))
        return false;
    *ret = (struct budget_call){.sandbox = g->decided.sandbox[0] ? g->decided.sandbox : "-",
                                .tokens = g->call->tokens,
                                .cost = g->call->money};
    return true;
}

/* ---- the reply ---- */

void injection_llm_reply(struct injection *g, const struct head *h)
{
    struct inspect_request facts = body_facts(h);
    if (g->call && h->status / 100 == 2 && h->body != BODY_NONE)
        g->call->reply = llm_reply_new(g->call->asked.form, &facts);
}

int injection_llm_cuts(struct injection *g)
{
    struct injection_call *c = g->call;
    if (c == NULL || !c->requested || !llm_reply_is_events(c->reply))
        return 0;
    c->cut = llm_usage_cut_new();
    return c->cut ? 1 : -1;
}

int injection_llm_cut(struct injection *g, struct slice *s)
{
    return g->call && g->call->cut ? llm_usage_cut_feed(g->call->cut, *s, s) : 0;
}

struct slice injection_llm_cut_end(const struct injection *g)
{
    return llm_usage_cut_end(g->call ? g->call->cut : NULL);
}

size_t injection_llm_held(const struct injection *g)
{
    return g->call ? llm_usage_cut_held(g->call->cut) : 0;
}

void injection_llm_feed(struct injection *g, const void *p, size_t n)
{
    if (g->call)
        llm_reply_feed(g->call->reply, (struct slice){p, n});
}

void injection_llm_close(struct injection *g)
{
    if (g->call)
        llm_reply_close(g->call->reply);
}

/* ---- the end ---- */

static uint64_t cost_of(const struct injection_call *c, const struct llm_usage *u)
{
    uint64_t cached = least(u->cached, LLM_TOKENS_MAX), written = least(u->written, LLM_TOKENS_MAX),
             in = least(u->in, LLM_TOKENS_MAX), beside = least(cached + written, in);
    return price_of(c->price.in, in - beside) + price_of(c->price.cached, cached) +
           price_of(c->price.written, written) +
           price_of(c->price.out, least(u->out, LLM_TOKENS_MAX));
}

/* Where a reply does not say what it took: the estimate, or what is known to have gone either way
 * if that is more. */
static void take_unknown(const struct injection_call *c, const struct llm_usage *u,
                         uint64_t *tokens, uint64_t *money)
{
    uint64_t in = least(dearer(u->in, c->in), LLM_TOKENS_MAX),
             out = least(dearer(u->out, u->seen), LLM_TOKENS_MAX);
    *tokens = dearer(c->tokens, in + out);
    *money = dearer(*money, c->money);
    if (c->priced)
        *money = dearer(*money, price_of(c->price.in, in) + price_of(c->price.out, out));
}

static void put_usage(struct record *r, const struct injection_call *c, const struct llm_usage *u,
                      uint64_t money)
{
    meter_add(METER_TOKENS_IN, u->in);
    meter_add(METER_TOKENS_OUT, u->out);
    meter_add(METER_TOKENS_CACHED, u->cached);
    record_put_u64(r, RF_TOKENS_IN, u->in);
    record_put_u64(r, RF_TOKENS_OUT, u->out);
    if (u->cached)
        record_put_u64(r, RF_TOKENS_CACHED, u->cached);
    if (u->written)
        record_put_u64(r, RF_TOKENS_WRITTEN, u->written);
    if (c->priced)
        record_put_u64(r, RF_COST, money);
}

void injection_llm_record(struct injection *g, const struct origin_facts *facts, struct record *r)
{
    struct injection_call *c = g->call;
    char model[LLM_MODEL_MAX + 1];
    if (c == NULL)
        return;
    struct llm_usage u = llm_reply_usage(c->reply);
    bool nothing = facts->sent == 0 || (g->relay.status >= 400 && !u.any);
    uint64_t tokens = u.in + u.out, money = c->priced ? cost_of(c, &u) : 0;
    injection_llm_model(c->asked.models, model, sizeof model);
    record_put_str(r, RF_MODEL, model);
    meter_add(METER_MODEL_CALLS, 1);
    if (nothing) {
        tokens = money = 0;
    } else if (u.known) {
        put_usage(r, c, &u, money);
    } else {
        take_unknown(c, &u, &tokens, &money);
        meter_add(METER_USAGE_UNKNOWN, 1);
        record_put_str(r, RF_USAGE, "unknown");
    }
    meter_add(METER_COST, money);
    budget_client_took(g->relay.budget_client, tokens, money);
    if (g->decided.sandbox[0])
        pending_approvals_called(g->injector->pending_approvals, g->decided.sandbox,
                                 u.known ? u.in : 0, u.known ? u.out : 0, money);
    c->ended = true;
}

void injection_llm_end(struct injection *g)
{
    if (g->call == NULL)
        return;
    if (!g->call->ended) /* it never went */
        budget_client_took(g->relay.budget_client, 0, 0);
    llm_reply_free(g->call->reply);
    llm_usage_cut_free(g->call->cut);
    free(g->call);
    g->call = NULL;
}
