/* Turns the pieces of a text into positions of a set, in the same way for the index that is made
 * (log_blocks.c) and for the filter that asks it (block_plan.c). */
#include "ngrams.h"

#include <string.h>

enum { KIND_WITHIN = 160 /* "seq" and "prev" take less */ };

void ngrams_parts(struct slice line, struct slice part[2])
{
    static const struct slice kind = SLICE_INIT("\"kind\":\""), at = SLICE_INIT(",\"at\":"),
                              role = SLICE_INIT("\"role\":\"");
    part[0] = part[1] = (struct slice){"", 0};
    size_t head = line.n < KIND_WITHIN ? line.n : KIND_WITHIN;
    const char *from = memmem(line.p, head, kind.p, kind.n), *end = line.p + line.n;
    const char *to = from ? memmem(from, (size_t)(end - from), at.p, at.n) : NULL;
    const char *more = to ? memmem(to, (size_t)(end - to), role.p, role.n) : NULL;
    if (more == NULL)
        return;
    part[0] = (struct slice){from, (size_t)(to - from)};
    part[1] = (struct slice){more, (size_t)(end - more)};
}

/* w: the last bytes, the latest lowest. */
static uint32_t position(uint64_t w, unsigned n)
{
    w &= (UINT64_C(1) << 8 * n) - 1;
    return (uint32_t)((w | (uint64_t)n << 56) * UINT64_C(0x9e3779b97f4a7c15) >> 48);
}

static void set(unsigned char *bits, uint32_t at)
{
    bits[at / 8] |= (unsigned char)(1U << at % 8);
}

/* The pieces that end in byte i, but for those of one byte. */
static inline void set_at(unsigned char *bits, uint64_t w, size_t i)
{
    if (i >= 1)
        set(bits, position(w, 2));
    if (i >= 2)
        set(bits, position(w, 3));
    if (i >= 4)
        set(bits, position(w, 5));
}

/* Every byte of the log comes here: of its few dozen different bytes each is set once a text. */
void ngrams_add(unsigned char bits[NGRAM_BITS / 8], struct slice text)
{
    bool there[256] = {false};
    uint64_t w = 0;
    size_t i = 0;
    for (; i < text.n && i < 4; i++) {
        w = w << 8 | (unsigned char)ascii_lower(text.p[i]);
        there[w & 0xff] = true;
        set_at(bits, w, i);
    }
    for (; i < text.n; i++) {
        w = w << 8 | (unsigned char)ascii_lower(text.p[i]);
        there[w & 0xff] = true;
        set_at(bits, w, 4);
    }
    for (unsigned c = 0; c < ARRAY_LEN(there); c++)
        if (there[c])
            set(bits, position(c, 1));
}

size_t ngrams_wanted(struct slice text, uint32_t at[NGRAMS_WANTED])
{
    unsigned longest = text.n >= 5 ? 5 : text.n >= 3 ? 3 : (unsigned)text.n;
    uint64_t w = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        w = w << 8 | (unsigned char)ascii_lower(text.p[i]);
        if (i + 1 >= longest && n < NGRAMS_WANTED)
            at[n++] = position(w, longest);
        if (longest == 5 && i >= 2 && n < NGRAMS_WANTED)
            at[n++] = position(w, 3);
    }
    return n;
}
