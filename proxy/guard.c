#include "guard.h"

#include "basic.h"
#include "condition.h"
#include "field_name.h"
#include "guard_internal.h"
#include "placeholder.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

enum {
    BASIC_SCANNED = 4096, /* bytes of a decoded Basic value that are looked at */
    OWN_LOOKUPS = 16,     /* placeholders of a request that are looked up; for a token each is many
                             hashes, so a head full of them would cost seconds */
};

int guard_method(struct slice m)
{
    static const char *const passes[] = {"GET",    "HEAD",       "POST",     "PUT",       "PATCH",
                                         "DELETE", "OPTIONS",    "PROPFIND", "PROPPATCH", "MKCOL",
                                         "COPY",   "MOVE",       "LOCK",     "UNLOCK",    "REPORT",
                                         "SEARCH", "MKACTIVITY", "CHECKOUT", "MERGE"};
    for (size_t i = 0; i < ARRAY_LEN(passes); i++)
        if (slice_eq_str(m, passes[i]))
            return 0;
    return -1;
}

static void remove_kinds(struct head *h, unsigned kinds)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!(field_kinds(h->fields[i].name) & kinds))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
}

/* What Connection does not take off: a credential or a cookie goes through its own checks. */
static bool connection_spares(struct slice name)
{
    return slice_eq(name, SLICE("cookie")) || field_is_credential(name);
}

/* Fields that the message itself calls hop-by-hop (RFC 9110 7.6.1). This comes before anything is
 * injected, so it can take off only what the sender put there. */
static void remove_named(struct head *h)
{
    bool drop[HEAD_FIELDS_MAX] = {false};
    for (size_t c = 0; c < h->n; c++) {
        if (!slice_eq_str(h->fields[c].name, "connection"))
            continue;
        struct slice v = h->fields[c].value;
        for (ssize_t comma = 0; comma >= 0 && v.n > 0;) {
            comma = slice_find(v, ',');
            struct slice t = slice_trim((struct slice){v.p, comma < 0 ? v.n : (size_t)comma});
            for (size_t i = 0; i < h->n; i++)
                drop[i] |= slice_ieq(h->fields[i].name, t);
            if (comma >= 0)
                v = (struct slice){v.p + comma + 1, v.n - (size_t)comma - 1};
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!drop[i] || connection_spares(h->fields[i].name))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
}

void guard_clean_request(struct head *h)
{
    remove_named(h);
    remove_kinds(h, FIELD_HOP | FIELD_ROUTE);
}

size_t guard_strip_overrides(struct head *h)
{
    size_t before = h->n;
    remove_kinds(h, FIELD_OVERRIDE);
    return before - h->n;
}

void guard_clean_reply(struct head *h, bool credentialed, bool keep_cookies)
{
    remove_named(h);
    remove_kinds(h, FIELD_HOP);
    http_head_remove(h, "alt-svc");
    http_head_remove(h, "via");
    http_head_remove(h, "durward-denied");
    if (h->body != BODY_NONE)
        http_head_remove(h, "content-length");
    if (credentialed && !keep_cookies)
        http_head_remove(h, "set-cookie");
}

/* Known names and their twins: nothing that decides, routes or frames comes after the body. */
static bool trailer_forbidden(struct slice name)
{
    return field_kinds(name) || field_is_twin(name) || field_is_credential(name);
}

void guard_clean_trailers(struct head *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!trailer_forbidden(h->fields[i].name) &&
            !slice_eq(h->fields[i].name, SLICE("set-cookie")))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
}

/* ---- placeholders ---- */

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
    for (size_t i = 0; s->who->route && policy_rule(s->who->route->policy, i); i++) {
        const struct rule *r = policy_rule(s->who->route->policy, i);
        if (r->credential && derived_equal(s->who, g->tag, r->credential->secret, text))
            return r->credential->secret;
    }
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
        if (trailer_forbidden(h->fields[i].name) || slice_eq(h->fields[i].name, SLICE("cookie")))
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

/* The slot's value is exactly this sandbox's own placeholder: raw, "Bearer X", "token X", or the
 * password (or user) of Basic. */
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
    static const char *const schemes[] = {"bearer ", "token "};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (slice_istarts(v, slice_str(schemes[i])))
            rest = slice_trim((struct slice){v.p + strlen(schemes[i]), v.n - strlen(schemes[i])});
    return guard_is_own(g, who, c->secret, rest);
}

/* ---- foreign credentials ---- */

static const char *const credential_queries[] = {
    "access_token",
    "api_key",
    "apikey",
    "key",
    "token",
    "sig",
    "signature",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "private_token",
    "client_secret",
    "auth",
    "oauth_token",
    "awsaccesskeyid",
    "googleaccessid",
    "x-goog-security-token",
    "x-api-key",
    "api-key",
    "apitoken",
    "api_token",
    "appkey",
    "app_key",
    "access_key",
    "accesskey",
    "access-token",
    "accesstoken",
    "auth_token",
    "authtoken",
    "authorization",
    "bearer_token",
    "client_assertion",
    "hapikey",
    "id_token",
    "job_token",
    "jwt",
    "password",
    "refresh_token",
    "secret",
    "session_token",
    "subscription-key",
    "user_token",
};

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next byte of a parameter's name as its reader will see it: percent escapes decoded, case
 * folded. *i moves on. */
