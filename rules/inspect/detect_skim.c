/* Skims a text for the blocks of 64 bytes in which a detector may have something to say, so that
 * the rest is not looked at. Classes of bytes are words of 64 bits, one for each window of 64
 * bytes, and what is looked for is arithmetic on them. A window begins STRIDE after the one before:
 * whatever is at most 16 bytes long lies whole in one. What is flagged is looked at as before: a
 * block too many costs time, one too few would be a secret that leaves. What the rules rest on,
 * where a run is of CLASS_DOTTED, CLASS_ENTROPY and "~":
 *
 * - A token, a web token and a name that a secret stands behind begin with three bytes of the
 *   filter, behind what is no word, and are a run of at least RUN bytes from there on.
 * - A value behind a name is a run of at least SHORT_RUN, with a digit beside what is none; the
 *   name's sign stands less than SIGN before the run.
 * - A card has CARD digits, or four digits, another byte and four digits, and begins less than
 *   BEFORE before these end.
 * - An IBAN with blanks has two capitals, a blank at most, and two digits; one without is a run
 *   with a digit beside what is none.
 * - A URL has "://", a key in PEM "-----BEGIN ".
 * - What the text's end leaves open begins at most TAIL before the run that stands there. */
#include "detect_lanes.h"
#include "detector_internal.h"

#include <string.h>

#if defined(__x86_64__)

enum {
    RUN = 14,
    SHORT_RUN = 10,
    CARD = 13,
    BEFORE = 48,
    SIGN = 24,
    TAIL = 96,
    TAIL_RUN = 300,
    URL_LOOK = 257,
    WINDOW = 64,
    STRIDE = 48,
    BEHIND = 2 /* bytes behind a window that are looked at, too */
};

/* Bits of a class of bytes in a window, the first lowest. */
struct words {
    uint64_t run, digit, upper, colon, slash, dash; /* upper: capitals among others */
};

struct skim {
    uint64_t cards, ibans, digits; /* all bits: they are looked for */
    const struct detect_filter *filter;
    struct slice text;
    uint64_t *blocks;
    size_t valued; /* where the last run with a digit ended that was flagged */
};

/* A bit for each product of lower and upper halves of bytes: together they are what runs are made
 * of, and the third are digits. To the top of a byte it is so far from that bit, and from the one
 * that only capitals, some signs and control characters have not. */
enum { DIGIT_UP = 5, SMALL_UP = 2 };
static const unsigned char low[16] = {0x54, 0x7c, 0x7c, 0x7c, 0x7c, 0x7c, 0x7c, 0x7c,
                                      0x7c, 0x7c, 0x78, 0x29, 0x28, 0x2a, 0x69, 0xa9},
                           high[16] = {0, 0, 0x03, 0x06, 0x08, 0x90, 0x20, 0x40};

__attribute__((target("avx2"))) static inline uint64_t bits(__m256i first, __m256i second)
{
    return (uint32_t)_mm256_movemask_epi8(first) | (uint64_t)(uint32_t)_mm256_movemask_epi8(second)
                                                       << 32;
}

__attribute__((target("avx2"))) static inline __m256i classes(__m256i v)
{
    __m256i half = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(0x0f));
    return _mm256_and_si256(_mm256_shuffle_epi8(detect_table(low), v), /* 0 for what is not ASCII */
                            _mm256_shuffle_epi8(detect_table(high), half));
}

__attribute__((target("avx2"), always_inline)) static inline struct words read_window(const char *p)
{
    const __m256i zero = _mm256_setzero_si256(), colon = _mm256_set1_epi8(':'),
                  slash = _mm256_set1_epi8('/'), dash = _mm256_set1_epi8('-');
    __m256i v = detect_bytes(p), w = detect_bytes(p + 32), a = classes(v), b = classes(w);
    return (struct words){
        .run = ~bits(_mm256_cmpeq_epi8(a, zero), _mm256_cmpeq_epi8(b, zero)),
        .digit = bits(_mm256_slli_epi16(a, DIGIT_UP), _mm256_slli_epi16(b, DIGIT_UP)),
        .upper = ~bits(_mm256_slli_epi16(v, SMALL_UP), _mm256_slli_epi16(w, SMALL_UP)),
        .colon = bits(_mm256_cmpeq_epi8(v, colon), _mm256_cmpeq_epi8(w, colon)),
        .slash = bits(_mm256_cmpeq_epi8(v, slash), _mm256_cmpeq_epi8(w, slash)),
        .dash = bits(_mm256_cmpeq_epi8(v, dash), _mm256_cmpeq_epi8(w, dash)),
    };
}

