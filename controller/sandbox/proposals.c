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

enum { RULE_MAX = PROPOSAL_PATH_MAX + 320, ID_PREFIX = 3 };

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
    TAILQ_ENTRY(proposal) link;
};

TAILQ_HEAD(proposal_list, proposal);

struct proposals {
    struct controller *controller;
    uint64_t sequence;
    size_t n_decided;
    struct quota quota; /* of those that wait, by sandbox */
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

/* The policy with this rule; NULL: it is none that can be written. */
static struct policy *with_rule(const struct controller *c, const struct proposal *o)
{
    struct err err = {0};
    char *text = config_policy_json(c->config, o->policy);
    json_t *all = text ? json_loads(text, 0, NULL) : NULL;
    struct policy *ret = NULL;
    free(text);
    if (all && json_array_append_new(json_object_get(all, "rules"), rule_json(o)) == 0 &&
        (text = json_dumps(all, JSON_COMPACT)) != NULL) {
        ret = policy_parse(text, strlen(text), &err);
        free(text);
    }
    json_decref(all);
    return ret;
}

static const char *verdict_word(const struct decision *d)
{
    return d->verdict == VERDICT_ALLOW ? "allow" : d->verdict == VERDICT_ASK ? "ask" : "deny";
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

/* Is it a rule, and one that is needed? */
static enum wire_proposed judge(const struct proposals *p, const struct proposal *o)
{
    const struct policy *is = config_policy(p->controller->config, o->policy);
    struct decision d;
    if (is == NULL || decide(is, o, &d) < 0)
        return WIRE_PROPOSED_NO_RULE;
    if (d.verdict != VERDICT_DENY && strchr(o->path, '*') == NULL)
        return WIRE_PROPOSED_ALLOWED;
    struct policy *would = with_rule(p->controller, o);
    policy_free(would);
    return would ? WIRE_PROPOSED_TAKEN : WIRE_PROPOSED_NO_RULE;
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

enum wire_proposed proposals_add(struct proposals *p, const struct proposal_ask *ask,
                                 char id[PROPOSAL_ID_MAX + 1])
{
    struct proposal *o = calloc(1, sizeof *o);
    enum wire_proposed end = WIRE_PROPOSED_FULL;
    id[0] = 0;
    if (o == NULL)
        return end;
    end = fill(o, ask) ? judge(p, o) : WIRE_PROPOSED_NO_RULE;
    const struct proposal *same = end == WIRE_PROPOSED_TAKEN ? find_same(p, o) : NULL;
    if (same) {
        memcpy(id, same->id, sizeof same->id);
        end = known(same);
    } else if (end == WIRE_PROPOSED_TAKEN &&
               (quota_take(&p->quota, &o->part, slice_str(o->sandbox), 1) != QUOTA_TAKEN ||
                make_id(o->id) < 0)) {
        end = WIRE_PROPOSED_FULL;
    }
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

json_t *proposals_show(const struct proposals *p, const char *id)
{
    const struct proposal *o = find(p, id);
    struct decision before, after;
    json_t *v = o ? to_json(o) : NULL;
    if (v == NULL)
        return NULL;
    json_object_set_new(v, "diff", diff(o));
    const struct policy *is = config_policy(p->controller->config, o->policy);
    struct policy *would = is ? with_rule(p->controller, o) : NULL;
    if (would && decide(is, o, &before) == 0 && decide(would, o, &after) == 0) {
        json_object_set_new(v, "before", json_string(verdict_word(&before)));
        json_object_set_new(v, "after", json_string(verdict_word(&after)));
    }
    policy_free(would);
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
