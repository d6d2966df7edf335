/* Renders a page of the host `durward.internal` and sends it as fast as its downstream takes it;
 * takes a proposal, hands it to the controller and says what became of it. */
#include "guide.h"

#include "answer.h"
#include "answer_words.h"
#include "body_facts.h"
#include "guard_placeholder.h"
#include "guide_mcp.h"
#include "guide_proposal.h"
#include "mcp_host.h"
#include "policy.h"
#include "prepared.h"
#include "wire.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GUIDE_ID = 48,
    GUIDE_CODE = 64,
    GUIDE_METHOD = 32,
    GUIDE_DETAIL = 160,
    GUIDE_RULES = 400,
    GUIDE_TAKERS = 20
};

struct refused {
    char id[GUIDE_ID];
    unsigned status;
    char code[GUIDE_CODE]; /* a copy: the injector's lives no longer than its message */
    char method[GUIDE_METHOD];
    char target[HOST_TEXT_MAX + 32];
    char detail[GUIDE_DETAIL];
    time_t at;
};

struct guide {
    struct guide_reply *asking; /* whose proposal the controller has; NULL: none */
    uint32_t asked;
    size_t n; /* ever kept; the newest is at (n - 1) % GUIDE_KEPT */
    struct refused kept[GUIDE_KEPT];
};

struct guide *guide_new(void)
{
    return calloc(1, sizeof(struct guide));
}

void guide_free(struct guide *g)
{
    free(g);
}

bool guide_is(const struct authority *a)
{
    return a->scheme == SCHEME_HTTP && a->port == 80 && strcmp(a->host, GUIDE_HOST) == 0;
}

bool guide_server(struct head *h, struct authority *ret)
{
    struct slice before = SLICE("/mcp/");
    if (!slice_starts(h->path, before))
        return false;
    struct slice name = {h->path.p + before.n, h->path.n - before.n};
    if (!mcp_host_name_ok(name))
        return false;
    mcp_host_authority(name, ret);
    h->path = SLICE(MCP_HOST_PATH);
    return true;
}

void guide_refused(struct guide *g, const char *id, unsigned status, const char *code,
                   struct slice method, const struct authority *a, const char *detail)
{
    char text[HOST_TEXT_MAX + 16];
    if (g == NULL)
        return;
    struct refused *r = &g->kept[g->n++ % GUIDE_KEPT];
    snprintf(r->id, sizeof r->id, "%s", id);
    r->status = status;
    snprintf(r->code, sizeof r->code, "%s", code);
    snprintf(r->method, sizeof r->method, "%.*s", SL(method));
    if (a->host[0])
        snprintf(r->target, sizeof r->target, "%s://%s", scheme_name(a->scheme),
                 authority_text(a, text, sizeof text));
    else
        r->target[0] = 0;
    snprintf(r->detail, sizeof r->detail, "%s", detail ? detail : "");
    r->at = time(NULL);
}

/* ---- what the pages say: JSON first, text made of it ---- */

static const char *const pages[] = {"/rules", "/placeholders", "/refusals"};

static json_t *guide_about(const struct route *route)
{
    json_t *all = json_pack(
        "{s:s, s:s, s:[], s:s}", "about",
        "This program runs in a sandbox of Durward. All its traffic passes a proxy that allows "
        "what a policy names, adds credentials outside the sandbox, and logs every attempt.",
        "policy", route->name, "pages", "mcp", "http://" GUIDE_HOST "/mcp");
    for (size_t i = 0; all && i < ARRAY_LEN(pages); i++)
        json_array_append_new(json_object_get(all, "pages"),
                              json_sprintf("http://%s%s", GUIDE_HOST, pages[i]));
    if (all && !policy_guide_none(route->policy))
        json_object_set_new(all, "proposals",
                            json_string("POST http://" GUIDE_HOST "/proposals with {\"host\", "
                                        "\"path\", \"method\", \"reason\"} asks whoever runs "
                                        "this sandbox to allow a request."));
    return all;
}

static json_t *guide_rules(const struct policy *p)
{
    struct rule_told r;
    if (policy_guide_none(p))
        return json_pack("{s:s}", "about", "The policy does not tell what it allows.");
    json_int_t more = 0;
    json_t *list = json_array();
    for (size_t i = 0; policy_rule_told(p, i, &r); i++)
        if (!r.deny && json_array_size(list) == GUIDE_RULES)
            more++;
        else if (!r.deny)
            json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:b}", "rule", r.text,
                                                  "credential", r.secret != NULL, "approval", r.ask,
                                                  "websocket", r.websocket));
    return json_pack("{s:s, s:I, s:o}", "about", "What no rule names is denied.", "more", more,
                     "rules", list);
}

