/* Takes proposals, makes each the rule it would be, tries that with the policy as it is, and keeps
 * who decided what. */
#include "proposals.h"

#include "buf.h"
#include "controller_internal.h"
#include "policy.h"
#include "quota.h"
#include "sandbox_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum proposal_state { PROPOSAL_OPEN = 0, PROPOSAL_ACCEPTED, PROPOSAL_REJECTED };

/* PACES: how many owners may have a whole policy compiled in one second. */
enum { RULE_MAX = PROPOSAL_PATH_MAX + 320, ID_PREFIX = 3, PACES = 8, PACE_MS = 1000 };
enum { OVERLAPS_TOLD = 32 };

struct proposal {
    struct quota_part part;
    enum proposal_state state;
    uint64_t sequence;
    char id[PROPOSAL_ID_MAX + 1];
    int64_t created, decided; /* seconds since 1970 */
    char sandbox[SANDBOX_ID_MAX + 1], policy[RUN_NAME_MAX];
    char method[24], scheme[8], authority[300], path[PROPOSAL_PATH_MAX + 1];
    char reason[PROPOSAL_REASON_MAX + 1];
    char by[121], decided_by[121];
    json_t *review; /* what it would change in the policy as it is; NULL: not looked at yet */
    TAILQ_ENTRY(proposal) link;
};

TAILQ_HEAD(proposal_list, proposal);

/* When somebody last had a policy compiled; monotonic. */
struct pace {
    char owner[121];
    int64_t ms;
};

struct proposals {
    struct controller *controller;
    struct pace paces[PACES];
    uint64_t sequence;
    size_t n_decided;
    struct quota quota; /* of those that wait, by owner */
    struct proposal_list list;
};

struct proposals *proposals_new(struct controller *c)
{
    struct proposals *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->controller = c;
    p->quota = (struct quota){.total = PROPOSALS_MAX, .each = PROPOSALS_EACH};
    TAILQ_INIT(&p->list);
    return p;
}

static void drop(struct proposals *p, struct proposal *o)
{
    TAILQ_REMOVE(&p->list, o, link);
    quota_leave(&o->part);
    json_decref(o->review);
    free(o);
}

void proposals_free(struct proposals *p)
{
    while (p && !TAILQ_EMPTY(&p->list))
        drop(p, TAILQ_FIRST(&p->list));
    free(p);
}

/* ---- as a rule ---- */

static void rule_target(const struct proposal *o, char to[RULE_MAX])
{
    bool clear = strcmp(o->scheme, "http") == 0;
    snprintf(to, RULE_MAX, "%s%s%s", clear ? "http://" : "", o->authority, o->path);
}

static json_t *rule_json(const struct proposal *o)
{
    char target[RULE_MAX];
    rule_target(o, target);
    return json_pack("{s:s, s:[s]}", "allow", target, "methods", o->method);
}

/* A path that the pattern stands for: each '*' is some name. */
static void example_path(const struct proposal *o, char to[PROPOSAL_PATH_MAX + 1])
{
    size_t n = 0;
    for (const char *s = o->path; *s; s++)
        if (*s != '*')
            to[n++] = *s;
        else if (s[1] != '*')
            to[n++] = 'x';
    to[n] = 0;
}

static int decide(const struct policy *policy, const struct proposal *o, struct decision *ret)
{
    struct authority a;
    char path[PROPOSAL_PATH_MAX + 1];
    const char *why;
    example_path(o, path);
    enum scheme scheme = strcmp(o->scheme, "http") == 0 ? SCHEME_HTTP : SCHEME_HTTPS;
    if (authority_parse(&a, scheme, slice_str(o->authority)) < 0 ||
        path_check(slice_str(path), &why) < 0)
        return -1;
    struct policy_request q = {&a, slice_str(o->method), slice_str(path)};
    policy_decide(policy, &q, ret);
    return 0;
}

