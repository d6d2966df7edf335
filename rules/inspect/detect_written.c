/* Resolves the escapes of JSON (RFC 8259, 7) and of forms. Most bytes stand for themselves and are
 * copied many at once; the escapes of JSON that are two bytes long are the next most common, in
 * source text above all, and where the processor can they are resolved 64 bytes at once. */
#include "detect_written.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* A byte that no detector looks for stands for what is not ASCII. */
enum { OTHER = 0x80 };

/* What stands behind the sign of an escape, and what is meant; 0: nothing that makes it one. */
static const unsigned char escaped[128] = {
    ['n'] = '\n', ['r'] = '\r', ['t'] = '\t', ['b'] = '\b',
    ['f'] = '\f', ['"'] = '"',  ['/'] = '/',  ['\\'] = '\\',
};
enum { CODE_EXTRA = 4 }; /* bytes that "\u0041" has more than "\n" */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static char short_escape(char c)
{
    return (char)((unsigned char)c < sizeof escaped ? escaped[(unsigned char)c] : 0);
}

/* "\n", "\u0041". 0: it is not all there. */
static size_t json_escape(struct slice in, char *ret)
{
    unsigned code = 0;
    if (in.n < 2)
        return 0;
    *ret = short_escape(in.p[1]);
    if (*ret)
        return 2;
    *ret = '\\';
    if (in.p[1] != 'u')
        return 1;
    for (size_t i = 2; i < 6; i++) {
        if (i == in.n)
            return 0;
        int v = hex_digit(in.p[i]);
        if (v < 0)
            return 1;
        code = code * 16 + (unsigned)v;
    }
    *ret = code < OTHER ? (char)code : (char)OTHER;
    return 6;
}

static size_t percent_escape(struct slice in, char *ret)
{
    *ret = '%';
    if (in.n < 3)
        return 0;
    int high = hex_digit(in.p[1]), low = hex_digit(in.p[2]);
    if (high < 0 || low < 0)
        return 1;
    *ret = (char)(high * 16 + low);
    return 3;
}

/* The next byte of text, and how many bytes it is written in. 0: that is not all there. */
static size_t escape(enum detect_form form, struct slice in, bool whole, char *ret)
{
    if (form == DETECT_URLENCODED && in.p[0] == '+') {
        *ret = ' ';
        return 1;
    }
    size_t n = form == DETECT_JSON ? json_escape(in, ret) : percent_escape(in, ret);
    if (n > 0 || !whole)
        return n;
    *ret = in.p[0];
    return 1;
}

bool detect_is_plain(enum detect_form form, struct slice in)
{
    if (form == DETECT_URLENCODED && memchr(in.p, '+', in.n))
        return false;
    return form == DETECT_PLAIN || memchr(in.p, form == DETECT_JSON ? '\\' : '%', in.n) == NULL;
}

/* ---- many bytes at once ---- */

enum { AT_ONCE = 16 };

/* Copies bytes up to one of these two; returns how many. */
static size_t copy_up_to(char sign, char also, struct slice in, char *to)
{
    size_t i = 0;
#if defined(__x86_64__)
    const __m128i signs = _mm_set1_epi8(sign), others = _mm_set1_epi8(also);
    for (; in.n - i >= AT_ONCE; i += AT_ONCE) {
        const void *from = in.p + i;
        __m128i v = _mm_loadu_si128(from);
        __m128i is = _mm_or_si128(_mm_cmpeq_epi8(v, signs), _mm_cmpeq_epi8(v, others));
        unsigned bits = (unsigned)_mm_movemask_epi8(is);
        void *there = to + i;
        _mm_storeu_si128(there, v);
        if (bits)
            return i + (size_t)__builtin_ctz(bits);
    }
#endif
    for (; i < in.n && in.p[i] != sign && in.p[i] != also; i++)
        to[i] = in.p[i];
    return i;
}

static void set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Many texts have none. */
static void set_code(struct detect_written *w, size_t i, size_t words)
{
    if (!w->codes)
        memset(w->code, 0, words * sizeof *w->code);
    w->codes = true;
    set_bit(w->code, i);
}

#if defined(__x86_64__)

bool detect_written_wide_can(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2");
}

/* Which of these signs begin an escape: every other one of those that stand in a row. The byte
 * before them is of none. */
static inline uint64_t begin_escapes(uint64_t signs)
{
    const uint64_t odd = UINT64_C(0xaaaaaaaaaaaaaaaa);
    return (((signs << 1 | odd) - signs) ^ odd) & signs;
}

/* JSON, while 64 bytes are left and no other escape than of two bytes is met: text goes to n of
 * it; returns how long that is then. */
