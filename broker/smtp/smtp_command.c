/* Reads a client's lines. */
#include "smtp_command.h"

#include <string.h>

ssize_t smtp_line(struct slice in, size_t max, struct slice *line)
{
    ssize_t end = slice_find(in, '\n');
    size_t n = end < 0 ? in.n : (size_t)end + 1;
    if (n > max || (end < 0 && n == max))
        return -1;
    *line = (struct slice){in.p, end < 1 ? 0 : (size_t)end - 1};
    if (end == 0 || (end > 0 && in.p[end - 1] != '\r'))
        return -1;
    if (end > 0 && (slice_find(*line, '\r') >= 0 || slice_find(*line, 0) >= 0))
        return -1;
    return end < 0 ? 0 : (ssize_t)n;
}

enum smtp_verb smtp_verb(struct slice line, struct slice *rest)
{
    static const struct {
        const char *name;
        enum smtp_verb verb;
    } verbs[] = {
        {"HELO", SMTP_HELO},     {"EHLO", SMTP_EHLO},      {"MAIL", SMTP_MAIL},
        {"RCPT", SMTP_RCPT},     {"DATA", SMTP_DATA},      {"RSET", SMTP_RSET},
        {"NOOP", SMTP_NOOP},     {"QUIT", SMTP_QUIT},      {"STARTTLS", SMTP_STARTTLS},
        {"AUTH", SMTP_AUTH},     {"VRFY", SMTP_NEVER},     {"EXPN", SMTP_NEVER},
        {"ETRN", SMTP_NEVER},    {"TURN", SMTP_NEVER},     {"ATRN", SMTP_NEVER},
        {"BDAT", SMTP_NEVER},    {"HELP", SMTP_NEVER},     {"SEND", SMTP_NEVER},
        {"SOML", SMTP_NEVER},    {"SAML", SMTP_NEVER},     {"BURL", SMTP_NEVER},
        {"XCLIENT", SMTP_NEVER}, {"XFORWARD", SMTP_NEVER},
    };
    ssize_t blank = slice_find(line, ' ');
    struct slice word = {line.p, blank < 0 ? line.n : (size_t)blank};
    *rest =
        blank < 0 ? SLICE("") : slice_trim((struct slice){line.p + blank, line.n - (size_t)blank});
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (slice_ieq_str(word, verbs[i].name))
            return verbs[i].verb;
    return SMTP_UNKNOWN;
}

static int bad(struct smtp_path *ret, unsigned code, const char *why)
{
    ret->code = code;
    ret->why = why;
    return -1;
}

/* "FROM:<x>" and what stands behind it, into *rest. */
static int read_path(struct slice *rest, struct slice mark, struct smtp_path *ret)
{
    struct slice s = *rest;
    *ret = (struct smtp_path){.why = NULL};
    if (!slice_istarts(s, mark))
        return bad(ret, 501, "it is not of the form FROM:<address> or TO:<address>");
    s = slice_trim((struct slice){s.p + mark.n, s.n - mark.n});
    ssize_t end = slice_find(s, '>');
    if (s.n == 0 || s.p[0] != '<' || end < 0 || (s.n > (size_t)end + 1 && s.p[end + 1] != ' '))
        return bad(ret, 501, "an address stands between '<' and '>'");
    ret->address = (struct slice){s.p + 1, (size_t)end - 1};
    *rest = slice_trim((struct slice){s.p + end + 1, s.n - (size_t)end - 1});
    return 0;
}

static bool next_word(struct slice *rest, struct slice *word)
{
    *rest = slice_trim(*rest);
    ssize_t blank = slice_find(*rest, ' ');
    *word = (struct slice){rest->p, blank < 0 ? rest->n : (size_t)blank};
    *rest = (struct slice){rest->p + word->n, rest->n - word->n};
    return word->n > 0;
}

static int read_parameter(struct slice word, struct smtp_path *ret)
{
    if (slice_istarts(word, SLICE("SIZE=")))
        return slice_u64((struct slice){word.p + 5, word.n - 5}, UINT64_MAX / 2, &ret->size) < 0
                   ? bad(ret, 501, "SIZE is a number")
                   : 0;
    if (slice_ieq_str(word, "BODY=8BITMIME"))
        ret->eight = true;
    else if (slice_ieq_str(word, "SMTPUTF8"))
        ret->utf8 = true;
    else if (!slice_ieq_str(word, "BODY=7BIT") && !slice_ieq_str(word, "AUTH=<>"))
        return bad(ret, 555, "a parameter that is not carried");
    return 0;
}

int smtp_mail_read(struct slice rest, struct smtp_path *ret)
{
    struct slice word;
    if (read_path(&rest, SLICE("FROM:"), ret) < 0)
        return -1;
    while (next_word(&rest, &word))
        if (read_parameter(word, ret) < 0)
            return -1;
    if (ret->address.n > 0 && !smtp_address_ok(ret->address, ret->utf8))
        return bad(ret, 553, "the sender is not a plain address (name@domain)");
    return 0;
}

int smtp_rcpt_read(struct slice rest, bool utf8, struct smtp_path *ret)
{
    if (read_path(&rest, SLICE("TO:"), ret) < 0)
        return -1;
    if (rest.n > 0)
        return bad(ret, 555, "a parameter that is not carried");
    if (!smtp_address_ok(ret->address, utf8))
        return bad(ret, 553, "the recipient is not a plain address (name@domain)");
    return 0;
}