/* The policy's JSON with `all`'s rules; NULL: it is none. */
static struct policy *compile(const json_t *all)
{
    struct err err = {0};
    char *text = json_dumps(all, JSON_COMPACT);
    struct policy *ret = text ? policy_parse(text, strlen(text), &err) : NULL;
    free(text);
    return ret;
}

/* Of this rule alone; NULL: it cannot be written. Cheap, whatever the policy. */
static struct policy *rule_alone(const struct proposal *o)
{
    json_t *all = json_pack("{s:s, s:[o]}", "policy", o->policy, "rules", rule_json(o));
    struct policy *ret = all ? compile(all) : NULL;
    json_decref(all);
    return ret;
}

/* The policy with this rule, first as `accept --write` puts it; NULL: it is none that can be
 * written. */
static struct policy *with_rule(const struct controller *c, const struct proposal *o)
{
    char *text = config_policy_json(c->config, o->policy);
    json_t *all = text ? json_loads(text, 0, NULL) : NULL;
    struct policy *ret = NULL;
    free(text);
    if (all && json_array_insert_new(json_object_get(all, "rules"), 0, rule_json(o)) == 0)
        ret = compile(all);
    json_decref(all);
    return ret;
}

static const char *verdict_word(const struct decision *d)
{
    return d->verdict == VERDICT_ALLOW ? "allow" : d->verdict == VERDICT_ASK ? "ask" : "deny";
}

/* ---- reviewed ---- */

static json_t *rule_told(const struct policy *p, const struct rule *r)
{
    return json_pack("{s:s, s:s}", "rule", r->text, "where", policy_rule_where(p, r->index));
}

/* Every rule whose patterns have requests in common with the proposed one. */
static json_t *overlaps(const struct policy *is, const struct policy *would, bool *more)
{
    json_t *list = json_array();
    const struct rule *r;
    *more = false;
    for (size_t i = 0; (r = policy_rule(is, i)) != NULL && !*more; i++)
        if (policy_overlaps(is, i, would)) {
            *more = json_array_size(list) == OVERLAPS_TOLD;
            if (!*more)
                json_array_append_new(list, rule_told(is, r));
        }
    return list;
}

/* What the rule changes in `is`, which it makes `would`. */
static json_t *review(const struct proposal *o, const struct policy *is, const struct policy *would)
{
    struct decision before, after;
    bool more;
    json_t *v = json_object();
    if (would == NULL || decide(is, o, &before) < 0 || decide(would, o, &after) < 0)
        return v;
    json_object_set_new(v, "before", json_string(verdict_word(&before)));
    json_object_set_new(v, "after", json_string(verdict_word(&after)));
    if (before.rule)
        json_object_set_new(v, "decides", rule_told(is, before.rule));
    json_object_set_new(v, "overlaps", overlaps(is, would, &more));
    if (more)
        json_object_set_new(v, "overlaps_more", json_true());
    const struct rule *lifted = policy_first_steps(would);
    if (lifted) /* its place is one further in the policy with the rule */
        json_object_set_new(v, "lifts", rule_told(is, policy_rule(is, lifted->index - 1)));
    return v;
}

void proposals_reloaded(struct proposals *p)
{
    struct proposal *o;
    TAILQ_FOREACH(o, &p->list, link)
    {
        json_decref(o->review);
        o->review = NULL;
    }
}

/* ---- taken ---- */

static struct proposal *find(const struct proposals *p, const char *id)
{
    struct proposal *o;
    TAILQ_FOREACH(o, &p->list, link)
    if (strcmp(o->id, id) == 0)
        return o;
    return NULL;
}

/* The same, of the same sandbox, whatever its words. */
static struct proposal *find_same(const struct proposals *p, const struct proposal *like)
{
    struct proposal *o;
    TAILQ_FOREACH(o, &p->list, link)
    if (strcmp(o->sandbox, like->sandbox) == 0 && strcmp(o->policy, like->policy) == 0 &&
        strcmp(o->method, like->method) == 0 && strcmp(o->scheme, like->scheme) == 0 &&
        strcmp(o->authority, like->authority) == 0 && strcmp(o->path, like->path) == 0)
        return o;
    return NULL;
}

