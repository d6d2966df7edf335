/* Looks through a text for the places where a detector may have something to say, and keeps what
 * the detectors find there. */
#include "detector_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DETECTORS] = {
    [DETECT_PRIVATE_KEY] = "private_key",
    [DETECT_AWS] = "aws",
    [DETECT_GOOGLE] = "google",
    [DETECT_AZURE] = "azure",
    [DETECT_GITHUB] = "github",
    [DETECT_GITLAB] = "gitlab",
    [DETECT_SLACK] = "slack",
    [DETECT_STRIPE] = "stripe",
    [DETECT_MODEL] = "model",
    [DETECT_TOKEN] = "token",
    [DETECT_JWT] = "jwt",
    [DETECT_URL_PASSWORD] = "url_password",
    [DETECT_NAMED] = "named",
    [DETECT_CARD] = "card",
    [DETECT_IBAN] = "iban",
    [DETECT_EMAIL] = "email",
    [DETECT_ENTROPY] = "entropy",
    [DETECT_ID_BE] = "id_be",
    [DETECT_ID_BR] = "id_br",
    [DETECT_ID_CA] = "id_ca",
    [DETECT_ID_CH] = "id_ch",
    [DETECT_ID_DE] = "id_de",
    [DETECT_ID_ES] = "id_es",
    [DETECT_ID_FR] = "id_fr",
    [DETECT_ID_GB] = "id_gb",
    [DETECT_ID_IN] = "id_in",
    [DETECT_ID_IT] = "id_it",
    [DETECT_ID_PL] = "id_pl",
    [DETECT_ID_SE] = "id_se",
    [DETECT_ID_US] = "id_us",
};

enum {
    CREDENTIALS = (1u << (DETECT_NAMED + 1)) - 1,
    NATIONAL_IDS = (1u << DETECTORS) - (1u << DETECT_ID_BE),
    NUMBERS = NATIONAL_IDS | DETECT_BIT(DETECT_CARD) | DETECT_BIT(DETECT_IBAN),
};

const char *detector_name(enum detector d)
{
    return d < DETECTORS ? names[d] : NULL;
}

uint32_t detectors_of(struct slice word)
{
    if (slice_eq_str(word, "credentials"))
        return CREDENTIALS;
    if (slice_eq_str(word, "national_ids"))
        return NATIONAL_IDS;
    for (unsigned i = 0; i < DETECTORS; i++)
        if (slice_eq_str(word, names[i]))
            return DETECT_BIT(i);
    return 0;
}

/* ---- what is told of it ---- */

char *detect_found_text(const uint32_t counts[DETECTORS], char to[DETECT_FOUND_MAX])
{
    size_t used = 0;
    to[0] = 0;
    for (unsigned i = 0; i < DETECTORS; i++)
        if (counts[i] && used < DETECT_FOUND_MAX)
            used += (size_t)snprintf(to + used, DETECT_FOUND_MAX - used, "%s%s %u",
                                     used ? ", " : "", names[i], counts[i]);
    return to;
}

static int found_word(struct slice word)
{
    for (int i = 0; i < DETECTORS; i++)
        if (slice_eq_str(word, names[i]))
            return i;
    return -1;
}

bool detect_found_is(struct slice text)
{
    int last = -1;
    uint64_t count;
    while (text.n > 0) {
        ssize_t comma = slice_find(text, ',');
        struct slice item = {text.p, comma < 0 ? text.n : (size_t)comma};
        ssize_t space = slice_find(item, ' ');
        int d = space < 0 ? -1 : found_word((struct slice){item.p, (size_t)space});
        if (d <= last || slice_u64((struct slice){item.p + space + 1, item.n - (size_t)space - 1},
                                   UINT32_MAX, &count) < 0)
            return false;
        last = d;
        if (comma < 0)
            return true;
        size_t skip = item.n + 2;
        if (text.n <= skip || text.p[item.n + 1] != ' ')
            return false;
        text = (struct slice){text.p + skip, text.n - skip};
    }
    return false;
}

