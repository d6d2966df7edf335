/* Cuts a reply into JSON messages, the body itself or the data of server-sent events (HTML, 9.2),
 * and writes those anew in which something was changed. Lines end in LF or CRLF: what some readers
 * take for the end of a line besides (a lone CR, U+0085, U+2028, U+2029) is refused, or written as
 * an escape where it stands in a JSON text. */
#include "mcp_reply.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "inspect_internal.h"
#include "mcp_message.h"
#include "media_type.h"

struct mcp_reply {
    struct mcp_view view;
    enum mcp_form form;
    struct buf in;  /* of the message, or event, that is not whole */
    size_t scanned; /* of it: no line ends before here that was not looked at */
    size_t line;    /* where the line begins that is being read */
    bool begun;     /* something of the stream was read */
    struct buf out;
    struct mcp_changes seen; /* of all messages */
};

/* Clients look for words in a type, or for how it begins, and decode what its charset says. */
enum mcp_form mcp_reply_form(const struct inspect_request *facts)
{
    switch (inspect_media(facts)) {
    case MEDIA_EVENTS:
        return MCP_FORM_EVENTS;
    case MEDIA_JSON:
        return MCP_FORM_JSON;
    default:
        break;
    }
    return facts->n_types > 1 || media_type_has_word(facts->type, SLICE("json")) ||
                   media_type_has_word(facts->type, SLICE("event-stream"))
               ? MCP_FORM_DOUBTFUL
               : MCP_FORM_NONE;
}

struct mcp_reply *mcp_reply_new(const struct mcp_view *view, enum mcp_form form)
{
    struct mcp_reply *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->view = *view;
    r->form = form;
    buf_init_wiped(&r->in, MCP_MESSAGE_MAX);
    buf_init_wiped(&r->out, MCP_OUT_MAX);
    return r;
}

void mcp_reply_free(struct mcp_reply *r)
{
    if (r == NULL)
        return;
    buf_free(&r->in);
    buf_free(&r->out);
    free(r);
}

struct slice mcp_reply_out(const struct mcp_reply *r)
{
    return buf_slice(&r->out);
}

void mcp_reply_drain(struct mcp_reply *r, size_t n)
{
    buf_drain(&r->out, n);
    buf_shrink(&r->out);
}

size_t mcp_reply_held(const struct mcp_reply *r)
{
    return buf_len(&r->in) + buf_len(&r->out);
}

unsigned mcp_reply_hidden(const struct mcp_reply *r)
{
    return r->seen.hidden;
}

unsigned mcp_reply_refused(const struct mcp_reply *r)
{
    return r->seen.refused;
}

const char *mcp_reply_notes(const struct mcp_reply *r)
{
    return r->seen.notes;
}

/* ---- a message ---- */

static int put_json(struct buf *to, const json_t *root)
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    int r = text ? buf_append_str(to, text) : -1;
    free(text);
    return r;
}

/* before and after stand around the text when it is written anew; raw: as it came. */
static enum mcp_reply_end pass_message(struct mcp_reply *r, struct slice text, bool anew,
                                       struct slice before, struct slice after, struct slice raw)
{
    unsigned was = r->seen.hidden + r->seen.refused;
    json_t *root;
    enum body_json read = body_json_read(text, &root);
    if (read != BODY_JSON_OK)
        return read == BODY_JSON_BAD ? MCP_REPLY_UNREADABLE : MCP_REPLY_TOO_LARGE;
    bool good = mcp_message_change(&r->view, root, &r->seen);
    int put = 0;
    if (good && (anew || r->seen.hidden + r->seen.refused != was))
        put = buf_append_slice(&r->out, before) < 0 || put_json(&r->out, root) < 0 ||
                      buf_append_slice(&r->out, after) < 0
                  ? -1
                  : 0;
    else if (good)
        put = buf_append_slice(&r->out, raw);
    json_decref(root);
    return !good ? MCP_REPLY_UNREADABLE : put < 0 ? MCP_REPLY_MEMORY : MCP_REPLY_OK;
}

/* ---- events ---- */

struct event_parts {
    struct buf data;   /* joined by line feeds */
    struct buf others; /* all other lines, as they came, with LF */
    struct slice type;
    bool has_data;
    bool odd; /* some reader may end a line elsewhere */
};

static bool splits_lines(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\v' || c == '\f' || (c >= 0x1c && c <= 0x1e))
            return true;
        if (i + 1 < s.n && c == 0xc2 && (unsigned char)s.p[i + 1] == 0x85)
            return true;
        if (i + 2 < s.n && c == 0xe2 && (unsigned char)s.p[i + 1] == 0x80 &&
            ((unsigned char)s.p[i + 2] | 1) == 0xa9)
            return true;
    }
    return false;
}

