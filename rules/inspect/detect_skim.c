/* Skims a text for the places at which a detector may have something to say, so that the rest is
 * not looked at. Kinds of bytes are bits, 512 at once (detect_lanes.h), and what is looked for is
 * arithmetic on them. What is told is looked at as before: a place too many costs time, one too few
 * would be a secret that leaves. What the rules rest on (detect_skim_rules.h), where a run is of
 * CLASS_DOTTED, CLASS_ENTROPY and "~":
 *
 * - A token, a web token and a name that a secret stands behind begin with three bytes of the
 *   filter, behind what is no word, and are a run of at least RUN bytes from there on.
 * - A key in PEM has five dashes before a capital; a URL has "://".
 * - A card has CARD digits, or four digits, another byte and four digits. An IBAN has two capitals,
 *   a blank at most, and a digit with no letter behind it. None of them stands behind a letter or a
 *   digit, and no other number behind a small letter.
 * - A value has a name of CLASS_DOTTED before it, in which one of the filter's names begins, and
 *   between the two only what may stand there, with a sign in it. It is a run of at least
 *   SHORT_RUN, or one of the filter's beginnings stands there (of "Bearer ").
 *
 * A bit stands LAG behind the place that it is for, where all of that is known. */
#include "detector_internal.h"

#include <string.h>

#if defined(__x86_64__)

#include "detect_lanes.h"

enum {
    RUN = 14,
    SHORT_RUN = 10,
    CARD = 12,
    LAG = 13,
};
_Static_assert((int)LAG == (int)RUN - 1, "known at the last of them");

struct places {
    detect_bits begins, values;
};

struct skim {
    struct detect_lanes read; /* of the windows before */
    struct {
        detect_bits run2, run4, run8, dots, slash, colon, capital, digit, digit2, digit4, upper,
            country, value;
    } made;                           /* the same */
    detect_bits cards, ibans, digits; /* all bits: they are looked for */
    unsigned carry[3];
    const struct detect_filter *filter;
    struct slice text;
    size_t from, to;
    detect_place_fn tell;
    void *arg;
};

static bool tell_all(const struct skim *k, size_t at, const struct places *found)
{
    for (size_t w = 0; w < DETECT_WINDOWS; w++, at += DETECT_WINDOW) {
        uint64_t values = found->values[w], begins = found->begins[w];
        for (uint64_t all = values | begins; all; all &= all - 1) {
            uint64_t one = all & (~all + 1);
            size_t place = at + (size_t)__builtin_ctzll(all) - LAG;
            if (place >= k->to)
                return false;
            if (place >= k->from &&
                !k->tell(k->arg, place, (values & one) != 0, (begins & one) != 0))
                return false;
        }
    }
    return true;
}

/* The text from `at` on for as many bytes as are read: itself, or the rest of it in `rest`. */
static inline const char *lanes_at(const struct skim *k, size_t at,
                                   char rest[DETECT_LANES + DETECT_LANES_BEHIND])
{
    if (k->text.n >= at && k->text.n - at >= DETECT_LANES + DETECT_LANES_BEHIND)
        return k->text.p + at;
    memset(rest, 0, DETECT_LANES + DETECT_LANES_BEHIND);
    return at < k->text.n ? memcpy(rest, k->text.p + at, k->text.n - at) : rest;
}

#define LANES    LANES_AVX2
#define LANE(x)  detect_lanes_##x
#define UP(x, n) ((x) << (n) | x##_up >> (DETECT_WINDOW - (n)))
#include "detect_skim_rules.h"

#define LANES    LANES_WIDE
#define LANE(x)  detect_lanes_##x##_wide
#define UP(x, n) ((detect_bits)_mm512_shldi_epi64((__m512i)(x), (__m512i)x##_up, n))
#include "detect_skim_rules.h"

bool detect_skim_can(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

bool detect_skim_wide_can(void)
{
    return detect_lanes_wide_can();
}

void detect_skim(const struct detect_skim *what, struct slice text, size_t from, size_t to,
                 detect_place_fn tell, void *arg)
{
    struct skim k = {
        .filter = what->filter, .text = text, .from = from, .to = to, .tell = tell, .arg = arg};
    k.cards -= (uint64_t)what->cards;
    k.ibans -= (uint64_t)what->ibans;
    k.digits -= (uint64_t)what->digits;
    if (what->wide)
        detect_lanes_skim_wide(&k);
    else
        detect_lanes_skim(&k);
}

#else

bool detect_skim_can(void)
{
    return false;
}

bool detect_skim_wide_can(void)
{
    return false;
}

void detect_skim(const struct detect_skim *what UNUSED, struct slice text UNUSED, size_t from,
                 size_t to, detect_place_fn tell, void *arg)
{
    while (from < to && tell(arg, from, true, true))
        from++;
}

#endif
