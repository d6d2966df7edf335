/* What kind each of 512 bytes is, a bit for each of them, for the detectors' files that look at
 * many at once. x86-64 only: with AVX2, and "wide" with what AVX-512 had from its third generation
 * on. */
#ifndef DURWARD_DETECT_LANES_H
#define DURWARD_DETECT_LANES_H

#include "detector_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    DETECT_LANES = 512,
    DETECT_LANES_BEHIND = 2, /* bytes behind these that are looked at, too */
    DETECT_WINDOW = 64,      /* of these bytes have a word of the bits */
    DETECT_WINDOWS = DETECT_LANES / DETECT_WINDOW
};

/* A bit for each byte, the first lowest. */
typedef uint64_t detect_bits __attribute__((vector_size(DETECT_LANES / 8)));

/* What a byte is, by three kinds of its own and two that say more about what is no word:
 * [0-9] WORD RUN DIGIT, [A-Z] WORD RUN UPPER, [a-z_] WORD RUN; "." and "-" RUN DIGIT, "/" RUN
 * UPPER,
 * "+" and "~" RUN; "=" RUN BETWEEN, ":" BETWEEN DIGIT; [ \t"'`\\>] BETWEEN. And what begins there,
 * by the filter. */
enum detect_kind {
    KIND_BEGIN = 1,
    KIND_WORD = 2,
    KIND_DIGIT = 4,
    KIND_UPPER = 8,
    KIND_RUN = 16,
    KIND_NAME = 32, /* the lowest of DETECT_NAMES */
    KIND_BETWEEN = 64
};

struct detect_lanes {
    detect_bits word, digit, upper, run, between, begin, name;
};

/* ---- 32 bytes at once ---- */

#define LANES_AVX2 __attribute__((target("avx2")))

/* By the lower and the upper half of a byte. Bits of the first: [0-9], [A-O], [P-Z], [a-o], [p-z],
 * "_", "." and "-", "/"; of the second: "=", "+", "~", ":", of [ "'], tab, "`", "\\". */
enum { HALVES = 16 };
static const unsigned char detect_words_low[HALVES] = {0x15, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f,
                                                       0x1f, 0x1f, 0x1f, 0x1f, 0x1e, 0x0a,
                                                       0x0a, 0x4a, 0x4a, 0xaa},
                           detect_words_high[HALVES] = {0, 0, 0xc0, 0x01, 0x02, 0x24, 0x08, 0x10},
                           detect_signs_low[HALVES] = {0x50, 0,    0x10, 0,    0,    0,
                                                       0,    0x10, 0,    0x20, 0x08, 0x02,
                                                       0x80, 0x01, 0x04, 0},
                           detect_signs_high[HALVES] = {0x20, 0, 0x12, 0x09, 0, 0x80, 0x40, 0x04};

LANES_AVX2 static inline __m256i detect_table(const unsigned char *t)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)t));
}

LANES_AVX2 static inline __m256i detect_bytes(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* For each byte what both of its halves have in common. */
LANES_AVX2 static inline __m256i detect_halves(const unsigned char *low, const unsigned char *high,
                                               __m256i v)
{
    const __m256i half = _mm256_set1_epi8(0x0f);
    __m256i l = _mm256_shuffle_epi8(detect_table(low), _mm256_and_si256(v, half));
    return _mm256_and_si256(
        l,
        _mm256_shuffle_epi8(detect_table(high), _mm256_and_si256(_mm256_srli_epi16(v, 4), half)));
}

/* Those bytes of which some of these bits are set. */
LANES_AVX2 static inline uint32_t detect_some(__m256i v, int bits)
{
    __m256i with = _mm256_and_si256(v, _mm256_set1_epi8((char)bits));
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(with, _mm256_setzero_si256()));
}

LANES_AVX2 static inline void detect_lanes_read(const struct detect_filter *f, const char *p,
                                                struct detect_lanes *ret)
{
    uint32_t word[DETECT_LANES / 32], digit[DETECT_LANES / 32], upper[DETECT_LANES / 32],
        run[DETECT_LANES / 32], between[DETECT_LANES / 32], begin[DETECT_LANES / 32],
        name[DETECT_LANES / 32];
    for (size_t i = 0; i < DETECT_LANES / 32; i++, p += 32) {
        __m256i v = detect_bytes(p), words = detect_halves(detect_words_low, detect_words_high, v),
                signs = detect_halves(detect_signs_low, detect_signs_high, v);
        __m256i may = _mm256_and_si256(
            _mm256_and_si256(detect_halves(f->low[0], f->high[0], v),
                             detect_halves(f->low[1], f->high[1], detect_bytes(p + 1))),
            detect_halves(f->low[2], f->high[2], detect_bytes(p + 2)));
        uint32_t greater =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8('>')));
        word[i] = detect_some(words, 0x3f);
        digit[i] = detect_some(words, 0x41) | detect_some(signs, 0x08);
        upper[i] = detect_some(words, 0x86);
        run[i] = detect_some(words, 0xff) | detect_some(signs, 0x07);
        between[i] = detect_some(signs, 0xf9) | greater;
        begin[i] = detect_some(may, DETECT_BEGINS);
        name[i] = detect_some(may, DETECT_NAMES);
    }
    memcpy(&ret->word, word, sizeof word);
    memcpy(&ret->digit, digit, sizeof digit);
    memcpy(&ret->upper, upper, sizeof upper);
    memcpy(&ret->run, run, sizeof run);
    memcpy(&ret->between, between, sizeof between);
    memcpy(&ret->begin, begin, sizeof begin);
    memcpy(&ret->name, name, sizeof name);
}

