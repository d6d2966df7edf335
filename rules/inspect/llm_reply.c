/* Cuts a model's reply into JSON texts (the body, server-sent events, lines, or the events of
 * Amazon's binary streams), and keeps the few numbers that each vendor's form has for tokens. */
#include "llm_reply.h"

#include "json_scan.h"

#include <stdlib.h>
#include <string.h>

enum framing { FRAMING_NONE = 0, FRAMING_JSON, FRAMING_EVENTS, FRAMING_LINES, FRAMING_AMAZON };
enum count {
    COUNT_IN = 0,
    COUNT_IN_MORE,
    COUNT_OUT,
    COUNT_OUT_MORE,
    COUNT_CACHED,
    COUNT_WRITTEN,
    COUNT_EACH_IN, /* these are sums, over the steps that the call took */
    COUNT_EACH_OUT,
    COUNT_EACH_CACHED,
    COUNT_EACH_WRITTEN,
    COUNTS
};
enum { AMAZON_HEAD = 12, AMAZON_MAX = 16 << 20, HEAD_KEPT = 8 };

/* at: the paths of json_scan; a form may have one in several places. first: as the call begins, so
 * that an answer's tokens are not all there yet. */
static const struct place {
    enum llm_form form;
    const char *at;
    enum count count;
    bool first;
} places[] = {
    {LLM_CHAT, "usage.prompt_tokens", COUNT_IN, false},
    {LLM_CHAT, "usage.completion_tokens", COUNT_OUT, false},
    {LLM_CHAT, "usage.prompt_tokens_details.cached_tokens", COUNT_CACHED, false},
    {LLM_EMBEDDINGS, "usage.prompt_tokens", COUNT_IN, false},
    {LLM_EMBEDDINGS, "prompt_eval_count", COUNT_IN, false},
    {LLM_RESPONSES, "usage.input_tokens", COUNT_IN, false},
    {LLM_RESPONSES, "usage.output_tokens", COUNT_OUT, false},
    {LLM_RESPONSES, "usage.input_tokens_details.cached_tokens", COUNT_CACHED, false},
    {LLM_RESPONSES, "response.usage.input_tokens", COUNT_IN, false},
    {LLM_RESPONSES, "response.usage.output_tokens", COUNT_OUT, false},
    {LLM_RESPONSES, "response.usage.input_tokens_details.cached_tokens", COUNT_CACHED, false},
    {LLM_MESSAGES, "usage.input_tokens", COUNT_IN, false},
    {LLM_MESSAGES, "usage.output_tokens", COUNT_OUT, false},
    {LLM_MESSAGES, "usage.cache_read_input_tokens", COUNT_CACHED, false},
    {LLM_MESSAGES, "usage.cache_creation_input_tokens", COUNT_WRITTEN, false},
    {LLM_MESSAGES, "usage.iterations..input_tokens", COUNT_EACH_IN, false},
    {LLM_MESSAGES, "usage.iterations..output_tokens", COUNT_EACH_OUT, false},
    {LLM_MESSAGES, "usage.iterations..cache_read_input_tokens", COUNT_EACH_CACHED, false},
    {LLM_MESSAGES, "usage.iterations..cache_creation_input_tokens", COUNT_EACH_WRITTEN, false},
    {LLM_MESSAGES, "message.usage.input_tokens", COUNT_IN, true},
    {LLM_MESSAGES, "message.usage.output_tokens", COUNT_OUT, true},
    {LLM_MESSAGES, "message.usage.cache_read_input_tokens", COUNT_CACHED, true},
    {LLM_MESSAGES, "message.usage.cache_creation_input_tokens", COUNT_WRITTEN, true},
    {LLM_GEMINI, "usageMetadata.promptTokenCount", COUNT_IN, false},
    {LLM_GEMINI, "usageMetadata.toolUsePromptTokenCount", COUNT_IN_MORE, false},
    {LLM_GEMINI, "usageMetadata.candidatesTokenCount", COUNT_OUT, false},
    {LLM_GEMINI, "usageMetadata.thoughtsTokenCount", COUNT_OUT_MORE, false},
    {LLM_GEMINI, "usageMetadata.cachedContentTokenCount", COUNT_CACHED, false},
    {LLM_CONVERSE, "usage.inputTokens", COUNT_IN, false},
    {LLM_CONVERSE, "usage.outputTokens", COUNT_OUT, false},
    {LLM_CONVERSE, "usage.cacheReadInputTokens", COUNT_CACHED, false},
    {LLM_CONVERSE, "usage.cacheWriteInputTokens", COUNT_WRITTEN, false},
    {LLM_OLLAMA, "prompt_eval_count", COUNT_IN, false},
    {LLM_OLLAMA, "eval_count", COUNT_OUT, false},
};