/* What a gate says was read there, by a process that parses the sandbox's bytes: not believed. */
static void clean(char *s, bool spaces)
{
    for (; *s; s++)
        if ((unsigned char)*s < (spaces ? 0x20 : 0x21) || (unsigned char)*s >= 0x7f)
            *s = '?';
}

static bool copy(char *to, size_t size, const char *from)
{
    return snprintf(to, size, "%s", from ? from : "") < (int)size;
}

static bool fill(struct proposal *o, const struct proposal_ask *ask)
{
    bool whole = copy(o->sandbox, sizeof o->sandbox, ask->sandbox) &&
                 copy(o->policy, sizeof o->policy, ask->policy) &&
                 copy(o->method, sizeof o->method, ask->method) &&
                 copy(o->scheme, sizeof o->scheme, ask->scheme) &&
                 copy(o->authority, sizeof o->authority, ask->authority) &&
                 copy(o->path, sizeof o->path, ask->path) &&
                 copy(o->reason, sizeof o->reason, ask->reason) &&
                 copy(o->by, sizeof o->by, ask->by);
    bool scheme = strcmp(o->scheme, "https") == 0 || strcmp(o->scheme, "http") == 0;
    clean(o->reason, true);
    return whole && scheme && o->path[0] == '/' && strpbrk(o->path, "\"'\\{}#?") == NULL;
}

static void note(const struct proposals *p, const struct proposal *o, const char *what,
                 const char *who)
{
    struct record r;
    char detail[500];
    snprintf(detail, sizeof detail, "%s%s%.120s%s%s", o->id, who[0] ? " by " : "", who,
             o->reason[0] && who[0] == 0 ? ", in the sandbox's own words: " : "",
             who[0] == 0 ? o->reason : "");
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, what);
    record_put_str(&r, RF_TARGET, o->sandbox);
    record_put_str(&r, RF_POLICY, o->policy);
    record_put_str(&r, RF_SCHEME, o->scheme);
    record_put_str(&r, RF_AUTHORITY, o->authority);
    record_put_str(&r, RF_METHOD, o->method);
    record_put_str(&r, RF_PATH, o->path);
    record_put_str(&r, RF_DETAIL, detail);
    controller_put(p->controller, &r);
    sandbox_events_add(p->controller->sandbox_events, o->sandbox, what, detail);
}

/* Is it a rule, and one that is needed? What can be said without compiling the policy. */
static enum wire_proposed judge(const struct proposals *p, const struct proposal *o)
{
    const struct policy *is = config_policy(p->controller->config, o->policy);
    struct decision d;
    if (is == NULL || decide(is, o, &d) < 0)
        return WIRE_PROPOSED_NO_RULE;
    if (d.verdict != VERDICT_DENY && strchr(o->path, '*') == NULL)
        return WIRE_PROPOSED_ALLOWED;
    struct policy *alone = rule_alone(o);
    policy_free(alone);
    return alone ? WIRE_PROPOSED_TAKEN : WIRE_PROPOSED_NO_RULE;
}

/* The rest. Where the rule would go before one that has conditions, a credential, a budget or
 * anything else of its own, that rule is what allows such requests: nothing is lifted from it. */
static enum wire_proposed judge_whole(const struct proposals *p, struct proposal *o)
{
    struct policy *would = with_rule(p->controller, o);
    bool lifts = would && policy_first_steps(would) != NULL;
    if (would && !lifts)
        o->review = review(o, config_policy(p->controller->config, o->policy), would);
    policy_free(would);
    return would == NULL ? WIRE_PROPOSED_NO_RULE
           : lifts       ? WIRE_PROPOSED_ALLOWED
                         : WIRE_PROPOSED_TAKEN;
}

