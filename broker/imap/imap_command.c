/* Which command it is, and the arguments of all but FETCH and SEARCH. */
#include "imap_grammar.h"

#include <string.h>

bool imap_refuse(struct imap_command *c, const char *code, const char *why)
{
    if (c->code == NULL) {
        c->code = code;
        c->why = why;
    }
    return false;
}

bool imap_say(struct imap_command *c, const char *text)
{
    return buf_append_str(&c->out, text) == 0;
}

bool imap_say_slice(struct imap_command *c, struct slice text)
{
    return buf_append_slice(&c->out, text) == 0;
}

bool imap_say_string(struct imap_command *c, struct slice *s)
{
    buf_clear(&c->text);
    if (!imap_take_astring(s, &c->text))
        return false;
    struct slice text = buf_slice(&c->text), rest = text, atom;
    if (imap_take_atom(&rest, &atom) && rest.n == 0)
        return imap_say_slice(c, text);
    return imap_put_string(&c->out, text) == 0;
}

/* ---- mailboxes ---- */

static bool folder(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    struct buf *name = &c->folder[c->n_folders];
    buf_clear(&c->text);
    if (!imap_take(s, ' ') || !imap_take_astring(s, &c->text))
        return false;
    c->n_folders++;
    struct slice said = buf_slice(&c->text);
    if (c->verb == IMAP_VERB_CREATE && said.n > 1 && said.p[said.n - 1] == '/')
        buf_cut(&c->text, 1); /* as who means to make more below says it (RFC 3501, 6.3.3) */
    if (imap_name_read(buf_slice(&c->text), name) < 0)
        return imap_refuse(c, "imap_folder", "a name of a mailbox that is not plain");
    if (!imap_folder_allowed(t, buf_slice(name)))
        return imap_refuse(c, "imap_folder", "its rule does not have this mailbox");
    bool inbox = slice_ieq_str(buf_slice(&c->text), "INBOX");
    return imap_say(c, " ") &&
           imap_put_string(&c->out, inbox ? SLICE("INBOX") : buf_slice(&c->text)) == 0;
}

static bool one_folder(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    return folder(c, s, t);
}

/* What lies below goes with it, at DELETE at some servers. */
static bool whole(struct imap_command *c, const struct imap_terms *t)
{
    for (size_t i = 0; i < c->n_folders; i++)
        if (slice_eq_str(buf_slice(&c->folder[i]), "INBOX") ||
            !imap_folder_whole(t, buf_slice(&c->folder[i])))
            return imap_refuse(c, "imap_folder", "its rule does not have all that is below");
    return true;
}

static bool delete_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    return folder(c, s, t) && whole(c, t);
}

static bool rename_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    return folder(c, s, t) && folder(c, s, t) && whole(c, t);
}

static bool set_and_folder(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    struct slice set;
    return imap_take(s, ' ') && imap_take_set(s, &set) && imap_say(c, " ") &&
           imap_say_slice(c, set) && folder(c, s, t);
}

static bool one_set(struct imap_command *c, struct slice *s, const struct imap_terms *t UNUSED)
{
    struct slice set;
    if (!c->uid)
        return true;
    return imap_take(s, ' ') && imap_take_set(s, &set) && imap_say(c, " ") &&
           imap_say_slice(c, set);
}

static bool status_items(struct imap_command *c, struct slice *s);

/* What needs more than the list's own verb. */
static bool on_listed(struct imap_command *c, struct slice *s, const char *word)
{
    if (strcmp(word, "HIGHESTMODSEQ") == 0)
        c->wants |= IMAP_HAS_CONDSTORE;
    if (strcmp(word, "STATUS") != 0)
        return true;
    c->wants |= IMAP_HAS_LIST_STATUS;
    return imap_take(s, ' ') && imap_say(c, " ") && status_items(c, s);
}

static bool words(struct imap_command *c, struct slice *s, const char *const *list, size_t n)
{
    if (!imap_take(s, '(') || !imap_say(c, "("))
        return false;
    while (!imap_take(s, ')')) {
        size_t i = 0;
        while (i < n && !imap_take_word(s, list[i]))
            i++;
        if (i == n)
            return imap_refuse(c, "imap_command", "a word of it that is not carried");
        if (!imap_say(c, list[i]) || !on_listed(c, s, list[i]))
            return false;
        if (s->n > 0 && s->p[0] != ')' && (!imap_take(s, ' ') || !imap_say(c, " ")))
            return false;
    }
    return imap_say(c, ")");
}

