/* Looks at a target byte by byte and spells it, and tells whether a request carries a signature
 * that covers the target, which another spelling would break. */
#include "target.h"

#include "policy.h"
#include "websocket.h"

#include <string.h>

enum fate { FATE_CARRY = 0, FATE_ENCODE, FATE_REFUSE };

static enum fate fate_of(unsigned char c, bool in_path)
{
    if (c <= 0x20 || c == 0x7f || c == '#' || (in_path && c == '\\'))
        return FATE_REFUSE;
    if (c == '"' || c == '<' || c == '>' || c > 0x7f)
        return FATE_ENCODE;
    return FATE_CARRY;
}

/* How many bytes of it are to be encoded; -1: one is refused. */
static ssize_t look(struct slice s, bool in_path)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        enum fate f = fate_of((unsigned char)s.p[i], in_path);
        if (f == FATE_REFUSE)
            return -1;
        n += f == FATE_ENCODE;
    }
    return n == 0 || websocket_is_utf8(s) ? (ssize_t)n : -1;
}

static int encode(struct slice s, struct buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        bool as_is = fate_of(c, false) != FATE_ENCODE;
        if (buf_append(out, as_is ? &s.p[i] : escape, as_is ? 1 : 3) < 0)
            return -1;
    }
    return 0;
}

static int refuse(struct refusal *why, unsigned status, const char *code)
{
    *why = (struct refusal){status, code};
    return -1;
}

int target_spell(struct head *h, size_t max, struct refusal *why)
{
    ssize_t path = look(h->path, true), query = look(h->query, false);
    if (path < 0 || query < 0) {
        h->path = h->query = (struct slice){NULL, 0}; /* nothing of it is repeated */
        h->has_query = false;
        return refuse(why, 400, "bad_target");
    }
    h->respelled = path > 0 || query > 0;
    if (!h->respelled)
        return 0;
    if (h->path.n + h->query.n + 2 * (size_t)(path + query) > max)
        return refuse(why, 414, "target_too_long");
    struct buf text;
    int r = 0;
    buf_init(&text, max);
    if (path > 0)
        r = encode(h->path, &text) < 0 ? -1 : http_head_set_path(h, buf_slice(&text));
    buf_clear(&text);
    if (r == 0 && query > 0)
        r = encode(h->query, &text) < 0 ? -1 : http_head_set_query(h, buf_slice(&text), true);
    buf_free(&text);
    return r < 0 ? refuse(why, 503, "memory") : 0;
}

bool target_authority_ok(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] > 0x7e || s.p[i] <= 0x20 || strchr("#\"<>\\^`{}|", s.p[i]))
            return false;
    return s.n > 0;
}

/* ---- signatures ---- */

static bool holds(struct slice text, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++)
        if (slice_ieq_str((struct slice){text.p + i, n}, word))
            return true;
    return false;
}

/* A name that signatures travel by: of a field or of a query parameter. */
static bool names_signature(struct slice name)
{
    static const char *const whole[] = {"sig", "sign", "x-sign", "dpop"};
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        if (slice_ieq_str(name, whole[i]))
            return true;
    return holds(name, "signature") || holds(name, "hmac");
}

/* Schemes of Authorization that say who asks and nothing of what is asked. Of any other one it is
 * not known what it covers. */
static bool scheme_covers_nothing(struct slice value)
{
    static const char *const schemes[] = {"bearer",    "basic", "token",   "apikey",
                                          "negotiate", "ntlm",  "api-key", "key"};
    ssize_t blank = slice_find(value, ' ');
    if (blank < 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (slice_ieq_str((struct slice){value.p, (size_t)blank}, schemes[i]))
            return true;
    return false;
}

static bool rule_signs(const struct rule *rule)
{
    if (rule == NULL || rule->credential == NULL)
        return false;
    switch (rule->credential->kind) {
    case CREDENTIAL_AWS:
    case CREDENTIAL_HMAC:
    case CREDENTIAL_SIGNATURE:
    case CREDENTIAL_AZURE:
        return true;
    default:
        return false;
    }
}

static bool query_is_signed(struct slice q)
{
    while (q.n > 0) {
        ssize_t end = slice_find(q, '&');
        struct slice part = {q.p, end < 0 ? q.n : (size_t)end};
        ssize_t equals = slice_find(part, '=');
        if (names_signature((struct slice){part.p, equals < 0 ? part.n : (size_t)equals}))
            return true;
        if (end < 0)
            break;
        q = (struct slice){q.p + end + 1, q.n - (size_t)end - 1};
    }
    return false;
}

bool target_is_signed(const struct head *h, const struct rule *rule)
{
    if (rule_signs(rule) || query_is_signed(h->query))
        return true;
    for (size_t i = 0; i < h->n; i++) {
        const struct field *f = &h->fields[i];
        if (names_signature(f->name))
            return true;
        if (slice_eq_str(f->name, "authorization") && !scheme_covers_nothing(f->value))
            return true;
    }
    return false;
}
