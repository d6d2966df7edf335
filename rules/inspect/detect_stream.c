/* Holds the end of a body, writes it out as the text that its reader will see, has detectors look
 * at that, and makes what they find unreadable in the bytes themselves. */
#include "detect_stream.h"

#include "detect_written.h"
#include "detector_internal.h"

#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 64 * 1024, LONG = 2048, MASK = '*', MASK_NUMBER = '9' };
/* Where in held the first byte is: scan_in_place uses what is before it. */
enum { FIRST = DETECT_BEHIND };

struct detect_stream {
    struct detect_rules rules;
    enum detect_form form;
    detect_own_fn own;
    void *arg;
    struct detector_set *set;
    enum detect_end state;
    uint32_t counts[DETECTORS];
    bool begun;
    bool rest; /* the next bytes may still be of a match */
    enum detector rest_of;
    size_t n, ready; /* of held, from FIRST on: bytes, and how many of them are decided */
    size_t behind;   /* bytes of text before what is not decided */
    char before[DETECT_BEHIND];
    struct detect_scan scan;
    size_t look_at;   /* that many undecided bytes at least, for another look */
    size_t most_held; /* that were ever used */
    char held[FIRST + HELD_MAX];
    /* The same from `ready` on as text, after `behind` bytes of what went before. */
    struct detect_written as;
};

_Static_assert(DETECT_BEHIND + HELD_MAX <= DETECT_WRITTEN_MAX, "as text");
_Static_assert(sizeof(struct detect_stream) + 9000 <= DETECT_STREAM_SIZE, "with its set");