static bool status_items(struct imap_command *c, struct slice *s)
{
    static const char *const items[] = {"MESSAGES",    "RECENT", "UIDNEXT",
                                        "UIDVALIDITY", "UNSEEN", "HIGHESTMODSEQ"};
    return words(c, s, items, ARRAY_LEN(items));
}

static bool status_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    return folder(c, s, t) && imap_take(s, ' ') && imap_say(c, " ") && status_items(c, s);
}

static bool select_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    return folder(c, s, t) && (s->n == 0 || imap_changes_select(c, s));
}

static bool enable_args(struct imap_command *c, struct slice *s, const struct imap_terms *t UNUSED)
{
    return imap_changes_enable(c, s);
}

/* Where and for what; whatever is answered, only names that the rule has come back. */
static bool list_names(struct imap_command *c, struct slice *s)
{
    for (int i = 0; i < 2; i++) {
        buf_clear(&c->text);
        if (!imap_take(s, ' ') ||
            !(i ? imap_take_list_pattern(s, &c->text) : imap_take_astring(s, &c->text)))
            return false;
        if (!imap_name_pattern_ok(buf_slice(&c->text)))
            return imap_refuse(c, "imap_folder", "a name of a mailbox that is not plain");
        if (!imap_say(c, " ") || imap_put_string(&c->out, buf_slice(&c->text)) < 0)
            return false;
    }
    return true;
}

static bool list_args(struct imap_command *c, struct slice *s, const struct imap_terms *t UNUSED)
{
    static const char *const selects[] = {"SUBSCRIBED", "SPECIAL-USE"};
    static const char *const returns[] = {"SUBSCRIBED", "CHILDREN", "SPECIAL-USE", "STATUS"};
    bool lsub = c->verb == IMAP_VERB_LSUB;
    if (!lsub && s->n > 1 && s->p[1] == '(' &&
        (!imap_take(s, ' ') || !imap_say(c, " ") || !words(c, s, selects, ARRAY_LEN(selects))))
        return false;
    if (!list_names(c, s))
        return false;
    if (lsub || s->n == 0)
        return true;
    return imap_take(s, ' ') && imap_take_word(s, "RETURN") && imap_take(s, ' ') &&
           imap_say(c, " RETURN ") && words(c, s, returns, ARRAY_LEN(returns));
}

/* ---- flags ---- */

/* *deleted, *other: which kinds there are. */
static bool flag(struct imap_command *c, struct slice *s, bool *deleted, bool *other)
{
    static const char *const known[] = {"Answered", "Flagged", "Seen", "Draft"};
    struct slice word;
    if (!imap_take(s, '\\')) {
        *other = true;
        return imap_take_atom(s, &word) && imap_say_slice(c, word);
    }
    if (imap_take_word(s, "Deleted")) {
        *deleted = true;
        return imap_say(c, "\\Deleted");
    }
    *other = true;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (imap_take_word(s, known[i]))
            return imap_say(c, "\\") && imap_say(c, known[i]);
    return imap_refuse(c, "imap_command", "a flag that nobody sets");
}

/* In brackets or, where it may be, without. */
static bool flags(struct imap_command *c, struct slice *s, bool *deleted, bool *other)
{
    bool in = imap_take(s, '(');
    if (!imap_say(c, "("))
        return false;
    if (in && imap_take(s, ')'))
        return imap_say(c, ")");
    while (flag(c, s, deleted, other)) {
        if (in ? imap_take(s, ')') : s->n == 0)
            return imap_say(c, ")");
        if (!imap_take(s, ' ') || !imap_say(c, " "))
            return false;
    }
    return false;
}

static bool store_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    bool deleted = false, other = false;
    struct slice set;
    if (!imap_take(s, ' ') || !imap_take_set(s, &set) || !imap_say(c, " ") ||
        !imap_say_slice(c, set))
        return false;
    if (s->n > 1 && s->p[1] == '(' && !imap_changes_store(c, s))
        return false;
    if (!imap_take(s, ' ') || !imap_say(c, " "))
        return false;
    bool more = imap_take(s, '+'), less = !more && imap_take(s, '-');
    if (!imap_take_word(s, "FLAGS") || !imap_say(c, more ? "+FLAGS" : less ? "-FLAGS" : "FLAGS"))
        return false;
    if (imap_take(s, '.') && (!imap_take_word(s, "SILENT") || !imap_say(c, ".SILENT")))
        return false;
    if (!imap_take(s, ' ') || !imap_say(c, " ") || !flags(c, s, &deleted, &other))
        return false;
    unsigned wants = (deleted ? IMAP_DELETE : 0) | (other || (!more && !less) ? IMAP_FLAG : 0);
    if ((t->actions & wants) != wants)
        return imap_refuse(c, "imap_action",
                           deleted && !(t->actions & IMAP_DELETE)
                               ? "its rule does not have 'delete'"
                               : "its rule does not have 'flag'");
    return true;
}

