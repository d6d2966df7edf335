/* Placeholders in a request: whose they are, where they may stand, and what the slot holds. */
#include "guard_placeholder.h"

#include "basic.h"
#include "guard_placeholder_internal.h"
#include "placeholder.h"
#include "policy.h"

#include <string.h>

enum {
    BASIC_SCANNED = 4096, /* bytes of a decoded Basic value that are looked at */
    OWN_LOOKUPS = 16,     /* placeholders of a request that are looked up; for a token each is many
                             hashes, so a head full of them would cost seconds */
};

const char *const guard_kinds[GUARD_KINDS] = {"", "github-pat", "openai", "anthropic"};

/* A token's sandbox has its placeholders made from the token's seed; the gate does not know the
 * secret's kind, so each shape is tried. Runs only where a tagged text was found. */
static bool derived_equal(const struct identity *who, struct placeholder_key *key,
                          const char *secret, struct slice text)
{
    char made[PLACEHOLDER_MAX];
    for (size_t i = 0; who->has_seed && i < GUARD_KINDS; i++)
        if (placeholder_make(key, who->seed, secret, guard_kinds[i], made) == 0 &&
            slice_eq_str(text, made))
            return true;
    return false;
}

/* The secret's name for one of this sandbox's own, else NULL. */
static const char *own(const struct hit *s, struct slice text)
{
    const struct gate *g = s->gate;
    for (size_t i = 0; i < g->n_placeholders; i++)
        if (slice_eq_str(text, g->placeholders[i].text))
            return g->placeholders[i].secret;
    const char *secret = NULL;
    for (size_t i = 0; s->who->route && (secret = policy_secret(s->who->route->policy, i)); i++)
        if (derived_equal(s->who, g->tag, secret, text))
            return secret;
    return NULL;
}

static void on_placeholder(void *arg, struct slice text)
{
    struct hit *s = arg;
    const char *secret = s->lookups++ < OWN_LOOKUPS ? own(s, text) : NULL;
    if (!s->found)
        s->whole = text;
    s->found = true;
    if (secret == NULL)
        s->stranger = true;
    else if (s->allowed_secret == NULL || strcmp(secret, s->allowed_secret) != 0)
        s->misplaced = true;
    else
        s->own++;
}

void guard_scan(struct hit *s, struct slice text)
{
    placeholder_scan(s->gate->tag, text, on_placeholder, s);
}

static void scan_value(struct hit *s, struct slice v)
{
    char plain[BASIC_SCANNED];
    struct slice pair;
    guard_scan(s, v);
    if (basic_decode(v, plain, sizeof plain, &pair) == 0)
        guard_scan(s, pair);
}

const struct refusal *guard_request_trailers(const struct gate *g, const struct identity *who,
                                             const struct head *h)
{
    static const struct refusal named = {400, "trailer"}, blocked = {403, "secret_blocked"},
                                stranger = {403, "cross_sandbox"};
    struct hit s = {.gate = g, .who = who};
    for (size_t i = 0; i < h->n; i++)
        scan_value(&s, h->fields[i].value);
    if (s.found)
        return s.stranger ? &stranger : &blocked;
    for (size_t i = 0; i < h->n; i++)
        if (guard_trailer_forbidden(h->fields[i].name) ||
            slice_eq(h->fields[i].name, SLICE("cookie")))
            return &named;
    return NULL;
}

const struct refusal *guard_text(const struct gate *g, const struct identity *who,
                                 struct slice text)
{
    static const struct refusal blocked = {403, "secret_blocked"},
                                stranger = {403, "cross_sandbox"};
    struct hit s = {.gate = g, .who = who};
    guard_scan(&s, text);
    return s.stranger ? &stranger : s.found ? &blocked : NULL;
}

bool guard_has_placeholder(const struct gate *g, struct slice text)
{
    struct identity nobody = {.route = NULL};
    struct hit s = {.gate = g, .who = &nobody};
    guard_scan(&s, text);
    return s.found;
}

