/* Takes responses apart. What stands in an answer beside what the sandbox asked for (names of
 * mailboxes that its rule has not, what the server says of itself) stays here. */
#include "imap_answer.h"

#include "imap_text.h"

#include <string.h>

static bool take_status(struct slice *s, const char **ret)
{
    static const char *const all[] = {"OK", "NO", "BAD"};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (imap_take_word(s, all[i])) {
            *ret = all[i];
            return s->n == 0 || imap_take(s, ' ');
        }
    return false;
}

static int read_untagged(struct slice s, struct imap_answer *ret)
{
    ret->text = s;
    if (take_status(&s, &ret->status)) {
        ret->kind = IMAP_ANSWER_STATUS;
    } else if (imap_take_word(&s, "BYE")) {
        ret->kind = IMAP_ANSWER_BYE;
        (void)imap_take(&s, ' ');
    } else if (imap_take_word(&s, "PREAUTH")) {
        ret->kind = IMAP_ANSWER_PREAUTH;
    } else if (imap_take_word(&s, "CAPABILITY")) {
        ret->kind = IMAP_ANSWER_CAPABILITY;
    } else {
        ret->kind = IMAP_ANSWER_DATA;
        return 0;
    }
    ret->text = s;
    return 0;
}

int imap_answer_read(struct slice line, struct imap_answer *ret)
{
    *ret = (struct imap_answer){.kind = IMAP_ANSWER_OTHER};
    if (!slice_ends(line, SLICE("\r\n")))
        return -1;
    line.n -= 2;
    if (imap_take(&line, '+')) {
        ret->kind = IMAP_ANSWER_GO_ON;
        (void)imap_take(&line, ' ');
        ret->text = line;
        return 0;
    }
    if (imap_take(&line, '*'))
        return imap_take(&line, ' ') ? read_untagged(line, ret) : -1;
    ret->kind = IMAP_ANSWER_TAGGED;
    if (!imap_command_tag(&line, &ret->tag) || !take_status(&line, &ret->status))
        return -1;
    ret->text = line;
    return 0;
}

/* A list in brackets of atoms, flags and numbers, in which nothing else can hide. */
static bool take_plain_list(struct slice *s, struct slice *ret)
{
    if (s->n == 0 || s->p[0] != '(')
        return false;
    ssize_t end = slice_find(*s, ')');
    if (end < 0)
        return false;
    *ret = (struct slice){s->p, (size_t)end + 1};
    for (size_t i = 1; i < (size_t)end; i++)
        if ((unsigned char)s->p[i] < 0x20 || (unsigned char)s->p[i] >= 0x7f ||
            strchr("({\"", s->p[i]) != NULL)
            return false;
    *s = (struct slice){s->p + end + 1, s->n - (size_t)end - 1};
    return true;
}

/* ---- what a server says in words ---- */

enum code_holds { CODE_BARE = 0, CODE_NUMBERS, CODE_FLAGS };

/* Those that say something of mailboxes, messages or a command. */
static const struct {
    const char *name;
    enum code_holds holds;
} codes[] = {
    {"READ-ONLY", CODE_BARE},
    {"READ-WRITE", CODE_BARE},
    {"TRYCREATE", CODE_BARE},
    {"UIDNEXT", CODE_NUMBERS},
    {"UIDVALIDITY", CODE_NUMBERS},
    {"UNSEEN", CODE_NUMBERS},
    {"PERMANENTFLAGS", CODE_FLAGS},
    {"APPENDUID", CODE_NUMBERS},
    {"COPYUID", CODE_NUMBERS},
    {"UIDNOTSTICKY", CODE_BARE},
    {"CLOSED", CODE_BARE},
    {"HIGHESTMODSEQ", CODE_NUMBERS},
    {"NOMODSEQ", CODE_BARE},
    {"MODIFIED", CODE_NUMBERS},
    {"BADCHARSET", CODE_BARE},
    {"PARSE", CODE_BARE},
    {"ALERT", CODE_BARE},
    {"UNAVAILABLE", CODE_BARE},
    {"AUTHENTICATIONFAILED", CODE_BARE},
    {"AUTHORIZATIONFAILED", CODE_BARE},
    {"EXPIRED", CODE_BARE},
    {"PRIVACYREQUIRED", CODE_BARE},
    {"CONTACTADMIN", CODE_BARE},
    {"NOPERM", CODE_BARE},
    {"INUSE", CODE_BARE},
    {"EXPUNGEISSUED", CODE_BARE},
    {"CORRUPTION", CODE_BARE},
    {"SERVERBUG", CODE_BARE},
    {"CLIENTBUG", CODE_BARE},
    {"CANNOT", CODE_BARE},
    {"LIMIT", CODE_BARE},
    {"OVERQUOTA", CODE_BARE},
    {"TOOBIG", CODE_BARE},
    {"ALREADYEXISTS", CODE_BARE},
    {"NONEXISTENT", CODE_BARE},
    {"HASCHILDREN", CODE_BARE},
};

