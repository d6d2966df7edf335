/* Asking for usage: what is asked of a body that is JSON is the same body with the question in it,
 * as another reader sees both. Of a stream, any pieces give the same; and an event that goes on is
 * one that came, but for a member that was null. */
#include "llm_usage.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *read_json(struct slice s)
{
    return json_loadb(s.p, s.n, JSON_REJECT_DUPLICATES, NULL);
}

static void ask(struct slice body)
{
    struct buf out;
    json_t *before = read_json(body);
    if (json_is_object(before) && llm_usage_ask(body, &out) == 0) {
        json_t *after = read_json(buf_slice(&out)),
               *options = json_object_get(after, "stream_options");
        if (!json_is_true(json_object_get(options, "include_usage")))
            abort();
        json_object_del(options, "include_usage");
        json_t *had = json_object_get(before, "stream_options");
        json_object_del(had, "include_usage");
        if (!json_is_object(had) && json_object_size(options) > 0)
            abort();
        if (json_is_object(had) && !json_equal(had, options))
            abort();
        json_object_del(before, "stream_options");
        json_object_del(after, "stream_options");
        if (!json_equal(before, after))
            abort();
        json_decref(after);
        buf_free(&out);
    }
    json_decref(before);
}

static void pass(struct slice in, size_t piece, struct buf *to)
{
    struct slice out;
    struct llm_usage_cut *c = llm_usage_cut_new();
    buf_init(to, in.n);
    while (c && in.n > 0) {
        size_t n = piece < in.n ? piece : in.n;
        if (llm_usage_cut_feed(c, (struct slice){in.p, n}, &out) < 0 ||
            buf_append_slice(to, out) < 0)
            abort();
        in = (struct slice){in.p + n, in.n - n};
    }
    if (c == NULL || buf_append_slice(to, llm_usage_cut_end(c)) < 0)
        abort();
    llm_usage_cut_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, cut;
    if (size == 0)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    ask(text);
    pass(text, 1 << 20, &whole);
    pass(text, 1 + data[0] % 32, &cut);
    if (!slice_eq(buf_slice(&whole), buf_slice(&cut)))
        abort();
    buf_free(&cut);
    pass(buf_slice(&whole), 1 << 20, &cut); /* one null a pass; nothing else is left to take */
    if (slice_find_slice(text, SLICE("\"usage\"")) < 0 && !slice_eq(buf_slice(&whole), text))
        abort();
    buf_free(&cut);
    buf_free(&whole);
    return 0;
}