static int64_t monotonic_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A whole policy is compiled once a second for each owner, and for PACES of them: others wait. */
static bool in_pace(struct proposals *p, const char *owner)
{
    int64_t now = monotonic_ms();
    struct pace *at = &p->paces[0];
    for (size_t i = 0; i < PACES; i++) {
        struct pace *one = &p->paces[i];
        if (strcmp(one->owner, owner) == 0) {
            at = one;
            break;
        }
        if (one->ms < at->ms)
            at = one;
    }
    if (at->owner[0] && now - at->ms < PACE_MS)
        return false;
    copy(at->owner, sizeof at->owner, owner);
    at->ms = now;
    return true;
}

static enum wire_proposed known(const struct proposal *o)
{
    return o->state == PROPOSAL_OPEN       ? WIRE_PROPOSED_KNOWN
           : o->state == PROPOSAL_ACCEPTED ? WIRE_PROPOSED_ACCEPTED
                                           : WIRE_PROPOSED_REJECTED;
}

static int make_id(char id[PROPOSAL_ID_MAX + 1])
{
    char whole[SANDBOX_ID_MAX + 1];
    struct err err = {0};
    if (sandbox_make_id("pr", whole, &err) < 0)
        return -1;
    snprintf(id, PROPOSAL_ID_MAX + 1, "%.*s", 12 + ID_PREFIX, whole);
    return 0;
}

/* Whoever asks the API answers for what it asks, not the sandbox that it names. */
static const char *owner_of(const struct proposal *o)
{
    return o->by[0] ? o->by : o->sandbox;
}

/* What is cheap first. */
static enum wire_proposed take(struct proposals *p, struct proposal *o,
                               char id[PROPOSAL_ID_MAX + 1])
{
    enum wire_proposed end = judge(p, o);
    const struct proposal *same = end == WIRE_PROPOSED_TAKEN ? find_same(p, o) : NULL;
    if (same) {
        memcpy(id, same->id, sizeof same->id);
        return known(same);
    }
    if (end != WIRE_PROPOSED_TAKEN)
        return end;
    if (quota_take(&p->quota, &o->part, slice_str(owner_of(o)), 1) != QUOTA_TAKEN ||
        !in_pace(p, owner_of(o)) || make_id(o->id) < 0)
        return WIRE_PROPOSED_FULL;
    return judge_whole(p, o);
}

enum wire_proposed proposals_add(struct proposals *p, const struct proposal_ask *ask,
                                 char id[PROPOSAL_ID_MAX + 1])
{
    struct proposal *o = calloc(1, sizeof *o);
    id[0] = 0;
    if (o == NULL)
        return WIRE_PROPOSED_FULL;
    enum wire_proposed end = fill(o, ask) ? take(p, o, id) : WIRE_PROPOSED_NO_RULE;
    if (end != WIRE_PROPOSED_TAKEN) {
        quota_leave(&o->part);
        free(o);
        return end;
    }
    o->sequence = ++p->sequence;
    o->created = (int64_t)time(NULL);
    TAILQ_INSERT_TAIL(&p->list, o, link);
    memcpy(id, o->id, sizeof o->id);
    note(p, o, "proposal_made", o->by);
    return end;
}

void proposals_sandbox_ended(struct proposals *p, const char *sandbox)
{
    struct proposal *o, *next;
    for (o = p ? TAILQ_FIRST(&p->list) : NULL; o; o = next) {
        next = TAILQ_NEXT(o, link);
        if (o->state != PROPOSAL_OPEN || o->by[0] || strcmp(o->sandbox, sandbox) != 0)
            continue;
        note(p, o, "proposal_dropped", "the end of its sandbox");
        drop(p, o);
    }
}

int proposals_of_gate(void *controller, struct sandbox *s, struct ipc *gate, struct msg *m)
{
    struct controller *c = controller;
    char method[24], scheme[8], authority[300], path[PROPOSAL_PATH_MAX + 1],
        reason[PROPOSAL_REASON_MAX + 1], id[PROPOSAL_ID_MAX + 1];
    uint32_t req;
    struct msg answer;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, method, sizeof method) < 0 ||
        msg_get_str(m, scheme, sizeof scheme) < 0 ||
        msg_get_str(m, authority, sizeof authority) < 0 || msg_get_str(m, path, sizeof path) < 0 ||
        msg_get_str(m, reason, sizeof reason) < 0 || msg_end(m) < 0)
        return -1;
    clean(path, false);
    struct proposal_ask ask = {
        sandbox_id(s), sandbox_policy(s), method, scheme, authority, path, reason, ""};
    enum wire_proposed end = proposals_add(c->proposals, &ask, id);
    msg_init(&answer, W_PROPOSED);
    msg_put_u32(&answer, req);
    msg_put_u8(&answer, (uint8_t)end);
    msg_put_str(&answer, id);
    ipc_send(gate, &answer); /* a gate that is gone needs none */
    return 0;
}