/* " 1 4:7,9", or nothing */
static bool take_numbers(struct slice *s, struct slice *ret)
{
    size_t n = 0;
    while (n < s->n && s->p[n] && strchr("0123456789:,* ", s->p[n]) != NULL)
        n++;
    *ret = *s;
    return n == s->n;
}

int imap_answer_code(struct slice text, struct buf *out)
{
    struct slice word, more = SLICE("");
    ssize_t end = slice_find(text, ']');
    if (end < 0 || text.n > IMAP_SAID_MAX || !imap_take(&text, '['))
        return 0;
    text.n = (size_t)end - 1;
    if (!imap_take_atom(&text, &word))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (!slice_ieq_str(word, codes[i].name))
            continue;
        struct slice rest = text;
        if ((codes[i].holds == CODE_NUMBERS && !take_numbers(&rest, &more)) ||
            (codes[i].holds == CODE_FLAGS &&
             (!imap_take(&rest, ' ') || !take_plain_list(&rest, &more) || rest.n > 0)))
            return 0;
        return buf_printf(out, "[%s%s%.*s]", codes[i].name, codes[i].holds == CODE_FLAGS ? " " : "",
                          SL(more));
    }
    return 0;
}

/* Of an ALERT, which has to be shown to whoever is there (RFC 3501, 7.1), the words. No client
 * reads them as anything else: a brace at the end of a line would be a literal's. */
static int put_alert(struct slice text, struct buf *out)
{
    ssize_t end = slice_find(text, ']');
    text = slice_trim((struct slice){text.p + end + 1, text.n - (size_t)end - 1});
    for (size_t i = 0; i < text.n && i < IMAP_ALERT_MAX; i++) {
        char c = text.p[i];
        if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f || c == '{' || c == '}')
            c = '?';
        if (buf_append(out, &c, 1) < 0)
            return -1;
    }
    return text.n ? 0 : buf_append_str(out, "the server wants to be heard");
}

int imap_answer_text(const struct imap_answer *a, struct buf *out)
{
    size_t had = buf_len(out);
    if (imap_answer_code(a->text, out) < 0 || (buf_len(out) > had && buf_append(out, " ", 1) < 0))
        return -1;
    if (slice_istarts(a->text, SLICE("[ALERT]")))
        return put_alert(a->text, out);
    return buf_append_str(out, a->kind == IMAP_ANSWER_BYE     ? "the server ends the session"
                               : strcmp(a->status, "OK") == 0 ? "done"
                               : strcmp(a->status, "NO") == 0 ? "the server refuses it"
                                                              : "the server cannot read it");
}

/* ---- data ---- */

/* May the sandbox know of it? Names in no form of ours only where any name is let in. */
static bool name_allowed(const struct imap_terms *t, struct slice said)
{
    struct buf name;
    buf_init(&name, IMAP_NAME_MAX * 4);
    bool ok = t->n_folders == 0 ||
              (imap_name_read(said, &name) == 0 && imap_folder_allowed(t, buf_slice(&name)));
    buf_free(&name);
    return ok;
}

