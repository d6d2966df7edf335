/* What a client's commands come to: some are answered here, some refused, the others go on as they
 * were written anew. */
#include "imap_front.h"

#include <stdio.h>
#include <string.h>

int imap_capability(struct imap_client *c, const char *before, const char *behind)
{
    static const struct {
        unsigned bit;
        const char *name;
    } all[] = {{IMAP_HAS_IDLE, "IDLE"},
               {IMAP_HAS_UIDPLUS, "UIDPLUS"},
               {IMAP_HAS_MOVE, "MOVE"},
               {IMAP_HAS_SPECIAL_USE, "SPECIAL-USE"},
               {IMAP_HAS_NAMESPACE, "NAMESPACE"},
               {IMAP_HAS_UNSELECT, "UNSELECT"},
               {IMAP_HAS_CHILDREN, "CHILDREN"},
               {IMAP_HAS_ENABLE, "ENABLE"},
               {IMAP_HAS_CONDSTORE, "CONDSTORE"},
               {IMAP_HAS_QRESYNC, "QRESYNC"},
               {IMAP_HAS_LIST_STATUS, "LIST-STATUS"}};
    char list[200] = "";
    for (size_t i = 0; c->logged && i < ARRAY_LEN(all); i++)
        if (c->has & all[i].bit)
            snprintf(list + strlen(list), sizeof list - strlen(list), " %s", all[i].name);
    return imap_tell(c, "%sCAPABILITY IMAP4rev1 LITERAL+ ID%s%s%s%s", before,
                     c->secure || c->logged ? "" : " STARTTLS",
                     c->logged ? "" : " SASL-IR AUTH=PLAIN AUTH=LOGIN AUTH=XOAUTH2", list, behind);
}

static int done(struct imap_client *c, const char *what)
{
    return imap_tell(c, "%s OK %s", c->tag, what);
}

/* What stands behind it came in clear, and would be read as if it had come within TLS. */
static int starttls(struct imap_client *c)
{
    if (c->secure || c->logged)
        return imap_no(c, "BAD", "TLS is not begun here", "");
    if (buf_len(io_in(c->io)) > 0) {
        imap_denied(c, "imap_protocol", "more behind STARTTLS");
        imap_client_free(c, false);
        return -1;
    }
    c->wants_tls = true; /* the reply goes out in clear */
    return done(c, "go on");
}

/* A login is nobody's here: it is taken, and forgotten. */
static int authenticate(struct imap_client *c, const char *mechanism)
{
    bool login = strcasecmp(mechanism, "LOGIN") == 0;
    if (!login && strcasecmp(mechanism, "PLAIN") != 0 && strcasecmp(mechanism, "XOAUTH2") != 0)
        return imap_no(c, "NO", "PLAIN, LOGIN or XOAUTH2", "");
    c->more = (unsigned)(login ? 2 : 1) - c->command.initial;
    if (c->more == 0)
        return imap_open(c);
    c->state = CLIENT_AUTH;
    return imap_tell(c, !login ? "+ " : c->more == 2u ? "+ VXNlcm5hbWU6" : "+ UGFzc3dvcmQ6");
}