/* Where three bytes of the filter stand, behind what is no word. */
__attribute__((target("avx2"))) static uint64_t begins(const struct detect_filter *f, const char *p)
{
    const __m256i zero = _mm256_setzero_si256(), low_half = detect_table(detect_word_low),
                  high_half = detect_table(detect_word_high);
    const unsigned char *u = (const unsigned char *)p;
    uint64_t none =
        bits(_mm256_cmpeq_epi8(detect_beginnings(f->low, f->high, u), zero),
             _mm256_cmpeq_epi8(detect_beginnings(f->low, f->high, u + WINDOW / 2), zero));
    __m256i v = detect_halves(low_half, high_half, detect_bytes(p)),
            w = detect_halves(low_half, high_half, detect_bytes(p + WINDOW / 2));
    uint64_t word = ~bits(_mm256_cmpeq_epi8(v, zero), _mm256_cmpeq_epi8(w, zero));
    return ~none & ~(word << 1);
}

/* The same two of a whole window at once. Classes of what is ASCII, a byte looked up whole. */
enum {
    IS_RUN = 1,
    IS_DIGIT = 2,
    IS_UPPER = 4,
    IS_WORD = 8,
    IS_COLON = 16,
    IS_SLASH = 32,
    IS_DASH = 64
};
static const unsigned char wide_classes[128] = {
    ['0' ... '9'] = IS_RUN | IS_WORD | IS_DIGIT,
    ['A' ... 'Z'] = IS_RUN | IS_WORD | IS_UPPER,
    ['a' ... 'z'] = IS_RUN | IS_WORD,
    ['_'] = IS_RUN | IS_WORD,
    ['.'] = IS_RUN,
    ['+'] = IS_RUN,
    ['='] = IS_RUN,
    ['~'] = IS_RUN,
    ['-'] = IS_RUN | IS_DASH,
    ['/'] = IS_RUN | IS_SLASH,
    [':'] = IS_COLON,
};

#define WIDE __attribute__((target("avx512bw,avx512vbmi,bmi2")))

/* What is not ASCII is looked up as the byte without its highest bit. */
WIDE static inline __m512i look_up(const unsigned char table[2 * WINDOW], const char *p)
{
    const void *first = table, *second = table + WINDOW, *from = p;
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(first), _mm512_loadu_si512(from),
                                    _mm512_loadu_si512(second));
}

WIDE static inline struct words read_window_wide(const char *p)
{
    const void *from = p;
    __mmask64 ascii = ~_mm512_movepi8_mask(_mm512_loadu_si512(from));
    __m512i is = look_up(wide_classes, p);
    return (struct words){
        .run = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(IS_RUN)),
        .digit = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(IS_DIGIT)),
        .upper = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(IS_UPPER)),
        .colon = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(IS_COLON)),
        .slash = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(IS_SLASH)),
        .dash = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(IS_DASH)),
    };
}

WIDE static inline uint64_t begins_wide(const struct detect_filter *f, const char *p)
{
    const void *from = p;
    __mmask64 ascii = ~_mm512_movepi8_mask(_mm512_loadu_si512(from));
    __m512i is = _mm512_and_si512(look_up(f->byte[0], p), look_up(f->byte[1], p + 1));
    uint64_t some = _mm512_test_epi8_mask(is, look_up(f->byte[2], p + 2));
    uint64_t word =
        ascii & _mm512_test_epi8_mask(look_up(wide_classes, p), _mm512_set1_epi8(IS_WORD));
    return some & ~(word << 1);
}