static bool put_name(struct slice *s, const struct imap_terms *t, struct buf *out, bool *hidden)
{
    struct buf name;
    buf_init(&name, IMAP_STRING_MAX);
    bool ok = imap_take_astring(s, &name);
    bool root = buf_len(&name) == 0; /* of LIST "" "" */
    *hidden = ok && !root && !name_allowed(t, buf_slice(&name));
    ok = ok && imap_put_string(out, buf_slice(&name)) == 0;
    buf_free(&name);
    return ok;
}

static bool put_delimiter(struct slice *s, struct buf *out)
{
    struct buf d;
    if (imap_take_word(s, "NIL"))
        return buf_append_str(out, "NIL ") == 0;
    buf_init(&d, 8);
    bool ok = s->n > 0 && s->p[0] == '"' && imap_take_string(s, &d) && buf_len(&d) == 1 &&
              imap_put_string(out, buf_slice(&d)) == 0 && buf_append(out, " ", 1) == 0;
    buf_free(&d);
    return ok;
}

static bool put_list(struct slice s, const char *word, const struct imap_terms *t, struct buf *out,
                     bool *hidden)
{
    struct slice flags;
    return imap_take(&s, ' ') && take_plain_list(&s, &flags) && imap_take(&s, ' ') &&
           buf_printf(out, "* %s %.*s ", word, SL(flags)) == 0 && put_delimiter(&s, out) &&
           imap_take(&s, ' ') && put_name(&s, t, out, hidden) && buf_append(out, "\r\n", 2) == 0;
}

static bool put_status(struct slice s, const struct imap_terms *t, struct buf *out, bool *hidden)
{
    struct slice items;
    return imap_take(&s, ' ') && buf_append_str(out, "* STATUS ") == 0 &&
           put_name(&s, t, out, hidden) && imap_take(&s, ' ') && take_plain_list(&s, &items) &&
           slice_trim(s).n == 0 && buf_printf(out, " %.*s\r\n", SL(items)) == 0;
}

/* Of the three kinds the sandbox's own; those of others only where any name is let in. */
static bool put_namespace(struct slice s, const struct imap_terms *t, struct buf *out)
{
    size_t depth = 0, end = 0;
    if (!imap_take(&s, ' '))
        return false;
    if (t->n_folders == 0)
        return slice_find(s, '{') < 0 && slice_find(s, '\r') < 0 &&
               buf_printf(out, "* NAMESPACE %.*s\r\n", SL(s)) == 0;
    while (end < s.n && (depth > 0 || s.p[end] != ' ')) {
        depth += s.p[end] == '(';
        depth -= s.p[end] == ')' && depth > 0;
        end++;
    }
    struct slice own = {s.p, end};
    return slice_find(own, '{') < 0 && slice_find(own, '\r') < 0 &&
           buf_printf(out, "* NAMESPACE %.*s NIL NIL\r\n", SL(own)) == 0;
}

/* "12 EXISTS" */
static bool put_count(struct slice s, struct buf *out)
{
    static const char *const words[] = {"EXISTS", "RECENT", "EXPUNGE"};
    uint64_t n;
    if (!imap_take_number(&s, UINT32_MAX, &n) || !imap_take(&s, ' '))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_ieq_str(s, words[i]))
            return buf_printf(out, "* %llu %s\r\n", (unsigned long long)n, words[i]) == 0;
    return true; /* another: dropped */
}

/* "(EARLIER) 3:5,7" */
static bool put_vanished(struct slice s, struct buf *out)
{
    struct slice set;
    bool earlier = slice_istarts(s, SLICE(" (EARLIER)"));
    if (earlier)
        s = (struct slice){s.p + 10, s.n - 10};
    return imap_take(&s, ' ') && imap_take_set(&s, &set) && slice_trim(s).n == 0 &&
           buf_printf(out, "* VANISHED%s %.*s\r\n", earlier ? " (EARLIER)" : "", SL(set)) == 0;
}