bool guard_is_own(const struct gate *g, const struct identity *who, const char *secret,
                  struct slice text)
{
    struct hit s = {.gate = g, .who = who, .allowed_secret = secret};
    guard_scan(&s, text);
    return s.found && !s.stranger && !s.misplaced && slice_eq(s.whole, text);
}

/* Of a text in the form of a JSON web token what would be its signature; else the text. An ID token
 * of a metadata service (metadata_google.c) has its placeholder there. */
static struct slice signature_of(struct slice text)
{
    ssize_t first = slice_starts(text, SLICE("eyJ")) ? slice_find(text, '.') : -1;
    if (first < 0)
        return text;
    struct slice rest = {text.p + first + 1, text.n - (size_t)first - 1};
    ssize_t second = slice_find(rest, '.');
    return second < 0 ? text : (struct slice){rest.p + second + 1, rest.n - (size_t)second - 1};
}

/* A value without what the rule writes before and after its secret, where both stand there. */
static struct slice without_affixes(const struct credential *c, struct slice v)
{
    size_t before = strlen(c->prefix), after = strlen(c->suffix);
    if (v.n < before + after || !slice_istarts(v, slice_str(c->prefix)) ||
        !slice_ends(v, slice_str(c->suffix)))
        return v;
    return (struct slice){v.p + before, v.n - before - after};
}

/* The slot's value is exactly this sandbox's own placeholder: raw, "Bearer X", "token X", with the
 * rule's own prefix and suffix, the password (or user) of Basic, or the signature of what has the
 * form of a token. */
static bool slot_is_placeholder(const struct gate *g, const struct identity *who,
                                const struct credential *c, struct slice v)
{
    char plain[BASIC_SCANNED];
    struct hit s = {.gate = g, .who = who, .allowed_secret = c->secret};
    struct slice rest = v, pair, user, pass;
    if (basic_decode(v, plain, sizeof plain, &pair) == 0) {
        if (basic_split(pair, &user, &pass) < 0)
            return false;
        guard_scan(&s, pass);
        if (s.found)
            return !s.stranger && !s.misplaced && slice_eq(s.whole, pass);
        guard_scan(&s, user);
        return s.found && !s.stranger && !s.misplaced && slice_eq(s.whole, user);
    }
    if (guard_is_own(g, who, c->secret, without_affixes(c, v)))
        return true;
    static const char *const schemes[] = {"bearer ", "token "};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (slice_istarts(v, slice_str(schemes[i])))
            rest = slice_trim((struct slice){v.p + strlen(schemes[i]), v.n - strlen(schemes[i])});
    return guard_is_own(g, who, c->secret, signature_of(rest));
}

/* Placeholders anywhere but in the slot. */
static const char *check_elsewhere(const struct gate *g, const struct identity *who,
                                   const struct head *h, const struct credential *c,
                                   struct guard_answer *ret)
{
    struct hit s = {.gate = g, .who = who};
    unsigned places = c ? c->places : 0; /* guard_place has looked there */
    if (!(places & PLACE_PATH))
        guard_scan(&s, h->path);
    if (s.found)
        guard_where(ret, "path", SLICE(""));
    if (!(places & PLACE_QUERY))
        guard_scan(&s, h->query);
    if (s.found)
        guard_where(ret, "query", SLICE(""));
    for (size_t i = 0; i < h->n; i++) {
        if (guard_slot(c, h->fields[i].name))
            continue;
        scan_value(&s, h->fields[i].value);
        if (s.found)
            guard_where(ret, "header", h->fields[i].name);
    }
    if (s.stranger)
        return "cross_sandbox";
    return s.found ? "secret_blocked" : NULL;
}

/* What stands in the field of one slot. NULL: nothing, this sandbox's own placeholder (*ours), or
 * what the rule lets be (*theirs); else the code of the refusal. */
