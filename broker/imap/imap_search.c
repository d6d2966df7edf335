/* What SEARCH looks for. */
#include "imap_grammar.h"

#include <string.h>

enum { DEPTH_MAX = 256 }; /* programs join keys with OR, each within the one before */
enum operand { NOTHING = 0, STRING, TWO_STRINGS, DATE, NUMBER, CHANGE, WORD, SET };

static bool date_ok(struct slice s)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    uint64_t day, year;
    if (!imap_take_number(&s, 31, &day) || day == 0 || !imap_take(&s, '-') || s.n != 8 ||
        s.p[3] != '-')
        return false;
    char month[4] = {ascii_lower(s.p[0]), ascii_lower(s.p[1]), ascii_lower(s.p[2]), 0};
    const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
    return at && (at - months) % 3 == 0 && slice_u64((struct slice){s.p + 4, 4}, 9999, &year) == 0;
}

/* "1-Feb-2026", in quotes or not. */
static bool date(struct imap_command *c, struct slice *s)
{
    buf_clear(&c->text);
    return imap_take_astring(s, &c->text) && date_ok(buf_slice(&c->text)) &&
           imap_say_slice(c, buf_slice(&c->text));
}

static bool operand(struct imap_command *c, struct slice *s, enum operand of)
{
    struct slice word;
    uint64_t number;
    if (of == NOTHING)
        return true;
    if (!imap_take(s, ' ') || !imap_say(c, " "))
        return false;
    const char *from = s->p;
    switch (of) {
    case STRING:
        return imap_say_string(c, s);
    case TWO_STRINGS:
        return imap_say_string(c, s) && imap_take(s, ' ') && imap_say(c, " ") &&
               imap_say_string(c, s);
    case DATE:
        return date(c, s);
    case NUMBER:
        return imap_take_number(s, UINT32_MAX, &number) &&
               imap_say_slice(c, (struct slice){from, (size_t)(s->p - from)});
    case CHANGE:
        return imap_changes_number(c, s);
    case WORD:
        return imap_take_atom(s, &word) && imap_say_slice(c, word);
    default:
        return imap_take_set(s, &word) && imap_say_slice(c, word);
    }
}

static const struct {
    const char *name;
    enum operand of;
} keys[] = {
    {"ALL", NOTHING},     {"ANSWERED", NOTHING},   {"DELETED", NOTHING},   {"DRAFT", NOTHING},
    {"FLAGGED", NOTHING}, {"NEW", NOTHING},        {"OLD", NOTHING},       {"RECENT", NOTHING},
    {"SEEN", NOTHING},    {"UNANSWERED", NOTHING}, {"UNDELETED", NOTHING}, {"UNDRAFT", NOTHING},
    {"UNSEEN", NOTHING},  {"UNFLAGGED", NOTHING},  {"BCC", STRING},        {"BODY", STRING},
    {"CC", STRING},       {"FROM", STRING},        {"SUBJECT", STRING},    {"TEXT", STRING},
    {"TO", STRING},       {"HEADER", TWO_STRINGS}, {"BEFORE", DATE},       {"ON", DATE},
    {"SENTBEFORE", DATE}, {"SENTON", DATE},        {"SENTSINCE", DATE},    {"SINCE", DATE},
    {"LARGER", NUMBER},   {"SMALLER", NUMBER},     {"KEYWORD", WORD},      {"UNKEYWORD", WORD},
    {"UID", SET},         {"MODSEQ", CHANGE},
};

static bool key(struct imap_command *c, struct slice *s, unsigned depth);

static bool some_keys(struct imap_command *c, struct slice *s, unsigned depth)
{
    while (key(c, s, depth)) {
        if (s->n == 0 || s->p[0] == ')')
            return true;
        if (!imap_take(s, ' ') || !imap_say(c, " "))
            return false;
    }
    return false;
}

static bool key(struct imap_command *c, struct slice *s, unsigned depth)
{
    struct slice set;
    if (depth > DEPTH_MAX)
        return imap_refuse(c, "imap_command", "its keys are nested too deep");
    if (imap_take(s, '('))
        return imap_say(c, "(") && some_keys(c, s, depth + 1) && imap_take(s, ')') &&
               imap_say(c, ")");
    if (s->n > 0 && (s->p[0] == '*' || (s->p[0] >= '0' && s->p[0] <= '9')))
        return imap_take_set(s, &set) && imap_say_slice(c, set);
    if (imap_take_word(s, "NOT"))
        return imap_take(s, ' ') && imap_say(c, "NOT ") && key(c, s, depth + 1);
    if (imap_take_word(s, "OR"))
        return imap_take(s, ' ') && imap_say(c, "OR ") && key(c, s, depth + 1) &&
               imap_take(s, ' ') && imap_say(c, " ") && key(c, s, depth + 1);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (imap_take_word(s, keys[i].name))
            return imap_say(c, keys[i].name) && operand(c, s, keys[i].of);
    return imap_refuse(c, "imap_command", "a key of SEARCH that is not carried");
}

bool imap_search_args(struct imap_command *c, struct slice *s, const struct imap_terms *t UNUSED)
{
    if (!imap_take(s, ' ') || !imap_say(c, " "))
        return false;
    if (imap_take_word(s, "CHARSET")) {
        buf_clear(&c->text);
        if (!imap_take(s, ' ') || !imap_take_astring(s, &c->text) || !imap_take(s, ' '))
            return false;
        bool wide = slice_ieq_str(buf_slice(&c->text), "UTF-8");
        if (!wide && !slice_ieq_str(buf_slice(&c->text), "US-ASCII"))
            return imap_refuse(c, "imap_command", "a character set that is not carried");
        if (!imap_say(c, wide ? "CHARSET UTF-8 " : "CHARSET US-ASCII "))
            return false;
    }
    return some_keys(c, s, 0) && s->n == 0;
}
