/* Turns a filter into texts that a matching line must hold and looks for them in its bytes. The
 * search that folds case goes by the byte of a text that lines have least of. */
#include "line_filter.h"

#include "timestamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const unsigned ends = 1U << RECORD_COMPLETED | 1U << RECORD_ABORTED;

/* What the log would write otherwise than as it is given here. */
static bool is_plain(const char *value)
{
    for (; *value; value++)
        if (*value < 0x20 || *value > 0x7e || *value == '"' || *value == '\\')
            return false;
    return true;
}

static void add(struct line_filter *s, const char *before, const char *value, const char *behind,
                bool of_request, bool fold)
{
    if (value == NULL || !is_plain(value) || s->n == LINE_FILTER_NEEDLES)
        return;
    int n = snprintf(s->needle[s->n].text, LINE_FILTER_TEXT_MAX, "%s%s%s", before, value, behind);
    if (n < 0 || n >= LINE_FILTER_TEXT_MAX)
        return; /* such a line is left to the whole reading */
    s->needle[s->n].length = (size_t)n;
    s->needle[s->n].key = *before ? before : "\"authority\":\"";
    s->needle[s->n].of_request = of_request;
    s->needle[s->n++].fold = fold;
}

void line_filter_init(struct line_filter *s, const struct query_filter *f)
{
    char status[24];
    s->kinds = f->kinds;
    s->since[0] = s->until[0] = 0;
    if (f->since)
        timestamp_text(f->since, s->since, sizeof s->since);
    if (f->until)
        timestamp_text(f->until, s->until, sizeof s->until);
    s->n = 0;
    add(s, "\"id\":\"", f->id, "\"", true, false);
    add(s, "\"sandbox\":\"", f->sandbox, "\"", true, false);
    add(s, "\"policy\":\"", f->policy, "\"", true, false);
    add(s, "\"rule\":\"", f->rule, "\"", true, false);
    add(s, "\"credential\":\"", f->credential, "\"", true, false);
    add(s, "\"method\":\"", f->method, "\"", true, false);
    add(s, "", f->host, "", true, true);
    add(s, "\"role\":\"", f->role, "\"", false, false);
    add(s, "\"code\":\"", f->code, "\"", false, false);
    add(s, "", f->text, "", false, true);
    if (f->status) {
        snprintf(status, sizeof status, "%" PRId64, f->status);
        add(s, "\"status\":", status, "", false, false);
    }
}

/* The byte of a text that lines have least of, roughly: what is looked for first. */
static size_t rarest(const char *text, size_t n)
{
    static const char common[] = "\"0:,1e2ta3or4in5s-d6c7p8l9mbh.gufy_/wkv";
    size_t best = 0, rank = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = memchr(common, ascii_lower(text[i]), sizeof common - 1);
        size_t r = at ? (size_t)(at - common) + 1 : sizeof common;
        if (r > rank) {
            rank = r;
            best = i;
        }
    }
    return best;
}

/* The next of two bytes; `at` remembers where each was found last. */
static const char *next_of(const char *from, const char *end, const char c[2], const char *at[2])
{
    for (int i = 0; i < 2; i++)
        if (at[i] && at[i] < from)
            at[i] = memchr(from, c[i], (size_t)(end - from));
    if (at[0] == NULL || (at[1] && at[1] < at[0]))
        return at[1];
    return at[0];
}

static bool find_folded(struct slice line, const char *text, size_t n)
{
    if (n > line.n)
        return false;
    size_t key = rarest(text, n);
    char lower = ascii_lower(text[key]);
    const char c[2] = {lower, lower >= 'a' && lower <= 'z' ? (char)(lower - 32) : lower};
    const char *from = line.p + key, *end = line.p + line.n - (n - 1 - key);
    const char *at[2] = {memchr(from, c[0], (size_t)(end - from)),
                         c[1] == c[0] ? NULL : memchr(from, c[1], (size_t)(end - from))};
    for (const char *p; (p = next_of(from, end, c, at)) != NULL; from = p + 1)
        if (slice_ieq((struct slice){p - key, n}, (struct slice){text, n}))
            return true;
    return false;
}

static bool holds(const struct line_filter *s, size_t i, struct slice line)
{
    const char *text = s->needle[i].text;
    size_t n = s->needle[i].length;
    if (n == 0)
        return true;
    return s->needle[i].fold ? find_folded(line, text, n) : memmem(line.p, line.n, text, n) != NULL;
}

bool line_filter_find(struct slice in, struct slice text)
{
    return text.n == 0 || find_folded(in, text.p, text.n);
}

bool line_filter_waits(const struct line_filter *s, struct slice line, enum record_kind kind)
{
    bool lacks = false;
    if (s->kinds && !(s->kinds & 1U << kind))
        return false;
    for (size_t i = 0; i < s->n; i++) {
        if (holds(s, i, line))
            continue;
        const char *key = s->needle[i].key;
        if (!s->needle[i].of_request || memmem(line.p, line.n, key, strlen(key)))
            return false;
        lacks = true;
    }
    return lacks && line_filter_itself(s, line, kind);
}

bool line_filter_may(const struct line_filter *s, struct slice line, enum record_kind kind,
                     bool begun)
{
    bool is_end = ends & 1U << kind, remembered = kind == RECORD_ADMITTED;
    if (remembered && s->kinds && !(s->kinds & (ends | 1U << RECORD_ADMITTED)))
        return false;
    if (!remembered && s->kinds && !(s->kinds & 1U << kind))
        return false;
    for (size_t i = 0; i < s->n; i++) {
        if (s->needle[i].of_request ? is_end && begun : remembered)
            continue;
        if (!holds(s, i, line))
            return false;
    }
    return true;
}

/* Times are written in one way, of one length, so that they compare as texts. */
bool line_filter_itself(const struct line_filter *s, struct slice line, enum record_kind kind)
{
    static const struct slice key = SLICE("\"received\":\"");
    if (s->kinds && !(s->kinds & 1U << kind))
        return false;
    if (kind == RECORD_ADMITTED) /* kept for its end's sake, whatever it says of itself */
        for (size_t i = 0; i < s->n; i++)
            if (!s->needle[i].of_request && !holds(s, i, line))
                return false;
    if (s->since[0] == 0 && s->until[0] == 0)
        return true;
    const char *at = memmem(line.p, line.n, key.p, key.n);
    if (at == NULL || at + key.n + LINE_FILTER_TIMESTAMP > line.p + line.n)
        return true;
    at += key.n;
    return (s->since[0] == 0 || memcmp(at, s->since, LINE_FILTER_TIMESTAMP) >= 0) &&
           (s->until[0] == 0 || memcmp(at, s->until, LINE_FILTER_TIMESTAMP) < 0);
}
