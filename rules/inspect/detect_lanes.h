/* Bytes looked up 32 at once, for the detectors' files that look at many. x86-64 with AVX2 only. */
#ifndef DURWARD_DETECT_LANES_H
#define DURWARD_DETECT_LANES_H

#if defined(__x86_64__)
#include <immintrin.h>

enum { DETECT_LANE = 16 };

/* Bits 1, 2, 4, 8 of [0-9], [A-Oa-o], [P-Z_], [p-z] by the lower and the upper half of a byte. */
static const unsigned char detect_word_low[DETECT_LANE] = {13, 15, 15, 15, 15, 15, 15, 15,
                                                           15, 15, 14, 2,  2,  2,  2,  6},
                           detect_word_high[DETECT_LANE] = {0, 0, 0, 1, 2, 4, 2, 8};

__attribute__((target("avx2"))) static inline __m256i detect_table(const unsigned char *t)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)t));
}

__attribute__((target("avx2"))) static inline __m256i detect_bytes(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* For each byte what both of its halves have in common. */
__attribute__((target("avx2"))) static inline __m256i detect_halves(__m256i low, __m256i high,
                                                                    __m256i v)
{
    const __m256i half = _mm256_set1_epi8(0x0f);
    __m256i l = _mm256_shuffle_epi8(low, _mm256_and_si256(v, half));
    return _mm256_and_si256(
        l, _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(v, 4), half)));
}

/* Not 0 where a beginning of three bytes may stand. */
__attribute__((target("avx2"))) static inline __m256i
detect_beginnings(const unsigned char low[3][DETECT_LANE], const unsigned char high[3][DETECT_LANE],
                  const unsigned char *p)
{
    __m256i v = detect_halves(detect_table(low[0]), detect_table(high[0]), detect_bytes(p));
    v = _mm256_and_si256(
        v, detect_halves(detect_table(low[1]), detect_table(high[1]), detect_bytes(p + 1)));
    return _mm256_and_si256(
        v, detect_halves(detect_table(low[2]), detect_table(high[2]), detect_bytes(p + 2)));
}
#endif

#endif
