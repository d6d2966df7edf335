/* Detectors of numbers: forms of cards and of national identifiers as templates, and IBANs; what
 * fits is held against its check digits (detect_check.c). */
#include "detector_internal.h"

#include <string.h>

/* "#": a digit; "@": a capital letter; all else stands for itself. */
struct form {
    enum detector what;
    unsigned char lead; /* digits that it begins with */
    const char *text;
};

static const struct form forms[] = {
    {DETECT_CARD, 16, "################"},
    {DETECT_CARD, 4, "#### #### #### ####"},
    {DETECT_CARD, 4, "####-####-####-####"},
    {DETECT_CARD, 15, "###############"}, /* American Express */
    {DETECT_CARD, 4, "#### ###### #####"},
    {DETECT_CARD, 4, "####-######-#####"},
    {DETECT_CARD, 14, "##############"}, /* Diners Club */
    {DETECT_CARD, 4, "#### ###### ####"},
    {DETECT_CARD, 4, "####-######-####"},
    {DETECT_CARD, 19, "###################"},
    {DETECT_CARD, 4, "#### #### #### #### ###"},
    {DETECT_ID_BE, 2, "##.##.##-###.##"},
    {DETECT_ID_BE, 2, "##.##.##-### ##"},
    {DETECT_ID_BE, 2, "## ## ## ### ##"},
    {DETECT_ID_BE, 11, "###########"},
    {DETECT_ID_BR, 3, "###.###.###-##"},
    {DETECT_ID_BR, 11, "###########"},
    {DETECT_ID_CA, 3, "###-###-###"},
    {DETECT_ID_CA, 3, "### ### ###"},
    {DETECT_ID_CH, 0, "756.####.####.##"},
    {DETECT_ID_CH, 0, "756##########"},
    {DETECT_ID_DE, 11, "###########"},
    {DETECT_ID_DE, 2, "## ### ### ###"},
    {DETECT_ID_ES, 8, "########@"},
    {DETECT_ID_ES, 8, "########-@"},
    {DETECT_ID_ES, 0, "@#######@"},
    {DETECT_ID_ES, 0, "@-#######-@"},
    {DETECT_ID_FR, 15, "###############"},
    {DETECT_ID_FR, 6, "######@########"}, /* Corsica: 2A, 2B */
    {DETECT_ID_FR, 1, "# ## ## ## ### ### ##"},
    {DETECT_ID_GB, 0, "@@######@"},
    {DETECT_ID_GB, 0, "@@ ## ## ## @"},
    {DETECT_ID_IN, 4, "#### #### ####"},
    {DETECT_ID_IN, 4, "####-####-####"},
    {DETECT_ID_IT, 0, "@@@@@@##@##@###@"},
    {DETECT_ID_PL, 11, "###########"},
    {DETECT_ID_SE, 6, "######-####"},
    {DETECT_ID_SE, 8, "########-####"},
    {DETECT_ID_SE, 6, "######+####"}, /* who is a hundred */
    {DETECT_ID_SE, 8, "########+####"},
    {DETECT_ID_SE, 10, "##########"},
    {DETECT_ID_SE, 12, "############"},
    {DETECT_ID_US, 3, "###-##-####"},
    {DETECT_ID_US, 3, "### ## ####"},
};

_Static_assert(ARRAY_LEN(forms) <= 64, "a bit each");

enum { LETTERS_BEFORE = 7, CHARS_MAX = 34 };

/* A longer number goes on behind a sign: "1.2", "3-4". */
static bool joins(char c)
{
    return c == '.' || c == '-' || c == ',' || c == '_';
}

static bool stands_alone_before(const struct detect_scan *s, size_t i)
{
    char c = detect_before(s, i);
    if (detect_is(c, CLASS_WORD))
        return false;
    return !joins(c) || i < 2 || !detect_is(s->text.p[i - 2], CLASS_DIGIT);
}

static enum detect_answer stands_alone_behind(const struct detect_scan *s, size_t end)
{
    if (end >= s->text.n)
        return s->whole ? DETECT_YES : DETECT_MORE;
    if (detect_is(s->text.p[end], CLASS_WORD))
        return DETECT_NO;
    if (!joins(s->text.p[end]))
        return DETECT_YES;
    if (end + 1 >= s->text.n)
        return s->whole ? DETECT_YES : DETECT_MORE;
    return detect_is(s->text.p[end + 1], CLASS_DIGIT) ? DETECT_NO : DETECT_YES;
}

static enum detect_answer fits(const struct detect_scan *s, size_t i, const struct form *f,
                               char chars[CHARS_MAX], size_t *n, size_t *end)
{
    size_t k = i;
    *n = 0;
    for (const char *t = f->text; *t; t++, k++) {
        if (k >= s->text.n)
            return s->whole ? DETECT_NO : DETECT_MORE;
        char c = s->text.p[k];
        if (*t == '#'   ? !detect_is(c, CLASS_DIGIT)
            : *t == '@' ? !detect_is(c, CLASS_UPPER)
                        : c != *t)
            return DETECT_NO;
        if (detect_is(c, CLASS_ALNUM))
            chars[(*n)++] = c;
    }
    *end = k;
    return stands_alone_behind(s, k);
}

