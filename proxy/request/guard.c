/* What a request may carry, judged by its head alone. */
#include "guard.h"

#include "field_name.h"
#include "field_value.h"
#include "guard_internal.h"
#include "held.h"
#include "method.h"
#include "override.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

int guard_method(struct slice m)
{
    return method_bit(m) ? 0 : -1;
}

bool guard_trailer_forbidden(struct slice name)
{
    return field_kinds(name) || field_is_twin(name) || field_is_credential(name);
}

void guard_clean_trailers(struct head *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++)
        if (!guard_trailer_forbidden(h->fields[i].name) &&
            !slice_eq(h->fields[i].name, SLICE("set-cookie")))
            h->fields[kept++] = h->fields[i];
    h->n = kept;
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

bool guard_parameter_is(struct slice name, const char *known)
{
    size_t k = 0, n = strlen(known);
    for (size_t i = 0; i < name.n; k++)
        if (k >= n || parameter_byte(name, &i) != ascii_lower(known[k]))
            return false;
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

/* The known name of one that is there; NULL: none is. spared: the slot itself; NULL for none. */
static const char *query_credential(struct slice q, const char *spared)
{
    struct guard_part part;
    while (guard_next_part(&q, false, &part))
        for (size_t i = 0; i < ARRAY_LEN(credential_queries); i++)
            if (guard_parameter_is(part.name, credential_queries[i]) &&
                !(spared && guard_parameter_is(part.name, spared)))
                return credential_queries[i];
    return NULL;
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
        if (override_parameter(part.name))
            return true;
    return false;
}

const struct credential *guard_slot(const struct credential *c, struct slice name)
{
    while (c && !slice_eq_str(name, c->header))
        c = c->other;
    return c;
}

static bool is_slot_twin(const struct credential *c, struct slice name)
{
    for (; c; c = c->other)
        if (field_same(name, slice_str(c->header)))
            return true;
    return false;
}

/* The rule's own words (set_headers), which a gate has written already. */
static bool is_edit(const struct rule *rule, const struct field *f)
{
    for (size_t i = 0; i < rule->n_edits; i++)
        if (rule->edits[i].value && slice_eq_str(f->name, rule->edits[i].name) &&
            slice_eq_str(f->value, rule->edits[i].value))
            return true;
    return false;
}

/* A credential of the client's own. In a field that the rule calls none, only what an issuer's
 * token looks like. */
static bool is_foreign(const struct rule *rule, const struct field *f)
{
    if (is_edit(rule, f))
        return false;
    for (size_t i = 0; i < rule->n_not_credentials; i++)
        if (slice_eq_str(f->name, rule->not_credentials[i]))
            return field_value_is_credential(f->value, true);
    return field_holds_credential(f);
}

bool guard_foreign(struct head *h, const struct rule *rule, struct guard_answer *ret)
{
    const struct credential *c = rule->credential;
    bool pass = rule->client_credential == CLIENT_PASS;
    bool refuse = rule->client_credential == CLIENT_REFUSE, found = false;
    const char *name;
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct field *f = &h->fields[i];
        bool slot = guard_slot(c, f->name), twin = !slot && is_slot_twin(c, f->name);
        bool credential = !slot && is_foreign(rule, f);
        if (refuse && (twin || credential)) {
            guard_where(ret, "header", f->name);
            found = true;
        }
        if (!twin && (pass || !credential))
            h->fields[kept++] = *f;
    }
    h->n = kept;
    if (pass || found)
        return found;
    name = query_credential(h->query, c->places & PLACE_QUERY ? c->name : NULL);
    if (name)
        guard_where(ret, "query parameter", slice_str(name));
    else if ((found = protocol_has_credential(h)))
        guard_where(ret, "header", SLICE("sec-websocket-protocol"));
    return name || found;
}

enum { NAME_SHOWN = 64 };

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
            r = buf_printf(out, "%.*s%s=<%zu>", (int)(eq < NAME_SHOWN ? eq : NAME_SHOWN), part.p,
                           eq > NAME_SHOWN ? PENDING_APPROVAL_MARK : "", part.n - (size_t)eq - 1);
        if (amp < 0)
            return;
        r |= buf_append(out, "&", 1);
        q = (struct slice){q.p + amp + 1, q.n - (size_t)amp - 1};
    }
}
