/* What the front has said: taken apart once more, judged by this side's rule, and written to the
 * server with tags of its own. One command at a time. */
#include "imap_back.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int imap_say_line(struct imap_session *s, const char *fmt, ...)
{
    char line[2 * (BACK_LOGIN_PASSWORD_MAX + BACK_LOGIN_USER_MAX) + 64];
    int n = snprintf(line, sizeof line, "D%u ", ++s->tag), e = -1;
    va_list ap;
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    if ((size_t)n + 2 <= sizeof line) {
        memcpy(line + n, "\r\n", 2);
        e = io_write(s->link.io, line, (size_t)n + 2);
    }
    explicit_bzero(line, sizeof line);
    if (e < 0)
        imap_carry_stop(s, "memory", "");
    return e;
}

bool imap_say_is_tag(const struct imap_session *s, struct slice tag)
{
    char own[24];
    snprintf(own, sizeof own, "D%u", s->tag);
    return slice_eq_str(tag, own);
}

/* What a front that lies handed on: on record, and its session ends. */
static int on_lie(struct imap_session *s)
{
    imap_carry_stop(s, "imap_command", "the front handed on what its rule does not allow");
    return -1;
}

/* ---- the record ---- */

static void count(struct imap_session *s)
{
    const struct imap_command *c = &s->command;
    char name[IMAP_DID_NAME] = "";
    if (c->n_folders > 0)
        imap_did_name(buf_slice(&c->folder[c->n_folders - 1]), name);
    else if (c->verb >= IMAP_VERB_SEARCH && c->verb <= IMAP_VERB_EXPUNGE)
        memcpy(name, s->selected, sizeof name);
    s->n_commands++;
    imap_did_count(&s->did, c->verb, name);
}

/* ---- to the server ---- */

/* Up to the next literal, for whose bytes the server says that it waits. */
static int write_words(struct imap_session *s)
{
    struct slice all = buf_slice(&s->up);
    ssize_t end = slice_find_slice(all, SLICE("\r\n"));
    size_t n = end < 0 ? all.n : (size_t)end + 2;
    if (io_write(s->link.io, all.p, n) < 0) {
        imap_carry_stop(s, "memory", "");
        return -1;
    }
    buf_drain(&s->up, n);
    s->turn = buf_len(&s->up) > 0                   ? TURN_WORDS
              : s->command.verb == IMAP_VERB_APPEND ? TURN_MESSAGE
              : s->command.verb == IMAP_VERB_IDLE   ? TURN_LISTEN
                                                    : TURN_END;
    return 0;
}

/* The command that was read. -1: the session is gone. */
static int start(struct imap_session *s, int read)
{
    const struct imap_command *c = &s->command;
    const struct imap_terms *t = s->request.rule->imap;
    if (read < 0 || c->verb < IMAP_VERB_NOOP || imap_verb_wants(c) & ~s->server.has)
        return on_lie(s);
    if (t->commands && s->n_commands >= t->commands) {
        imap_carry_stop(s, "imap_commands",
                        "the session has said all the commands that its rule allows");
        return -1;
    }
    s->selecting[0] = 0;
    if (c->verb == IMAP_VERB_SELECT || c->verb == IMAP_VERB_EXAMINE)
        imap_did_name(buf_slice(&c->folder[0]), s->selecting);
    count(s);
    s->message = c->size;
    buf_clear(&s->up);
    if (buf_printf(&s->up, "D%u ", ++s->tag) < 0 ||
        buf_append_slice(&s->up, buf_slice(&c->out)) < 0 || buf_append(&s->up, "\r\n", 2) < 0) {
        imap_carry_stop(s, "memory", "");
        return -1;
    }
    return write_words(s);
}

bool imap_say_more(struct imap_session *s)
{
    switch (s->turn) {
    case TURN_WORDS:
        (void)write_words(s); /* it may be gone */
        return true;
    case TURN_MESSAGE:
        s->turn = s->message ? TURN_COMING : TURN_TAIL;
        break;
    case TURN_LISTEN:
        s->turn = TURN_DONE;
        break;
    default:
        return false;
    }
    return buf_append(&s->status, "+", 1) == 0;
}

void imap_say_ended(struct imap_session *s, bool good)
{
    enum imap_verb v = s->command.verb;
    s->turn = TURN_IDLE;
    buf_clear(&s->up);
    if (v == IMAP_VERB_SELECT || v == IMAP_VERB_EXAMINE)
        memcpy(s->selected, s->selecting, sizeof s->selected);
    if ((v == IMAP_VERB_SELECT || v == IMAP_VERB_EXAMINE)
            ? !good
            : (v == IMAP_VERB_CLOSE || v == IMAP_VERB_UNSELECT) && good)
        s->selected[0] = 0;
}

/* ---- from the front ---- */

/* 1: go on; 0: more has to come; -1: the session is gone. */
static int next_command(struct imap_session *s)
{
    const struct imap_terms *t = s->request.rule->imap;
    struct imap_found f;
    struct slice text = buf_slice(&s->said);
    enum imap_seen seen = imap_reader_next(&s->reader, text, &f);
    if (seen == IMAP_MORE)
        return 0;
    if (seen == IMAP_VIOLATION)
        return on_lie(s);
    text.n = f.n - 2;
    int e = seen == IMAP_LITERAL ? imap_command_literal(&s->command, text, t)
                                 : imap_command_read(&s->command, text, t);
    if (seen == IMAP_LITERAL && e == 0)
        return imap_reader_take(&s->reader, &f) ? 1 : on_lie(s);
    if (start(s, e < 0 ? -1 : 0) < 0)
        return -1;
    buf_drain(&s->said, f.n);
    memset(&s->reader, 0, sizeof s->reader);
    return 1;
}

/* A line that has to come just so. */
static int next_line(struct imap_session *s, struct slice line)
{
    struct slice said = buf_slice(&s->said);
    if (said.n > line.n || !slice_starts(line, said))
        return on_lie(s);
    if (said.n < line.n)
        return 0;
    buf_clear(&s->said);
    s->turn = TURN_END;
    if (io_write(s->link.io, line.p, line.n) == 0)
        return 1;
    imap_carry_stop(s, "memory", "");
    return -1;
}

static int next_message(struct imap_session *s)
{
    struct slice some = buf_slice(&s->said);
    if (some.n > s->message)
        some.n = (size_t)s->message;
    if (slice_find(some, 0) >= 0)
        return on_lie(s);
    if (io_write(s->link.io, some.p, some.n) < 0) {
        imap_carry_stop(s, "memory", "");
        return -1;
    }
    s->message -= some.n;
    buf_drain(&s->said, some.n);
    if (s->message == 0)
        s->turn = TURN_TAIL;
    return 1;
}

int imap_say_up(void *session, struct slice bytes)
{
    struct imap_session *s = session;
    int e = 1;
    if (buf_append_slice(&s->said, bytes) < 0) {
        (void)on_lie(s); /* no command is so long */
        return 0;
    }
    while (e > 0 && buf_len(&s->said) > 0)
        e = s->turn == TURN_IDLE     ? next_command(s)
            : s->turn == TURN_COMING ? next_message(s)
            : s->turn == TURN_TAIL   ? next_line(s, SLICE("\r\n"))
            : s->turn == TURN_DONE   ? next_line(s, SLICE("DONE\r\n"))
                                     : on_lie(s);
    if (e < 0)
        return 0;
    buf_shrink(&s->said);
    if (io_out_len(s->link.io) >= IMAP_IO)
        back_request_pause(&s->request, true);
    io_deadline(s->link.io, IMAP_QUIET_SECONDS);
    return 0;
}