/* The rules that put this secret in. */
static json_t *guide_takers(const struct policy *p, const char *secret)
{
    struct rule_told r;
    json_t *list = json_array();
    for (size_t i = 0; policy_rule_told(p, i, &r); i++)
        if (!r.deny && r.secret && json_array_size(list) < GUIDE_TAKERS &&
            strcmp(r.secret, secret) == 0)
            json_array_append_new(list, json_string(r.text));
    return list;
}

static json_t *guide_placeholders(const struct gate *g, const struct policy *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->n_placeholders; i++) {
        const struct placeholder_entry *e = &g->placeholders[i];
        json_t *one = json_pack("{s:s}", "placeholder", e->text);
        if (!policy_guide_none(p))
            json_object_set_new(one, "rules", guide_takers(p, e->secret));
        json_array_append_new(list, one);
    }
    return json_pack("{s:s, s:o}", "about",
                     "Send a placeholder where the service wants its credential: the proxy puts "
                     "the real one there.",
                     "placeholders", list);
}

static json_t *guide_one(const struct refused *r)
{
    char when[32];
    struct tm tm;
    const struct answer_words *w = answer_words(r->status, r->code);
    gmtime_r(&r->at, &tm);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_t *one = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s}", "id", r->id, "time", when,
                            "status", (int)r->status, "code", r->code, "class",
                            answer_class_name(w->class), "why", w->why, "way", w->way);
    if (r->method[0])
        json_object_set_new(one, "method", json_string(r->method));
    if (r->target[0])
        json_object_set_new(one, "target", json_string(r->target));
    if (r->detail[0])
        json_object_set_new(one, "detail", json_string(r->detail));
    return one;
}

/* id: "" for all, the newest first. NULL: there is none of that id. */
static json_t *guide_refusals(const struct guide *g, struct slice id)
{
    size_t n = g == NULL ? 0 : g->n < GUIDE_KEPT ? g->n : GUIDE_KEPT;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct refused *r = &g->kept[(g->n - 1 - i) % GUIDE_KEPT];
        if (id.n == 0)
            json_array_append_new(list, guide_one(r));
        else if (slice_eq_str(id, r->id)) {
            json_decref(list);
            return guide_one(r);
        }
    }
    if (id.n > 0) {
        json_decref(list);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "about",
                     g ? "The latest refusals, the newest first."
                       : "Refusals are not kept for a sandbox that shares its proxy.",
                     "refusals", list);
}

/* NULL: there is no such page, or memory is out. */
static json_t *guide_page(const struct gate *g, const struct route *route, struct slice path)
{
    const struct policy *p = route->policy;
    struct slice one = SLICE("/refusals/");
    if (slice_eq_str(path, "/"))
        return guide_about(route);
    if (slice_eq_str(path, pages[0]))
        return guide_rules(p);
    if (slice_eq_str(path, pages[1]))
        return guide_placeholders(g, p);
    if (slice_eq_str(path, pages[2]))
        return guide_refusals(g->guide, SLICE(""));
    if (path.n > one.n && memcmp(path.p, one.p, one.n) == 0)
        return guide_refusals(g->guide, (struct slice){path.p + one.n, path.n - one.n});
    return NULL;
}

/* "name: value" lines; an array is a list of such blocks. -1: the page would be too long. */
static int guide_text(const json_t *v, struct buf *out)
{
    const char *name;
    json_t *x;
    size_t i;
    if (json_is_string(v))
        return buf_printf(out, "%s\n", json_string_value(v));
    if (json_is_integer(v))
        return buf_printf(out, "%lld\n", (long long)json_integer_value(v));
    if (json_is_boolean(v))
        return buf_append_str(out, json_is_true(v) ? "yes\n" : "no\n");
    json_array_foreach(v, i, x) if (guide_text(x, out) < 0 ||
                                    (json_is_object(x) && buf_append_str(out, "\n") < 0)) return -1;
    json_object_foreach((json_t *)v, name, x)
    {
        bool about = strcmp(name, "about") == 0;
        if (!about && buf_printf(out, "%s:%s", name, json_is_array(x) ? "\n" : " ") < 0)
            return -1;
        if (guide_text(x, out) < 0 || (about && buf_append_str(out, "\n") < 0))
            return -1;
    }
    return 0;
}