static char name_byte(struct slice name, size_t *i)
{
    char c = name.p[*i];
    int high = c == '%' && name.n - *i > 2 ? hex_value(name.p[*i + 1]) : -1;
    int low = high >= 0 ? hex_value(name.p[*i + 2]) : -1;
    *i += low >= 0 ? 3 : 1;
    return ascii_lower(low >= 0 ? (char)(high * 16 + low) : c);
}

bool guard_parameter_is(struct slice name, const char *known)
{
    size_t k = 0, n = strlen(known);
    for (size_t i = 0; i < name.n; k++)
        if (k >= n || name_byte(name, &i) != ascii_lower(known[k]))
            return false;
    return k == n;
}

/* "_method", also with an index, and with what PHP makes an underscore of at the front. */
static bool is_override(struct slice name)
{
    static const char known[] = "_method";
    size_t k = 0, n = sizeof known - 1;
    for (size_t i = 0; i < name.n; k++) {
        char c = name_byte(name, &i);
        if (k == 0 && (c == '.' || c == '[' || c == ' ' || c == '+'))
            c = '_';
        if (k == n)
            return c == '[';
        if (c != known[k])
            return false;
    }
    return k == n;
}

bool guard_next_part(struct slice *rest, bool cookie, struct guard_part *ret)
{
    size_t end = 0;
    if (rest->n == 0)
        return false;
    while (end < rest->n && rest->p[end] != ';' && (cookie || rest->p[end] != '&'))
        end++; /* some readers of queries split at both */
    ret->whole = (struct slice){rest->p, end};
    if (cookie)
        ret->whole = slice_trim(ret->whole);
    ssize_t eq = slice_find(ret->whole, '=');
    size_t n = eq < 0 ? ret->whole.n : (size_t)eq;
    ret->name = (struct slice){ret->whole.p, n};
    ret->value =
        eq < 0 ? (struct slice){"", 0} : (struct slice){ret->whole.p + n + 1, ret->whole.n - n - 1};
    size_t skip = end < rest->n ? end + 1 : end;
    *rest = (struct slice){rest->p + skip, rest->n - skip};
    return true;
}

/* spared: the parameter that is the slot; NULL for none. */
static bool query_has_credential(struct slice q, const char *spared)
{
    struct guard_part part;
    while (guard_next_part(&q, false, &part))
        for (size_t i = 0; i < ARRAY_LEN(credential_queries); i++)
            if (guard_parameter_is(part.name, credential_queries[i]) &&
                !(spared && guard_parameter_is(part.name, spared)))
                return true;
    return false;
}

/* Browsers cannot set fields on a WebSocket, so some origins take a credential as a sub-protocol.
 */
static bool protocol_has_credential(const struct head *h)
{
    static const char *const marks[] = {"bearer", "api-key",       "apikey",
                                        "token",  "authorization", "secret"};
    for (size_t i = 0; i < h->n; i++) {
        struct slice v = h->fields[i].value;
        if (!slice_eq_str(h->fields[i].name, "sec-websocket-protocol"))
            continue;
        for (size_t at = 0; at < v.n; at++)
            for (size_t m = 0; m < ARRAY_LEN(marks); m++)
                if (slice_istarts((struct slice){v.p + at, v.n - at}, slice_str(marks[m])))
                    return true;
    }
    return false;
}

bool guard_query_override(struct slice q)
{
    struct guard_part part;
    while (guard_next_part(&q, false, &part))
        if (is_override(part.name))
            return true;
    return false;
}

bool guard_foreign(struct head *h, const struct rule *rule)
{
    const struct credential *c = rule->credential;
    struct slice slot = slice_str(c->header);
    bool pass = rule->client_credential == CLIENT_PASS;
    size_t kept = 0, before = h->n;
    for (size_t i = 0; i < h->n; i++) {
        struct slice name = h->fields[i].name;
        bool is_slot = slice_eq(name, slot), twin = !is_slot && field_same(name, slot);
        bool credential = !is_slot && field_is_credential(name);
        if (!twin && (pass || !credential))
            h->fields[kept++] = h->fields[i];
    }
    h->n = kept;
    if (pass)
        return false;
    return (rule->client_credential == CLIENT_REFUSE && kept != before) ||
           query_has_credential(h->query, c->places & PLACE_QUERY ? c->name : NULL) ||
           protocol_has_credential(h);
}

/* Of the codings of bodies and of messages in them (gRPC, Connect): only none at all can be
 * searched. */
static int ask_identity(struct head *h)
{
    static const char *const messages[] = {"grpc-accept-encoding", "connect-accept-encoding"};
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        if (http_head_find(h, messages[i]) && http_head_set(h, messages[i], SLICE("identity")) < 0)
            return -1;
    return http_head_set(h, "accept-encoding", SLICE("identity"));
}