/* Where the texts of an answer stand. */
static const char *const answers[LLM_FORMS][3] = {
    [LLM_CHAT] = {"choices"},
    [LLM_RESPONSES] = {"delta", "output"},
    [LLM_MESSAGES] = {"delta", "content"},
    [LLM_GEMINI] = {"candidates"},
    [LLM_CONVERSE] = {"delta", "output"},
    [LLM_OLLAMA] = {"message", "response"},
};

static const struct form {
    bool beside;  /* cached and written tokens are not among those of `in` */
    bool no_out;  /* an answer without tokens does not say so */
    bool no_in;   /* nor does a prompt that was all in a cache */
    bool is_last; /* the whole of it comes with the end: what was cut behind it is no matter */
} forms[LLM_FORMS] = {
    [LLM_EMBEDDINGS] = {.no_out = true, .is_last = true},
    [LLM_RESPONSES] = {.is_last = true},
    [LLM_MESSAGES] = {.beside = true, .is_last = true},
    [LLM_GEMINI] = {.no_out = true},
    [LLM_CONVERSE] = {.beside = true, .is_last = true},
    [LLM_OLLAMA] = {.no_in = true, .is_last = true},
};

struct counts {
    unsigned has; /* a bit a count */
    bool first, last;
    uint64_t n[COUNTS];
};

/* Of the line that is being read. */
struct line {
    char name[8];
    size_t n_name;
    bool in_value, is_data, begun, cr;
};

struct llm_reply {
    enum llm_form form;
    enum framing framing;
    bool array;        /* the body is a list of replies, as Google's are without `alt=sse` */
    bool closed, done; /* all of it came; it said that it is done */
    bool unreadable;   /* some of it that could have been of matter */
    bool coded;
    uint64_t said, events; /* bytes of its texts in what is over; how many events that was */
    uint64_t unread;       /* bytes of which no text is known */
    bool open;             /* a text was begun */
    bool broken;           /* and is no JSON */
    size_t n_head;         /* of that text */
    char head[HEAD_KEPT];
    struct json_scan scan;
    struct counts now, all; /* of this text; of those before */
    struct line line;
    unsigned char frame[AMAZON_HEAD];
    size_t n_frame;
    uint32_t skip, left, tail; /* bytes of headers, payload and checksum to come */
};

/* ---- one text ---- */

static void on_number(struct llm_reply *r, const struct place *p, struct slice text)
{
    const uint64_t most = UINT64_C(1) << 40;
    uint64_t n, before = p->count >= COUNT_EACH_IN ? r->now.n[p->count] : 0;
    bool twice = p->count < COUNT_EACH_IN && (r->now.has >> p->count & 1);
    if (twice || slice_u64(text, most - before, &n) < 0) {
        r->unreadable = true; /* no count of anything; or it is said twice */
        return;
    }
    r->now.has |= 1u << p->count;
    r->now.n[p->count] = before + n;
    r->now.first = r->now.first || p->first;
    r->now.last = r->now.last || (!p->first && p->count == COUNT_OUT);
}

static void on_value(void *arg, const char *path, enum json_scan_kind kind, struct slice text)
{
    struct llm_reply *r = arg;
    if (r->array && path[0] == '.')
        path++;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (places[i].form == r->form && strcmp(places[i].at, path) == 0) {
            if (kind == JSON_SCAN_NUMBER)
                on_number(r, &places[i], text);
            else if (!slice_eq_str(text, "null"))
                r->unreadable = true;
            return;
        }
}

static void text_feed(struct llm_reply *r, struct slice s)
{
    if (!r->open) {
        r->open = true;
        r->broken = false;
        r->n_head = 0;
        json_scan_begin(&r->scan);
        r->scan.counted = answers[r->form];
        memset(&r->now, 0, sizeof r->now);
    }
    for (size_t i = 0; i < s.n && r->n_head < HEAD_KEPT; i++)
        r->head[r->n_head++] = s.p[i];
    if (!r->broken && json_scan_feed(&r->scan, s, on_value, r) < 0)
        r->broken = true;
    r->unread += r->broken ? s.n : 0;
}

/* What a text says takes the place of what texts before it said: all forms count up. */
static void text_take(struct llm_reply *r)
{
    for (unsigned i = 0; i < COUNTS; i++)
        if (r->now.has >> i & 1)
            r->all.n[i] = r->now.n[i];
    r->all.has |= r->now.has;
    r->all.last = r->all.last || r->now.last;
    memset(&r->now, 0, sizeof r->now);
}

