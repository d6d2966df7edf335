/* Heads of replies that are to be mended: what comes out is one head of no more than was promised,
 * in which there is nothing left to mend, and which reads as the grammar wants or not at all. */
#include "http1_head.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

static void require(bool right)
{
    if (!right)
        abort();
}

static size_t lines(struct slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

static void mended(struct slice raw, struct slice is)
{
    struct buf again;
    struct head h;
    struct refusal why;
    size_t scanned = 0;
    require(is.n <= raw.n + 4 * lines(raw));
    require(http1_head_end(is, raw.n * 2 + 4, &scanned) == (ssize_t)is.n);
    buf_init(&again, is.n * 2);
    require(http1_repair_reply(is, &again) == 0);
    buf_free(&again);
    if (http1_parse_reply(&h, is, SLICE("GET"), NULL, &limits, &why) == 0)
        require(!h.repaired && http_head_count(&h, "content-length") <= 1);
    http_head_free(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = {(const char *)data, size};
    size_t scanned = 0;
    ssize_t n = http1_head_end(in, limits.head_bytes, &scanned);
    if (n <= 0)
        return 0;
    struct slice raw = {in.p, (size_t)n};
    struct buf out;
    buf_init(&out, (size_t)n * 2);
    int r = http1_repair_reply(raw, &out);
    require(r >= 0);
    if (r > 0)
        mended(raw, buf_slice(&out));
    buf_free(&out);
    return 0;
}