static int take_line(struct event_parts *e, struct slice line)
{
    ssize_t colon = slice_find(line, ':');
    struct slice name = {line.p, colon < 0 ? line.n : (size_t)colon}, value = {"", 0};
    if (colon >= 0)
        value = (struct slice){line.p + colon + 1, line.n - (size_t)colon - 1};
    if (value.n > 0 && value.p[0] == ' ')
        value = (struct slice){value.p + 1, value.n - 1};
    if (slice_eq_str(name, "data")) {
        if (e->has_data && buf_append(&e->data, "\n", 1) < 0)
            return -1;
        e->has_data = true;
        return buf_append_slice(&e->data, value);
    }
    if (slice_eq_str(name, "event"))
        e->type = value;
    return buf_append_slice(&e->others, line) < 0 || buf_append(&e->others, "\n", 1) < 0 ? -1 : 0;
}

/* 0; -1: memory; 1: a carriage return alone in a line. */
static int take_lines(struct event_parts *e, struct slice raw)
{
    while (raw.n > 0) {
        ssize_t end = slice_find(raw, '\n');
        struct slice line = {raw.p, (size_t)end};
        raw = (struct slice){raw.p + end + 1, raw.n - (size_t)end - 1};
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (slice_find(line, '\r') >= 0)
            return 1;
        e->odd = e->odd || splits_lines(line);
        if (line.n > 0 && take_line(e, line) < 0)
            return -1;
    }
    return 0;
}

static bool is_structure(struct slice data)
{
    while (data.n > 0 && strchr(" \t\r\n", data.p[0]) && data.p[0])
        data = (struct slice){data.p + 1, data.n - 1};
    return slice_starts(data, SLICE("{")) || slice_starts(data, SLICE("["));
}

/* Clients that do not look at an event's type take what is one for a message. */
static enum mcp_reply_end pass_parts(struct mcp_reply *r, struct event_parts *e, struct slice raw)
{
    struct slice data = buf_slice(&e->data);
    bool message = e->type.n == 0 || slice_eq_str(e->type, "message") || is_structure(data);
    if (message && data.n > 0) {
        if (splits_lines(buf_slice(&e->others)) || buf_append_str(&e->others, "data: ") < 0)
            return MCP_REPLY_UNREADABLE;
        return pass_message(r, data, e->odd, buf_slice(&e->others), SLICE("\n\n"), raw);
    }
    if (e->odd)
        return MCP_REPLY_UNREADABLE;
    return buf_append_slice(&r->out, raw) < 0 ? MCP_REPLY_MEMORY : MCP_REPLY_OK;
}

static enum mcp_reply_end pass_event(struct mcp_reply *r, struct slice raw)
{
    struct event_parts e = {.has_data = false};
    buf_init_wiped(&e.data, MCP_MESSAGE_MAX);
    buf_init_wiped(&e.others, MCP_MESSAGE_MAX);
    int read = take_lines(&e, raw);
    enum mcp_reply_end end = read < 0   ? MCP_REPLY_MEMORY
                             : read > 0 ? MCP_REPLY_UNREADABLE
                                        : pass_parts(r, &e, raw);
    buf_free(&e.data);
    buf_free(&e.others);
    return end;
}

/* Every whole event that is there. */
static enum mcp_reply_end pass_events(struct mcp_reply *r)
{
    enum mcp_reply_end end = MCP_REPLY_OK;
    while (end == MCP_REPLY_OK && r->scanned < buf_len(&r->in)) {
        struct slice all = buf_slice(&r->in);
        const char *lf = memchr(all.p + r->scanned, '\n', all.n - r->scanned);
        if (lf == NULL) {
            r->scanned = all.n;
            break;
        }
        size_t at = (size_t)(lf - all.p);
        bool blank = at == r->line || (at == r->line + 1 && all.p[r->line] == '\r');
        r->scanned = r->line = at + 1;
        if (!blank)
            continue;
        end = pass_event(r, (struct slice){all.p, at + 1});
        buf_drain(&r->in, at + 1);
        r->scanned = r->line = 0;
    }
    buf_shrink(&r->in);
    return end;
}

/* A byte order mark is no part of the first line for one reader, and for another it is. */
static bool marked(const struct mcp_reply *r)
{
    return slice_starts(buf_slice(&r->in), SLICE("\xef"));
}

enum mcp_reply_end mcp_reply_feed(struct mcp_reply *r, struct slice bytes)
{
    if (bytes.n > buf_room(&r->in))
        return MCP_REPLY_TOO_LARGE;
    if (buf_append_slice(&r->in, bytes) < 0)
        return MCP_REPLY_MEMORY;
    if (!r->begun && bytes.n > 0 && marked(r))
        return MCP_REPLY_UNREADABLE;
    r->begun = r->begun || bytes.n > 0;
    return r->form == MCP_FORM_EVENTS ? pass_events(r) : MCP_REPLY_OK;
}

enum mcp_reply_end mcp_reply_close(struct mcp_reply *r)
{
    struct slice all = buf_slice(&r->in);
    if (r->form == MCP_FORM_EVENTS || all.n == 0)
        return MCP_REPLY_OK;
    enum mcp_reply_end end = pass_message(r, all, false, SLICE(""), SLICE(""), all);
    buf_clear(&r->in);
    return end == MCP_REPLY_UNREADABLE && r->view.failed ? MCP_REPLY_OK : end;
}
