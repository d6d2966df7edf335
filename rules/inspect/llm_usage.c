/* The question is put into the body where its bytes want it, and all others stay as they were. Of
 * the reply one event is held at a time, and is judged when its empty line has come. */
#include "llm_usage.h"

#include "json_walk.h"

#include <stdlib.h>
#include <string.h>

#define ASKED "{\"include_usage\":true}"

enum { FEED_MAX = 1 << 20, ASKED_ROOM = 64 };

/* ---- the question ---- */

enum found { FOUND_NONE = 0, FOUND, FOUND_DOUBT };

/* A member by this name (with its quotes) of a text that is JSON. A doubt: some reader may take
 * another key for it. */
static enum found find(struct slice object, const char *name, struct slice *value)
{
    struct json_walk w = {object.p, object.p + object.n};
    struct slice key, v;
    enum found got = FOUND_NONE;
    if (!json_next_is(&w, '{'))
        return FOUND_DOUBT;
    if (json_next_is(&w, '}'))
        return FOUND_NONE;
    do {
        if (!json_member(&w, &key, &v) || slice_find(key, '\\') >= 0)
            return FOUND_DOUBT;
        if (!slice_ieq_str(key, name))
            continue;
        if (got != FOUND_NONE || !slice_eq_str(key, name))
            return FOUND_DOUBT;
        got = FOUND;
        *value = v;
    } while (json_next_is(&w, ','));
    return got;
}

static bool is_empty(struct slice v, char open, char close)
{
    struct json_walk w = {v.p, v.p + v.n};
    return json_next_is(&w, open) && json_next_is(&w, close);
}

/* text in the place of `old`, which is of the body. */
static int put(struct slice body, struct slice old, const char *text, struct buf *out)
{
    const char *end = old.p + old.n;
    buf_init_wiped(out, body.n + ASKED_ROOM);
    if (buf_append(out, body.p, (size_t)(old.p - body.p)) == 0 && buf_append_str(out, text) == 0 &&
        buf_append(out, end, (size_t)(body.p + body.n - end)) == 0)
        return 0;
    buf_free(out);
    return -1;
}

/* Behind the object's bracket. */
static struct slice first_place(struct slice object)
{
    return (struct slice){(const char *)memchr(object.p, '{', object.n) + 1, 0};
}

int llm_usage_ask(struct slice body, struct buf *out)
{
    struct slice options, said;
    enum found f = find(body, "\"stream_options\"", &options);
    if (f == FOUND_DOUBT || is_empty(body, '{', '}'))
        return -1;
    if (f == FOUND_NONE)
        return put(body, first_place(body), "\"stream_options\":" ASKED ",", out);
    if (slice_eq_str(options, "null") || is_empty(options, '{', '}'))
        return put(body, options, ASKED, out);
    f = find(options, "\"include_usage\"", &said);
    if (f == FOUND_NONE)
        return put(body, first_place(options), "\"include_usage\":true,", out);
    return f == FOUND && (slice_eq_str(said, "false") || slice_eq_str(said, "null"))
               ? put(body, said, "true", out)
               : -1;
}

/* ---- what it adds ---- */

struct llm_usage_cut {
    struct buf held, out;
    size_t line;  /* bytes of the present line */
    bool cr;      /* the last byte was one, so that a line feed is of the same line end */
    bool passing; /* the present event is a long one */
    bool open;    /* there are lines of an event */
    bool kept;    /* the last event went on */
};

/* Where an event is cut. */
struct judged {
    bool added;
    struct slice cut;
};

/* What stands before the end of the line, or all there is. */
static size_t run_of(struct slice in)
{
    size_t n = 0;
    while (n < in.n && in.p[n] != '\n' && in.p[n] != '\r')
        n++;
    return n;
}

/* The one line of data, without its name; n 0: there is none, or more. */
static struct slice data_of(struct slice event)
{
    struct slice got = {"", 0};
    size_t lines = 0;
    while (event.n > 0) {
        size_t n = run_of(event);
        struct slice line = {event.p, n};
        if (slice_starts(line, SLICE("data:")) || slice_eq(line, SLICE("data"))) {
            got = line.n > 5 ? (struct slice){line.p + 5, line.n - 5} : (struct slice){"", 0};
            lines++;
        }
        n += n < event.n;
        event = (struct slice){event.p + n, event.n - n};
    }
    return lines == 1 ? got : (struct slice){"", 0};
}

