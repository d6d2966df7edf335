/* A model's reply: any bytes in any framing, whole and in pieces, give the same usage; and of a
 * JSON body that another reader takes, the numbers are those that it sees. The first byte picks
 * framing and the size of pieces. */
#include "llm_reply.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = {"application/json", "text/event-stream", "application/x-ndjson",
                                    "application/vnd.amazon.eventstream"};

static struct llm_usage run(enum llm_form form, const char *type, struct slice text, size_t piece)
{
    struct inspect_request facts = {.n_types = 1, .type = slice_str(type)};
    struct llm_reply *r = llm_reply_new(form, &facts);
    if (r == NULL)
        abort();
    while (text.n > 0) {
        size_t n = piece < text.n ? piece : text.n;
        llm_reply_feed(r, (struct slice){text.p, n});
        text = (struct slice){text.p + n, text.n - n};
    }
    llm_reply_close(r);
    struct llm_usage u = llm_reply_usage(r);
    llm_reply_free(r);
    return u;
}

/* Jansson's view of the same body. */
static void compare(struct slice text, const struct llm_usage *u)
{
    json_t *root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    const json_t *usage = json_object_get(root, "usage"), *in, *out;
    in = json_object_get(usage, "prompt_tokens");
    out = json_object_get(usage, "completion_tokens");
    if (root && u->known &&
        (!json_is_integer(in) || !json_is_integer(out) ||
         (uint64_t)json_integer_value(in) != u->in || (uint64_t)json_integer_value(out) != u->out))
        abort();
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *type = types[data[0] & 3];
    size_t piece = 1 + (data[0] >> 2) % 16;
    struct slice text = {(const char *)data + 1, size - 1};
    for (enum llm_form form = LLM_CHAT; form < LLM_FORMS; form++) {
        struct llm_usage a = run(form, type, text, text.n + 1), b = run(form, type, text, piece);
        if (a.known != b.known || (a.known && (a.in != b.in || a.out != b.out ||
                                               a.cached != b.cached || a.written != b.written)))
            abort();
        if (form == LLM_CHAT && type == types[0])
            compare(text, &a);
    }
    return 0;
}
