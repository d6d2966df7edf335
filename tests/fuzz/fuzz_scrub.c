/* Redaction: a stream in any pieces passes the same bytes as the whole text, of the same length,
 * holds back less than the longest form, and leaves nothing to find. First three bytes: size of the
 * pieces, length of the value, Basic or not; then the value; then the text. "\1" in the text stands
 * for a form of the value, "\2" for the beginning of one. */
#include "scrub.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static void write_text(struct buf *to, const struct scrub_forms *f, struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c != 1 && c != 2) || i + 1 == text.n) {
            require(buf_append(to, &c, 1) == 0);
            continue;
        }
        unsigned char which = (unsigned char)text.p[++i];
        struct slice form = scrub_forms_get(f, which % f->n);
        if (c == 2)
            form.n = form.n * (which / 16u) / 16;
        if (buf_append_slice(to, form) < 0)
            return;
    }
}

static void in_pieces(struct scrub_set *set, struct slice in, size_t step, struct slice want,
                      uint64_t hits)
{
    struct scrub *s = scrub_new(set);
    struct slice out;
    size_t at = 0, passed = 0;
    require(s != NULL);
    while (at < in.n) {
        size_t n = in.n - at < step ? in.n - at : step;
        require(scrub_feed(s, (struct slice){in.p + at, n}, &out) == 0);
        at += n;
        require(out.n + passed + scrub_held(s) == at && scrub_held(s) < scrub_set_longest(set));
        require(out.n == 0 || memcmp(out.p, want.p + passed, out.n) == 0);
        passed += out.n;
    }
    require(scrub_end(s, &out) == 0 && passed + out.n == in.n);
    require(out.n == 0 || memcmp(out.p, want.p + passed, out.n) == 0);
    require(scrub_hits(s) == hits);
    scrub_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scrub_forms f;
    struct buf in, whole;
    if (size < 3 + SCRUB_VALUE_MIN || size > 4096)
        return 0;
    size_t step = data[0] ? data[0] : 1, n = SCRUB_VALUE_MIN + data[1] % 48;
    if (size < 3 + n)
        return 0;
    require(scrub_forms_make(&f, (struct slice){(const char *)data + 3, n},
                             data[2] & 1 ? "user" : NULL) == 0);
    struct scrub_set *set = scrub_set_new(&f, "fuzz");
    require(set != NULL);
    buf_init(&in, 1 << 19);
    buf_init(&whole, 1 << 19);
    write_text(&in, &f, (struct slice){(const char *)data + 3 + n, size - 3 - n});
    require(buf_append_slice(&whole, buf_slice(&in)) == 0);
    ssize_t hits = scrub_whole(set, (char *)buf_data(&whole), buf_len(&whole));
    require(hits >= 0);
    in_pieces(set, buf_slice(&in), step, buf_slice(&whole), (uint64_t)hits);
    for (size_t i = 0; i < f.n && buf_len(&in) < 4096; i++) {
        struct slice form = scrub_forms_get(&f, i), mark = SLICE("[REDACTED:fuzz]*");
        /* what the mark itself writes is not the origin's */
        if (slice_find_slice(form, SLICE("[")) < 0 && slice_find_slice(form, SLICE("*")) < 0 &&
            slice_find_slice(mark, form) < 0)
            require(slice_find_slice(buf_slice(&whole), form) < 0);
    }
    buf_free(&in);
    buf_free(&whole);
    scrub_set_unref(set);
    scrub_forms_free(&f);
    return 0;
}