/* The same bits one window later: the last window of those before comes first. */
LANES_AVX2 static inline void detect_lanes_later(detect_bits *ret, const detect_bits *v,
                                                 const detect_bits *before)
{
    enum { FIRST = 3 }; /* halves of a window */
    const __m256i *at = (const __m256i *)v, *old = (const __m256i *)before;
    __m256i *to = (__m256i *)ret;
    __m256i a = _mm256_permute4x64_epi64(at[0], 0x93), b = _mm256_permute4x64_epi64(at[1], 0x93),
            c = _mm256_permute4x64_epi64(old[1], 0x93);
    to[0] = _mm256_blend_epi32(a, c, FIRST);
    to[1] = _mm256_blend_epi32(b, a, FIRST);
}

/* As one number of 512 bits; the carry is of the bits before, and for those behind. */
LANES_AVX2 static inline void detect_lanes_add(detect_bits *sum, const detect_bits *a,
                                               const detect_bits *b, unsigned *carry)
{
    unsigned char over = (unsigned char)*carry;
    for (size_t i = 0; i < DETECT_WINDOWS; i++) {
        unsigned long long one;
        over = _addcarry_u64(over, (*a)[i], (*b)[i], &one);
        (*sum)[i] = one;
    }
    *carry = over;
}

LANES_AVX2 static inline bool detect_lanes_any(const detect_bits *v)
{
    const __m256i *at = (const __m256i *)v;
    __m256i all = _mm256_or_si256(at[0], at[1]);
    return !_mm256_testz_si256(all, all);
}

/* ---- 64 bytes at once ---- */

#define LANES_WIDE \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi2")))

static inline bool detect_lanes_wide_can(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("gfni") &&
           __builtin_cpu_supports("bmi2");
}

/* Of ASCII, a byte looked up whole. */
static const unsigned char detect_kinds[128] = {
    ['0' ... '9'] = KIND_WORD | KIND_RUN | KIND_DIGIT,
    ['A' ... 'Z'] = KIND_WORD | KIND_RUN | KIND_UPPER,
    ['a' ... 'z'] = KIND_WORD | KIND_RUN,
    ['_'] = KIND_WORD | KIND_RUN,
    ['.'] = KIND_RUN | KIND_DIGIT,
    ['-'] = KIND_RUN | KIND_DIGIT,
    ['/'] = KIND_RUN | KIND_UPPER,
    ['+'] = KIND_RUN,
    ['~'] = KIND_RUN,
    ['='] = KIND_RUN | KIND_BETWEEN,
    [':'] = KIND_BETWEEN | KIND_DIGIT,
    [' '] = KIND_BETWEEN,
    ['\t'] = KIND_BETWEEN,
    ['"'] = KIND_BETWEEN,
    ['\''] = KIND_BETWEEN,
    ['`'] = KIND_BETWEEN,
    ['\\'] = KIND_BETWEEN,
    ['>'] = KIND_BETWEEN,
};