/* ---- told ---- */

static const char *state_name(enum proposal_state s)
{
    return s == PROPOSAL_OPEN ? "open" : s == PROPOSAL_ACCEPTED ? "accepted" : "rejected";
}

static json_t *to_json(const struct proposal *o)
{
    char target[RULE_MAX];
    rule_target(o, target);
    json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:I}", "id", o->id,
                          "state", state_name(o->state), "sandbox", o->sandbox, "policy", o->policy,
                          "made_by", o->by[0] ? o->by : "sandbox", "reason", o->reason, "method",
                          o->method, "target", target, "rule", rule_json(o), "sequence",
                          (json_int_t)o->sequence, "created", (json_int_t)o->created);
    if (v && o->state != PROPOSAL_OPEN) {
        json_object_set_new(v, "decided_by", json_string(o->decided_by));
        json_object_set_new(v, "decided", json_integer((json_int_t)o->decided));
    }
    return v;
}

json_t *proposals_json(const struct proposals *p)
{
    const struct proposal *o;
    json_t *list = json_array();
    TAILQ_FOREACH(o, &p->list, link)
    json_array_append_new(list, to_json(o));
    return json_pack("{s:o}", "proposals", list);
}

/* What is added to the file, as a unified diff shows it. */
static json_t *diff(const struct proposal *o)
{
    char target[RULE_MAX];
    rule_target(o, target);
    return json_sprintf("--- policies.%s.rules\n+++ policies.%s.rules\n+- allow: \"%s\"\n"
                        "+  methods: [%s]\n",
                        o->policy, o->policy, target, o->method);
}

/* A policy is compiled for it once; what comes of that is kept until the next configuration. */
static void look(const struct proposals *p, struct proposal *o)
{
    const struct policy *is = config_policy(p->controller->config, o->policy);
    struct policy *would = is && o->review == NULL ? with_rule(p->controller, o) : NULL;
    if (is && o->review == NULL)
        o->review = review(o, is, would);
    policy_free(would);
}

json_t *proposals_show(const struct proposals *p, const char *id)
{
    struct proposal *o = find(p, id);
    json_t *v = o ? to_json(o) : NULL;
    if (v == NULL)
        return NULL;
    json_object_set_new(v, "diff", diff(o));
    look(p, o);
    if (o->review)
        json_object_update(v, o->review);
    return v;
}

/* The oldest that was decided is forgotten. */
static void forget_oldest(struct proposals *p)
{
    struct proposal *o;
    TAILQ_FOREACH(o, &p->list, link)
    if (o->state != PROPOSAL_OPEN) {
        drop(p, o);
        p->n_decided--;
        return;
    }
}

int proposals_decide(struct proposals *p, const char *id, bool accept, const char *who)
{
    struct proposal *o = find(p, id);
    enum proposal_state to = accept ? PROPOSAL_ACCEPTED : PROPOSAL_REJECTED;
    if (o == NULL)
        return 1;
    if (o->state != PROPOSAL_OPEN)
        return o->state == to ? 0 : 2;
    if (p->n_decided >= PROPOSALS_DECIDED_MAX)
        forget_oldest(p);
    p->n_decided++;
    o->state = to;
    o->decided = (int64_t)time(NULL);
    copy(o->decided_by, sizeof o->decided_by, who);
    quota_leave(&o->part);
    note(p, o, accept ? "proposal_accepted" : "proposal_rejected", who);
    return 0;
}
