/* What FETCH asks for. Where a rule has no flags to set, what would set one looks without. */
#include "imap_grammar.h"

#include <string.h>

enum { NAMES_MAX = 128 };

static bool is_section_word(struct slice s, bool part)
{
    static const char *const words[] = {"HEADER", "TEXT", "HEADER.FIELDS", "HEADER.FIELDS.NOT"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_ieq_str(s, words[i]))
            return true;
    return part && slice_ieq_str(s, "MIME");
}

/* "1.2.HEADER": numbers, then at most one word. */
static bool section_ok(struct slice s)
{
    bool part = false;
    while (s.n > 0 && s.p[0] >= '1' && s.p[0] <= '9') {
        uint64_t number;
        part = true;
        if (!imap_take_number(&s, UINT32_MAX, &number))
            return false;
        if (s.n == 0)
            return true;
        if (!imap_take(&s, '.'))
            return false;
    }
    return (s.n == 0 && !part) || is_section_word(s, part);
}

static bool say_upper(struct imap_command *c, struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char up = s.p[i] >= 'a' && s.p[i] <= 'z' ? (char)(s.p[i] - 32) : s.p[i];
        if (!imap_say_slice(c, (struct slice){&up, 1}))
            return false;
    }
    return true;
}

static struct slice take_run(struct slice *s)
{
    size_t n = 0;
    while (n < s->n && (ascii_is_alnum(s->p[n]) || s->p[n] == '.'))
        n++;
    struct slice run = {s->p, n};
    *s = (struct slice){s->p + n, s->n - n};
    return run;
}

static bool header_names(struct imap_command *c, struct slice *s)
{
    if (!imap_take(s, ' ') || !imap_take(s, '(') || !imap_say(c, " ("))
        return false;
    for (unsigned n = 0; n < NAMES_MAX; n++) {
        if (!imap_say_string(c, s))
            return false;
        if (imap_take(s, ')'))
            return imap_say(c, ")");
        if (!imap_take(s, ' ') || !imap_say(c, " "))
            return false;
    }
    return false;
}

static bool partial(struct imap_command *c, struct slice *s)
{
    uint64_t from, n;
    if (!imap_take(s, '<'))
        return true;
    const char *p = s->p;
    if (!imap_take_number(s, UINT32_MAX, &from) || !imap_take(s, '.') ||
        !imap_take_number(s, UINT32_MAX, &n) || n == 0 || !imap_take(s, '>'))
        return false;
    return imap_say(c, "<") && imap_say_slice(c, (struct slice){p, (size_t)(s->p - p)});
}

static bool ends_with(struct slice run, const char *word)
{
    size_t n = strlen(word);
    return run.n >= n && slice_ieq_str((struct slice){run.p + run.n - n, n}, word);
}

/* Behind "BODY" or "BODY.PEEK", from the bracket on. */
static bool section(struct imap_command *c, struct slice *s)
{
    (void)imap_take(s, '[');
    struct slice run = take_run(s);
    if (!section_ok(run) || !imap_say(c, "[") || !say_upper(c, run))
        return false;
    bool fields = ends_with(run, "FIELDS") || ends_with(run, "FIELDS.NOT");
    if (fields && !header_names(c, s))
        return false;
    return imap_take(s, ']') && imap_say(c, "]") && partial(c, s);
}

static bool item(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    static const char *const plain[] = {"ENVELOPE",      "FLAGS", "INTERNALDATE",
                                        "RFC822.HEADER", "UID",   "BODYSTRUCTURE",
                                        "RFC822.SIZE",   "MODSEQ"};
    struct slice run = take_run(s);
    bool body = slice_ieq_str(run, "BODY");
    if (s->n > 0 && s->p[0] == '[' && (body || slice_ieq_str(run, "BODY.PEEK")))
        return imap_say(c, body && t->actions & IMAP_FLAG ? "BODY" : "BODY.PEEK") && section(c, s);
    bool known = body;
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        known = known || slice_ieq_str(run, plain[i]);
    if (slice_ieq_str(run, "RFC822") || slice_ieq_str(run, "RFC822.TEXT")) {
        known = true;
        if (!(t->actions & IMAP_FLAG) && t->actions & IMAP_DELETE)
            return imap_refuse(c, "imap_action", "it would set \\Seen; ask for BODY.PEEK[]");
    }
    if (slice_ieq_str(run, "MODSEQ"))
        c->wants |= IMAP_HAS_CONDSTORE;
    return known && say_upper(c, run);
}

static bool items(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    if (!imap_say(c, "("))
        return false;
    if (!imap_take(s, '('))
        return item(c, s, t) && imap_say(c, ")");
    while (item(c, s, t)) {
        if (imap_take(s, ')'))
            return imap_say(c, ")");
        if (!imap_take(s, ' ') || !imap_say(c, " "))
            return false;
    }
    return false;
}

static bool asked(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    static const char *const macros[] = {"ALL", "FAST", "FULL"};
    for (size_t i = 0; i < ARRAY_LEN(macros); i++)
        if (imap_take_word(s, macros[i]))
            return imap_say(c, macros[i]);
    return items(c, s, t);
}

bool imap_fetch_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    struct slice set;
    if (!imap_take(s, ' ') || !imap_take_set(s, &set) || !imap_take(s, ' ') || !imap_say(c, " ") ||
        !imap_say_slice(c, set) || !imap_say(c, " "))
        return false;
    return asked(c, s, t) && (s->n == 0 || imap_changes_fetch(c, s));
}
