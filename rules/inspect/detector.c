/* Looks through a text for the places where a detector may have something to say, and keeps what
 * the detectors find there. */
#include "detect_lanes.h"
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

/* ---- many bytes at once: what is marked is more than what matters, never less ---- */

#if defined(__x86_64__)
bool detect_marks_can(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

__attribute__((target("avx2"))) static inline __m256i digits(__m256i v)
{
    __m256i d = _mm256_sub_epi8(v, _mm256_set1_epi8('0'));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(d, _mm256_set1_epi8(9)), d);
}

__attribute__((target("avx2"))) void detect_marks(const struct detect_filter *f,
                                                  const unsigned char *p, size_t n, uint32_t *marks)
{
    const __m256i zero = _mm256_setzero_si256(), dash = _mm256_set1_epi8('-'),
                  colon = _mm256_set1_epi8(':'), equals = _mm256_set1_epi8('='),
                  by_name = _mm256_set1_epi8(f->names ? -1 : 0),
                  numbers = _mm256_set1_epi8(f->numbers ? -1 : 0),
                  wl = detect_table(detect_word_low), wh = detect_table(detect_word_high);
    for (size_t i = 0; i < n; i++, p += DETECT_MARKED) {
        __m256i before = detect_bytes(p - 1), v = detect_bytes(p);
        __m256i none = _mm256_cmpeq_epi8(detect_beginnings(f->low, f->high, p), zero);
        __m256i sign = _mm256_or_si256(_mm256_cmpeq_epi8(v, dash), _mm256_cmpeq_epi8(v, colon));
        __m256i alone =
            _mm256_or_si256(sign, _mm256_cmpeq_epi8(detect_halves(wl, wh, before), zero));
        __m256i name = _mm256_or_si256(_mm256_cmpeq_epi8(v, colon), _mm256_cmpeq_epi8(v, equals));
        __m256i number = _mm256_andnot_si256(digits(before), digits(v));
        __m256i all = _mm256_or_si256(
            _mm256_andnot_si256(none, alone),
            _mm256_or_si256(_mm256_and_si256(name, by_name), _mm256_and_si256(number, numbers)));
        marks[i] = (uint32_t)_mm256_movemask_epi8(all);
    }
}

#else

bool detect_marks_can(void)
{
    return false;
}

void detect_marks(const struct detect_filter *f UNUSED, const unsigned char *p UNUSED, size_t n,
                  uint32_t *marks)
{
    for (size_t i = 0; i < n; i++)
        marks[i] = UINT32_MAX;
}

#endif

void detect_filter_add(struct detect_filter *f, const char *prefix)
{
    unsigned char set = (unsigned char)(1u << (*prefix & 7));
    for (size_t i = 0; i < 3; i++) {
        f->low[i][prefix[i] & 15] |= set;
        f->high[i][(unsigned char)prefix[i] >> 4] |= set;
        f->byte[i][(unsigned char)prefix[i] & 127] |= set;
    }
}

/* ---- where they look ---- */

/* Of three bytes; places of a table that has the first of a chain of what may begin with them. */
enum { HOT_BITS = 13 };

struct detector_set {
    uint32_t what;
    bool looks;                                            /* for any beginning */
    unsigned char hot[1u << HOT_BITS], next[DETECT_TRIES]; /* numbers and one; 0: none */
    unsigned char first[256]; /* of the single bytes that matter: digits */
    bool marks;               /* many bytes at once */
    struct detect_filter filter;
    bool skims; /* and only at blocks that are worth it */
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
    if (what & DETECT_BIT(DETECT_NAMED))
        s->first['='] = s->first[':'] = 1;
    if (what & NUMBERS)
        for (char c = '0'; c <= '9'; c++)
            s->first[(unsigned char)c] = 1;
    s->filter.names = (what & DETECT_BIT(DETECT_NAMED)) != 0;
    s->filter.numbers = (what & NUMBERS) != 0;
    s->marks = s->skims = detect_marks_can();
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
    s->marks = s->skims = false;
}

void detector_set_free(struct detector_set *s)
{
    free(s);
}