int guard_credentialed(struct head *h, const struct rule *rule)
{
    if (!rule->cookies)
        http_head_remove(h, "cookie");
    if (!rule->ranges) {
        http_head_remove(h, "range");
        http_head_remove(h, "if-range");
    }
    if (rule->n_captures) /* Vault and OpenBao: the secret would lie where the token says */
        http_head_remove(h, "x-vault-wrap-ttl");
    return ask_identity(h);
}

/* Placeholders anywhere but in the slot. */
static const char *check_elsewhere(const struct gate *g, const struct identity *who,
                                   const struct head *h, const struct credential *c)
{
    struct hit s = {.gate = g, .who = who};
    unsigned places = c ? c->places : 0; /* guard_place has looked there */
    if (!(places & PLACE_PATH))
        guard_scan(&s, h->path);
    if (!(places & PLACE_QUERY))
        guard_scan(&s, h->query);
    for (size_t i = 0; i < h->n; i++) {
        if (c && slice_eq_str(h->fields[i].name, c->header))
            continue;
        scan_value(&s, h->fields[i].value);
    }
    if (s.stranger)
        return "cross_sandbox";
    return s.found ? "secret_blocked" : NULL;
}

static bool any_stranger(const struct gate *g, const struct identity *who, struct slice v)
{
    struct hit s = {.gate = g, .who = who};
    scan_value(&s, v);
    return s.stranger;
}

/* The slot's own field. 0 go on, -1 refuse. */
static int check_slot(const struct gate *g, const struct identity *who, struct head *h,
                      const struct rule *rule, bool *inject, const char **code)
{
    const struct credential *c = rule->credential;
    size_t n = http_head_count(h, c->header);
    *inject = n > 0 || !c->captured;
    if (n == 0)
        return 0;
    struct slice v = http_head_find(h, c->header)->value;
    bool ours = n == 1 && slot_is_placeholder(g, who, c, v);
    if (!ours) {
        struct hit s = {.gate = g, .who = who};
        scan_value(&s, v);
        bool held = s.found;
        if (any_stranger(g, who, v)) {
            *code = "cross_sandbox";
            return -1;
        }
        if (held) {
            *code = "secret_blocked";
            return -1;
        }
        if (rule->client_credential == CLIENT_REFUSE || n > 1) {
            *code = "foreign_credential";
            return -1;
        }
        if (rule->client_credential == CLIENT_PASS) {
            *inject = false;
            return 0;
        }
    }
    http_head_remove(h, c->header);
    return 0;
}

int guard_credentials(const struct gate *g, const struct identity *who, struct head *h,
                      const struct rule *rule, bool *inject, const char **code)
{
    const struct credential *c = rule->credential;
    *inject = false;
    if (c && !rule->cookies)
        http_head_remove(h, "cookie");
    bool placed = c && c->kind >= CREDENTIAL_QUERY && c->kind <= CREDENTIAL_CERTIFICATE;
    const char *bad = placed ? guard_place(g, who, h, rule, inject) : NULL;
    const char *elsewhere = check_elsewhere(g, who, h, c);
    if (bad == NULL || (elsewhere && strcmp(bad, "placeholder_count") == 0))
        bad = elsewhere;
    if (bad) {
        *code = bad;
        return -1;
    }
    if (c == NULL)
        return 0;
    if (!placed && check_slot(g, who, h, rule, inject, code) < 0)
        return -1;
    if (guard_foreign(h, rule)) {
        *code = "foreign_credential";
        return -1;
    }
    if (guard_credentialed(h, rule) < 0) {
        *code = "too_many_headers";
        return -1;
    }
    return 0;
}

static size_t find_field(const void *head, const char *name, struct slice *value)
{
    const struct field *f = http_head_find(head, name);
    if (f)
        *value = f->value;
    return http_head_count(head, name);
}

const char *guard_conditions(const struct rule *rule, const struct head *h)
{
    const char *code = condition_query(rule, h->query, h->has_query);
    return code ? code : condition_headers(rule, find_field, h);
}

int guard_edit(struct head *h, const struct rule *rule)
{
    for (size_t i = 0; i < rule->n_edits; i++) {
        const struct header_edit *e = &rule->edits[i];
        if (e->value == NULL)
            http_head_remove(h, e->name);
        else if (http_head_set(h, e->name, slice_str(e->value)) < 0)
            return -1;
    }
    return 0;
}

void guard_query_shape(struct slice q, struct buf *out)
{
    int r = 0;
    while (q.n > 0 && r == 0) {
        ssize_t amp = slice_find(q, '&');
        struct slice part = {q.p, amp < 0 ? q.n : (size_t)amp};
        ssize_t eq = slice_find(part, '=');
        if (eq < 0)
            r = buf_printf(out, "<%zu>", part.n); /* a bare word may be the value itself */
        else
            r = buf_printf(out, "%.*s=<%zu>", (int)(eq < 64 ? eq : 64), part.p,
                           part.n - (size_t)eq - 1);
        if (amp < 0)
            return;
        r |= buf_append(out, "&", 1);
        q = (struct slice){q.p + amp + 1, q.n - (size_t)amp - 1};
    }
}
