/* Commands and replies, one after another: a command is read once the reply to the one before is
 * over, so that a refusal has its place and a file's content is no command. */
#include "mysql_front.h"

#include <stdio.h>
#include <string.h>

enum {
    REFUSED_CODE = 1142,
    UNKNOWN_THREAD = 1094,
    KILL_MAX = 256 /* bytes: no KILL QUERY is longer */
};

/* ---- to the back ---- */

static void note_refused(struct mysql_client *c, const struct mysql_judged *j)
{
    struct record r;
    char path[MYSQL_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", c->database);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, path);
    record_put_str(&r, RF_RULE, c->rule->text);
    record_put_str(&r, RF_DETAIL, j->why);
    if (j->statement.print[0])
        record_put_str(&r, RF_STATEMENTS, j->statement.print);
    front_denied(c->of->front, &r, &c->at, "mysql_statement");
}

/* It is answered here, and goes nowhere. */
static int refuse(struct mysql_client *c, const struct mysql_judged *j)
{
    char text[200];
    note_refused(c, j);
    snprintf(text, sizeof text, "durward: refused: %s", j->why);
    io_flush_soon(c->io);
    return mysql_put_error(io_out(c->io), 1, REFUSED_CODE, "42000", slice_str(text));
}

/* Of a connection of this sandbox's: its number is one that this front has given. */
static int kill_query(struct mysql_client *c, uint32_t id)
{
    struct mysql_client *o;
    io_flush_soon(c->io);
    LIST_FOREACH(o, &c->of->clients, link)
    if (o->state == CLIENT_RUNNING && o->greeting.id == id) {
        (void)broker_stream_send(o->stream, BROKER_EVENT, SLICE("K"));
        return mysql_put_ok(io_out(c->io), 1);
    }
    return mysql_put_error(io_out(c->io), 1, UNKNOWN_THREAD, "HY000",
                           SLICE("durward: a connection that is not there"));
}

static int on_command(struct mysql_client *c, const struct mysql_part *m)
{
    struct mysql_judged j;
    mysql_judge(c->rule->mysql, c->facts.database, m, &j);
    if (j.why)
        return refuse(c, &j);
    if (j.statement.kills)
        return kill_query(c, j.statement.killed);
    c->over = j.quits;
    mysql_reply_begin(&c->reply, j.reply, j.may_ask);
    return mysql_put_part(&c->up, m);
}

/* Some of a file; what is empty is its end. */
static int on_file(struct mysql_client *c, const struct mysql_part *m)
{
    if (m->first && m->length == 0) {
        mysql_reply_sent(&c->reply);
        c->up_reader.phase = MYSQL_COMMANDS;
    }
    return mysql_put_part(&c->up, m);
}

/* The client may speak: nothing is under way, or the server waits for its file. What of a command
 * has not come yet comes, whatever is under way. */
static bool may_speak(const struct mysql_client *c)
{
    return mysql_reply_over(&c->reply) || c->reply.file || c->up_reader.begun;
}

static void stop(struct mysql_client *c)
{
    c->blocked = true;
    io_pause(c->io);
}

/* -1: the client is gone. */
static int read_client(struct mysql_client *c)
{
    struct buf *in = io_in(c->io);
    struct slice rest = buf_slice(in);
    struct mysql_part m;
    size_t had = rest.n;
    enum mysql_event e = mysql_read(&c->up_reader, &rest, &m);
    bool file = c->up_reader.phase == MYSQL_FILE;
    if (e == MYSQL_VIOLATION || (e == MYSQL_PART && m.first && !file && mysql_number(&m) != 0)) {
        mysql_client_deny(c, "mysql_protocol",
                          e == MYSQL_PART ? "a command that is not numbered as one"
                                          : c->up_reader.why);
        return -1;
    }
    int r = e == MYSQL_MORE ? 0
            : file          ? on_file(c, &m)
            : m.first       ? on_command(c, &m)
                            : mysql_put_part(&c->up, &m);
    buf_drain(in, had - rest.n);
    if (r < 0)
        mysql_client_end(c, "memory", "out of memory");
    return r;
}

void mysql_talk_turn(struct mysql_client *c)
{
    struct buf *in = io_in(c->io);
    while (buf_len(in) > 0 && !c->over && may_speak(c)) {
        if (read_client(c) < 0)
            return;
        if (io_out_room(c->io) < MYSQL_IO) /* refusals that nobody reads */
            break;
        if (buf_len(&c->up) >= BROKER_PACKET_MAX && !broker_stream_send_buf(c->stream, &c->up)) {
            stop(c);
            return;
        }
    }
    io_consumed(c->io);
    if (!broker_stream_send_buf(c->stream, &c->up)) {
        stop(c);
    } else if (c->over) {
        (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
        mysql_client_free(c, true);
    } else {
        io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    }
}

void mysql_talk_writable(struct mysql_client *c)
{
    if (!c->blocked || !broker_stream_send_buf(c->stream, &c->up))
        return;
    c->blocked = false;
    io_resume(c->io);
    mysql_talk_turn(c);
}

/* Whatever else it says begins its session, or is refused and ends it. Nothing is taken from the
 * buffer: the session reads it. */
void mysql_talk_kill(struct mysql_client *c)
{
    static const struct mysql_terms none = {.statements = 0};
    struct slice rest = buf_slice(io_in(c->io));
    struct mysql_judged j = {.why = ""};
    struct mysql_reader r;
    struct mysql_part m;
    size_t had = rest.n;
    mysql_reader_init(&r, MYSQL_COMMANDS);
    enum mysql_event e = mysql_read(&r, &rest, &m);
    bool bad = e == MYSQL_VIOLATION || (e == MYSQL_PART && mysql_number(&m) != 0);
    if (e == MYSQL_PART)
        mysql_judge(&none, SLICE(""), &m, &j);
    mysql_reader_free(&r);
    if (e == MYSQL_MORE && had < KILL_MAX)
        return;
    if (bad)
        mysql_client_deny(c, "mysql_protocol", "a command that cannot be read");
    else if (j.why == NULL && j.statement.kills)
        mysql_client_free(c, kill_query(c, j.statement.killed) == 0);
    else if (j.quits)
        mysql_client_free(c, true);
    else if (!mysql_client_open(c))
        mysql_client_deny(c, "mysql_database", "denied: name a database that a rule has");
}

/* ---- from the back ---- */

int mysql_talk_data(struct mysql_client *c, struct slice bytes)
{
    struct mysql_part m;
    enum mysql_event e;
    bool speaks = false;
    while ((e = mysql_read(&c->down_reader, &bytes, &m)) == MYSQL_PART) {
        if (mysql_reply_take(&c->reply, &m) < 0 || mysql_put_part(io_out(c->io), &m) < 0)
            return -1;
        if (m.last && c->reply.file)
            c->up_reader.phase = MYSQL_FILE;
        speaks = m.last && may_speak(c);
    }
    if (e == MYSQL_VIOLATION)
        return -1;
    io_flush_soon(c->io);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    if (io_out_len(c->io) >= MYSQL_IO)
        broker_stream_pause(c->stream, true);
    if (speaks && !c->blocked)
        mysql_talk_turn(c); /* it may be gone */
    return 0;
}
