/* Events of a server, whatever they are, with answers of ours put between them: another reader of
 * events (WHATWG HTML, 9.2) sees each of the server's as it is without ours, and ours whole. First
 * byte: how much at a time, and how often one is put. */
#include "mcp_stream.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 20, EVENT_MAX = 70000 };

static const char ours[] = "event: message\ndata: ours\n\n";

static void require(bool right)
{
    if (!right)
        abort();
}

static void down_data(void *self, const void *p, size_t n)
{
    require(buf_append(self, p, n) == 0);
}

static size_t down_room(void *self)
{
    return TEXT_MAX - buf_len(self);
}

/* The next event's name and data, each of its lines with a line feed; false: there is none more.
 * Lines end at CR LF, LF or CR. */
static bool next_event(struct slice *text, struct buf *name, struct buf *what)
{
    buf_clear(name);
    buf_clear(what);
    while (text->n > 0) {
        size_t end = 0;
        while (end < text->n && text->p[end] != '\n' && text->p[end] != '\r')
            end++;
        if (end == text->n)
            return false;
        struct slice line = {text->p, end};
        end += 1 + (text->p[end] == '\r' && end + 1 < text->n && text->p[end + 1] == '\n');
        *text = (struct slice){text->p + end, text->n - end};
        if (line.n == 0 && buf_len(what) > 0)
            return true;
        if (line.n == 0)
            buf_clear(name);
        bool is_data = slice_starts(line, SLICE("data:")) || slice_eq_str(line, "data"),
             is_name = slice_starts(line, SLICE("event:"));
        struct slice value = {line.p + 5 + is_name, line.n < 6 ? 0 : line.n - 5 - is_name};
        if (slice_starts(value, SLICE(" ")))
            value = (struct slice){value.p + 1, value.n - 1};
        if (is_name)
            buf_clear(name);
        if (is_name || is_data)
            require(buf_append_slice(is_name ? name : what, value) == 0);
        if (is_data)
            require(buf_append(what, "\n", 1) == 0);
    }
    return false;
}

static bool is_ours(const struct buf *name, const struct buf *what)
{
    return slice_eq_str(buf_slice(name), "message") && slice_eq_str(buf_slice(what), "ours\n");
}

/* Both have the same events, but for `put` of ours. */
static void compare(struct slice alone, struct slice together, size_t put)
{
    struct buf name, what, other_name, other;
    buf_init(&name, EVENT_MAX);
    buf_init(&what, 2 * EVENT_MAX);
    buf_init(&other_name, EVENT_MAX);
    buf_init(&other, 2 * EVENT_MAX);
    bool more = next_event(&alone, &name, &what);
    while (next_event(&together, &other_name, &other)) {
        bool same = more && slice_eq(buf_slice(&name), buf_slice(&other_name)) &&
                    slice_eq(buf_slice(&what), buf_slice(&other));
        if (same)
            more = next_event(&alone, &name, &what);
        else
            require(put-- > 0 && is_ours(&other_name, &other));
    }
    require(!more && put == 0);
    buf_free(&name);
    buf_free(&what);
    buf_free(&other_name);
    buf_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct downstream_ops ops = {.data = down_data, .room = down_room};
    struct mcp_streams all = LIST_HEAD_INITIALIZER(all);
    struct authority here;
    struct buf out;
    if (size < 2 || size > 65536)
        return 0;
    struct slice in = {(const char *)data + 1, size - 1}, left = in;
    if (slice_find_slice(in, SLICE("ours")) >= 0) /* which could not be told from ours */
        return 0;
    size_t step = 1 + (data[0] & 15), often = 1 + (data[0] >> 4), round = 0, asked = 0;
    buf_init(&out, TEXT_MAX);
    require(authority_parse(&here, SCHEME_HTTPS, SLICE("mcp.example.com")) == 0);
    struct mcp_stream_at at = {&here, NULL};
    struct downstream to = {&ops, &out};
    struct mcp_stream *s = mcp_stream_new(&all, &at, &to);
    require(s != NULL);
    while (left.n > 0) {
        struct slice piece = {left.p, left.n < step ? left.n : step};
        left = (struct slice){left.p + piece.n, left.n - piece.n};
        require(buf_append_slice(&out, piece) == 0);
        mcp_stream_saw(s, piece);
        if (round++ % often == 0 && asked < 100) {
            require(mcp_stream_put(s, slice_str(ours)));
            asked++;
        }
    }
    size_t put = (buf_len(&out) - in.n) / (sizeof ours - 1);
    require(buf_len(&out) == in.n + put * (sizeof ours - 1) && put <= asked);
    compare(in, buf_slice(&out), put);
    mcp_stream_free(s);
    require(LIST_EMPTY(&all));
    buf_free(&out);
    return 0;
}
