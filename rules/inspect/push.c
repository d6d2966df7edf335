/* Reads the pkt-lines before the pack, matches references with patterns, and writes the report by
 * which git shows its user why each reference was refused. */
#include "push.h"

#include <stdio.h>
#include <string.h>

enum { PKT_FLUSH = 0, PKT_MORE = -1, PKT_BAD = -2, BAND_PAYLOAD = 990 };

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The pkt-line at `at`: its whole length, PKT_FLUSH, PKT_MORE or PKT_BAD. */
static int pkt_at(struct slice body, size_t at, struct slice *line)
{
    int n = 0;
    if (body.n - at < 4)
        return PKT_MORE;
    for (size_t i = 0; i < 4; i++) {
        int v = hex_value(ascii_lower(body.p[at + i]));
        if (v < 0)
            return PKT_BAD;
        n = n * 16 + v;
    }
    if (n == 0)
        return PKT_FLUSH;
    if (n < 5)
        return PKT_BAD; /* delimiters of protocol v2, and an empty line */
    if (body.n - at < (size_t)n)
        return PKT_MORE;
    *line = (struct slice){body.p + at + 4, (size_t)n - 4};
    return n;
}

static bool is_id(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (hex_value(s.p[i]) < 0)
            return false;
    return s.n == 40 || s.n == 64;
}

bool push_id_is_zero(struct slice id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] != '0')
            return false;
    return true;
}

static bool has_word(struct slice list, const char *word)
{
    while (list.n > 0) {
        ssize_t sp = slice_find(list, ' ');
        struct slice w = {list.p, sp < 0 ? list.n : (size_t)sp};
        if (slice_eq_str(w, word))
            return true;
        if (sp < 0)
            return false;
        list = (struct slice){list.p + sp + 1, list.n - (size_t)sp - 1};
    }
    return false;
}

/* "OLD NEW REF", on the first line NUL and capabilities behind it. */
static int take_command(struct push *p, struct slice line, bool *options)
{
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    ssize_t nul = slice_find(line, 0);
    if (nul >= 0 && p->n > 0)
        return -1;
    if (nul >= 0) {
        struct slice caps = {line.p + nul + 1, line.n - (size_t)nul - 1};
        p->report = has_word(caps, "report-status") || has_word(caps, "report-status-v2");
        p->side_band = has_word(caps, "side-band-64k") || has_word(caps, "side-band");
        *options = has_word(caps, "push-options");
        line.n = (size_t)nul;
    }
    ssize_t sp = slice_find(line, ' ');
    size_t id = sp < 0 ? 0 : (size_t)sp;
    if (p->n == PUSH_COMMANDS || (id != 40 && id != 64) || line.n < 2 * id + 3 ||
        line.p[2 * id + 1] != ' ')
        return -1;
    struct push_command *c = &p->commands[p->n];
    c->old_id = (struct slice){line.p, id};
    c->new_id = (struct slice){line.p + id + 1, id};
    c->ref = (struct slice){line.p + 2 * id + 2, line.n - 2 * id - 2};
    if (!is_id(c->old_id) || !is_id(c->new_id) || p->commands[0].old_id.n != id)
        return -1;
    p->n++;
    return 0;
}

static bool is_shallow(struct slice line)
{
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    return slice_starts(line, SLICE("shallow ")) && is_id((struct slice){line.p + 8, line.n - 8});
}

/* Past the pkt-lines up to the next flush; commands when take. */
static int section(struct slice body, size_t *at, struct push *p, bool take, bool *options)
{
    for (;;) {
        struct slice line;
        int n = pkt_at(body, *at, &line);
        if (n == PKT_BAD || *at > PUSH_HEAD_MAX)
            return -1;
        if (n == PKT_MORE)
            return body.n > PUSH_HEAD_MAX ? -1 : 0;
        if (n == PKT_FLUSH) {
            *at += 4;
            return 1;
        }
        bool shallow = take && p->n == 0 && is_shallow(line);
        if (take && !shallow && take_command(p, line, options) < 0)
            return -1;
        *at += (size_t)n;
    }
}

int push_read(struct slice body, struct push *ret)
{
    bool options = false;
    size_t at = 0;
    memset(ret, 0, sizeof *ret);
    int r = section(body, &at, ret, true, &options);
    if (r == 1 && options)
        r = section(body, &at, ret, false, &options);
    ret->end = at;
    return r;
}

static bool ref_ok(struct slice ref)
{
    for (size_t i = 0; i < ref.n; i++)
        if (ref.p[i] <= ' ' || ref.p[i] > '~' || strchr("~^:?*[\\", ref.p[i]))
            return false;
    return slice_starts(ref, SLICE("refs/")) && ref.n > 5 && ref.p[ref.n - 1] != '/' &&
           slice_find_slice(ref, SLICE("..")) < 0 && slice_find_slice(ref, SLICE("//")) < 0;
}

/* One star at a time: the last one tried again with one byte more. */
bool push_ref_matches(const char *pattern, struct slice ref)
{
    const char *p = pattern, *star = NULL;
    size_t i = 0, from = 0;
    if (!ref_ok(ref))
        return false;
    for (;;) {
        if (p[0] == '*' && p[1] == '*' && i < ref.n)
            return true; /* only at the end: rule_inspect.c */
        if (*p == '*') {
            star = ++p;
            from = i;
        } else if (i < ref.n && *p == ref.p[i]) {
            p++;
            i++;
        } else if (i == ref.n && *p == 0) {
            return true;
        } else {
            if (star == NULL || from == ref.n || ref.p[from] == '/')
                return false;
            p = star;
            i = ++from;
        }
    }
}

static int put_pkt(struct buf *out, const char *text)
{
    return buf_printf(out, "%04zx%s", strlen(text) + 4, text);
}

static int put_report(const struct push *p, const char *reason, struct buf *out)
{
    char line[BAND_PAYLOAD];
    int r = put_pkt(out, "unpack ok\n");
    for (size_t i = 0; i < p->n && r == 0; i++) {
        struct slice ref = p->commands[i].ref;
        size_t n = ref.n < sizeof line - PUSH_REASON_MAX - 32 ? ref.n : 0;
        snprintf(line, sizeof line, "ng %.*s durward: %.*s\n", (int)n, ref.p, PUSH_REASON_MAX,
                 reason);
        r = put_pkt(out, line);
    }
    return r < 0 ? -1 : buf_append_str(out, "0000");
}

int push_answer(const struct push *p, const char *reason, struct buf *out)
{
    struct buf report;
    int r = 0;
    if (!p->side_band)
        return put_report(p, reason, out);
    buf_init(&report, PUSH_HEAD_MAX + PUSH_COMMANDS * (PUSH_REASON_MAX + 32));
    r = put_report(p, reason, &report);
    while (r == 0 && buf_len(&report) > 0) {
        size_t n = buf_len(&report) < BAND_PAYLOAD ? buf_len(&report) : BAND_PAYLOAD;
        r = buf_printf(out, "%04zx\1", n + 5) | buf_append(out, buf_data(&report), n);
        buf_drain(&report, n);
    }
    buf_free(&report);
    return r < 0 ? -1 : buf_append_str(out, "0000");
}
