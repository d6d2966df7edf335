/* Skims a text for the blocks of 64 bytes in which a detector may have something to say, so that
 * the rest is not looked at. Classes of bytes are words of 64 bits, one for each window of 64
 * bytes, and what is looked for is arithmetic on them. A window begins STRIDE after the one before:
 * whatever is at most 16 bytes long lies whole in one. What is flagged is looked at as before: a
 * block too many costs time, one too few would be a secret that leaves. What the rules rest on:
 *
 * - A token, a web token, a secret behind a name and a card without blanks are, or end in, a run of
 *   at least RUN bytes of CLASS_DOTTED, CLASS_ENTROPY and "~"; what they are known by stands less
 *   than BEFORE before the run's byte number RUN.
 * - A value behind a name is such a run of at least SHORT_RUN, with a digit beside what is none.
 * - A card in groups has four digits, another byte and four digits.
 * - An IBAN with blanks has two capitals, a blank at most, and two digits.
 * - A key in PEM and a URL have two of "-" and "/" in a row.
 * - What the text's end leaves open begins at most TAIL before the run that stands there. */
#include "detector_internal.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { RUN = 14, SHORT_RUN = 10, BEFORE = 48, TAIL = 96, URL_LOOK = 257, WINDOW = 64, STRIDE = 48 };

/* Bits of a class of bytes in a window, the first lowest. */
struct words {
    uint64_t run, digit, upper, sign; /* sign: "-" and "/"; upper: capitals among others */
};

struct skim {
    uint64_t cards, ibans, digits; /* all bits: they are looked for */
    struct slice text;
    uint64_t *blocks;
};

/* A bit for each product of lower and upper halves of bytes: together they are what runs are made
 * of, and the third are digits. To the top of a byte it is so far from that bit, and from the one
 * that only capitals, some signs and control characters have not. */
enum { DIGIT_UP = 5, SMALL_UP = 2 };
static const unsigned char low[16] = {0x54, 0x7c, 0x7c, 0x7c, 0x7c, 0x7c, 0x7c, 0x7c,
                                      0x7c, 0x7c, 0x78, 0x29, 0x28, 0x2a, 0x69, 0xa9},
                           high[16] = {0, 0, 0x03, 0x06, 0x08, 0x90, 0x20, 0x40};

__attribute__((target("avx2"))) static inline __m256i table(const unsigned char *t)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)t));
}

__attribute__((target("avx2"))) static inline uint64_t bits(__m256i first, __m256i second)
{
    return (uint32_t)_mm256_movemask_epi8(first) | (uint64_t)(uint32_t)_mm256_movemask_epi8(second)
                                                       << 32;
}

__attribute__((target("avx2"))) static inline __m256i classes(__m256i v)
{
    __m256i half = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(0x0f));
    return _mm256_and_si256(_mm256_shuffle_epi8(table(low), v), /* 0 for what is not ASCII */
                            _mm256_shuffle_epi8(table(high), half));
}

__attribute__((target("avx2"), always_inline)) static inline struct words read_window(const char *p)
{
    const __m256i zero = _mm256_setzero_si256(), slash = _mm256_set1_epi8('/'),
                  two = _mm256_set1_epi8('/' - '-');
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p),
            w = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32)), a = classes(v),
            b = classes(w);
    return (struct words){
        .run = ~bits(_mm256_cmpeq_epi8(a, zero), _mm256_cmpeq_epi8(b, zero)),
        .digit = bits(_mm256_slli_epi16(a, DIGIT_UP), _mm256_slli_epi16(b, DIGIT_UP)),
        .upper = ~bits(_mm256_slli_epi16(v, SMALL_UP), _mm256_slli_epi16(w, SMALL_UP)),
        .sign = bits(_mm256_cmpeq_epi8(_mm256_or_si256(v, two), slash),
                     _mm256_cmpeq_epi8(_mm256_or_si256(w, two), slash)),
    };
}

static void flag(const struct skim *k, size_t from, size_t to)
{
    for (size_t b = from / DETECT_BLOCK; b <= to / DETECT_BLOCK; b++)
        k->blocks[b / 64] |= UINT64_C(1) << (b % 64);
}

/* From a little before the first of these bits to the last. */
static void flag_bits(const struct skim *k, size_t at, uint64_t found)
{
    size_t first = at + (size_t)__builtin_ctzll(found),
           last = at + 63 - (size_t)__builtin_clzll(found);
    flag(k, first > BEFORE ? first - BEFORE : 0, last);
}