static const char *judge_slot(const struct gate *g, const struct identity *who,
                              const struct head *h, const struct rule *rule,
                              const struct credential *c, bool *ours, bool *theirs)
{
    struct hit s = {.gate = g, .who = who};
    size_t n = http_head_count(h, c->header);
    *ours = *theirs = false;
    if (n == 0)
        return NULL;
    struct slice v = http_head_find(h, c->header)->value;
    *ours = n == 1 && slot_is_placeholder(g, who, c, v);
    if (*ours)
        return NULL;
    for (size_t i = 0; i < h->n; i++)
        if (slice_eq_str(h->fields[i].name, c->header))
            scan_value(&s, h->fields[i].value);
    if (s.found)
        return s.stranger ? "cross_sandbox" : "secret_blocked";
    *theirs = true;
    return rule->client_credential == CLIENT_REFUSE || n > 1 ? "foreign_credential" : NULL;
}

/* The places to fill: the first one says so by no field at all, where it is alone. */
static int leave_marks(struct head *h, const struct credential *c, const struct credential *at,
                       const struct credential *also)
{
    if (at && (at != c || also) && http_head_add(h, at->header, SLICE("")) < 0)
        return -1;
    return also ? http_head_add(h, also->header, SLICE("")) : 0;
}

/* The fields that the secret may go in. The client's copies are taken out; of a rule with two such
 * fields an empty one stays in the other place when that is where the client wrote. A placeholder
 * in both is refused, for nobody knows which of the two the origin would have read; unless the rule
 * says that its clients write both, which then are both filled. */
static const char *check_slots(const struct gate *g, const struct identity *who, struct head *h,
                               const struct rule *rule, struct guard_answer *ret)
{
    const struct credential *c = rule->credential, *at = NULL, *also = NULL;
    bool passes = false, filled = false;
    for (const struct credential *p = c; p; p = p->other) {
        bool ours, theirs;
        const char *bad = judge_slot(g, who, h, rule, p, &ours, &theirs);
        if (bad) {
            guard_where(ret, "header", slice_str(p->header));
            return bad;
        }
        if (ours && filled && c->both)
            also = p;
        else if (ours && filled) {
            guard_where(ret, "two places, the second is header", slice_str(p->header));
            return "secret_blocked";
        }
        filled = filled || ours;
        if (theirs && rule->client_credential == CLIENT_PASS) {
            passes = true;
            continue;
        }
        http_head_remove(h, p->header);
        if (at == NULL && (ours || theirs))
            at = p;
    }
    ret->inject = !passes && (at || !c->captured);
    if (ret->inject && leave_marks(h, c, at, also) < 0)
        return "too_many_headers";
    return NULL;
}

static int refuse(struct guard_answer *a, const char *code)
{
    a->status = strcmp(code, "too_many_headers") == 0 ? 431 : 403;
    a->code = code;
    return -1;
}

int guard_credentials(const struct gate *g, const struct identity *who, struct head *h,
                      const struct rule *rule, struct guard_answer *ret)
{
    const struct credential *c = rule->credential;
    bool placed = c && c->kind >= CREDENTIAL_QUERY && c->kind <= CREDENTIAL_CERTIFICATE;
    struct guard_answer at = {.where = ""}, beside = {.where = ""};
    const char *bad = placed ? guard_place(g, who, h, rule, &at) : NULL;
    const char *elsewhere = check_elsewhere(g, who, h, c, &beside);
    *ret = at;
    if (elsewhere && (bad == NULL || strcmp(bad, "placeholder_count") == 0)) {
        bad = elsewhere;
        *ret = beside;
    }
    if (bad == NULL && c == NULL)
        return 0;
    if (bad == NULL && !placed)
        bad = check_slots(g, who, h, rule, ret);
    if (bad) {
        if (c && strcmp(bad, "secret_blocked") == 0)
            guard_rule_place(ret, c);
        return refuse(ret, bad);
    }
    ret->where[0] = 0;
    return 0;
}