/* ---- a message that comes ---- */

/* "17-Jul-2026 02:44:25 +0200" */
static bool date_time(struct imap_command *c, struct slice *s)
{
    buf_clear(&c->text);
    if (!imap_take_string(s, &c->text))
        return false;
    struct slice d = buf_slice(&c->text);
    bool ok = d.n == 26 && d.p[2] == '-' && d.p[6] == '-' && d.p[11] == ' ' && d.p[14] == ':' &&
              d.p[17] == ':' && d.p[20] == ' ' && (d.p[21] == '+' || d.p[21] == '-');
    for (size_t i = 0; i < d.n && ok; i++)
        ok = ascii_is_alnum(d.p[i]) || strchr("-: +", d.p[i]) != NULL;
    return ok && imap_put_string(&c->out, d) == 0 && imap_say(c, " ") && imap_take(s, ' ');
}

static bool append_args(struct imap_command *c, struct slice *s, const struct imap_terms *t)
{
    bool deleted, other;
    if (!folder(c, s, t) || !imap_take(s, ' ') || !imap_say(c, " "))
        return false;
    if (s->n > 0 && s->p[0] == '(' &&
        (!flags(c, s, &deleted, &other) || !imap_take(s, ' ') || !imap_say(c, " ")))
        return false;
    if (s->n > 0 && s->p[0] == '"' && !date_time(c, s))
        return false;
    if (!imap_take(s, '{') || !imap_take_number(s, UINT32_MAX, &c->size))
        return imap_refuse(c, "imap_command", "APPEND takes one message, as a literal");
    (void)imap_take(s, '+');
    if (c->size > t->most_bytes)
        return imap_refuse(c, "imap_size", "the message is larger than its rule allows");
    return imap_take(s, '}') && buf_printf(&c->out, "{%llu}", (unsigned long long)c->size) == 0;
}

/* ---- commands that a front answers ---- */

static bool login_args(struct imap_command *c, struct slice *s, const struct imap_terms *t UNUSED)
{
    for (int i = 0; i < 2; i++) {
        buf_clear(&c->text);
        if (!imap_take(s, ' ') || !imap_take_astring(s, &c->text))
            return false;
    }
    return true;
}

static bool authenticate_args(struct imap_command *c, struct slice *s,
                              const struct imap_terms *t UNUSED)
{
    struct slice first;
    if (!imap_take(s, ' ') || !imap_take_atom(s, &c->word))
        return false;
    c->initial = s->n > 0;
    return !c->initial || (imap_take(s, ' ') && imap_take_atom(s, &first));
}

/* Pairs of strings, or NIL. */
static bool id_args(struct imap_command *c, struct slice *s, const struct imap_terms *t UNUSED)
{
    if (!imap_take(s, ' '))
        return false;
    if (!imap_take(s, '('))
        return imap_take_word(s, "NIL");
    while (!imap_take(s, ')')) {
        buf_clear(&c->text);
        if ((!imap_take_word(s, "NIL") && !imap_take_string(s, &c->text)) ||
            (s->n > 0 && s->p[0] != ')' && !imap_take(s, ' ')))
            return false;
    }
    return true;
}

static bool nothing(struct imap_command *c UNUSED, struct slice *s UNUSED,
                    const struct imap_terms *t UNUSED)
{
    return true;
}

/* ---- the table ---- */

struct grammar {
    const char *name;
    bool (*args)(struct imap_command *c, struct slice *s, const struct imap_terms *t);
    unsigned actions;
    bool uid; /* UID may stand before it */
};