static void flag(const struct skim *k, size_t from, size_t to)
{
    for (size_t b = from / DETECT_BLOCK; b <= to / DETECT_BLOCK; b++)
        k->blocks[b / 64] |= UINT64_C(1) << (b % 64);
}

static size_t first_of(size_t at, uint64_t found)
{
    return at + (size_t)__builtin_ctzll(found);
}

static size_t last_of(size_t at, uint64_t found)
{
    return at + 63 - (size_t)__builtin_clzll(found);
}

/* From a little before the first of these bits to the last. */
static void flag_bits(const struct skim *k, size_t at, uint64_t found)
{
    size_t first = first_of(at, found);
    flag(k, first > BEFORE ? first - BEFORE : 0, last_of(at, found));
}

static bool is_run(char c)
{
    return detect_is(c, CLASS_DOTTED | CLASS_ENTROPY) || c == '~';
}

/* From the sign before the run that the first of these bits stands in. */
static void flag_values(struct skim *k, size_t at, uint64_t found)
{
    size_t first = first_of(at, found);
    while (first > k->valued && is_run(k->text.p[first - 1]))
        first--;
    k->valued = last_of(at, found);
    flag(k, first > SIGN ? first - SIGN : 0, k->valued);
}

static char byte(const struct skim *k, size_t i)
{
    return i < k->text.n ? k->text.p[i] : 0;
}

/* The end of "://", of a URL that has an "@" or is not all there. */
static void url_at(const struct skim *k, size_t i)
{
    size_t left = k->text.n - i - 1, look = left < URL_LOOK ? left : URL_LOOK;
    if (left < URL_LOOK || memchr(k->text.p + i + 1, '@', look))
        flag(k, i - 2, i);
}

/* The last of five dashes. */
static void dashes_at(const struct skim *k, size_t i)
{
    static const char begin[] = "BEGIN ";
    size_t n = sizeof begin - 1;
    if (k->text.n - i > n && memcmp(k->text.p + i + 1, begin, n) == 0)
        flag(k, i - 4, i);
}

/* Two capitals stand before this digit, with a blank between at most, and another behind it. */
static bool iban_may(const struct skim *k, size_t i)
{
    char gap = byte(k, i + 1);
    size_t letters = i;
    if (i > 0 && (k->text.p[i - 1] == ' ' || k->text.p[i - 1] == '-'))
        letters--;
    if (letters < 2 || !detect_is(k->text.p[letters - 1], CLASS_UPPER) ||
        !detect_is(k->text.p[letters - 2], CLASS_UPPER))
        return false;
    return detect_is(gap, CLASS_DIGIT) || gap == ' ' || gap == '-' || gap == '.';
}

/* Bits stand where what is looked for ends, of tokens where it begins. */
struct found {
    uint64_t near, values, tokens, urls, dashes, ibans;
};

__attribute__((noinline)) static void flag_found(struct skim *k, size_t at, struct found f)
{
    if (f.near)
        flag_bits(k, at, f.near);
    if (f.values)
        flag_values(k, at, f.values);
    if (f.tokens)
        flag(k, first_of(at, f.tokens), last_of(at, f.tokens));
    for (; f.urls; f.urls &= f.urls - 1)
        url_at(k, first_of(at, f.urls));
    for (; f.dashes; f.dashes &= f.dashes - 1)
        dashes_at(k, first_of(at, f.dashes));
    for (; f.ibans; f.ibans &= f.ibans - 1) {
        size_t i = first_of(at, f.ibans);
        if (iban_may(k, i))
            flag(k, i, i);
    }
}

/* `run8`: where eight of a run end. `change`: a digit beside what is none, in a run. */
static inline uint64_t values_with(uint64_t run8, uint64_t change)
{
    uint64_t c2 = change | change << 1, c4 = c2 | c2 << 2, c8 = c4 | c4 << 4;
    return run8 & run8 << (SHORT_RUN - 8) & (c8 | c8 << (SHORT_RUN - 9));
}

