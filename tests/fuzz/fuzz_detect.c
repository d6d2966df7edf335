/* A body through all detectors: in pieces of any size it comes out as it does whole, as long as it
 * was, with the same counts, and where nothing is found with the same bytes; and what came out
 * holds nothing any more. The first byte picks how it is written and the size of pieces. */
#include "detect_stream.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > BODY_MAX)
        return 0;
    enum detect_form form = (enum detect_form)(data[0] % 3);
    struct slice body = {(const char *)data + 1, size - 1};
    size_t piece = 1 + (data[0] >> 2) % 32;
    /* the words of `entropy` lie across what others find, and are counted with it or not */
    compare(((1u << DETECTORS) - 1) & ~DETECT_BIT(DETECT_ENTROPY), form, body, piece);
    compare(DETECT_BIT(DETECT_ENTROPY), form, body, piece);
    return 0;
}