static int guide_render(const json_t *page, bool json, struct buf *out)
{
    if (!json)
        return guide_text(page, out);
    char *text = json_dumps(page, JSON_INDENT(2));
    int r = text == NULL || buf_printf(out, "%s\n", text) < 0 ? -1 : 0;
    free(text);
    return r;
}

/* ---- as an upstream ---- */

enum guide_phase {
    GUIDE_TELLING = 0,
    GUIDE_TAKING,
    GUIDE_ASKING
}; /* a proposal or a message is read; a proposal was sent on */

struct guide_reply {
    struct gate *gate;
    const struct route *route;
    struct downstream downstream;
    struct event *turn;
    bool json;
    bool speaks_mcp; /* a message is taken, not a proposal */
    enum guide_phase phase;
    bool whole; /* of what is taken: all of it is here */
    struct guide_mcp message;
    struct prepared answer;
    struct buf in;
};

static void guide_reply_free(struct guide_reply *r)
{
    if (r->gate->guide && r->gate->guide->asking == r)
        r->gate->guide->asking = NULL;
    if (r->turn)
        event_free(r->turn);
    guide_mcp_free(&r->message);
    prepared_free(&r->answer);
    buf_free(&r->in);
    free(r);
}

/* A page as the result of the tool that was called. */
static int guide_render_result(const struct guide_reply *r, bool failed, const json_t *page,
                               struct buf *out)
{
    struct buf text;
    buf_init(&text, GUIDE_BODY_MAX / 2);
    json_t *result = guide_text(page, &text) < 0 || buf_append(&text, "", 1) < 0
                         ? NULL
                         : guide_mcp_result(&r->message, (const char *)buf_data(&text), failed);
    int rc = result ? guide_render(result, true, out) : -1;
    json_decref(result);
    buf_free(&text);
    return rc;
}

/* The page goes out with the next turn; the reference is taken. */
static void guide_reply_say(struct guide_reply *r, unsigned status, json_t *page)
{
    bool call = r->message.id != NULL && r->message.answer == NULL, json = r->json || r->speaks_mcp;
    r->phase = GUIDE_TELLING;
    r->answer.status = call ? 200 : status;
    r->answer.type = json ? "application/json" : "text/plain; charset=utf-8";
    if (page == NULL ||
        (call ? guide_render_result(r, status >= 400, page, &r->answer.body)
              : guide_render(page, json, &r->answer.body)) < 0) { /* memory is out */
        r->answer.status = 503;
        buf_clear(&r->answer.body);
    }
    json_decref(page);
    event_active(r->turn, EV_TIMEOUT, 0);
}

static void guide_take(struct guide_reply *r);

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct guide_reply *r = arg;
    struct downstream f = r->downstream;
    if (r->phase != GUIDE_TELLING) {
        if (r->phase == GUIDE_TAKING && r->whole)
            guide_take(r);
        else if (r->phase == GUIDE_TAKING)
            f.ops->wanted(f.self);
        return;
    }
    enum prepared_sent sent = prepared_send(&r->answer, &f);
    if (sent == PREPARED_MORE)
        return; /* resume */
    guide_reply_free(r);
    if (sent == PREPARED_ALL)
        f.ops->end(f.self);
    else
        f.ops->fail(f.self, 503, "memory", "-");
}

static void guide_data(void *self, const void *p, size_t n)
{
    struct guide_reply *r = self;
    if (r->phase == GUIDE_TAKING && buf_append(&r->in, p, n) < 0)
        guide_reply_say(r, 413,
                        json_pack("{s:s}", "about",
                                  r->speaks_mcp ? "A message has 16 KiB at most."
                                                : "A proposal has 4096 bytes at most."));
}

static void guide_end(void *self)
{
    struct guide_reply *r = self;
    r->whole = true;
    if (r->phase == GUIDE_TAKING)
        event_active(r->turn, EV_TIMEOUT, 0);
}

static size_t guide_room(void *self)
{
    struct guide_reply *r = self;
    bool takes = r->phase == GUIDE_TAKING;
    return takes ? buf_room(&r->in) + 1 : STREAM_CHUNK; /* one more: what is too long is met */
}

static void guide_resume(void *self)
{
    event_active(((struct guide_reply *)self)->turn, EV_TIMEOUT, 0);
}

static void guide_cancel(void *self, const char *code UNUSED)
{
    guide_reply_free(self);
}

static const struct upstream_ops guide_ops = {
    .data = guide_data,
    .end = guide_end,
    .room = guide_room,
    .resume = guide_resume,
    .cancel = guide_cancel,
};

/* ---- proposals ---- */