static int logout(struct imap_client *c)
{
    if (c->stream)
        (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
    if (imap_tell(c, "* BYE durward") == 0 && done(c, "bye") == 0)
        imap_client_free(c, true);
    return -1;
}

static int refuse(struct imap_client *c, const char *word)
{
    const struct imap_command *d = &c->command;
    char text[IMAP_ANSWER];
    bool rule = strcmp(d->code, "imap_folder") == 0 || strcmp(d->code, "imap_action") == 0 ||
                strcmp(d->code, "imap_size") == 0;
    bool named = imap_verb_name(d->verb)[0] != 0;
    snprintf(text, sizeof text, "%s%s%s", named ? "" : word, named ? "" : ": ", d->why);
    if (c->logged)
        imap_denied(c, d->code, text);
    snprintf(text, sizeof text, "refused: %s: %s", word, d->why);
    return imap_no(c, rule ? "NO" : "BAD", text, d->code);
}

/* word: of the command, for people; text of the command itself is gone. */
static int dispatch(struct imap_client *c, const char *word, int read)
{
    const struct imap_command *d = &c->command;
    char text[IMAP_ANSWER];
    if (!c->logged && d->verb >= IMAP_VERB_CHECK)
        return imap_no(c, "BAD", "a login goes first", "");
    if (read < 0)
        return refuse(c, word);
    if (imap_verb_wants(d) & ~c->has) {
        snprintf(text, sizeof text, "refused: %s: the server does not have it",
                 imap_verb_name(d->verb));
        return imap_no(c, "BAD", text, "imap_command");
    }
    switch (d->verb) {
    case IMAP_VERB_CAPABILITY:
        return imap_capability(c, "* ", "") < 0 ? -1 : done(c, "done");
    case IMAP_VERB_ID:
        return imap_tell(c, "* ID NIL") < 0 ? -1 : done(c, "done");
    case IMAP_VERB_LOGOUT:
        return logout(c);
    case IMAP_VERB_STARTTLS:
        return starttls(c);
    case IMAP_VERB_LOGIN:
    case IMAP_VERB_AUTHENTICATE:
        if (c->logged)
            return imap_no(c, "BAD", "there was a login already", "");
        return d->verb == IMAP_VERB_LOGIN ? imap_open(c) : authenticate(c, word);
    case IMAP_VERB_NOOP:
        return c->logged ? imap_send(c) : done(c, "done");
    default:
        return imap_send(c);
    }
}

static int take_tag(struct imap_client *c, struct slice *text)
{
    struct slice tag;
    if (!imap_command_tag(text, &tag)) {
        imap_violation(c, "no tag of a command");
        return -1;
    }
    snprintf(c->tag, sizeof c->tag, "%.*s", SL(tag));
    return 0;
}

static void forget(struct imap_client *c, size_t n)
{
    buf_drain(io_in(c->io), n);
    memset(&c->reader, 0, sizeof c->reader);
}

/* The literal that a refused command announced: of a client that does not wait it comes. */
static int refuse_literal(struct imap_client *c, const struct imap_found *f, const char *word)
{
    forget(c, f->n);
    if (!f->waits) {
        c->state = CLIENT_DROPPING;
        c->left = f->size;
    }
    return refuse(c, word) < 0 ? -1 : 1;
}

static int on_literal(struct imap_client *c, struct slice text, const struct imap_found *f)
{
    char word[40];
    text.n = f->n - 2;
    if (take_tag(c, &text) < 0)
        return -1;
    int e = c->logged ? imap_command_literal(&c->command, text, c->rule->imap) : 0;
    snprintf(word, sizeof word, "%.*s", (int)(c->command.word.n < 39 ? c->command.word.n : 39),
             c->command.word.n ? c->command.word.p : "");
    if (e < 0)
        return refuse_literal(c, f, word);
    if (e > 0) {
        c->waits = f->waits;
        c->left = f->size;
        forget(c, f->n);
        return imap_send(c) < 0 ? -1 : 1;
    }
    if (!imap_reader_take(&c->reader, f)) {
        imap_violation(c, "a command is too long");
        return -1;
    }
    return f->waits && imap_tell(c, "+ go on") < 0 ? -1 : 1;
}

int imap_next_command(struct imap_client *c)
{
    struct imap_found f;
    char word[40];
    struct slice text = buf_slice(io_in(c->io));
    io_deadline(c->io, IMAP_QUIET_SECONDS);
    switch (imap_reader_next(&c->reader, text, &f)) {
    case IMAP_MORE:
        return 0;
    case IMAP_VIOLATION:
        imap_violation(c, f.why);
        return -1;
    case IMAP_LITERAL:
        return on_literal(c, text, &f);
    default:
        break;
    }
    text.n = f.n - 2;
    if (take_tag(c, &text) < 0)
        return -1;
    int e = imap_command_read(&c->command, text, c->rule->imap);
    struct slice said = c->command.word;
    snprintf(word, sizeof word, "%.*s", (int)(said.n < 39 ? said.n : 39), said.n ? said.p : "");
    c->command.word = SLICE("");
    forget(c, f.n);
    return dispatch(c, word, e) < 0 ? -1 : 1;
}

/* A line of AUTHENTICATE's. */
int imap_next_answer(struct imap_client *c)
{
    struct buf *in = io_in(c->io);
    struct slice all = buf_slice(in);
    ssize_t end = slice_find(all, '\n');
    if (end < 0 && all.n < IMAP_LINE_MAX)
        return 0;
    if (end < 1 || end >= IMAP_LINE_MAX || all.p[end - 1] != '\r') {
        imap_violation(c, "no answer to AUTHENTICATE");
        return -1;
    }
    bool given_up = end == 2 && all.p[0] == '*';
    memset(buf_data(in), 0, (size_t)end + 1);
    buf_drain(in, (size_t)end + 1);
    c->state = CLIENT_COMMANDS;
    if (given_up)
        return imap_no(c, "BAD", "given up", "") < 0 ? -1 : 1;
    if (--c->more > 0) {
        c->state = CLIENT_AUTH;
        return imap_tell(c, "+ UGFzc3dvcmQ6") < 0 ? -1 : 1;
    }
    return imap_open(c) < 0 ? -1 : 1;
}