static const struct grammar grammars[IMAP_VERBS] = {
    [IMAP_VERB_CAPABILITY] = {"CAPABILITY", nothing, 0, false},
    [IMAP_VERB_ID] = {"ID", id_args, 0, false},
    [IMAP_VERB_LOGOUT] = {"LOGOUT", nothing, 0, false},
    [IMAP_VERB_STARTTLS] = {"STARTTLS", nothing, 0, false},
    [IMAP_VERB_LOGIN] = {"LOGIN", login_args, 0, false},
    [IMAP_VERB_AUTHENTICATE] = {"AUTHENTICATE", authenticate_args, 0, false},
    [IMAP_VERB_NOOP] = {"NOOP", nothing, 0, false},
    [IMAP_VERB_CHECK] = {"CHECK", nothing, 0, false},
    [IMAP_VERB_NAMESPACE] = {"NAMESPACE", nothing, 0, false},
    [IMAP_VERB_ENABLE] = {"ENABLE", enable_args, 0, false},
    [IMAP_VERB_LIST] = {"LIST", list_args, 0, false},
    [IMAP_VERB_LSUB] = {"LSUB", list_args, 0, false},
    [IMAP_VERB_STATUS] = {"STATUS", status_args, 0, false},
    [IMAP_VERB_SELECT] = {"SELECT", select_args, 0, false},
    [IMAP_VERB_EXAMINE] = {"EXAMINE", select_args, 0, false},
    [IMAP_VERB_CLOSE] = {"CLOSE", nothing, 0, false},
    [IMAP_VERB_UNSELECT] = {"UNSELECT", nothing, 0, false},
    [IMAP_VERB_SEARCH] = {"SEARCH", imap_search_args, 0, true},
    [IMAP_VERB_FETCH] = {"FETCH", imap_fetch_args, 0, true},
    [IMAP_VERB_STORE] = {"STORE", store_args, 0, true},
    [IMAP_VERB_COPY] = {"COPY", set_and_folder, IMAP_COPY, true},
    [IMAP_VERB_MOVE] = {"MOVE", set_and_folder, IMAP_COPY | IMAP_DELETE, true},
    [IMAP_VERB_EXPUNGE] = {"EXPUNGE", one_set, IMAP_DELETE, true},
    [IMAP_VERB_APPEND] = {"APPEND", append_args, IMAP_APPEND, false},
    [IMAP_VERB_CREATE] = {"CREATE", one_folder, IMAP_MANAGE, false},
    [IMAP_VERB_DELETE] = {"DELETE", delete_args, IMAP_MANAGE | IMAP_DELETE, false},
    [IMAP_VERB_RENAME] = {"RENAME", rename_args, IMAP_MANAGE, false},
    [IMAP_VERB_SUBSCRIBE] = {"SUBSCRIBE", one_folder, IMAP_MANAGE, false},
    [IMAP_VERB_UNSUBSCRIBE] = {"UNSUBSCRIBE", one_folder, IMAP_MANAGE, false},
    [IMAP_VERB_IDLE] = {"IDLE", nothing, 0, false},
};

const char *imap_verb_name(enum imap_verb verb)
{
    return verb < IMAP_VERBS && grammars[verb].name ? grammars[verb].name : "";
}

int imap_command_show(const struct imap_command *c, struct slice name, struct buf *out)
{
    for (const char *p = imap_verb_name(c->verb); *p; p++) {
        char low = ascii_lower(*p);
        if (buf_append(out, &low, 1) < 0)
            return -1;
    }
    return name.n == 0 ? 0 : (buf_append(out, "/", 1) < 0 ? -1 : buf_append_slice(out, name));
}

static unsigned verb_wants(const struct imap_command *c)
{
    switch (c->verb) {
    case IMAP_VERB_IDLE:
        return IMAP_HAS_IDLE;
    case IMAP_VERB_MOVE:
        return IMAP_HAS_MOVE;
    case IMAP_VERB_NAMESPACE:
        return IMAP_HAS_NAMESPACE;
    case IMAP_VERB_ENABLE:
        return IMAP_HAS_ENABLE;
    case IMAP_VERB_UNSELECT:
        return IMAP_HAS_UNSELECT;
    case IMAP_VERB_EXPUNGE:
        return c->uid ? IMAP_HAS_UIDPLUS : 0;
    default:
        return 0;
    }
}

unsigned imap_verb_wants(const struct imap_command *c)
{
    return verb_wants(c) | c->wants;
}

/* What a rule leaves of some. A mailbox is opened to be written only where its rule has what needs
 * that; and CLOSE, which deletes what is marked so, only where the rule has that too. */
