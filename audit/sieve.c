#include "sieve.h"

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

static void add(struct sieve *s, const char *before, const char *value, const char *behind,
                bool of_request, bool fold)
{
    if (value == NULL || !is_plain(value) || s->n == SIEVE_NEEDLES)
        return;
    int n = snprintf(s->needle[s->n].text, SIEVE_TEXT_MAX, "%s%s%s", before, value, behind);
    if (n < 0 || n >= SIEVE_TEXT_MAX)
        return; /* such a line is left to the whole reading */
    s->needle[s->n].length = (size_t)n;
    s->needle[s->n].of_request = of_request;
    s->needle[s->n++].fold = fold;
}

void sieve_init(struct sieve *s, const struct query_filter *f)
{
    char status[24];
    s->kinds = f->kinds;
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

static bool find_folded(struct slice line, const char *text, size_t n)
{
    char lower = ascii_lower(text[0]);
    char upper = lower >= 'a' && lower <= 'z' ? (char)(lower - 32) : lower;
    for (size_t i = 0; n <= line.n && i <= line.n - n; i++)
        if ((line.p[i] == lower || line.p[i] == upper) &&
            slice_ieq((struct slice){line.p + i, n}, (struct slice){text, n}))
            return true;
    return false;
}

bool sieve_may(const struct sieve *s, struct slice line, enum record_kind kind, bool begun)
{
    bool is_end = ends & 1U << kind, remembered = kind == RECORD_ADMITTED;
    if (remembered && s->kinds && !(s->kinds & (ends | 1U << RECORD_ADMITTED)))
        return false;
    if (!remembered && s->kinds && !(s->kinds & 1U << kind))
        return false;
    for (size_t i = 0; i < s->n; i++) {
        if (s->needle[i].of_request ? is_end && begun : remembered)
            continue;
        const char *text = s->needle[i].text;
        size_t n = s->needle[i].length;
        if (n > 0 && (s->needle[i].fold ? !find_folded(line, text, n)
                                        : memmem(line.p, line.n, text, n) == NULL))
            return false;
    }
    return true;
}