/* ---- what is kept ---- */

void detect_open(struct detect_scan *s, size_t at)
{
    if (at < s->open)
        s->open = at;
}

void detect_found_behind(struct detect_scan *s, enum detector what, size_t root, size_t at,
                         size_t end)
{
    if (root < s->from || end <= at)
        return;
    if (s->n == DETECT_MATCHES) { /* the next scan begins at the one that begins last */
        struct detect_match *last = &s->match[0];
        for (size_t i = 1; i < s->n; i++)
            last = s->match[i].root > last->root ? &s->match[i] : last;
        detect_open(s, last->root > root ? last->root : root);
        if (last->root <= root)
            return;
        *last = s->match[--s->n];
    }
    s->match[s->n++] = (struct detect_match){.at = at, .n = end - at, .root = root, .what = what};
}

void detect_found(struct detect_scan *s, enum detector what, size_t at, size_t end)
{
    detect_found_behind(s, what, at, at, end);
}

/* ---- where they look ---- */

/* Beginnings of one bit are mistaken for one another: they share it by their first letter, so that
 * hardly any of them is mistaken for what words of English and of programs begin with. */
static unsigned char filter_bit(char first, bool name)
{
    static const char *const begins[] = {"ACNdvx", "EFZaeilnw", "GLSbksy", "Pfhot"},
                             *const of_names[] = {"sc", "tk"};
    const char *const *firsts = name ? of_names : begins;
    unsigned bit = name ? DETECT_NAMES & (~DETECT_NAMES + 1) : 1;
    for (size_t k = 0; k < (name ? ARRAY_LEN(of_names) : ARRAY_LEN(begins)); k++, bit <<= 1)
        if (strchr(firsts[k], first))
            break;
    return (unsigned char)bit;
}

static void filter_byte(struct detect_filter *f, size_t i, char c, unsigned char bit)
{
    f->low[i][c & 15] |= bit;
    f->high[i][(unsigned char)c >> 4] |= bit;
    f->byte[i][c & 63] |= bit;
}

void detect_filter_add(struct detect_filter *f, const char *prefix)
{
    for (size_t i = 0; i < 3; i++)
        filter_byte(f, i, prefix[i], filter_bit(*prefix, false));
}

static void add_either(void *arg, const char *begin, bool name)
{
    struct detect_filter *f = arg;
    unsigned char bit = filter_bit(*begin, name);
    for (size_t i = 0; i < 3; i++) {
        char c = begin[i];
        filter_byte(f, i, c, bit);
        filter_byte(f, i, (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c), bit);
    }
}

/* Of three bytes; places of a table that has the first of a chain of what may begin with them. */
enum { HOT_BITS = 13 };

struct detector_set {
    uint32_t what;
    bool looks;                                            /* for any beginning */
    unsigned char hot[1u << HOT_BITS], next[DETECT_TRIES]; /* numbers and one; 0: none */
    unsigned char first[256]; /* of the single bytes that matter: digits, signs */
    struct detect_filter filter;
    bool skims; /* and looks only at what that tells */
    struct detect_skim skim;
    unsigned char begins[256], also[DETECT_TRIES]; /* as hot and next, by one byte */
    uint64_t forms[DETECT_LEADS];
};

static inline unsigned three(const unsigned char *p)
{
    uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
    return (v * 0x9E3779B1u) >> (32 - HOT_BITS);
}

static void add_prefix(void *arg, const char *prefix, unsigned which)
{
    struct detector_set *set = arg;
    unsigned char *hot = &set->hot[three((const unsigned char *)prefix)];
    set->looks = true;
    if (detect_is(*prefix, CLASS_WORD)) /* what begins with a sign is met by its signs */
        detect_filter_add(&set->filter, prefix);
    set->next[which] = *hot;
    *hot = (unsigned char)(which + 1);
    unsigned char *begins = &set->begins[(unsigned char)*prefix];
    set->also[which] = *begins;
    *begins = (unsigned char)(which + 1);
}

