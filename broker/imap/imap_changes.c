/* What changed since a client looked last (CONDSTORE and QRESYNC, RFC 7162; ENABLE, RFC 5161): its
 * words are numbers and sets, and name no mailbox. */
#include "imap_grammar.h"

static bool number(struct imap_command *c, struct slice *s, uint64_t most)
{
    uint64_t n;
    const char *from = s->p;
    return imap_take_number(s, most, &n) &&
           imap_say_slice(c, (struct slice){from, (size_t)(s->p - from)});
}

bool imap_changes_number(struct imap_command *c, struct slice *s)
{
    c->wants |= IMAP_HAS_CONDSTORE;
    return number(c, s, INT64_MAX);
}

static bool set(struct imap_command *c, struct slice *s)
{
    struct slice said;
    return imap_take_set(s, &said) && imap_say_slice(c, said);
}

static bool between(struct imap_command *c, struct slice *s, char open)
{
    const char text[] = {' ', open, 0};
    return imap_take(s, ' ') && (!open || imap_take(s, open)) && imap_say(c, text);
}

static bool end(struct imap_command *c, struct slice *s)
{
    return imap_take(s, ')') && imap_say(c, ")");
}

/* "(67890007 20050715194045000 41:211 (1,9 5,90))": the last two may be missing. */
static bool resync(struct imap_command *c, struct slice *s)
{
    c->wants |= IMAP_HAS_QRESYNC;
    if (!between(c, s, '(') || !number(c, s, UINT32_MAX) || !between(c, s, 0) ||
        !imap_changes_number(c, s))
        return false;
    if (s->n > 1 && s->p[1] != '(' && s->p[0] == ' ' && (!between(c, s, 0) || !set(c, s)))
        return false;
    if (s->n > 0 && s->p[0] == ' ' &&
        (!between(c, s, '(') || !set(c, s) || !between(c, s, 0) || !set(c, s) || !end(c, s)))
        return false;
    return end(c, s);
}

bool imap_changes_select(struct imap_command *c, struct slice *s)
{
    if (!between(c, s, '('))
        return false;
    do {
        if (imap_take_word(s, "CONDSTORE")) {
            c->wants |= IMAP_HAS_CONDSTORE;
            if (!imap_say(c, "CONDSTORE"))
                return false;
        } else if (!imap_take_word(s, "QRESYNC")) {
            return imap_refuse(c, "imap_command", "a word of it that is not carried");
        } else if (!imap_say(c, "QRESYNC") || !resync(c, s)) {
            return false;
        }
    } while (s->n > 0 && s->p[0] == ' ' && between(c, s, 0));
    return end(c, s);
}

bool imap_changes_fetch(struct imap_command *c, struct slice *s)
{
    bool since = false;
    if (!between(c, s, '('))
        return false;
    do {
        if (imap_take_word(s, "CHANGEDSINCE")) {
            since = true;
            if (!imap_say(c, "CHANGEDSINCE") || !between(c, s, 0) || !imap_changes_number(c, s))
                return false;
        } else if (imap_take_word(s, "VANISHED")) {
            c->wants |= IMAP_HAS_QRESYNC;
            if (!imap_say(c, "VANISHED"))
                return false;
        } else {
            return imap_refuse(c, "imap_command", "a word of it that is not carried");
        }
    } while (s->n > 0 && s->p[0] == ' ' && between(c, s, 0));
    return since && end(c, s);
}

bool imap_changes_store(struct imap_command *c, struct slice *s)
{
    return between(c, s, '(') && imap_take_word(s, "UNCHANGEDSINCE") &&
           imap_say(c, "UNCHANGEDSINCE") && between(c, s, 0) && imap_changes_number(c, s) &&
           end(c, s);
}

/* What a server does not know it passes over (RFC 5161, 3.1); so are those that are not carried. */
bool imap_changes_enable(struct imap_command *c, struct slice *s)
{
    static const char *const known[] = {"CONDSTORE", "QRESYNC"};
    struct slice word;
    bool any = false;
    while (imap_take(s, ' ')) {
        if (!imap_take_atom(s, &word))
            return false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            if (slice_ieq_str(word, known[i])) {
                any = true;
                if (!imap_say(c, " ") || !imap_say(c, known[i]))
                    return false;
            }
    }
    return any || imap_refuse(c, "imap_command", "an extension that is not carried");
}