static json_t *guide_end_of(enum wire_proposed end, const char *id)
{
    static const char *const words[WIRE_PROPOSED_ENDS] = {
        [WIRE_PROPOSED_TAKEN] = "Whoever runs this sandbox is asked. Nothing more is allowed until "
                                "they write it into the policy.",
        [WIRE_PROPOSED_KNOWN] = "The same was asked for before and waits for an answer.",
        [WIRE_PROPOSED_ACCEPTED] = "The same was accepted; it is allowed when the policy has it.",
        [WIRE_PROPOSED_REJECTED] = "The same was rejected.",
        [WIRE_PROPOSED_ALLOWED] = "The policy allows that as it is, perhaps under conditions.",
        [WIRE_PROPOSED_FULL] = "Too many proposals wait for an answer already, or this one came "
                               "within a second of another.",
        [WIRE_PROPOSED_NO_RULE] = "That cannot be written as a rule.",
    };
    return json_pack("{s:s, s:s}", "about", words[end], "id", id);
}

int guide_proposed(struct guide *g, struct msg *m)
{
    static const unsigned status[WIRE_PROPOSED_ENDS] = {
        [WIRE_PROPOSED_TAKEN] = 202,    [WIRE_PROPOSED_KNOWN] = 202,
        [WIRE_PROPOSED_ACCEPTED] = 200, [WIRE_PROPOSED_REJECTED] = 403,
        [WIRE_PROPOSED_ALLOWED] = 200,  [WIRE_PROPOSED_FULL] = 429,
        [WIRE_PROPOSED_NO_RULE] = 400,
    };
    uint32_t req;
    uint8_t end;
    char id[GUIDE_ID];
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &end) < 0 || end >= WIRE_PROPOSED_ENDS ||
        msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    struct guide_reply *r = g ? g->asking : NULL;
    if (r == NULL || req != g->asked)
        return 0; /* who asked has left */
    g->asking = NULL;
    guide_reply_say(r, status[end], guide_end_of((enum wire_proposed)end, id));
    return 0;
}

static json_t *guide_nobody(void)
{
    return json_pack("{s:s}", "about", "Nobody can be asked now. Try again in a few seconds.");
}

void guide_controller_gone(struct guide *g)
{
    struct guide_reply *r = g ? g->asking : NULL;
    if (r == NULL)
        return;
    g->asking = NULL;
    guide_reply_say(r, 503, guide_nobody());
}

static bool holds_placeholder(const struct gate *g, const struct guide_proposal *p)
{
    return guard_has_placeholder(g, slice_str(p->path)) ||
           guard_has_placeholder(g, slice_str(p->reason)) ||
           guard_has_placeholder(g, slice_str(p->authority.host));
}

static void guide_propose(struct guide_reply *r, struct slice asked)
{
    struct guide *g = r->gate->guide;
    struct guide_proposal p;
    char text[HOST_TEXT_MAX + 16];
    struct msg m;
    const char *wrong = guide_proposal_read(asked, &p);
    if (wrong == NULL && holds_placeholder(r->gate, &p))
        wrong = "it carries a placeholder";
    if (wrong) {
        guide_reply_say(
            r, 400, json_pack("{s:s, s:s}", "about", "No such proposal is taken.", "why", wrong));
        return;
    }
    if (g->asking) {
        guide_reply_say(r, 429, json_pack("{s:s}", "about", "One proposal at a time."));
        return;
    }
    if (r->gate->controller == NULL) {
        guide_reply_say(r, 503, guide_nobody());
        return;
    }
    msg_init(&m, W_PROPOSE);
    msg_put_u32(&m, ++g->asked);
    msg_put_str(&m, p.method);
    msg_put_str(&m, scheme_name(p.authority.scheme));
    msg_put_str(&m, authority_text(&p.authority, text, sizeof text));
    msg_put_str(&m, p.path);
    msg_put_str(&m, p.reason);
    r->phase = GUIDE_ASKING;
    g->asking = r;
    if (ipc_send(r->gate->controller, &m) < 0)
        guide_controller_gone(g);
}

/* ---- messages of MCP: each tool is a page ---- */

static void guide_propose_arguments(struct guide_reply *r)
{
    char *text = json_dumps(r->message.arguments, JSON_COMPACT);
    if (text == NULL)
        guide_reply_say(r, 503, NULL);
    else if (strlen(text) > GUIDE_PROPOSAL_MAX)
        guide_reply_say(r, 413, json_pack("{s:s}", "about", "A proposal has 4096 bytes at most."));
    else
        guide_propose(r, slice_str(text));
    free(text);
}