static void text_end(struct llm_reply *r)
{
    if (!r->open)
        return;
    r->open = false;
    r->events++;
    r->said += r->scan.said;
    r->scan.said = 0;
    if (!r->broken && json_scan_end(&r->scan, on_value, r) == 0)
        text_take(r);
    else if (r->n_head == 6 && memcmp(r->head, "[DONE]", 6) == 0)
        r->done = true;
    else
        r->unreadable = true;
}

/* ---- server-sent events (HTML, 9.2) ---- */

static void event_line_end(struct llm_reply *r)
{
    struct line *l = &r->line;
    if (l->n_name == 0 && !l->in_value)
        text_end(r); /* an empty line: the event is whole */
    *l = (struct line){.cr = l->cr};
}

/* The run of a value that is in these bytes. */
static size_t event_value(struct llm_reply *r, struct slice s)
{
    struct line *l = &r->line;
    size_t n = 0;
    while (n < s.n && s.p[n] != '\n' && s.p[n] != '\r')
        n++;
    struct slice run = {s.p, n};
    if (!l->begun && n > 0) {
        l->begun = true;
        run = run.p[0] == ' ' ? (struct slice){run.p + 1, run.n - 1} : run;
    }
    if (l->is_data && run.n > 0)
        text_feed(r, run);
    return n;
}

static void event_byte(struct llm_reply *r, char c)
{
    struct line *l = &r->line;
    if (c == '\n' && l->cr) {
        l->cr = false;
        return;
    }
    l->cr = c == '\r';
    if (c == '\n' || c == '\r') {
        event_line_end(r);
    } else if (c == ':') {
        l->in_value = true;
        l->is_data = l->n_name == 4 && memcmp(l->name, "data", 4) == 0;
        if (l->is_data && r->open)
            text_feed(r, SLICE("\n"));
    } else if (l->n_name < sizeof l->name) {
        l->name[l->n_name++] = c;
    }
}

static void feed_events(struct llm_reply *r, struct slice s)
{
    for (size_t i = 0; i < s.n;) {
        if (r->line.in_value)
            i += event_value(r, (struct slice){s.p + i, s.n - i});
        if (i < s.n)
            event_byte(r, s.p[i++]);
    }
}

/* ---- a JSON text a line ---- */

static void feed_lines(struct llm_reply *r, struct slice s)
{
    while (s.n > 0) {
        ssize_t lf = slice_find(s, '\n');
        struct slice line = {s.p, lf < 0 ? s.n : (size_t)lf};
        while (!r->open && slice_starts(line, SLICE("\r"))) /* an empty line, however it is cut */
            line = (struct slice){line.p + 1, line.n - 1};
        if (line.n > 0)
            text_feed(r, line);
        if (lf < 0)
            return;
        text_end(r);
        s = (struct slice){s.p + lf + 1, s.n - (size_t)lf - 1};
    }
}

/* ---- vnd.amazon.eventstream: lengths, a checksum, headers, a payload, a checksum ---- */

static uint32_t u32_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool frame_begin(struct llm_reply *r)
{
    uint32_t all = u32_at(r->frame), heads = u32_at(r->frame + 4);
    if (all > AMAZON_MAX || all < AMAZON_HEAD + 4 || heads > all - AMAZON_HEAD - 4)
        return false;
    r->skip = heads;
    r->left = all - AMAZON_HEAD - 4 - heads;
    r->tail = 4;
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes of s that the present part of a frame takes. */
static size_t frame_part(struct llm_reply *r, struct slice s)
{
    size_t n;
    if (r->skip > 0) {
        n = least(r->skip, s.n);
        r->skip -= (uint32_t)n;
    } else if (r->left > 0) {
        n = least(r->left, s.n);
        text_feed(r, (struct slice){s.p, n});
        r->left -= (uint32_t)n;
    } else {
        n = least(r->tail, s.n);
        r->tail -= (uint32_t)n;
        if (r->tail == 0) {
            text_end(r);
            r->n_frame = 0;
        }
    }
    return n;
}

static void feed_amazon(struct llm_reply *r, struct slice s)
{
    while (s.n > 0 && !r->unreadable) {
        size_t n = 1;
        if (r->n_frame == AMAZON_HEAD) {
            n = frame_part(r, s);
        } else {
            r->frame[r->n_frame++] = (unsigned char)s.p[0];
            if (r->n_frame == AMAZON_HEAD && !frame_begin(r))
                r->unreadable = true;
        }
        s = (struct slice){s.p + n, s.n - n};
    }
}

/* ---- the whole ---- */

static enum framing framing_of(const struct inspect_request *facts)
{
    static const struct {
        const char *type;
        enum framing framing;
    } types[] = {{"text/event-stream", FRAMING_EVENTS},
                 {"application/json", FRAMING_JSON},
                 {"application/x-ndjson", FRAMING_LINES},
                 {"application/vnd.amazon.eventstream", FRAMING_AMAZON}};
    struct slice type = facts->type;
    ssize_t semicolon = slice_find(type, ';');
    type = slice_trim((struct slice){type.p, semicolon < 0 ? type.n : (size_t)semicolon});
    for (size_t i = 0; facts->n_types == 1 && i < ARRAY_LEN(types); i++)
        if (slice_ieq_str(type, types[i].type))
            return types[i].framing;
    return FRAMING_NONE;
}

struct llm_reply *llm_reply_new(enum llm_form form, const struct inspect_request *facts)
{
    struct llm_reply *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->form = form;
    r->coded = facts->coded;
    r->framing = facts->coded ? FRAMING_NONE : framing_of(facts);
    r->array = r->framing == FRAMING_JSON && form == LLM_GEMINI;
    return r;
}

void llm_reply_free(struct llm_reply *r)
{
    free(r);
}

bool llm_reply_is_events(const struct llm_reply *r)
{
    return r && r->framing == FRAMING_EVENTS;
}

/* A list is one text, and its members count up as events do: a member's numbers take the place of
 * those of the one before. */
static void feed_list(struct llm_reply *r, struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        text_feed(r, (struct slice){s.p + i, 1});
        if (s.p[i] == '}' && !r->broken && r->scan.depth == 1 && (r->scan.arrays & 1))
            text_take(r);
    }
}

