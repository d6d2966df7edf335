/* Detectors that look for a kind of text rather than a beginning: addresses of mail, and words that
 * are too random to be words. Holds the classes of bytes that all detectors ask for. */
#include "detector_internal.h"

#include <string.h>

#define UPPER                                                                            \
    (CLASS_ALNUM | CLASS_UPPER | CLASS_WORD | CLASS_NAME | CLASS_DOTTED | CLASS_BASE64 | \
     CLASS_UPDIGIT | CLASS_LOCAL | CLASS_ENTROPY | CLASS_PEM | CLASS_SLASHED)
#define LOWER ((UPPER) & ~(unsigned)(CLASS_UPPER | CLASS_UPDIGIT))

const uint16_t detect_classes[256] = {
    ['0' ... '9'] = (LOWER) | CLASS_DIGIT | CLASS_HEX | CLASS_UPDIGIT,
    ['A' ... 'Z'] = UPPER,
    ['a' ... 'f'] = (LOWER) | CLASS_HEX,
    ['g' ... 'z'] = LOWER,
    ['_'] = CLASS_WORD | CLASS_NAME | CLASS_DOTTED | CLASS_LOCAL | CLASS_ENTROPY,
    ['-'] = CLASS_NAME | CLASS_DOTTED | CLASS_LOCAL | CLASS_ENTROPY | CLASS_PEM,
    ['.'] = CLASS_DOTTED | CLASS_LOCAL,
    ['+'] = CLASS_BASE64 | CLASS_LOCAL | CLASS_ENTROPY | CLASS_PEM,
    ['/'] = CLASS_BASE64 | CLASS_ENTROPY | CLASS_PEM | CLASS_SLASHED,
    ['='] = CLASS_BASE64 | CLASS_ENTROPY | CLASS_PEM,
    ['%'] = CLASS_LOCAL,
    [' '] = CLASS_PEM,
    ['\t'] = CLASS_PEM,
    ['\r'] = CLASS_PEM,
    ['\n'] = CLASS_PEM,
    [':'] = CLASS_PEM, /* "Proc-Type: 4,ENCRYPTED" */
    [','] = CLASS_PEM,
    ['\\'] = CLASS_PEM, /* of "\n" in the source of a program */
};

/* ---- addresses of mail ---- */

enum { LOCAL_MAX = 64, DOMAIN_MAX = 253, LABEL_MAX = 63 };

/* The end of a domain name of two labels or more whose last one is letters: 0: it is none. */
static size_t domain_end(const struct detect_scan *s, size_t at, bool *cut)
{
    size_t i = at, good = 0, labels = 0;
    *cut = false;
    while (i - at < DOMAIN_MAX) {
        size_t start = i, letters = 0;
        while (i < s->text.n && i - start < LABEL_MAX &&
               (detect_is(s->text.p[i], CLASS_ALNUM) || s->text.p[i] == '-')) {
            letters +=
                detect_is(s->text.p[i], CLASS_ALNUM) && !detect_is(s->text.p[i], CLASS_DIGIT);
            i++;
        }
        if (detect_cut(s, i)) {
            *cut = true;
            return 0;
        }
        if (i == start || s->text.p[start] == '-' || s->text.p[i - 1] == '-')
            break;
        if (++labels >= 2 && letters == i - start && letters >= 2)
            good = i;
        if (i == s->text.n || s->text.p[i] != '.')
            break;
        i++;
        if (detect_cut(s, i)) {
            *cut = true;
            return 0;
        }
    }
    return good;
}

static void email_at(struct detect_scan *s, size_t at)
{
    size_t begin = at;
    bool cut;
    while (begin > s->from && at - begin < LOCAL_MAX &&
           detect_is(s->text.p[begin - 1], CLASS_LOCAL))
        begin--;
    if (detect_is(detect_before(s, begin), CLASS_LOCAL))
        return; /* longer than any is, or of what was decided */
    size_t word = begin;
    while (begin < at && s->text.p[begin] == '.')
        begin++;
    if (begin == at)
        return;
    size_t end = domain_end(s, at + 1, &cut);
    if (cut)
        detect_open(s, word);
    else if (end > 0)
        detect_found_behind(s, DETECT_EMAIL, word, begin, end); /* dots before it are of its word */
}

void detect_emails(struct detect_scan *s)
{
    size_t i = s->from;
    const char *p;
    while (i < s->text.n && (p = memchr(s->text.p + i, '@', s->text.n - i)) != NULL) {
        i = (size_t)(p - s->text.p);
        email_at(s, i++);
    }
    if (s->whole)
        return;
    for (i = s->text.n;
         i > s->from && s->text.n - i < LOCAL_MAX && detect_is(s->text.p[i - 1], CLASS_LOCAL);)
        i--;
    detect_open(s, i);
}

/* ---- entropy ---- */

enum { WORD_MIN = 20, HEX_MIN = 32, WORD_MAX = 256 };

/* n times the entropy of n bytes, in thousandths of a bit: n log2 n - the sum of c log2 c. */
static unsigned n_log_n(unsigned n)
{
    if (n < 2)
        return 0;
    unsigned whole = 31 - (unsigned)__builtin_clz(n), x = n << (16 - whole), part = 0;
    for (unsigned bit = 512; bit; bit >>= 1) { /* ten binary places of the logarithm */
        uint64_t square = ((uint64_t)x * x) >> 16;
        bool above = square >> 17;
        part += above ? bit : 0;
        x = (unsigned)(above ? square >> 1 : square);
    }
    return n * (whole * 1000 + part * 1000 / 1024);
}

unsigned detect_entropy(struct slice w)
{
    unsigned char count[256] = {0};
    unsigned sum = 0;
    for (size_t i = 0; i < w.n; i++)
        count[(unsigned char)w.p[i]] += count[(unsigned char)w.p[i]] < 255;
    for (unsigned i = 0; i < 256; i++)
        sum += n_log_n(count[i]);
    return (n_log_n((unsigned)w.n) - sum) / (unsigned)w.n;
}

/* Letters of both cases and digits, and as many different ones as chance gives. */
static bool is_random(struct slice w)
{
    unsigned upper = 0, digits = 0, hex = 0, alnum = 0;
    for (size_t i = 0; i < w.n; i++) {
        upper += detect_is(w.p[i], CLASS_UPPER);
        digits += detect_is(w.p[i], CLASS_DIGIT);
        hex += detect_is(w.p[i], CLASS_HEX);
        alnum += detect_is(w.p[i], CLASS_ALNUM);
    }
    if (hex == w.n)
        return w.n >= HEX_MIN && digits > 0 && digits < w.n && detect_entropy(w) >= 3000;
    return upper > 0 && digits > 0 && upper + digits < alnum && detect_entropy(w) >= 4200;
}

void detect_entropies(struct detect_scan *s)
{
    size_t i = s->from;
    while (i > 0 && i < s->text.n && detect_is(s->text.p[i - 1], CLASS_ENTROPY) &&
           detect_is(s->text.p[i], CLASS_ENTROPY))
        i++; /* of a word that was decided */
    while (i < s->text.n) {
        if (!detect_is(s->text.p[i], CLASS_ENTROPY)) {
            i++;
            continue;
        }
        size_t end = detect_run(s, i, CLASS_ENTROPY);
        struct slice w = {s->text.p + i, end - i};
        if (detect_cut(s, end) && w.n <= WORD_MAX) {
            detect_open(s, i);
            return;
        }
        if (w.n >= WORD_MIN && w.n <= WORD_MAX && is_random(w))
            detect_found(s, DETECT_ENTROPY, i, end);
        i = end;
    }
}