static void guide_call(struct guide_reply *r)
{
    const struct gate *g = r->gate;
    const struct policy *p = r->route->policy;
    if (r->message.tool == GUIDE_TOOL_PROPOSE) {
        guide_propose_arguments(r);
        return;
    }
    json_t *page = r->message.tool == GUIDE_TOOL_RULES ? guide_rules(p)
                   : r->message.tool == GUIDE_TOOL_PLACEHOLDERS
                       ? guide_placeholders(g, p)
                       : guide_refusals(g->guide, slice_str(guide_mcp_argument(&r->message, "id")));
    guide_reply_say(r, page ? 200 : 404,
                    page ? page : json_pack("{s:s}", "about", "No refusal of that id is kept."));
}

static void guide_take(struct guide_reply *r)
{
    if (!r->speaks_mcp) {
        guide_propose(r, buf_slice(&r->in));
        return;
    }
    bool proposes = !policy_guide_none(r->route->policy);
    enum guide_mcp_end end =
        guide_mcp_read(buf_slice(&r->in), r->route->name, proposes, &r->message);
    if (end == GUIDE_MCP_CALL) {
        guide_call(r);
        return;
    }
    if (end == GUIDE_MCP_NOTED) { /* 202, and nothing is said */
        r->phase = GUIDE_TELLING;
        r->answer.status = 202;
        r->answer.type = "application/json";
        event_active(r->turn, EV_TIMEOUT, 0);
        return;
    }
    guide_reply_say(r, end == GUIDE_MCP_BAD ? 400 : 200, json_incref(r->message.answer));
}

/* ---- begin ---- */

static struct guide_reply *guide_reply_new(struct gate *g, const struct identity *who,
                                           const struct requester *by, const struct head *h)
{
    struct guide_reply *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->gate = g;
    r->route = who->route;
    r->downstream = by->downstream;
    r->json = answer_how(h, false).form == ANSWER_JSON;
    prepared_init(&r->answer, GUIDE_BODY_MAX);
    r->speaks_mcp = slice_eq_str(h->path, GUIDE_MCP_PATH);
    buf_init(&r->in, r->speaks_mcp ? GUIDE_MCP_MAX : GUIDE_PROPOSAL_MAX);
    r->turn = event_new(g->base, -1, 0, on_turn, r);
    if (r->turn == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

/* Of JSON by its type: a page that a browser inside shows cannot send that unasked. */
static bool guide_is_message(const struct head *h)
{
    struct inspect_request facts = body_facts(h);
    return slice_eq_str(h->path, GUIDE_MCP_PATH) && inspect_is_json(&facts);
}

/* A gate that several sandboxes share takes none: which one asked nobody could say for sure. */
static bool guide_takes(const struct gate *g, const struct identity *who, const struct head *h)
{
    if (!slice_eq_str(h->method, "POST") || h->body == BODY_NONE || g->guide == NULL)
        return false;
    return guide_is_message(h) ||
           (slice_eq_str(h->path, "/proposals") && !policy_guide_none(who->route->policy));
}

static bool guide_ends_session(const struct head *h)
{
    return slice_eq_str(h->method, "DELETE") && slice_eq_str(h->path, GUIDE_MCP_PATH);
}

bool guide_start(struct gate *g, const struct identity *who, const struct requester *by,
                 const struct head *h)
{
    bool bare = slice_eq_str(h->method, "HEAD"), takes = guide_takes(g, who, h);
    bool ends = guide_ends_session(h);
    if (h->upgrade != UPGRADE_NONE ||
        (!takes && (h->body != BODY_NONE || (!bare && !ends && !slice_eq_str(h->method, "GET")))))
        return false;
    struct guide_reply *r = guide_reply_new(g, who, by, h);
    if (r == NULL) {
        by->downstream.ops->fail(by->downstream.self, 503, "memory", "-");
        return true;
    }
    by->set_upstream(by->downstream.self, (struct upstream){&guide_ops, r});
    r->answer.bare = bare;
    r->phase = takes ? GUIDE_TAKING : GUIDE_TELLING;
    json_t *page = takes ? NULL : guide_page(g, who->route, h->path);
    if (takes)
        event_active(r->turn, EV_TIMEOUT, 0);
    else if (r->speaks_mcp) /* no stream of events is offered, and no session is there to end */
        guide_reply_say(r, 405, json_pack("{s:s}", "about", "Messages are sent by POST, as JSON."));
    else
        guide_reply_say(
            r, page ? 200 : 404,
            page ? page : json_pack("{s:s}", "about", "There is no such page: GET / lists them."));
    return true;
}