void llm_reply_feed(struct llm_reply *r, struct slice bytes)
{
    if (r == NULL || bytes.n == 0)
        return;
    if (r->unreadable) {
        r->unread += bytes.n;
        return;
    }
    switch (r->framing) {
    case FRAMING_NONE:
        r->unread += bytes.n;
        break;
    case FRAMING_JSON:
        (r->array ? feed_list : text_feed)(r, bytes);
        break;
    case FRAMING_EVENTS:
        feed_events(r, bytes);
        break;
    case FRAMING_LINES:
        feed_lines(r, bytes);
        break;
    case FRAMING_AMAZON:
        feed_amazon(r, bytes);
        break;
    }
}

void llm_reply_close(struct llm_reply *r)
{
    if (r == NULL || r->closed)
        return;
    r->closed = true;
    if (r->framing == FRAMING_JSON || r->framing == FRAMING_LINES)
        text_end(r);
}

/* What is compressed has about as many tokens as bytes. */
static uint64_t seen(const struct llm_reply *r)
{
    uint64_t said = r->said + (r->open ? r->scan.said : 0), quarter = (said + 3) / 4,
             unread = r->coded ? r->unread : (r->unread + 3) / 4;
    return (quarter > r->events ? quarter : r->events) + unread;
}

/* Steps that the sums above them leave out: a conversation made shorter, another model's advice or
 * attempt. */
static void take_steps(const struct counts *c, struct llm_usage *u)
{
    uint64_t in = c->n[COUNT_EACH_IN] + c->n[COUNT_EACH_CACHED] + c->n[COUNT_EACH_WRITTEN];
    if (in > u->in) {
        u->in = in;
        u->cached = c->n[COUNT_EACH_CACHED];
        u->written = c->n[COUNT_EACH_WRITTEN];
    }
    if (c->n[COUNT_EACH_OUT] > u->out)
        u->out = c->n[COUNT_EACH_OUT];
}

struct llm_usage llm_reply_usage(const struct llm_reply *r)
{
    struct llm_usage u = {.known = false};
    if (r == NULL || r->form == LLM_NONE)
        return u;
    const struct form *f = &forms[r->form];
    const struct counts *c = &r->all;
    bool in = c->has >> COUNT_IN & 1, out = c->has >> COUNT_OUT & 1;
    u.any = c->has != 0;
    u.seen = r->form == LLM_EMBEDDINGS ? 0 : seen(r);
    u.cached = c->n[COUNT_CACHED];
    u.written = c->n[COUNT_WRITTEN];
    u.in = c->n[COUNT_IN] + c->n[COUNT_IN_MORE] + (f->beside ? u.cached + u.written : 0);
    u.out = c->n[COUNT_OUT] + c->n[COUNT_OUT_MORE];
    take_steps(c, &u);
    bool whole = r->closed || r->done || (f->is_last && c->last);
    u.known = !r->unreadable && whole && (in || (f->no_in && out)) &&
              (f->no_out || (out && c->last)) && u.cached + u.written <= u.in;
    return u;
}
