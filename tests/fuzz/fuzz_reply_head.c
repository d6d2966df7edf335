/* Reply heads of whatever bytes, to GET and to HEAD; what is accepted reads the same after we have
 * written it for the sandbox. */
#include "guard.h"
#include "http1_head.h"
#include "http1_write.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
static const struct limits again = {.head_bytes = 65536, .headers = 110, .target_bytes = 16384};

static void require(bool right)
{
    if (!right)
        abort();
}

static void check_head(const struct head *h, bool head_request)
{
    require(h->status >= 100 && h->status <= 999 && h->status != 101 && h->minor <= 1);
    require(h->body != BODY_CHUNKED || http_head_count(h, "content-length") == 0);
    require(h->body != BODY_CLOSE || !h->keep_alive);
    require(h->body == BODY_NONE || !head_request);
    for (size_t i = 0; i < h->n; i++)
        require(http1_is_token(h->fields[i].name) && http1_is_value(h->fields[i].value));
}

static void write_again(struct head *h, struct slice method, bool head_request)
{
    struct buf b;
    struct head r;
    struct refusal why;
    size_t scanned = 0;
    guard_clean_reply(h, false, true);
    buf_init(&b, 65536);
    require(http1_write_reply(&b, h, h->body, h->length, false, head_request) == 0);
    require(http1_head_end(buf_slice(&b), 65536, &scanned) == (ssize_t)buf_len(&b));
    require(http1_parse_reply(&r, buf_slice(&b), method, NULL, &again, &why) == 0);
    require(r.status == h->status && r.body == h->body);
    require(h->body != BODY_LENGTH || r.length == h->length);
    for (size_t i = 0; i < h->n; i++)
        require(slice_eq(r.fields[i].name, h->fields[i].name) &&
                slice_eq(r.fields[i].value, h->fields[i].value));
    http_head_free(&r);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    bool head_request = data[0] & 1;
    struct slice method = head_request ? SLICE("HEAD") : SLICE("GET");
    struct slice in = {(const char *)data + 1, size - 1};
    struct head h;
    struct refusal why = {0, ""};
    size_t scanned = 0;
    ssize_t n = http1_head_end(in, limits.head_bytes, &scanned);
    if (n <= 0)
        return 0;
    if (http1_parse_reply(&h, (struct slice){in.p, (size_t)n}, method, NULL, &limits, &why) == 0) {
        check_head(&h, head_request);
        if (h.status >= 200)
            write_again(&h, method, head_request);
    } else {
        require(why.status == 502);
    }
    http_head_free(&h);
    return 0;
}