/* From the comma before a member to its end; of the first one, to the comma behind it. */
static struct slice member_cut(const char *comma, struct slice key, struct slice value,
                               struct json_walk behind)
{
    const char *end = value.p + value.n;
    if (comma == NULL && json_next_is(&behind, ','))
        end = behind.p;
    const char *from = comma ? comma : key.p;
    return (struct slice){from, (size_t)(end - from)};
}

static struct judged judge(struct slice event)
{
    struct slice text = data_of(event), key, value;
    struct json_walk w = {text.p, text.p + text.n};
    struct judged j = {.added = false, .cut = {event.p, 0}}, none = j;
    bool nothing = false, told = false;
    const char *comma = NULL;
    if (!json_next_is(&w, '{'))
        return none;
    do {
        if (!json_member(&w, &key, &value))
            return none;
        if (slice_eq(key, SLICE("\"choices\"")))
            nothing = is_empty(value, '[', ']');
        if (slice_eq(key, SLICE("\"usage\""))) {
            told = value.p[0] == '{';
            if (slice_eq(value, SLICE("null")))
                j.cut = member_cut(comma, key, value, w);
        }
        json_blanks(&w);
        comma = w.p;
    } while (json_next_is(&w, ','));
    if (!json_next_is(&w, '}'))
        return none;
    json_blanks(&w);
    j.added = nothing && told;
    return w.p == w.end ? j : none;
}

static int pass(struct llm_usage_cut *c, struct slice s)
{
    return buf_append_slice(&c->out, s);
}

static int event_end(struct llm_usage_cut *c)
{
    struct slice event = buf_slice(&c->held);
    struct judged j = judge(event);
    int r = 0;
    c->open = false;
    c->kept = c->passing || !j.added;
    c->passing = false;
    if (c->kept && event.n > 0) {
        const char *end = j.cut.p + j.cut.n;
        r = pass(c, (struct slice){event.p, (size_t)(j.cut.p - event.p)});
        if (r == 0)
            r = pass(c, (struct slice){end, (size_t)(event.p + event.n - end)});
    }
    buf_clear(&c->held);
    return r;
}

static int take(struct llm_usage_cut *c, struct slice s)
{
    c->open = true;
    if (!c->passing && s.n > buf_room(&c->held)) {
        c->passing = true;
        if (pass(c, buf_slice(&c->held)) < 0)
            return -1;
        buf_clear(&c->held);
    }
    return c->passing ? pass(c, s) : buf_append_slice(&c->held, s);
}

/* The line feed of a line end that began with a carriage return. */
static int take_second(struct llm_usage_cut *c, struct slice lf)
{
    c->cr = false;
    if (c->open)
        return take(c, lf);
    return c->kept ? pass(c, lf) : 0;
}

/* The byte that ends a line. */
static int line_end(struct llm_usage_cut *c, struct slice byte)
{
    bool blank = c->line == 0;
    c->line = 0;
    c->cr = byte.p[0] == '\r';
    if (take(c, byte) < 0)
        return -1;
    return blank ? event_end(c) : 0;
}

static int feed_piece(struct llm_usage_cut *c, struct slice piece, bool run)
{
    if (run) {
        c->cr = false;
        c->line += piece.n;
        return take(c, piece);
    }
    return c->cr && piece.p[0] == '\n' ? take_second(c, piece) : line_end(c, piece);
}

int llm_usage_cut_feed(struct llm_usage_cut *c, struct slice in, struct slice *out)
{
    int r = in.n > FEED_MAX ? -1 : 0;
    buf_clear(&c->out);
    while (in.n > 0 && r == 0) {
        size_t run = run_of(in), n = run ? run : 1;
        r = feed_piece(c, (struct slice){in.p, n}, run > 0);
        in = (struct slice){in.p + n, in.n - n};
    }
    *out = buf_slice(&c->out);
    return r;
}

struct llm_usage_cut *llm_usage_cut_new(void)
{
    struct llm_usage_cut *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    buf_init(&c->held, LLM_USAGE_EVENT);
    buf_init(&c->out, LLM_USAGE_EVENT + FEED_MAX);
    return c;
}

void llm_usage_cut_free(struct llm_usage_cut *c)
{
    if (c == NULL)
        return;
    buf_free(&c->held);
    buf_free(&c->out);
    free(c);
}

struct slice llm_usage_cut_end(const struct llm_usage_cut *c)
{
    return c ? buf_slice(&c->held) : (struct slice){"", 0};
}

size_t llm_usage_cut_held(const struct llm_usage_cut *c)
{
    return c ? buf_len(&c->held) : 0;
}