/* Of what is carried, if there is any. */
static bool put_enabled(struct slice s, struct buf *out)
{
    static const char *const known[] = {"CONDSTORE", "QRESYNC"};
    struct slice word;
    size_t had = buf_len(out);
    while (imap_take(&s, ' ') && imap_take_atom(&s, &word))
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            if (slice_ieq_str(word, known[i]) &&
                buf_printf(out, "%s %s", buf_len(out) > had ? "" : "* ENABLED", known[i]) < 0)
                return false;
    return buf_len(out) == had || buf_append(out, "\r\n", 2) == 0;
}

static int put_data(struct slice s, const struct imap_terms *t, struct buf *out)
{
    struct slice flags;
    size_t had = buf_len(out);
    bool hidden = false, ok = true;
    if (s.n > 0 && s.p[0] >= '0' && s.p[0] <= '9')
        ok = put_count(s, out);
    else if (imap_take_word(&s, "LIST"))
        ok = put_list(s, "LIST", t, out, &hidden);
    else if (imap_take_word(&s, "LSUB"))
        ok = put_list(s, "LSUB", t, out, &hidden);
    else if (imap_take_word(&s, "STATUS"))
        ok = put_status(s, t, out, &hidden);
    else if (imap_take_word(&s, "VANISHED"))
        ok = put_vanished(s, out);
    else if (imap_take_word(&s, "ENABLED"))
        ok = put_enabled(s, out);
    else if (imap_take_word(&s, "NAMESPACE"))
        ok = put_namespace(s, t, out);
    else if (imap_take_word(&s, "FLAGS"))
        ok = imap_take(&s, ' ') && take_plain_list(&s, &flags) &&
             buf_printf(out, "* FLAGS %.*s\r\n", SL(flags)) == 0;
    if (!ok || hidden)
        buf_cut(out, buf_len(out) - had);
    return ok ? 0 : -1;
}

int imap_answer_put(const struct imap_answer *a, const struct imap_terms *t, struct buf *out)
{
    if (a->kind == IMAP_ANSWER_DATA)
        return put_data(a->text, t, out);
    if (a->kind != IMAP_ANSWER_STATUS)
        return 0;
    return buf_printf(out, "* %s ", a->status) < 0 || imap_answer_text(a, out) < 0
               ? -1
               : buf_append(out, "\r\n", 2);
}

/* ---- what the server has ---- */

void imap_server_read(struct slice s, struct imap_server *ret)
{
    static const struct {
        const char *name;
        unsigned bit;
    } all[] = {{"IDLE", IMAP_HAS_IDLE},
               {"UIDPLUS", IMAP_HAS_UIDPLUS},
               {"MOVE", IMAP_HAS_MOVE},
               {"SPECIAL-USE", IMAP_HAS_SPECIAL_USE},
               {"NAMESPACE", IMAP_HAS_NAMESPACE},
               {"UNSELECT", IMAP_HAS_UNSELECT},
               {"CHILDREN", IMAP_HAS_CHILDREN},
               {"ENABLE", IMAP_HAS_ENABLE},
               {"CONDSTORE", IMAP_HAS_CONDSTORE},
               {"QRESYNC", IMAP_HAS_QRESYNC},
               {"LIST-STATUS", IMAP_HAS_LIST_STATUS}};
    struct slice word;
    *ret = (struct imap_server){.has = 0};
    for (; s.n > 0; s = (struct slice){s.p + word.n, s.n - word.n}) {
        (void)imap_take(&s, ' ');
        ssize_t end = slice_find(s, ' ');
        word = (struct slice){s.p, end < 0 ? s.n : (size_t)end};
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            ret->has |= slice_ieq_str(word, all[i].name) ? all[i].bit : 0;
        ret->starttls |= slice_ieq_str(word, "STARTTLS");
        ret->plain |= slice_ieq_str(word, "AUTH=PLAIN");
        ret->xoauth2 |= slice_ieq_str(word, "AUTH=XOAUTH2");
        ret->no_login |= slice_ieq_str(word, "LOGINDISABLED");
    }
}