void detector_set_wide(struct detector_set *s, bool wide)
{
    s->skim.wide = wide && detect_skim_wide_can();
}

struct detector_set *detector_set_new(uint32_t what)
{
    struct detector_set *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->what = what;
    detect_tokens_prefixes(what, add_prefix, s);
    s->looks |= (what & (NUMBERS | DETECT_BIT(DETECT_NAMED))) != 0;
    if (what & DETECT_BIT(DETECT_NAMED)) {
        s->first['='] = s->first[':'] = 1;
        detect_named_beginnings(add_either, &s->filter);
    }
    if (what & NUMBERS)
        for (char c = '0'; c <= '9'; c++)
            s->first[(unsigned char)c] = 1;
    s->skims = detect_skim_can();
    s->skim.cards = (what & DETECT_BIT(DETECT_CARD)) != 0;
    s->skim.ibans = (what & DETECT_BIT(DETECT_IBAN)) != 0;
    s->skim.digits = (what & NATIONAL_IDS) != 0;
    s->skim.filter = &s->filter;
    detector_set_wide(s, true);
    detect_numbers_forms(what, s->forms);
    return s;
}

void detector_set_plain(struct detector_set *s)
{
    s->skims = false;
}

void detector_set_free(struct detector_set *s)
{
    free(s);
}

static void look_at_begins(const struct detector_set *set, struct detect_scan *s, size_t i,
                           unsigned chain)
{
    for (; chain && !s->stops; chain = set->next[chain - 1])
        detect_token_try(s, i, chain - 1);
}

static void look_at_number(struct detect_scan *s, size_t i)
{
    if ((s->what & NUMBERS) && detect_is(s->text.p[i], CLASS_DIGIT) &&
        !detect_is(detect_before(s, i), CLASS_DIGIT))
        detect_numbers_at(s, i);
}

static inline bool is_sign(const struct detect_scan *s, size_t i)
{
    return s->text.p[i] == '=' || s->text.p[i] == ':';
}

/* Each byte up to `end`. */
static void look_each(const struct detector_set *set, struct detect_scan *s, size_t i, size_t end)
{
    const unsigned char *t = (const unsigned char *)s->text.p;
    for (; i < end && !s->stops; i++) {
        unsigned chain = i + 2 < s->text.n ? set->hot[three(t + i)] : 0;
        if ((chain | set->first[t[i]]) == 0)
            continue;
        look_at_number(s, i);
        if ((s->what & DETECT_BIT(DETECT_NAMED)) && is_sign(s, i))
            detect_named_at(s, i);
        look_at_begins(set, s, i, chain);
    }
}

/* ---- or only at what skimming tells ---- */

enum {
    TAIL = 32, /* what begins so long before a text's end is met by what stands behind it */
    URL_LOOK = 260,
};

struct places {
    const struct detector_set *set;
    struct detect_scan *s;
    size_t signs; /* from here on none was looked at */
};

/* A URL without an "@" has no password, unless it is not all there. */
static bool is_dull(const struct detect_scan *s, size_t i)
{
    size_t left = s->text.n - i;
    return s->text.p[i] == ':' && left > URL_LOOK && !memchr(s->text.p + i, '@', URL_LOOK);
}

static bool look_at_place(void *arg, size_t at, bool value, bool begins)
{
    struct places *l = arg;
    struct detect_scan *s = l->s;
    size_t first = at > DETECT_SIGN_BEFORE ? at - DETECT_SIGN_BEFORE : 0;
    for (size_t i = first > l->signs ? first : l->signs; value && i < at; l->signs = ++i)
        if (is_sign(s, i))
            detect_named_at(s, i);
    if (begins) {
        look_at_number(s, at);
        if (at + 2 < s->text.n && !is_dull(s, at))
            look_at_begins(l->set, s, at,
                           l->set->hot[three((const unsigned char *)s->text.p + at)]);
    }
    return !s->stops;
}