static void form_at(struct detect_scan *s, size_t i, const struct form *f)
{
    char chars[CHARS_MAX];
    size_t n, end;
    enum detect_answer a = fits(s, i, f, chars, &n, &end);
    if (a == DETECT_MORE)
        detect_open(s, i);
    if (a != DETECT_YES)
        return;
    if (f->what == DETECT_CARD ? detect_card_ok(chars, n) : detect_id_ok(f->what, chars, n))
        detect_found(s, f->what, i, end);
}

static bool is_gap(char c)
{
    return c == ' ' || c == '-' || c == '.';
}

/* Two letters, two digits, and as many more as the country has, in one piece or in groups. */
static void iban_at(struct detect_scan *s, size_t i)
{
    char chars[CHARS_MAX];
    size_t n = 0, k = i, want = CHARS_MAX;
    for (; n < want; k++) {
        if (k >= s->text.n)
            break;
        char c = s->text.p[k];
        if (n >= 2 && is_gap(c)) {
            if (++k >= s->text.n)
                break;
            c = s->text.p[k];
        }
        bool ok = n < 2   ? detect_is(c, CLASS_UPPER)
                  : n < 4 ? detect_is(c, CLASS_DIGIT)
                          : detect_is(c, CLASS_UPDIGIT);
        if (!ok)
            return;
        chars[n++] = c;
        if (n == 2 && (want = detect_iban_length(chars)) == 0)
            return;
    }
    enum detect_answer a =
        n < want ? (s->whole ? DETECT_NO : DETECT_MORE) : stands_alone_behind(s, k);
    if (a == DETECT_MORE)
        detect_open(s, i);
    else if (a == DETECT_YES && detect_iban_ok(chars, n))
        detect_found(s, DETECT_IBAN, i, k);
}

/* The beginning of the word, if only capitals stand before the digit, or "X-" of a Spanish number.
 */
static size_t letters_before(const struct detect_scan *s, size_t i)
{
    size_t begin = i;
    while (begin > s->from && i - begin < LETTERS_BEFORE &&
           detect_is(s->text.p[begin - 1], CLASS_UPPER))
        begin--;
    return begin;
}

static void forms_at(struct detect_scan *s, size_t i)
{
    if (!stands_alone_before(s, i))
        return;
    char kind = detect_is(s->text.p[i], CLASS_DIGIT) ? '#' : '@';
    size_t end = detect_run(s, i, CLASS_DIGIT), digits = end - i;
    size_t lead = digits < DETECT_LEADS ? digits : DETECT_LEADS - 1;
    uint64_t may = s->forms[lead];
    if (detect_cut(s, end)) /* more digits may come */
        while (++lead < DETECT_LEADS)
            may |= s->forms[lead];
    for (; may; may &= may - 1) {
        const struct form *f = &forms[__builtin_ctzll(may)];
        char sign = f->lead == digits ? f->text[digits] : 0; /* which ends these digits */
        bool other = sign && sign != '@' && end < s->text.n && s->text.p[end] != sign;
        if (!other && (f->text[0] == kind || f->text[0] == s->text.p[i]))
            form_at(s, i, f);
    }
}

void detect_numbers_forms(uint32_t what, uint64_t by_digits[DETECT_LEADS])
{
    for (size_t k = 0; k < ARRAY_LEN(forms); k++)
        for (size_t lead = 0; lead < DETECT_LEADS && (what & DETECT_BIT(forms[k].what)); lead++)
            if (forms[k].lead == lead || forms[k].text[0] == '7')
                by_digits[lead] |= UINT64_C(1) << k;
}

void detect_numbers_at(struct detect_scan *s, size_t i)
{
    size_t begin = letters_before(s, i);
    forms_at(s, begin);
    if (begin < i) {
        if ((s->what & DETECT_BIT(DETECT_IBAN)) && stands_alone_before(s, begin))
            iban_at(s, begin);
        return;
    }
    /* "AB 12 34 56 C", "X-1234567-L", "NO 02 1503 7577 003" */
    if (i >= s->from + 2 && (s->text.p[i - 1] == ' ' || s->text.p[i - 1] == '-') &&
        detect_is(s->text.p[i - 2], CLASS_UPPER)) {
        begin = letters_before(s, i - 1);
        forms_at(s, begin);
        if ((s->what & DETECT_BIT(DETECT_IBAN)) && i - begin == 3 && stands_alone_before(s, begin))
            iban_at(s, begin);
    }
}

void detect_numbers_tail(struct detect_scan *s)
{
    size_t i = s->text.n;
    if (i > s->from && (s->text.p[i - 1] == ' ' || s->text.p[i - 1] == '-'))
        i--;
    size_t begin = letters_before(s, i);
    if (begin < i)
        detect_open(s, begin);
}