static char byte(const struct skim *k, size_t i)
{
    return i < k->text.n ? k->text.p[i] : 0;
}

/* "://", of a URL that has an "@" or is not all there; "-----BEGIN ". */
static void sign_at(const struct skim *k, size_t i)
{
    static const char begin[] = "-----BEGIN ";
    size_t end = i, n = sizeof begin - 1;
    if (i >= 2 && k->text.p[i] == '/' && k->text.p[i - 1] == '/' && k->text.p[i - 2] == ':') {
        size_t left = k->text.n - i - 1, look = left < URL_LOOK ? left : URL_LOOK;
        if (left < URL_LOOK || memchr(k->text.p + i + 1, '@', look))
            flag(k, i - 2, i);
    }
    while (end - i < WINDOW && (byte(k, end) == '-' || byte(k, end) == '/'))
        end++; /* where more of them are, the next window sees them as well */
    if (end >= 5 && k->text.n - (end - 5) >= n && memcmp(k->text.p + end - 5, begin, n) == 0)
        flag(k, end - 5, end);
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

static void each_bit(const struct skim *k, size_t at, uint64_t signs, uint64_t ibans)
{
    for (; signs; signs &= signs - 1)
        sign_at(k, at + (size_t)__builtin_ctzll(signs));
    for (; ibans; ibans &= ibans - 1) {
        size_t i = at + (size_t)__builtin_ctzll(ibans);
        if (iban_may(k, i))
            flag(k, i, i);
    }
}

/* Bits stand where what is looked for ends. */
__attribute__((always_inline)) static inline void skim_window(const struct skim *k, size_t at,
                                                              struct words w)
{
    uint64_t run2 = w.run & w.run << 1, run4 = run2 & run2 << 2, run8 = run4 & run4 << 4;
    uint64_t found = run8 & run8 << (RUN - 8), digit1 = w.digit << 1;
    if (((w.digit ^ digit1) & run2) != 0)
        found |= run8 & run8 << (SHORT_RUN - 8);
    uint64_t digit2 = w.digit & digit1, digit4 = digit2 & digit2 << 2;
    found |= digit4 & digit4 << 5 & ~(w.digit << 4) & k->cards;
    found |= w.digit & k->digits;
    uint64_t ibans = w.digit & ~digit1 & (w.upper << 1 | w.upper << 2) & k->ibans;
    uint64_t pairs = w.sign & w.sign << 1, signs = pairs & ~(pairs << 1);
    if (found)
        flag_bits(k, at, found);
    if (signs | ibans)
        each_bit(k, at, signs, ibans);
}

/* What is decided only by more text than there is. */
static void flag_tail(const struct skim *k)
{
    size_t i = k->text.n;
    while (i > 0 && k->text.n - i < RUN &&
           (detect_is(k->text.p[i - 1], CLASS_DOTTED | CLASS_ENTROPY) || k->text.p[i - 1] == '~'))
        i--;
    flag(k, i > TAIL ? i - TAIL : 0, k->text.n - 1);
}

__attribute__((target("avx2"))) void detect_skim(const struct detect_skim *what, struct slice text,
                                                 bool whole, uint64_t blocks[DETECT_BLOCKS / 64])
{
    struct skim k = {.cards = what->cards ? UINT64_MAX : 0,
                     .ibans = what->ibans ? UINT64_MAX : 0,
                     .digits = what->digits ? UINT64_MAX : 0,
                     .text = text,
                     .blocks = blocks};
    memset(blocks, 0, (text.n / DETECT_BLOCK / 64 + 1) * sizeof *blocks);
    for (size_t at = 0; at < text.n; at += STRIDE) {
        const char *p = text.p + at;
        char rest[WINDOW];
        if (text.n - at < WINDOW) {
            memset(rest, 0, sizeof rest);
            p = memcpy(rest, p, text.n - at);
        }
        skim_window(&k, at, read_window(p));
    }
    if (!whole && text.n > 0)
        flag_tail(&k);
}

#else

void detect_skim(const struct detect_skim *what UNUSED, struct slice text, bool whole UNUSED,
                 uint64_t blocks[DETECT_BLOCKS / 64])
{
    memset(blocks, 0xff, (text.n / DETECT_BLOCK / 64 + 1) * sizeof *blocks);
}

#endif
