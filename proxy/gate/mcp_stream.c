/* Follows the events of a stream as far as it has to: where each ends, and what `endpoint` says. */
#include "mcp_stream.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

struct mcp_stream {
    struct mcp_stream_at at;
    struct downstream to;
    char line[MCP_STREAM_ENDPOINT]; /* that is being read; what is longer is of no matter */
    size_t n_line, n_data;
    bool is_endpoint; /* the event that is being read is */
    bool between;     /* no event is begun */
    char data[MCP_STREAM_ENDPOINT], endpoint[MCP_STREAM_ENDPOINT]; /* path and query; "" */
    struct buf waiting;
    LIST_ENTRY(mcp_stream) link;
};

struct mcp_stream *mcp_stream_new(struct mcp_streams *all, const struct mcp_stream_at *at,
                                  const struct downstream *to)
{
    struct mcp_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->at = *at;
    s->to = *to;
    s->between = true;
    buf_init(&s->waiting, MCP_STREAM_WAITING);
    LIST_INSERT_HEAD(all, s, link);
    return s;
}

void mcp_stream_free(struct mcp_stream *s)
{
    if (s == NULL)
        return;
    LIST_REMOVE(s, link);
    buf_free(&s->waiting);
    free(s);
}

/* What an upstream was told of the room may be on its way still, so half of it stays free. */
static void flush(struct mcp_stream *s)
{
    size_t n = buf_len(&s->waiting);
    if (n == 0 || !s->between || s->to.ops->room(s->to.self) / 2 < n)
        return;
    s->to.ops->data(s->to.self, buf_data(&s->waiting), n);
    buf_clear(&s->waiting);
}

bool mcp_stream_put(struct mcp_stream *s, struct slice event)
{
    if (buf_append_slice(&s->waiting, event) < 0)
        return false;
    flush(s);
    return true;
}

/* ---- the server's events ---- */

static struct slice value_of(struct slice line, size_t name)
{
    struct slice v = {line.p + name, line.n - name};
    return slice_starts(v, SLICE(" ")) ? (struct slice){v.p + 1, v.n - 1} : v;
}

static void line_end(struct mcp_stream *s)
{
    struct slice line = {s->line, s->n_line};
    s->n_line = 0;
    if (slice_starts(line, SLICE("event:"))) {
        s->is_endpoint = slice_eq_str(value_of(line, 6), "endpoint");
    } else if (slice_starts(line, SLICE("data:"))) {
        struct slice v = value_of(line, 5);
        memcpy(s->data, v.p, v.n);
        s->n_data = v.n;
    }
}

/* Behind "https://HOST" or "https://HOST:PORT" of this host; nothing of another, to which no client
 * of the stream's goes. */
static struct slice behind_authority(struct slice url, const char *host)
{
    ssize_t slashes = slice_find(url, '/');
    struct slice name = slice_str(host);
    if (slice_starts(url, SLICE("/")) || slashes < 0)
        return url;
    struct slice at = {url.p + slashes, url.n - (size_t)slashes};
    if (!slice_starts(at, SLICE("//")) || !slice_istarts((struct slice){at.p + 2, at.n - 2}, name))
        return SLICE("");
    at = (struct slice){at.p + 2 + name.n, at.n - 2 - name.n};
    ssize_t path = slice_starts(at, SLICE(":")) ? slice_find(at, '/') : 0;
    return path < 0 ? SLICE("") : (struct slice){at.p + path, at.n - (size_t)path};
}

static void event_end(struct mcp_stream *s)
{
    struct slice at = behind_authority((struct slice){s->data, s->n_data}, s->at.authority->host);
    if (s->is_endpoint && slice_starts(at, SLICE("/"))) {
        memcpy(s->endpoint, at.p, at.n);
        s->endpoint[at.n] = 0;
    }
    s->is_endpoint = false;
    s->n_data = 0;
}

void mcp_stream_saw(struct mcp_stream *s, struct slice bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        char c = bytes.p[i];
        if (c == '\n' && s->n_line == 0) {
            event_end(s);
            s->between = true;
        } else if (c == '\n') {
            line_end(s);
        } else if (c != '\r') {
            s->between = false;
            if (s->n_line < sizeof s->line - 1)
                s->line[s->n_line++] = c;
        }
    }
    flush(s);
}

/* ---- whose message it is ---- */

static bool same_sandbox(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Its path and query, as the endpoint was said. */
static bool is_at(const char *endpoint, const struct head *post)
{
    struct slice e = slice_str(endpoint), path = post->path;
    if (!slice_starts(e, path))
        return false;
    e = (struct slice){e.p + path.n, e.n - path.n};
    if (!post->has_query)
        return e.n == 0;
    return slice_starts(e, SLICE("?")) && slice_eq((struct slice){e.p + 1, e.n - 1}, post->query);
}

struct mcp_stream *mcp_stream_of(const struct mcp_streams *all, const struct mcp_stream_at *at,
                                 const struct head *post)
{
    struct mcp_stream *s;
    LIST_FOREACH(s, all, link)
    if (s->endpoint[0] && authority_eq(s->at.authority, at->authority) &&
        same_sandbox(s->at.sandbox, at->sandbox) && is_at(s->endpoint, post))
        return s;
    return NULL;
}