struct detect_stream *detect_stream_new(const struct detect_rules *rules, enum detect_form form,
                                        detect_own_fn own, void *arg)
{
    struct detect_stream *s = malloc(sizeof *s);
    if (s == NULL)
        return NULL;
    memset(s, 0, offsetof(struct detect_stream, held));
    memset(&s->as, 0, offsetof(struct detect_written, escape));
    s->rules = *rules;
    s->form = form;
    s->as.form = form;
    s->as.wide = detect_written_wide_can();
    s->own = own;
    s->arg = arg;
    s->set = detector_set_new(rules->redact | rules->refuse);
    if (s->set == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void detect_stream_free(struct detect_stream *s)
{
    if (s == NULL)
        return;
    detector_set_free(s->set);
    explicit_bzero(s->as.text, s->as.most);
    explicit_bzero(s, offsetof(struct detect_stream, held) + FIRST + s->most_held);
    free(s);
}

static struct slice undecided(const struct detect_stream *s)
{
    return (struct slice){s->held + FIRST + s->ready, s->n - s->ready};
}

/* What is not decided as text; returns how long that is, with what went before it. */
static size_t read_text(struct detect_stream *s, bool whole)
{
    return detect_written_read(&s->as, (struct slice){s->before, s->behind}, undecided(s), whole);
}

/* ---- what is found ---- */

/* A number of JSON rather than text in quotes: it has to stay a number. So many blanks before it
 * are looked at, wherever a piece of the body ends: behind more it may be one. */
enum { BLANKS_MAX = DETECT_BEHIND / 2 };
static bool is_number(const struct detect_stream *s, const struct detect_match *m)
{
    size_t i = m->at, blanks = 0;
    for (size_t k = 0; k < m->n; k++)
        if (!detect_is(s->as.text[m->at + k], CLASS_DIGIT))
            return false;
    if (i > 0 && s->as.text[i - 1] == '-')
        i--;
    for (; i > 0 && blanks < BLANKS_MAX && memchr(" \t\r\n", s->as.text[i - 1], 4); i--)
        blanks++;
    return s->form == DETECT_JSON &&
           (i == 0 || blanks == BLANKS_MAX || memchr(":,[", s->as.text[i - 1], 3));
}

static void mask(struct detect_stream *s, const struct detect_match *m)
{
    char with = is_number(s, m) ? MASK_NUMBER : MASK;
    char *to = s->held + FIRST + s->ready + detect_written_length(&s->as, s->behind, m->at);
    for (size_t i = m->at; i < m->at + m->n; i++) {
        size_t n = detect_written_length(&s->as, i, i + 1);
        if ((unsigned char)s->as.text[i] > ' ')
            memset(to, with, n);
        to += n;
    }
}

static void take_match(struct detect_stream *s, const struct detect_match *m, bool first)
{
    if (first && m->what != DETECT_PRIVATE_KEY && s->own &&
        s->own(s->arg, (struct slice){s->as.text + m->at, m->n}))
        return;
    s->counts[m->what] += first && s->counts[m->what] < UINT32_MAX;
    if (s->rules.refuse & DETECT_BIT(m->what))
        s->state = DETECT_REFUSED;
    else
        mask(s, m);
    s->rest = m->goes_on;
    s->rest_of = m->what;
}

/* Decided up to there: what is behind it is remembered for the next match's left side. */
static void decide(struct detect_stream *s, const char *text, size_t open)
{
    size_t keep = open < DETECT_BEHIND ? open : DETECT_BEHIND;
    s->ready += detect_written_length(&s->as, s->behind, open);
    memcpy(s->before, text + open - keep, keep);
    s->behind = keep;
}

/* The rest of a match that began in what was decided. */
static size_t take_rest(struct detect_stream *s, struct slice text, bool whole)
{
    bool done;
    struct detect_match m = {.at = s->behind, .what = s->rest_of};
    m.n = detector_rest(s->rest_of, text, whole, &done);
    m.goes_on = !done;
    take_match(s, &m, false);
    return s->behind + m.n;
}

static void scan(struct detect_stream *s, struct slice text, size_t from, bool whole)
{
    s->scan.text = text;
    s->scan.from = from;
    s->scan.whole = whole;
    detector_scan(s->set, &s->scan);
}

/* Where all that is not decided stands for itself it is scanned where it lies: what went before it
 * takes the place before it for as long. False: something was found, and is in `text`. */
static bool scan_in_place(struct detect_stream *s, bool whole)
{
    size_t behind = s->behind, n = behind + undecided(s).n;
    char *at = s->held + FIRST + s->ready - behind, kept[DETECT_BEHIND];
    memcpy(kept, at, behind);
    memcpy(at, s->before, behind);
    s->as.escapes = false;
    scan(s, (struct slice){at, n}, behind, whole);
    bool nothing = s->scan.n == 0;
    if (nothing) {
        decide(s, at, s->scan.open);
    } else {
        memcpy(s->as.text, at, n);
        s->as.most = n > s->as.most ? n : s->as.most;
    }
    memcpy(at, kept, behind);
    return nothing;
}

/* Whether there is more to find. */
static bool look(struct detect_stream *s, bool whole)
{
    size_t n, before = s->ready, from = s->behind;
    struct slice in = undecided(s);
    if (!s->rest && detect_is_plain(s->form, in)) {
        if (scan_in_place(s, whole))
            return false;
        n = from + in.n;
    } else {
        n = read_text(s, whole);
        if (s->rest)
            from = take_rest(s, (struct slice){s->as.text + from, n - from}, whole);
        if (s->rest) {
            decide(s, s->as.text, from);
            return false;
        }
        scan(s, (struct slice){s->as.text, n}, from, whole);
    }
    for (size_t i = 0; i < s->scan.n; i++) {
        bool rest = s->rest;
        enum detector of = s->rest_of;
        take_match(s, &s->scan.match[i], true);
        if (rest) { /* by the one that reaches farthest, which is one of these */
            s->rest = rest;
            s->rest_of = of;
        }
    }
    bool more = s->scan.n > 0 && s->scan.open < n;
    decide(s, s->as.text, s->scan.open);
    return more && s->ready > before;
}

/* UTF-16 and UTF-32 say so at their beginning, or show it (RFC 4627, 3). */
static bool is_wide(const struct detect_stream *s)
{
    const char *p = s->held + FIRST;
    if (s->n >= 4 && memcmp(p, "\0\0\xfe\xff", 4) == 0)
        return true;
    return s->n >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0 ||
                         (s->form != DETECT_PLAIN && (p[0] == 0 || p[1] == 0)));
}

static void look_all(struct detect_stream *s, bool whole)
{
    if (!s->begun && s->n < 4 && !whole)
        return;
    if (!s->begun && is_wide(s))
        s->state = DETECT_UNREADABLE;
    s->begun = true;
    while (s->state == DETECT_PASSES && s->ready < s->n && look(s, whole))
        ;
    bool stuck = whole ? s->ready < s->n : s->ready == 0 && s->n == HELD_MAX;
    if (s->state == DETECT_PASSES && stuck)
        s->state = DETECT_UNREADABLE; /* nothing so long is undecided, but by somebody's work */
}

size_t detect_stream_room(const struct detect_stream *s)
{
    return HELD_MAX - s->n;
}

void detect_stream_take(struct detect_stream *s, const void *p, size_t n)
{
    memcpy(s->held + FIRST + s->n, p, n);
    s->n += n;
    s->most_held = s->n > s->most_held ? s->n : s->most_held;
    if (s->n < HELD_MAX && s->n - s->ready < s->look_at)
        return;
    look_all(s, false);
    size_t open = s->n - s->ready; /* what is long is not read again for each byte */
    s->look_at = open > LONG ? open + open / 4 : 0;
}

void detect_stream_end(struct detect_stream *s)
{
    look_all(s, true);
}

struct slice detect_stream_ready(const struct detect_stream *s)
{
    return (struct slice){s->held + FIRST, s->state == DETECT_PASSES ? s->ready : 0};
}

void detect_stream_went(struct detect_stream *s, size_t n)
{
    memmove(s->held + FIRST, s->held + FIRST + n, s->n - n);
    s->n -= n;
    s->ready -= n;
}

bool detect_stream_empty(const struct detect_stream *s)
{
    return s->n == 0;
}

enum detect_end detect_stream_state(const struct detect_stream *s)
{
    return s->state;
}

const uint32_t *detect_stream_counts(const struct detect_stream *s)
{
    return s->counts;
}

/* ---- by its type ---- */

static bool charset_read(struct slice v)
{
    static const char *const known[] = {"utf-8",      "utf8",         "us-ascii", "ascii",
                                        "iso-8859-1", "windows-1252", "latin1"};
    if (v.n >= 2 && v.p[0] == '"' && v.p[v.n - 1] == '"')
        v = (struct slice){v.p + 1, v.n - 2};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (slice_ieq_str(v, known[i]))
            return true;
    return false;
}

bool detect_form_of(struct slice content_type, enum detect_form *ret)
{
    ssize_t semicolon = slice_find(content_type, ';');
    struct slice rest = content_type;
    rest.n = semicolon < 0 ? rest.n : (size_t)semicolon;
    struct slice type = slice_trim(rest);
    *ret = DETECT_PLAIN;
    if (slice_ieq_str(type, "application/x-www-form-urlencoded"))
        *ret = DETECT_URLENCODED;
    else if (type.n == 0 || slice_ieq_str(type, "application/json") ||
             slice_ieq_str(type, "application/x-ndjson") ||
             slice_ieq_str(type, "application/jsonl") ||
             (type.n > 5 && slice_ieq_str((struct slice){type.p + type.n - 5, 5}, "+json")))
        *ret = DETECT_JSON;
    while (semicolon >= 0) {
        rest =
            (struct slice){content_type.p + semicolon + 1, content_type.n - (size_t)semicolon - 1};
        content_type = rest;
        semicolon = slice_find(rest, ';');
        struct slice one =
            slice_trim((struct slice){rest.p, semicolon < 0 ? rest.n : (size_t)semicolon});
        ssize_t is = slice_find(one, '=');
        if (is > 0 && slice_ieq_str(slice_trim((struct slice){one.p, (size_t)is}), "charset") &&
            !charset_read(slice_trim((struct slice){one.p + is + 1, one.n - (size_t)is - 1})))
            return false;
    }
    return true;
}