LANES_WIDE static inline __m512i detect_bytes_wide(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* Rows of words, a kind each, to a row for each kind. The eighth is not used. */
LANES_WIDE static inline void detect_turn(const __m512i r[DETECT_WINDOWS], struct detect_lanes *ret)
{
    __m512i half[2][4];
    for (size_t i = 0; i < 4; i++) {
        half[0][i] = _mm512_unpacklo_epi64(r[2 * i], r[2 * i + 1]);
        half[1][i] = _mm512_unpackhi_epi64(r[2 * i], r[2 * i + 1]);
    }
    __m512i quarter[2][4];
    for (size_t i = 0; i < 2; i++) {
        quarter[i][0] = _mm512_shuffle_i64x2(half[i][0], half[i][1], 0x44);
        quarter[i][1] = _mm512_shuffle_i64x2(half[i][2], half[i][3], 0x44);
        quarter[i][2] = _mm512_shuffle_i64x2(half[i][0], half[i][1], 0xee);
        quarter[i][3] = _mm512_shuffle_i64x2(half[i][2], half[i][3], 0xee);
    }
    ret->begin = (detect_bits)_mm512_shuffle_i64x2(quarter[0][0], quarter[0][1], 0x88);
    ret->word = (detect_bits)_mm512_shuffle_i64x2(quarter[1][0], quarter[1][1], 0x88);
    ret->digit = (detect_bits)_mm512_shuffle_i64x2(quarter[0][0], quarter[0][1], 0xdd);
    ret->upper = (detect_bits)_mm512_shuffle_i64x2(quarter[1][0], quarter[1][1], 0xdd);
    ret->run = (detect_bits)_mm512_shuffle_i64x2(quarter[0][2], quarter[0][3], 0x88);
    ret->name = (detect_bits)_mm512_shuffle_i64x2(quarter[1][2], quarter[1][3], 0x88);
    ret->between = (detect_bits)_mm512_shuffle_i64x2(quarter[0][2], quarter[0][3], 0xdd);
}

/* Kinds of 64 bytes are turned from a byte each to a word for each kind: eight bytes by eight bits
 * in each eighth, then the eighths' bytes beside one another. */
LANES_WIDE static inline void detect_lanes_read_wide(const struct detect_filter *f, const char *p,
                                                     struct detect_lanes *ret)
{
    static const unsigned char back[DETECT_WINDOW] = {
        7,  6,  5,  4,  3,  2,  1,  0,  15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,
        1,  0,  15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0,  15, 14, 13, 12,
        11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0,  15, 14, 13, 12, 11, 10, 9,  8};
    static const unsigned char beside[DETECT_WINDOW] = {
        0,  8,  16, 24, 32, 40, 48, 56, 1,  9,  17, 25, 33, 41, 49, 57, 2,  10, 18, 26, 34, 42,
        50, 58, 3,  11, 19, 27, 35, 43, 51, 59, 4,  12, 20, 28, 36, 44, 52, 60, 5,  13, 21, 29,
        37, 45, 53, 61, 6,  14, 22, 30, 38, 46, 54, 62, 7,  15, 23, 31, 39, 47, 55, 63};
    const __m512i each = _mm512_set1_epi64((long long)0x8040201008040201);
    const __m512i top = _mm512_set1_epi8((char)0x80), first = detect_bytes_wide(f->byte[0]),
                  second = detect_bytes_wide(f->byte[1]), third = detect_bytes_wide(f->byte[2]);
    __m512i rows[DETECT_WINDOWS];
#pragma GCC unroll 8
    for (size_t i = 0; i < DETECT_WINDOWS; i++, p += DETECT_WINDOW) {
        __m512i v = detect_bytes_wide(p);
        __m512i is = _mm512_maskz_permutex2var_epi8(_mm512_testn_epi8_mask(v, top),
                                                    detect_bytes_wide(detect_kinds), v,
                                                    detect_bytes_wide(detect_kinds + 64));
        __m512i may = _mm512_and_si512(
            _mm512_and_si512(_mm512_permutexvar_epi8(v, first),
                             _mm512_permutexvar_epi8(detect_bytes_wide(p + 1), second)),
            _mm512_permutexvar_epi8(detect_bytes_wide(p + 2), third));
        /* a bit for those of each half that have one */
        __m512i begin = _mm512_min_epu8(_mm512_and_si512(may, _mm512_set1_epi8(DETECT_BEGINS)),
                                        _mm512_set1_epi8(KIND_BEGIN)),
                name = _mm512_min_epu8(may, _mm512_set1_epi8(KIND_NAME));
        is = _mm512_or_si512(is, begin);
        is = _mm512_or_si512(is, _mm512_and_si512(name, _mm512_set1_epi8(KIND_NAME)));
        is = _mm512_shuffle_epi8(is, detect_bytes_wide(back));
        is = _mm512_gf2p8affine_epi64_epi8(each, is, 0);
        rows[i] = _mm512_permutexvar_epi8(detect_bytes_wide(beside), is);
    }
    detect_turn(rows, ret);
}

LANES_WIDE static inline void detect_lanes_later_wide(detect_bits *ret, const detect_bits *v,
                                                      const detect_bits *before)
{
    *ret = (detect_bits)_mm512_alignr_epi64((__m512i)*v, (__m512i)*before, DETECT_WINDOWS - 1);
}

LANES_WIDE static inline void detect_lanes_add_wide(detect_bits *sum, const detect_bits *a,
                                                    const detect_bits *b, unsigned *carry)
{
    __m512i x = (__m512i)*a, s = _mm512_add_epi64(x, (__m512i)*b);
    unsigned over = _mm512_cmplt_epu64_mask(s, x),
             full = _mm512_cmpeq_epi64_mask(s, _mm512_set1_epi64(-1));
    unsigned after = (over << 1 | *carry) + full; /* a full word hands on what it gets */
    *carry = after >> DETECT_WINDOWS;
    *sum =
        (detect_bits)_mm512_mask_sub_epi64(s, (__mmask8)(after ^ full), s, _mm512_set1_epi64(-1));
}

LANES_WIDE static inline bool detect_lanes_any_wide(const detect_bits *v)
{
    return _mm512_test_epi64_mask((__m512i)*v, (__m512i)*v) != 0;
}
#endif

#endif
