/* Goes over each byte of a server's once. */
#include "imap_response.h"

#include "imap_text.h"

#include <string.h>

enum { HEAD_MAX = 24 }; /* "* 4294967295 FETCH " */

void imap_responses_init(struct imap_responses *r)
{
    memset(r, 0, sizeof *r);
    buf_init_wiped(&r->line, IMAP_RESPONSE_MAX);
}

void imap_responses_free(struct imap_responses *r)
{
    buf_free(&r->line);
}

void imap_responses_next(struct imap_responses *r)
{
    buf_clear(&r->line);
    buf_shrink(&r->line);
    r->passing = r->begun = r->words = r->quoted = r->escaped = r->cr = r->settled = false;
    r->depth = r->braces = 0;
}

/* By its first words, of which the last has its blank or its end. */
static void settle(struct imap_responses *r)
{
    struct slice s = buf_slice(&r->line);
    uint64_t number;
    if (s.n < 2)
        return;
    if (!imap_take(&s, '*') || !imap_take(&s, ' ')) {
        r->settled = true; /* tagged, or '+' */
        return;
    }
    bool counted = s.n > 0 && s.p[0] >= '0' && s.p[0] <= '9';
    if (counted && (!imap_take_number(&s, UINT32_MAX, &number) || !imap_take(&s, ' ')))
        return;
    ssize_t end = slice_find(s, ' ');
    if (end <= 0 && !slice_ends(s, SLICE("\r")) && buf_len(&r->line) < HEAD_MAX)
        return;
    struct slice word = {s.p, end > 0 ? (size_t)end : s.n};
    static const char *const texts[] = {"OK", "NO", "BAD", "BYE", "PREAUTH"};
    r->settled = true;
    r->words = true;
    r->passing = slice_ieq_str(word, counted ? "FETCH" : "SEARCH") ||
                 (!counted && slice_ieq_str(word, "SEARCH\r"));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        r->words = r->words && !slice_ieq_str(word, texts[i]);
}

/* 1: the response has ended; -1: it cannot be. */
static int on_end(struct imap_responses *r)
{
    if (r->words && r->braces == 2) {
        r->literal = r->announced;
        r->braces = 0;
        r->cr = false;
        return 0;
    }
    return r->words && (r->quoted || r->depth) ? -1 : 1;
}

static void on_brace(struct imap_responses *r, char c)
{
    if (c == '{') {
        r->braces = 1;
        r->announced = 0;
    } else if (r->braces == 1 && c >= '0' && c <= '9' && r->announced < UINT32_MAX / 10) {
        r->announced = r->announced * 10 + (uint64_t)(c - '0');
    } else {
        r->braces = r->braces == 1 && c == '}' ? 2 : 0;
    }
}

static int on_byte(struct imap_responses *r, char c)
{
    if (r->cr)
        return c == '\n' ? on_end(r) : -1;
    if (c == 0 || c == '\n')
        return -1;
    if (c == '\r') {
        r->cr = true;
        return 0;
    }
    if (!r->words)
        return 0;
    if (r->escaped) {
        r->escaped = false;
    } else if (r->quoted) {
        r->escaped = c == '\\';
        r->quoted = c != '"';
    } else if (c == '"') {
        r->quoted = true;
    } else if (c == '(') {
        if (++r->depth > IMAP_DEPTH_MAX)
            return -1;
    } else if (c == ')' && r->depth-- == 0) {
        return -1;
    }
    on_brace(r, r->quoted ? 0 : c);
    return 0;
}

/* It is known now that it goes by: what was kept goes first. The bytes of the head are counted as
 * any: it has no quotes yet. */
static int begin_passing(struct imap_responses *r, struct buf *pass)
{
    int e = buf_append_slice(pass, buf_slice(&r->line));
    r->begun = true;
    buf_clear(&r->line);
    return e;
}

enum imap_part imap_responses_read(struct imap_responses *r, struct slice *in, struct buf *pass)
{
    while (in->n > 0) {
        struct buf *to = r->passing ? pass : &r->line;
        size_t n = 1;
        int e = 0;
        if (r->literal) {
            n = r->literal < in->n ? (size_t)r->literal : in->n;
            r->literal -= n; /* of a message, which may have any bytes */
        } else {
            e = on_byte(r, in->p[0]);
        }
        if (e < 0 || buf_append(to, in->p, n) < 0)
            return IMAP_PART_BAD;
        *in = (struct slice){in->p + n, in->n - n};
        if (!r->settled)
            settle(r);
        if (r->passing && !r->begun && begin_passing(r, pass) < 0)
            return IMAP_PART_BAD;
        if (e > 0 && !r->passing)
            return IMAP_PART_WHOLE;
        if (e > 0)
            imap_responses_next(r);
    }
    return IMAP_PART_NONE;
}
