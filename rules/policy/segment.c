/* Matches, contains and intersects the globs of one segment. The pieces between stars are searched
 * from the left, which finds a place for all if there is one. */
#include "segment.h"

#include <string.h>

#include "buf.h"

/* Index of the next star at or after i, or the end. */
static size_t star_from(struct slice t, size_t i)
{
    while (i < t.n && t.p[i] != PATTERN_WILD)
        i++;
    return i;
}

static struct slice part(struct slice t, size_t from, size_t to)
{
    return (struct slice){t.p + from, to - from};
}

static struct slice before_star(struct slice t)
{
    return part(t, 0, star_from(t, 0));
}

static struct slice after_last_star(struct slice t)
{
    size_t i = t.n;
    while (i > 0 && t.p[i - 1] != PATTERN_WILD)
        i--;
    return part(t, i, t.n);
}

/* The pieces between stars are searched from the left, each after the one before: if any placement
 * exists, the leftmost one leaves the most room for the rest. */
static bool glob_matches(struct slice glob, struct slice text)
{
    struct slice head = before_star(glob), last = after_last_star(glob);
    if (text.n < head.n + last.n || !slice_starts(text, head) || !slice_ends(text, last))
        return false;
    struct slice rest = part(text, head.n, text.n - last.n);
    size_t i = head.n, end = glob.n - last.n;
    while (i < end) {
        size_t star = star_from(glob, i + 1);
        if (star >= end)
            break;
        struct slice piece = part(glob, i + 1, star);
        ssize_t at = slice_find_slice(rest, piece);
        if (at < 0)
            return false;
        rest = part(rest, (size_t)at + piece.n, rest.n);
        i = star;
    }
    return true;
}

bool segment_matches(const struct segment *s, struct slice text)
{
    switch (s->kind) {
    case SEGMENT_LITERAL:
        return slice_eq(s->text, text);
    case SEGMENT_ANY:
        return text.n > 0;
    case SEGMENT_GLOB:
        return glob_matches(s->text, text);
    }
    return false;
}

bool segment_contains(const struct segment *outer, const struct segment *inner)
{
    switch (outer->kind) {
    case SEGMENT_LITERAL:
        return inner->kind == SEGMENT_LITERAL && slice_eq(outer->text, inner->text);
    case SEGMENT_ANY: /* a glob has at least one literal byte, so it is never empty */
        return inner->kind != SEGMENT_LITERAL || inner->text.n > 0;
    case SEGMENT_GLOB:
        /* A star of the inner one stands for bytes that no literal of the outer one can be sure to
         * match, which is what WILD is as text: only a star of the outer one swallows it. */
        return inner->kind != SEGMENT_ANY && glob_matches(outer->text, inner->text);
    }
    return false;
}

static void append(struct buf *b, struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != PATTERN_WILD && buf_append(b, s.p + i, 1) < 0)
            return;
}

static void give(struct buf *b, char *to, size_t size)
{
    struct slice s = buf_slice(b);
    size_t n = s.n < size ? s.n : size - 1;
    memcpy(to, s.p, n);
    to[n] = 0;
    buf_free(b);
}

/* Both are globs with a star: they meet when one head begins the other and one tail ends the other;
 * the pieces between then stand one after the other, each swallowed by a star of the other. */
static bool globs_intersect(struct slice a, struct slice b, char *to, size_t size)
{
    struct slice ha = before_star(a), hb = before_star(b);
    struct slice ta = after_last_star(a), tb = after_last_star(b);
    struct slice head = ha.n > hb.n ? ha : hb, tail = ta.n > tb.n ? ta : tb;
    if (!slice_starts(head, ha) || !slice_starts(head, hb) || !slice_ends(tail, ta) ||
        !slice_ends(tail, tb))
        return false;
    struct buf text;
    buf_init(&text, PATTERN_MAX * 2);
    append(&text, head);
    append(&text, part(a, ha.n, a.n - ta.n));
    append(&text, part(b, hb.n, b.n - tb.n));
    append(&text, SLICE("x")); /* so that it cannot come out as a dot segment */
    append(&text, tail);
    give(&text, to, size);
    return true;
}

void segment_example(const struct segment *s, char *to, size_t size)
{
    struct buf text;
    buf_init(&text, PATTERN_MAX * 2);
    if (s->kind != SEGMENT_LITERAL) {
        append(&text, before_star(s->text));
        append(&text, SLICE("x"));
        append(&text, part(s->text, before_star(s->text).n, s->text.n));
    } else {
        append(&text, s->text);
    }
    give(&text, to, size);
}

bool segment_intersects(const struct segment *a, const struct segment *b, char *to, size_t size)
{
    if (a->kind == SEGMENT_LITERAL) {
        segment_example(a, to, size);
        return segment_matches(b, a->text);
    }
    if (b->kind == SEGMENT_LITERAL) {
        segment_example(b, to, size);
        return segment_matches(a, b->text);
    }
    if (a->kind == SEGMENT_ANY || b->kind == SEGMENT_ANY) {
        segment_example(a->kind == SEGMENT_ANY ? b : a, to, size);
        return true;
    }
    return globs_intersect(a->text, b->text, to, size);
}
