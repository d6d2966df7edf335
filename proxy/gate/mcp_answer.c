/* Writes the answer to refused messages. Nothing of the request is in it but ids that the
 * inspection has read and written anew. */
#include "mcp_answer.h"

#include "answer_words.h"
#include "buf.h"
#include "mcp.h"
#include "mcp_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 512 };

struct mcp_refused *mcp_refused_new(const struct inspection *in, const struct inspect_result *why)
{
    if (in->kind != INSPECT_MCP || why->calls[0] == 0)
        return NULL;
    struct mcp_refused *m = malloc(sizeof *m);
    if (m == NULL)
        return NULL;
    m->batch = why->batch;
    m->as_result = in->mcp->on_refused == MCP_REFUSAL_RESULT;
    memcpy(m->calls, why->calls, sizeof m->calls);
    return m;
}

/* The words are ours and hold nothing that would have to be escaped. */
static int put_one(const struct mcp_refused *m, struct slice call, const char *message,
                   const char *code, const char *id, struct buf *to)
{
    struct slice number = {call.p + 1, call.n - 1};
    if (m->as_result && call.p[0] == 'c')
        return buf_printf(to,
                          "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":"
                          "\"text\",\"text\":\"%s (%s %s)\"}],\"isError\":true}}",
                          SL(number), message, code, id);
    return buf_printf(to,
                      "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":\"%s\","
                      "\"data\":{\"type\":\"durward_denied\",\"code\":\"%s\",\"id\":\"%s\"}}}",
                      SL(number), MCP_ERROR_REFUSED, message, code, id);
}

static int put_all(const struct mcp_refused *m, const char *message, const char *code,
                   const char *id, struct buf *to)
{
    struct slice rest = slice_str(m->calls);
    int r = m->batch ? buf_append_str(to, "[") : 0;
    for (bool first = true; r == 0 && rest.n > 0; first = false) {
        ssize_t end = slice_find(rest, '\n');
        if (!first)
            r = buf_append_str(to, ",");
        if (r == 0)
            r = put_one(m, (struct slice){rest.p, (size_t)end}, message, code, id, to);
        rest = (struct slice){rest.p + end + 1, rest.n - (size_t)end - 1};
    }
    return r == 0 && m->batch ? buf_append_str(to, "]") : r;
}

static int make_head(struct head *h, unsigned status, size_t length, const char *code,
                     const char *id)
{
    char mark[96], class[96];
    snprintf(mark, sizeof mark, "%s %s", code, id);
    snprintf(class, sizeof class, "%s %s", answer_class_name(ANSWER_DENIED), code);
    h->status = status;
    h->minor = 1;
    h->body = BODY_LENGTH;
    h->length = length;
    return (length && http_head_set(h, "content-type", SLICE("application/json")) < 0) ||
                   http_head_set(h, "cache-control", SLICE("no-store")) < 0 ||
                   http_head_set(h, "durward-denied", slice_str(mark)) < 0 ||
                   http_head_set(h, "x-proxy-error", slice_str(class)) < 0
               ? -1
               : 0;
}

/* To the stream of its client; what was posted is accepted, as the server would say. */
static bool put_event(const struct mcp_refused *m, struct mcp_stream *stream, const char *message,
                      const char *code, const char *id)
{
    struct buf event;
    buf_init(&event, STREAM_IN_MAX);
    bool ok = buf_append_str(&event, "event: message\ndata: ") == 0 &&
              put_all(m, message, code, id, &event) == 0 && buf_append_str(&event, "\n\n") == 0 &&
              mcp_stream_put(stream, buf_slice(&event));
    buf_free(&event);
    return ok;
}

bool mcp_answer(const struct mcp_refused *m, struct mcp_stream *stream, const struct downstream *f,
                unsigned status, const char *code, const char *id)
{
    const struct answer_words *w = answer_words(status, code);
    char message[MESSAGE_MAX];
    struct buf text;
    struct head h;
    if (m == NULL || (status != 403 && status != 429) || w->class != ANSWER_DENIED)
        return false;
    snprintf(message, sizeof message, "Durward denied this request: %s. %s.", w->why, w->way);
    buf_init(&text, STREAM_IN_MAX);
    http_head_init(&h);
    bool there = stream && put_event(m, stream, message, code, id);
    bool ok = (there || put_all(m, message, code, id, &text) == 0) &&
              make_head(&h, there ? 202 : 200, buf_len(&text), code, id) == 0;
    if (ok)
        f->ops->reply(f->self, &h);
    if (ok && !there)
        f->ops->data(f->self, buf_data(&text), buf_len(&text));
    http_head_free(&h);
    buf_free(&text);
    return ok;
}