static void look_at(const struct detector_set *set, struct detect_scan *s, size_t i, unsigned chain)
{
    if (detect_is(s->text.p[i], CLASS_DIGIT)) {
        if ((s->what & NUMBERS) && !detect_is(detect_before(s, i), CLASS_DIGIT))
            detect_numbers_at(s, i);
    }
    if ((s->text.p[i] == '=' || s->text.p[i] == ':') && (s->what & DETECT_BIT(DETECT_NAMED)))
        detect_named_at(s, i);
    for (; chain && !s->stops; chain = set->next[chain - 1])
        detect_token_try(s, i, chain - 1);
}

/* Each byte up to `end`, behind which two more are. */
static size_t look_each(const struct detector_set *set, struct detect_scan *s, size_t i, size_t end)
{
    const unsigned char *t = (const unsigned char *)s->text.p;
    for (; i < end && !s->stops; i++) {
        unsigned chain = set->hot[three(t + i)];
        if (chain | set->first[t[i]])
            look_at(set, s, i, chain);
    }
    return i;
}

/* Those that are marked, up to `end`, behind which two more are; returns where there is no room for
 * marks any more. */
static size_t look_marked(const struct detector_set *set, struct detect_scan *s, size_t i,
                          size_t end)
{
    enum { AT_ONCE = 32 };
    const unsigned char *t = (const unsigned char *)s->text.p;
    uint32_t marks[AT_ONCE];
    while (!s->stops && i + DETECT_MARKED <= end) {
        size_t n = (end - i) / DETECT_MARKED;
        n = n < AT_ONCE ? n : AT_ONCE;
        detect_marks(&set->filter, t + i, n, marks);
        for (size_t k = 0; k < n && !s->stops; k++, i += DETECT_MARKED)
            for (uint32_t m = marks[k]; m && !s->stops; m &= m - 1) {
                size_t at = i + (size_t)__builtin_ctz(m);
                unsigned chain = set->hot[three(t + at)];
                if (chain | set->first[t[at]])
                    look_at(set, s, at, chain);
            }
    }
    return i;
}

static void look_from_to(const struct detector_set *set, struct detect_scan *s, size_t i, size_t to)
{
    const unsigned char *t = (const unsigned char *)s->text.p;
    size_t last = s->text.n > DETECT_MARKS_BEHIND ? s->text.n - DETECT_MARKS_BEHIND : 0;
    size_t end = to < last ? to : last;
    if (set->marks && i < end) {
        if (i == 0)
            i = look_each(set, s, 0, 1); /* nothing stands before it */
        i = look_marked(set, s, i, end);
    }
    i = look_each(set, s, i, end);
    for (; i < to && !s->stops; i++)
        if (set->first[t[i]])
            look_at(set, s, i, 0);
}

/* Blocks that are flagged, those beside one another together. */
static void look_skimmed(const struct detector_set *set, struct detect_scan *s)
{
    uint64_t blocks[DETECT_BLOCKS / 64];
    size_t n = s->text.n - s->from, count = n / DETECT_BLOCK + 1;
    detect_skim(&set->skim, (struct slice){s->text.p + s->from, n}, s->whole, blocks);
    for (size_t w = 0; w <= (count - 1) / 64 && !s->stops; w++)
        for (uint64_t m = blocks[w]; m && !s->stops;) {
            size_t at = (size_t)__builtin_ctzll(m), run = 0;
            while (at + run < 64 && (m >> (at + run) & 1))
                m &= ~(UINT64_C(1) << (at + run++));
            size_t from = (w * 64 + at) * DETECT_BLOCK, to = from + run * DETECT_BLOCK;
            look_from_to(set, s, s->from + from, s->from + (to < n ? to : n));
        }
}

static void look_through(const struct detector_set *set, struct detect_scan *s)
{
    if (set->skims && s->from <= s->text.n &&
        s->text.n - s->from < (size_t)(DETECT_BLOCKS - 1) * DETECT_BLOCK)
        look_skimmed(set, s);
    else
        look_from_to(set, s, s->from, s->text.n);
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