typedef uint64_t (*begins_fn)(const struct detect_filter *f, const char *p);

__attribute__((always_inline)) static inline void
skim_window(struct skim *k, size_t at, const char *p, struct words w, begins_fn begin)
{
    uint64_t run2 = w.run & w.run << 1, run4 = run2 & run2 << 2, run8 = run4 & run4 << 4,
             run14 = run8 & run8 << (RUN - 8);
    uint64_t digit1 = w.digit << 1, digit2 = w.digit & digit1, digit4 = digit2 & digit2 << 2,
             digit8 = digit4 & digit4 << 4;
    uint64_t card = (digit4 & digit4 << 5 & ~(w.digit << 4)) | (digit8 & digit8 << (CARD - 8));
    uint64_t change = (w.digit ^ digit1) & run2, dash2 = w.dash & w.dash << 1;
    struct found f = {
        .near = (card & k->cards) | (w.digit & k->digits),
        .values = change ? values_with(run8, change) : 0,
        .tokens = run14 ? run14 >> (RUN - 1) & begin(k->filter, p) : 0,
        .urls = w.slash & w.slash << 1 & w.colon << 2,
        .dashes = dash2 & dash2 << 2 & w.dash << 4 & ~(w.dash >> 1),
        .ibans = w.digit & ~digit1 & (w.upper << 1 | w.upper << 2) & k->ibans,
    };
    if (f.near | f.values | f.tokens | f.urls | f.dashes | f.ibans)
        flag_found(k, at, f);
}

/* What is decided only by more text than there is. */
static void flag_tail(const struct skim *k)
{
    size_t i = k->text.n;
    while (i > 0 && k->text.n - i < TAIL_RUN && is_run(k->text.p[i - 1]))
        i--;
    flag(k, i > TAIL ? i - TAIL : 0, k->text.n - 1);
}

/* The text from `at` on for a window: itself, or the rest of it in `rest`. */
static inline const char *window_at(const struct skim *k, size_t at, char rest[WINDOW + BEHIND])
{
    size_t left = k->text.n - at;
    if (left >= WINDOW + BEHIND)
        return k->text.p + at;
    memset(rest, 0, WINDOW + BEHIND);
    return memcpy(rest, k->text.p + at, left);
}

__attribute__((target("avx2"))) static void skim_all(struct skim *k)
{
    char rest[WINDOW + BEHIND];
    for (size_t at = 0; at < k->text.n; at += STRIDE) {
        const char *p = window_at(k, at, rest);
        skim_window(k, at, p, read_window(p), begins);
    }
}

WIDE static void skim_all_wide(struct skim *k)
{
    char rest[WINDOW + BEHIND];
    for (size_t at = 0; at < k->text.n; at += STRIDE) {
        const char *p = window_at(k, at, rest);
        skim_window(k, at, p, read_window_wide(p), begins_wide);
    }
}

bool detect_skim_wide_can(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("bmi2");
}

void detect_skim(const struct detect_skim *what, struct slice text, bool whole,
                 uint64_t blocks[DETECT_BLOCKS / 64])
{
    struct skim k = {.cards = what->cards ? UINT64_MAX : 0,
                     .ibans = what->ibans ? UINT64_MAX : 0,
                     .digits = what->digits ? UINT64_MAX : 0,
                     .filter = what->filter,
                     .text = text,
                     .blocks = blocks};
    memset(blocks, 0, (text.n / DETECT_BLOCK / 64 + 1) * sizeof *blocks);
    if (what->wide)
        skim_all_wide(&k);
    else
        skim_all(&k);
    if (!whole && text.n > 0)
        flag_tail(&k);
}

#else

bool detect_skim_wide_can(void)
{
    return false;
}

void detect_skim(const struct detect_skim *what UNUSED, struct slice text, bool whole UNUSED,
                 uint64_t blocks[DETECT_BLOCKS / 64])
{
    memset(blocks, 0xff, (text.n / DETECT_BLOCK / 64 + 1) * sizeof *blocks);
}

#endif
