/* Reads addresses, matches patterns of them, and decides about a message to a mail server. */
#include "smtp_rule.h"

#include <string.h>

enum { LOCAL_MAX = 64, LABEL_MAX = 63 };

/* One character behind ASCII in its only form. 0: it is none, or one that some readers take for an
 * ASCII sign, for a blank or for nothing at all. */
static size_t wide(struct slice s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c >= 0xf0 && c < 0xf5   ? 4
               : c >= 0xe0 && c < 0xf0 ? 3
               : c >= 0xc2 && c < 0xe0 ? 2
                                       : 0;
    uint32_t point = n == 0 ? 0 : c & (0xffu >> (n + 1));
    if (n == 0 || n > s.n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | ((unsigned char)s.p[i] & 0x3f);
    }
    bool shortest = point >= (n == 4 ? 0x10000u : n == 3 ? 0x800u : 0xa1u);
    bool other = (point >= 0xd800 && point < 0xe000) || (point >= 0x2000 && point < 0x2070) ||
                 (point >= 0x3000 && point < 0x3004) || (point >= 0xfe00 && point < 0x10000) ||
                 point == 0xad || point > 0x10ffff;
    return shortest && !other ? n : 0;
}

/* also: beside letters and digits. A part between dots. */
static bool part_ok(struct slice s, const char *also, bool utf8)
{
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n;) {
        size_t n = 1;
        if ((unsigned char)s.p[i] >= 0x80)
            n = utf8 ? wide((struct slice){s.p + i, s.n - i}) : 0;
        else if (!ascii_is_alnum(s.p[i]) && (s.p[i] == 0 || strchr(also, s.p[i]) == NULL))
            n = 0;
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

/* Parts between dots, each of them good. */
static bool parts_ok(struct slice s, const char *also, size_t most, bool labels, bool utf8)
{
    struct slice part = s;
    for (;;) {
        ssize_t dot = slice_find(s, '.');
        part = dot < 0 ? s : (struct slice){s.p, (size_t)dot};
        if (part.n > most || !part_ok(part, also, utf8) ||
            (labels && (part.p[0] == '-' || part.p[part.n - 1] == '-')))
            return false;
        if (dot < 0)
            break;
        s = (struct slice){s.p + dot + 1, s.n - (size_t)dot - 1};
    }
    size_t digits = 0;
    while (labels && digits < part.n && part.p[digits] >= '0' && part.p[digits] <= '9')
        digits++;
    return !labels || digits < part.n; /* else it is an address of IPv4 */
}

static bool domain_ok(struct slice s, bool utf8)
{
    return parts_ok(s, "-_", LABEL_MAX, true, utf8);
}

struct slice smtp_address_domain(struct slice address)
{
    size_t at = (size_t)slice_find(address, '@') + 1;
    return (struct slice){address.p + at, address.n - at};
}

static bool local_ok(struct slice s, const char *also, bool utf8)
{
    return s.n <= LOCAL_MAX && s.n > 0 && s.p[0] != '-' &&
           parts_ok(s, also, LOCAL_MAX, false, utf8);
}

bool smtp_address_ok(struct slice address, bool utf8)
{
    ssize_t at = slice_find(address, '@');
    return at > 0 && address.n <= SMTP_ADDRESS_MAX &&
           local_ok((struct slice){address.p, (size_t)at}, "#$&'*+-/=?^_{}~", utf8) &&
           domain_ok(smtp_address_domain(address), utf8);
}

bool smtp_pattern_ok(struct slice pattern)
{
    ssize_t at = slice_find(pattern, '@');
    if (at <= 0 || pattern.n > SMTP_ADDRESS_MAX)
        return false;
    struct slice local = {pattern.p, (size_t)at}, domain = smtp_address_domain(pattern);
    if (slice_starts(domain, SLICE("*.")))
        domain = (struct slice){domain.p + 2, domain.n - 2};
    else if (slice_eq_str(domain, "*"))
        domain = SLICE("any");
    return part_ok(local, "#$&'*+-/=?^_{}~.", true) && domain_ok(domain, true);
}

static bool glob(struct slice pattern, struct slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.n && ascii_lower(pattern.p[p]) == ascii_lower(text.p[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

bool smtp_pattern_match(struct slice pattern, struct slice address)
{
    struct slice of = smtp_address_domain(pattern), domain = smtp_address_domain(address);
    struct slice local = {address.p, address.n - domain.n - 1};
    if (!glob((struct slice){pattern.p, pattern.n - of.n - 1}, local))
        return false;
    if (slice_eq_str(of, "*"))
        return true;
    if (!slice_starts(of, SLICE("*.")))
        return slice_ieq(of, domain);
    of = (struct slice){of.p + 1, of.n - 1};
    return domain.n > of.n && slice_ieq((struct slice){domain.p + domain.n - of.n, of.n}, of);
}

static bool is_listed(const char *const *patterns, size_t n, struct slice address)
{
    for (size_t i = 0; i < n; i++)
        if (address.n > 0 && smtp_pattern_match(slice_str(patterns[i]), address))
            return true;
    return n == 0;
}

const char *smtp_sender_refused(const struct smtp_terms *t, struct slice sender)
{
    return is_listed(t->senders, t->n_senders, sender) ? NULL : "smtp_sender";
}

const char *smtp_recipient_refused(const struct smtp_terms *t, struct slice recipient)
{
    return is_listed(t->recipients, t->n_recipients, recipient) ? NULL : "smtp_recipient";
}

static const char *refused(const struct smtp_terms *t, const struct smtp_envelope *e)
{
    const char *code = smtp_sender_refused(t, e->sender);
    for (size_t i = 0; i < e->n && code == NULL; i++)
        code = smtp_recipient_refused(t, e->recipients[i]);
    if (code)
        return code;
    if (e->n == 0 || e->n > t->most_recipients)
        return "smtp_recipients";
    return e->size > t->most_bytes ? "smtp_size" : NULL;
}

void policy_smtp_decide(const struct policy *p, const struct authority *a,
                        const struct smtp_envelope *e, struct decision *ret)
{
    const struct policy_request r = {
        .authority = a, .method = SLICE("connect"), .path = SLICE("/")};
    policy_decide(p, &r, ret);
    if (ret->verdict == VERDICT_DENY)
        return;
    const char *code = "no_rule";
    if (ret->rule->smtp && ret->rule->credential)
        code = e ? refused(ret->rule->smtp, e) : NULL;
    if (code)
        *ret = (struct decision){VERDICT_DENY, ret->rule, code, false};
}
