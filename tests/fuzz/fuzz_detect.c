/* A text that is skimmed, in either width, has in it what a look at each byte finds. A body through
 * all detectors: in pieces of any size it comes out as it does whole, as long as it
 * was, with the same counts, and where nothing is found with the same bytes; and what came out
 * holds nothing any more. The first byte picks how it is written and the size of pieces. */
#include "detect_stream.h"

#include "detector_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 1 << 20 };

struct passed {
    char *bytes;
    size_t n;
    enum detect_end end;
    uint32_t sum, counts[DETECTORS];
};

static void take(struct detect_stream *s, struct passed *to)
{
    struct slice ready = detect_stream_ready(s);
    memcpy(to->bytes + to->n, ready.p, ready.n);
    to->n += ready.n;
    detect_stream_went(s, ready.n);
}

static void run(uint32_t what, enum detect_form form, struct slice body, size_t piece,
                struct passed *to)
{
    struct detect_rules rules = {.redact = what};
    struct detect_stream *s = detect_stream_new(&rules, form, NULL, NULL);
    *to = (struct passed){.bytes = malloc(body.n + 1)};
    if (s == NULL || to->bytes == NULL)
        abort();
    while (body.n > 0 && detect_stream_state(s) == DETECT_PASSES) {
        size_t room = detect_stream_room(s), n = piece < body.n ? piece : body.n;
        n = n < room ? n : room;
        if (n == 0)
            abort();
        detect_stream_take(s, body.p, n);
        body = (struct slice){body.p + n, body.n - n};
        take(s, to);
    }
    if (detect_stream_state(s) == DETECT_PASSES)
        detect_stream_end(s);
    take(s, to);
    to->end = detect_stream_state(s);
    memcpy(to->counts, detect_stream_counts(s), sizeof to->counts);
    for (unsigned i = 0; i < DETECTORS; i++)
        to->sum += to->counts[i];
    if (to->end == DETECT_PASSES && !detect_stream_empty(s))
        abort();
    detect_stream_free(s);
}

static void compare(uint32_t what, enum detect_form form, struct slice body, size_t piece)
{
    struct passed a, b;
    run(what, form, body, 16384, &a);
    run(what, form, body, piece, &b);
    if (a.end == DETECT_PASSES && (a.n != body.n || (a.sum == 0 && memcmp(a.bytes, body.p, a.n))))
        abort();
    if (a.end != b.end || a.n != b.n || memcmp(a.bytes, b.bytes, a.n) != 0 ||
        memcmp(a.counts, b.counts, sizeof a.counts) != 0)
        abort();
    free(a.bytes);
    free(b.bytes);
}

static void scan(struct detector_set *set, struct slice text, size_t from, bool whole,
                 struct detect_scan *ret)
{
    *ret = (struct detect_scan){.text = text, .from = from, .whole = whole};
    detector_scan(set, ret);
}

static void hold_against(struct detector_set *skims, struct slice text, size_t from, bool whole,
                         const struct detect_scan *plain)
{
    static struct detect_scan a;
    scan(skims, text, from, whole, &a);
    bool same = a.n == plain->n && a.open == plain->open && a.stops == plain->stops;
    for (size_t i = 0; same && i < a.n; i++)
        same = memcmp(&a.match[i], &plain->match[i], offsetof(struct detect_match, what)) == 0 &&
               a.match[i].what == plain->match[i].what &&
               a.match[i].goes_on == plain->match[i].goes_on;
    if (!same)
        abort();
}

static void skim(uint32_t what, struct slice text, size_t from, bool whole)
{
    static struct detect_scan found;
    struct detector_set *skims = detector_set_new(what), *plain = detector_set_new(what);
    if (skims == NULL || plain == NULL)
        abort();
    detector_set_plain(plain);
    scan(plain, text, from, whole, &found);
    hold_against(skims, text, from, whole, &found);
    detector_set_wide(skims, false);
    hold_against(skims, text, from, whole, &found);
    detector_set_free(skims);
    detector_set_free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > BODY_MAX)
        return 0;
    enum detect_form form = (enum detect_form)(data[0] % 3);
    struct slice body = {(const char *)data + 1, size - 1};
    size_t piece = 1 + (data[0] >> 2) % 32;
    size_t from = (data[0] >> 2) % 32;
    for (int whole = 0; whole < 2 && from <= body.n; whole++) {
        skim((1u << DETECTORS) - 1, body, from, whole);
        skim(detectors_of(SLICE("credentials")) | DETECT_BIT(DETECT_CARD) | DETECT_BIT(DETECT_IBAN),
             body, from, whole);
    }
    /* the words of `entropy` lie across what others find, and are counted with it or not */
    compare(((1u << DETECTORS) - 1) & ~DETECT_BIT(DETECT_ENTROPY), form, body, piece);
    compare(DETECT_BIT(DETECT_ENTROPY), form, body, piece);
    return 0;
}