__attribute__((target("avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2"))) static size_t
read_wide(struct detect_written *w, struct slice *in, size_t n)
{
    enum { WIDE = DETECT_WRITTEN_AT_ONCE };
    const void *first = escaped, *second = escaped + WIDE;
    const __m512i sign = _mm512_set1_epi8('\\'), low = _mm512_loadu_si512(first),
                  high = _mm512_loadu_si512(second);
    uint64_t here = w->escape[n / 64]; /* of the word that text ends in */
    while (in->n >= WIDE) {
        const void *from = in->p;
        void *to = w->text + n;
        __m512i v = _mm512_loadu_si512(from);
        uint64_t signs = _mm512_cmpeq_epi8_mask(v, sign), used = UINT64_MAX;
        uint64_t begin = begin_escapes(signs), behind = begin << 1;
        __m512i meant = _mm512_permutex2var_epi8(low, v, high);
        uint64_t known = _mm512_test_epi8_mask(meant, meant) & ~_mm512_movepi8_mask(v);
        uint64_t unknown = (behind & ~known) >> 1 | (begin & UINT64_C(1) << 63);
        if (unknown)
            used = (unknown & (~unknown + 1)) - 1; /* up to the first of them */
        uint64_t kept = used & ~begin, bits = _pext_u64(behind, kept);
        unsigned shift = n % 64;
        v = _mm512_mask_blend_epi8(behind, v, meant);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, v));
        size_t more = (size_t)__builtin_popcountll(kept);
        here |= bits << shift;
        w->escape[n / 64] = here;
        here = shift + more >= 64 ? bits >> 1 >> (63 - shift) : here;
        n += more;
        size_t gone = unknown ? (size_t)__builtin_ctzll(unknown) : WIDE;
        *in = (struct slice){in->p + gone, in->n - gone};
        if (gone == 0)
            break;
    }
    w->escape[n / 64] = here;
    return n;
}

#else

bool detect_written_wide_can(void)
{
    return false;
}

static size_t read_wide(struct detect_written *w UNUSED, struct slice *in UNUSED, size_t n)
{
    return n;
}

#endif

/* "\\n\\t\\t": escapes of two bytes, one behind another. */
static size_t read_short(struct detect_written *w, struct slice *in, size_t n)
{
    char c;
    while (in->n >= 2 && in->p[0] == '\\' && (c = short_escape(in->p[1])) != 0) {
        set_bit(w->escape, n);
        w->text[n++] = c;
        *in = (struct slice){in->p + 2, in->n - 2};
    }
    return n;
}

/* What needs no look at each byte. */
static size_t read_many(struct detect_written *w, struct slice *in, size_t n)
{
    bool json = w->form == DETECT_JSON;
    if (w->form == DETECT_PLAIN) { /* "+" and "%41" are what they are */
        memcpy(w->text + n, in->p, in->n);
        n += in->n;
        *in = (struct slice){in->p + in->n, 0};
        return n;
    }
    if (json && w->wide)
        n = read_wide(w, in, n);
    size_t run = copy_up_to(json ? '\\' : '%', json ? '\\' : '+', *in, w->text + n);
    *in = (struct slice){in->p + run, in->n - run};
    return json ? read_short(w, in, n + run) : n + run;
}

size_t detect_written_read(struct detect_written *w, struct slice before, struct slice in,
                           bool whole)
{
    size_t n = before.n, all = n + in.n, words = all / 64 + 2;
    memcpy(w->text, before.p, n);
    memset(w->escape, 0, words * sizeof *w->escape);
    w->codes = false;
    w->escapes = true;
    while (in.n > 0) {
        size_t there = in.n;
        n = read_many(w, &in, n);
        if (in.n == 0)
            break;
        if (w->form == DETECT_JSON && *in.p != '\\' && in.n < there)
            continue;
        size_t used = escape(w->form, in, whole, &w->text[n]);
        if (used == 0)
            break;
        if (used > 1)
            set_bit(w->escape, n);
        if (used > 3)
            set_code(w, n, words);
        n++;
        in = (struct slice){in.p + used, in.n - used};
    }
    w->n = n;
    w->in = all - in.n;
    w->seen = w->seen_in = 0;
    size_t most = n + DETECT_WRITTEN_AT_ONCE;
    w->most = most > w->most ? most : w->most;
    return n;
}

/* ---- where it stands ---- */

/* How many bits from `at` to `end` are set. */
static size_t count_bits(const uint64_t *bits, size_t at, size_t end)
{
    size_t sum = 0;
    if (at >= end)
        return 0;
    for (size_t i = at / 64; i <= (end - 1) / 64; i++) {
        uint64_t v = bits[i];
        if (i == at / 64)
            v &= UINT64_MAX << (at % 64);
        if (i == (end - 1) / 64)
            v &= UINT64_MAX >> (63 - (end - 1) % 64);
        sum += v ? (size_t)__builtin_popcountll(v) : 0;
    }
    return sum;
}

enum { NEAR = 64 };

static size_t count_length(const struct detect_written *w, size_t at, size_t end)
{
    size_t more = w->form == DETECT_JSON ? 1 : 2; /* bytes that an escape has beside its first */
    size_t codes = w->codes ? count_bits(w->code, at, end) : 0;
    return end - at + count_bits(w->escape, at, end) * more + codes * CODE_EXTRA;
}

/* How many bytes of what was read the text up to there is: counted from the beginning, from the
 * end, or from where it was asked for last. */
static size_t written_up_to(struct detect_written *w, size_t end)
{
    size_t from = w->seen <= end ? w->seen : 0, length = w->seen <= end ? w->seen_in : 0;
    if (w->n - end < end - from)
        length = w->in - count_length(w, end, w->n);
    else
        length += count_length(w, from, end);
    w->seen = end;
    w->seen_in = length;
    return length;
}

size_t detect_written_length(struct detect_written *w, size_t at, size_t end)
{
    if (!w->escapes)
        return end - at;
    if (end - at <= NEAR)
        return count_length(w, at, end);
    return written_up_to(w, end) - count_length(w, 0, at);
}
