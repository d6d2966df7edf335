/* Request heads of whatever bytes. What is accepted keeps to the grammar, is found at the same
 * place however it arrives, and reads the same after we have written it anew. */
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

static void check_head(const struct head *h)
{
    require(http1_is_token(h->method) && h->target.n > 0 && h->minor <= 1);
    bool upgrade = h->upgrade == UPGRADE_WEBSOCKET;
    require(h->n <= limits.headers && (!upgrade || http_head_count(h, "upgrade") == 1));
    require(upgrade == (h->body == BODY_TUNNEL));
    require(!upgrade || (h->minor == 1 && slice_eq(h->method, SLICE("GET"))));
    require(http_head_count(h, "host") == 1 || h->minor == 0);
    require((h->body == BODY_LENGTH) == (h->length > 0) && h->body != BODY_CLOSE);
    for (size_t i = 0; i < h->n; i++) {
        struct slice name = h->fields[i].name, value = h->fields[i].value;
        require(http1_is_token(name) && http1_is_value(value));
        require(slice_eq(slice_trim(value), value));
        require(upgrade || !slice_eq_str(name, "upgrade") || slice_istarts(value, SLICE("h2c")) ||
                slice_istarts(value, SLICE("tls/"))); /* offers are passed over */
        for (size_t k = 0; k < name.n; k++)
            require(ascii_lower(name.p[k]) == name.p[k]);
    }
}

static void write_again(struct head *h)
{
    struct authority a;
    struct buf b;
    struct head r;
    struct refusal why;
    size_t scanned = 0;
    if (h->form != TARGET_ORIGIN && h->form != TARGET_ABSOLUTE)
        return;
    struct slice sent[] = {h->path, h->query};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sent[k].n; i++)
            require(sent[k].p[i] > 0x20 && sent[k].p[i] < 0x7f && !strchr("\"<>#", sent[k].p[i]));
    require(slice_find(h->path, '\\') < 0);
    require(authority_parse(&a, SCHEME_HTTPS, SLICE("fuzz.example")) == 0);
    guard_clean_request(h);
    require(http_head_count(h, "upgrade") == 0);
    buf_init(&b, 65536);
    require(http1_write_request(&b, h, &a) == 0);
    require(http1_head_end(buf_slice(&b), 65536, &scanned) == (ssize_t)buf_len(&b));
    require(http1_parse_request(&r, buf_slice(&b), &again, &why) == 0);
    require(slice_eq(r.method, h->method) && slice_eq(r.path, h->path));
    require(r.has_query == h->has_query && slice_eq(r.query, h->query));
    /* a handshake of our own is http1_client's to add: without it this is a GET */
    enum body_kind body = h->body == BODY_TUNNEL ? BODY_NONE : h->body;
    require(r.body == body && r.upgrade == UPGRADE_NONE && r.length == h->length &&
            (r.keep_alive || h->body != BODY_NONE));
    guard_clean_request(&r);
    require(r.n == h->n);
    for (size_t i = 0; i < r.n; i++)
        require(slice_eq(r.fields[i].name, h->fields[i].name) &&
                slice_eq(r.fields[i].value, h->fields[i].value));
    http_head_free(&r);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = {(const char *)data, size};
    struct head h;
    struct refusal why = {0, ""};
    size_t scanned = 0, slow = 0;
    ssize_t n = http1_head_end(in, limits.head_bytes, &scanned), m = HTTP1_MORE;
    for (size_t k = 1; k <= size && m == HTTP1_MORE; k++)
        m = http1_head_end((struct slice){in.p, k}, limits.head_bytes, &slow);
    require(m == n);
    if (n < 0)
        require(http1_head_refusal(n, in, scanned).status >= 400);
    if (n <= 0)
        return 0;
    if (http1_parse_request(&h, (struct slice){in.p, (size_t)n}, &limits, &why) == 0) {
        check_head(&h);
        write_again(&h);
    } else {
        require(why.status >= 400 && why.code[0] != 0);
    }
    http_head_free(&h);
    return 0;
}