/* From there on each byte is looked at: a token that is not all there is no run yet, a name has no
 * value. A value is to be met on the same side as its sign. */
static size_t tail_of(const struct detect_scan *s)
{
    size_t i = s->text.n;
    if (s->whole)
        return i;
    i = i - s->from > TAIL ? i - TAIL : s->from;
    for (size_t n = 0;
         i > s->from && n <= DETECT_SIGN_BEFORE && detect_named_between(s->text.p[i - 1]); n++)
        i--;
    return i;
}

static void look_through(const struct detector_set *set, struct detect_scan *s)
{
    size_t tail = s->from;
    if (s->from > s->text.n)
        return;
    if (set->skims) {
        struct places l = {.set = set, .s = s, .signs = s->from};
        tail = tail_of(s);
        detect_skim(&set->skim, s->text, s->from, tail, look_at_place, &l);
    }
    look_each(set, s, tail, s->text.n);
}

/* The last bytes of the text may be the beginning of a prefix. */
static void look_tail(const struct detector_set *set, struct detect_scan *s)
{
    size_t i = s->text.n > s->from + DETECT_PREFIX_MAX ? s->text.n - DETECT_PREFIX_MAX : s->from;
    for (; i < s->text.n; i++) {
        char c = s->text.p[i];
        size_t left = s->text.n - i;
        if (c != '-' && c != ':' &&
            (!detect_is(c, CLASS_ALNUM) || detect_is(detect_before(s, i), CLASS_WORD)))
            continue;
        for (unsigned k = set->begins[(unsigned char)c]; k; k = set->also[k - 1]) {
            const char *prefix = detect_token_prefix(k - 1);
            size_t n = 0;
            while (n < left && prefix[n] && prefix[n] == s->text.p[i + n])
                n++;
            if (n == left && prefix[n]) {
                detect_open(s, i);
                return;
            }
        }
    }
}

/* What stands in a key or a web token is of it, however much of it is there yet; and a value that
 * is known by its own shape needs no name before it. */
static bool is_inside(const struct detect_scan *s, const struct detect_match *m)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct detect_match *k = &s->match[i];
        if (k != m && (k->what == DETECT_PRIVATE_KEY || k->what == DETECT_JWT) && k->at <= m->at &&
            m->at < k->at + k->n && k->n > m->n)
            return true;
        if (m->what == DETECT_NAMED && k->what < DETECT_NAMED && k->at < m->at + m->n &&
            m->at < k->at + k->n)
            return true;
    }
    return false;
}

/* Those that are not decided, or of which a part is not, are found again by the next scan. */
static void settle(struct detect_scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct detect_match *m = &s->match[i];
        if (m->root < s->open && m->at + m->n > s->open) {
            s->open = m->root;
            i = (size_t)-1; /* those before it may reach over this end */
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->match[i].at + s->match[i].n <= s->open && !is_inside(s, &s->match[i]))
            s->match[kept++] = s->match[i];
    s->n = kept;
}

void detector_scan(const struct detector_set *set, struct detect_scan *s)
{
    s->what = set->what;
    s->forms = set->forms;
    s->open = s->text.n;
    s->n = 0;
    s->stops = false;
    if (set->looks)
        look_through(set, s);
    if (s->stops)
        s->text.n = s->stop;
    else if (!s->whole) {
        look_tail(set, s);
        if (set->what & NUMBERS)
            detect_numbers_tail(s);
        if (set->what & DETECT_BIT(DETECT_NAMED))
            detect_named_tail(s);
    }
    s->whole |= s->stops; /* what comes next is known not to be theirs */
    if (set->what & DETECT_BIT(DETECT_EMAIL))
        detect_emails(s);
    if (set->what & DETECT_BIT(DETECT_ENTROPY))
        detect_entropies(s);
    if (s->open < s->from)
        s->open = s->from;
    settle(s);
}