static void leave(struct imap_command *c, const struct imap_terms *t)
{
    if (c->verb == IMAP_VERB_SELECT && !(t->actions & (IMAP_FLAG | IMAP_DELETE)))
        c->verb = IMAP_VERB_EXAMINE;
    if (c->verb == IMAP_VERB_CLOSE && t->actions & IMAP_FLAG && !(t->actions & IMAP_DELETE))
        c->verb = IMAP_VERB_UNSELECT;
}

static bool take_verb(struct imap_command *c, struct slice *s)
{
    struct slice word;
    c->uid = imap_take_word(s, "UID");
    if ((c->uid && !imap_take(s, ' ')) || !imap_take_atom(s, &word))
        return false;
    c->word = word;
    for (unsigned v = 1; v < IMAP_VERBS; v++)
        if (slice_ieq_str(word, grammars[v].name) && (!c->uid || grammars[v].uid)) {
            c->verb = (enum imap_verb)v;
            return true;
        }
    return imap_refuse(c, "imap_command", "this command is not carried");
}

static const char *missing(unsigned actions)
{
    return actions & IMAP_APPEND   ? "its rule does not have 'append'"
           : actions & IMAP_COPY   ? "its rule does not have 'copy'"
           : actions & IMAP_DELETE ? "its rule does not have 'delete'"
                                   : "its rule does not have 'manage'";
}

static void clear(struct imap_command *c)
{
    c->verb = IMAP_VERB_NONE;
    c->uid = c->initial = false;
    c->word = SLICE("");
    c->n_folders = 0;
    c->size = 0;
    c->wants = 0;
    c->code = c->why = NULL;
    buf_clear(&c->folder[0]);
    buf_clear(&c->folder[1]);
    buf_clear(&c->out);
}

int imap_command_read(struct imap_command *c, struct slice text, const struct imap_terms *t)
{
    clear(c);
    bool ok = take_verb(c, &text);
    if (ok) {
        const struct grammar *g = &grammars[c->verb];
        unsigned lacks = g->actions & ~t->actions;
        leave(c, t);
        ok = (!c->uid || imap_say(c, "UID ")) && imap_say(c, grammars[c->verb].name);
        if (ok && lacks)
            ok = imap_refuse(c, "imap_action", missing(lacks));
        ok = ok && g->args(c, &text, t) && text.n == 0;
    }
    buf_clear(&c->text);
    if (ok && buf_len(&c->out) + 2 > IMAP_COMMAND_MAX)
        ok = imap_refuse(c, "imap_protocol", "it is too long");
    if (!ok)
        (void)imap_refuse(c, "imap_protocol", "its words cannot be read");
    return ok ? 0 : -1;
}

int imap_command_literal(struct imap_command *c, struct slice text, const struct imap_terms *t)
{
    struct slice rest = text;
    clear(c);
    if (!take_verb(c, &rest) || c->verb != IMAP_VERB_APPEND)
        return c->code ? -1 : 0;
    struct slice name = rest;
    uint64_t size;
    if (imap_take(&name, ' ') && imap_take(&name, '{') &&
        imap_take_number(&name, UINT32_MAX, &size) && (imap_take(&name, '+') || true) &&
        imap_take(&name, '}') && name.n == 0)
        return 0; /* of the mailbox's name */
    return imap_command_read(c, text, t) < 0 ? -1 : 1;
}

bool imap_command_tag(struct slice *text, struct slice *tag)
{
    size_t n = 0;
    while (n < text->n && n <= IMAP_TAG_MAX && text->p[n] > 0x20 && text->p[n] < 0x7f &&
           strchr("(){%*\"\\+", text->p[n]) == NULL)
        n++;
    *tag = (struct slice){text->p, n};
    if (n == 0 || n > IMAP_TAG_MAX || n == text->n || text->p[n] != ' ')
        return false;
    *text = (struct slice){text->p + n + 1, text->n - n - 1};
    return true;
}

void imap_command_init(struct imap_command *c)
{
    memset(c, 0, sizeof *c);
    buf_init(&c->folder[0], IMAP_NAME_MAX * 4);
    buf_init(&c->folder[1], IMAP_NAME_MAX * 4);
    buf_init(&c->out, IMAP_OUT_MAX);
    buf_init_wiped(&c->text, IMAP_STRING_MAX);
}

void imap_command_free(struct imap_command *c)
{
    for (size_t i = 0; i < 2; i++)
        buf_free(&c->folder[i]);
    buf_free(&c->out);
    buf_free(&c->text);
}
