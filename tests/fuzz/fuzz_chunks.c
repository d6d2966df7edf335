/* Chunked bodies of whatever bytes: whole, byte by byte and in pieces they read the same; what was
 * read reads the same after it has been written in chunks of ours. */
#include "http1_body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    bool failed, done;
    size_t used;
    struct buf out;
};

static void require(bool right)
{
    if (!right)
        abort();
}

/* At most `step` new bytes at a time and `max` body bytes a call. */
static struct reading read_all(struct slice in, size_t step, size_t max)
{
    struct reading r = {false, false, 0, {0}};
    struct http1_body b;
    size_t given = 0;
    http1_body_init(&b, BODY_CHUNKED, 0);
    buf_init(&r.out, 1 << 20);
    while (!r.failed && !b.done && given < in.n) {
        given = in.n - given < step ? in.n : given + step;
        ssize_t used = 1;
        while (used > 0 && !b.done) {
            struct slice out;
            used = http1_body_read(&b, (struct slice){in.p + r.used, given - r.used}, max, &out);
            r.failed = used < 0;
            if (used <= 0)
                break;
            require(out.n <= max && (size_t)used <= given - r.used);
            require(buf_append_slice(&r.out, out) == 0);
            r.used += (size_t)used;
        }
    }
    r.done = b.done && !r.failed;
    http1_body_free(&b);
    return r;
}

static void write_again(struct slice body)
{
    struct buf b;
    size_t at = 0;
    buf_init(&b, 1 << 21);
    for (size_t n = 1; at < body.n; n = n * 3 % 4096 + 1) {
        size_t k = body.n - at < n ? body.n - at : n;
        require(buf_printf(&b, "%zx\r\n", k) == 0 && buf_append(&b, body.p + at, k) == 0 &&
                buf_append(&b, "\r\n", 2) == 0);
        at += k;
    }
    require(buf_append(&b, "0\r\n\r\n", 5) == 0);
    struct reading r = read_all(buf_slice(&b), buf_len(&b), 65536);
    require(r.done && r.used == buf_len(&b) && slice_eq(buf_slice(&r.out), body));
    buf_free(&r.out);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 65536)
        return 0;
    size_t step = data[0] ? data[0] : 1, max = data[1] ? data[1] : 1;
    struct slice in = {(const char *)data + 2, size - 2};
    struct reading whole = read_all(in, in.n ? in.n : 1, 65536), pieces = read_all(in, step, max);
    require(whole.failed == pieces.failed && whole.done == pieces.done);
    if (!whole.failed)
        require(whole.used == pieces.used &&
                slice_eq(buf_slice(&whole.out), buf_slice(&pieces.out)));
    if (whole.done)
        write_again(buf_slice(&whole.out));
    buf_free(&whole.out);
    buf_free(&pieces.out);
    return 0;
}
