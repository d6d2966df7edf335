/* The two ends of MCP over stdio: any bytes as a message, and as a head with a body that comes in
 * pieces. What jansson takes for a message the walk takes for the same one, and two ids for the
 * same text; pieces change nothing. */
#include "stdio_mcp.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 1 << 20 };

/* A key in escapes is one to jansson and none to the walk: those texts are left out. */
static void compare(struct slice text, int n, const struct stdio_message *m)
{
    json_error_t why;
    json_t *root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    json_t *method = json_object_get(root, "method"), *id = json_object_get(root, "id");
    bool message = method || json_object_get(root, "result") || json_object_get(root, "error");
    if (json_is_object(root) && message && n == 1 && slice_find(text, '\\') < 0 &&
        ((method != NULL) != (m[0].method.n > 0) || (id != NULL) != (m[0].id.n > 0)))
        abort();
    json_decref(root);
}

/* Two ids that are texts. One that jansson cannot read is left out. */
static void compare_ids(struct slice a, struct slice b)
{
    json_t *x = json_loadb(a.p, a.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL),
           *y = json_loadb(b.p, b.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (json_is_string(x) && json_is_string(y) && stdio_same_id(a, b) != (json_equal(x, y) != 0))
        abort();
    json_decref(x);
    json_decref(y);
}

static enum stdio_body_end run(const struct stdio_head *h, struct slice text, size_t piece,
                               struct buf *out, size_t *left)
{
    struct stdio_body b;
    struct buf in;
    enum stdio_body_end end = STDIO_BODY_MORE;
    buf_init(&in, BODY_MAX);
    stdio_body_begin(&b, h, true);
    while (end == STDIO_BODY_MORE && text.n > 0) {
        size_t n = piece < text.n ? piece : text.n;
        if (buf_append(&in, text.p, n) < 0)
            abort();
        text = (struct slice){text.p + n, text.n - n};
        end = stdio_body_take(&b, &in, out);
    }
    *left = end == STDIO_BODY_WHOLE ? buf_len(&in) + text.n : 0;
    buf_free(&in);
    return end;
}

static void take_head(struct slice text, size_t piece)
{
    struct stdio_head h;
    struct buf a, b;
    size_t left_a, left_b;
    ssize_t n = stdio_head_read(text, true, &h);
    (void)stdio_head_read(text, false, &(struct stdio_head){.status = 0});
    if (n <= 0 || text.n > BODY_MAX)
        return;
    if ((size_t)n > text.n)
        abort();
    text = (struct slice){text.p + n, text.n - (size_t)n};
    buf_init(&a, BODY_MAX);
    buf_init(&b, BODY_MAX);
    enum stdio_body_end whole = run(&h, text, text.n, &a, &left_a),
                        cut = run(&h, text, piece, &b, &left_b);
    bool bad = whole == STDIO_BODY_BAD || cut == STDIO_BODY_BAD;
    if (whole != cut || left_a != left_b || (!bad && !slice_eq(buf_slice(&a), buf_slice(&b))))
        abort();
    buf_free(&a);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stdio_message m[STDIO_MESSAGES_MAX];
    if (size == 0)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    int n = stdio_scan(text, m, STDIO_MESSAGES_MAX);
    for (int i = 0; i < n; i++)
        if (m[i].id.n > STDIO_ID_MAX || m[i].method.n > text.n)
            abort();
    for (int i = 0; i < n && i < 2; i++)
        for (int k = 0; k < n; k++)
            compare_ids(m[i].id, m[k].id);
    compare(text, n, m);
    take_head(text, 1 + data[0] % 16);
    return 0;
}
