/* Puts the controller's notes into the database and reads those of all hosts for it. The table is
 * written one transaction after another, by a lock, so that places rise in the order of commits:
 * whoever has read up to one has missed none before it. */
#include "notes.h"

#include "compiler.h"
#include "database.h"
#include "ipc.h"
#include "note.h"
#include "peer.h"
#include "proc.h"
#include "held_shares.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HINT_MS = 20, PRUNE_AFTER = 64, RETRY_SECONDS = 1 };

struct notes {
    struct event_base *base;
    struct database *database;
    const struct held_shares *shares; /* the controller asks what this host holds */
    struct ipc *control, *controller; /* controller NULL: it is not there */
    uint32_t channel;
    uint32_t epoch; /* of the channel: what another one asked is not answered on this one */
    bool there;     /* the table is */
    bool looking;   /* whether it is was asked, and has not been answered */
    bool hinting, retrying;
    size_t open, puts;
};

/* ---- rows ---- */

/* Up to the next blank; *rest is what is behind it. */
static struct slice word(struct slice *rest)
{
    ssize_t end = slice_find(*rest, ' ');
    struct slice w = {rest->p, end < 0 ? rest->n : (size_t)end};
    size_t used = end < 0 ? rest->n : w.n + 1;
    *rest = (struct slice){rest->p + used, rest->n - used};
    return w;
}

static int copy(struct slice s, char *to, size_t size)
{
    if (s.n >= size || memchr(s.p, 0, s.n))
        return -1;
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return 0;
}

int note_row_read(struct slice line, struct note_row *ret)
{
    struct slice place = word(&line), kind = word(&line), id = word(&line);
    if (slice_u64(place, UINT64_MAX / 2, &ret->place) < 0 ||
        copy(kind, ret->kind, sizeof ret->kind) < 0 || copy(id, ret->id, sizeof ret->id) < 0 ||
        !note_kind_ok(ret->kind) || !note_id_ok(ret->id) || !note_body_ok(line))
        return -1;
    ret->body = line;
    return 0;
}

/* ---- to the controller ---- */

static void say(struct notes *n, uint16_t type)
{
    struct msg m;
    if (n->controller == NULL)
        return;
    msg_init(&m, type);
    (void)ipc_send(n->controller, &m);
}

static void on_hint(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct notes *n = arg;
    n->hinting = false;
    say(n, W_NOTES_HINT);
}

/* They come in swarms. */
void notes_notified(struct notes *n, struct slice channel)
{
    static const struct timeval soon = {0, HINT_MS * 1000};
    if (slice_eq_str(channel, "durward_note") && n->there && !n->hinting &&
        event_base_once(n->base, -1, EV_TIMEOUT, on_hint, n, &soon) == 0)
        n->hinting = true;
}

/* ---- putting ---- */

static void say_kept(struct notes *n, uint32_t number, uint8_t mine)
{
    struct msg m;
    msg_init(&m, W_NOTE_KEPT);
    msg_put_u32(&m, number);
    msg_put_u8(&m, mine);
    (void)ipc_send(n->controller, &m);
}

/* Each is answered, however late: the controller says nothing twice on its own account. */
static void on_put(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct notes *n = arg;
    n->open--;
    if (tag->of != n->epoch || n->controller == NULL)
        return;
    say_kept(n, tag->number,
             ok && slice_eq_str(rows, "\nmine\n")    ? NOTE_MINE
             : ok && slice_eq_str(rows, "\nother\n") ? NOTE_OTHER
                                                     : NOTE_FAILED);
}

/* What nobody needs any more, by the database's own clock. */
static const char prune[] =
    "DELETE FROM durward_note WHERE until < extract(epoch FROM now())::bigint";

static const char put_text[] =
    "SELECT '' FROM pg_advisory_xact_lock(1685418354, 3); "
    "INSERT INTO durward_note (kind, id, body, until) VALUES ('%1$s', '%2$s', '%3$.*4$s', "
    "extract(epoch FROM now())::bigint + %5$u) ON CONFLICT (kind, id) DO %6$s; "
    "SELECT CASE WHEN body = '%3$.*4$s' THEN 'mine' ELSE 'other' END FROM durward_note WHERE kind "
    "= '%1$s' AND id = '%2$s'%7$s";
/* At a place of its own, so that whoever has read the one before reads this one, too. */
static const char replaced[] =
    "UPDATE SET place = EXCLUDED.place, body = EXCLUDED.body, until = EXCLUDED.until";

static int on_note_put(struct notes *n, struct msg *m)
{
    struct database_tag tag = {.of = n->epoch};
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1];
    struct slice body;
    uint32_t seconds;
    enum { ROOM = 2 * NOTE_BODY_MAX + 1024 };
    if (msg_get_u32(m, &tag.number) < 0 || msg_get_str(m, kind, sizeof kind) < 0 ||
        msg_get_str(m, id, sizeof id) < 0 || msg_get_slice(m, NOTE_BODY_MAX, &body) < 0 ||
        msg_get_u32(m, &seconds) < 0 || msg_end(m) < 0 || !note_kind_ok(kind) || !note_id_ok(id) ||
        !note_body_ok(body) || seconds > NOTE_SECONDS_MAX)
        return -1;
    if (!n->there)
        return 0; /* it is said again when there is a connection */
    /* those of a channel before this one may still be open */
    char *text = n->open < NOTES_OPEN_MAX ? malloc(ROOM) : NULL;
    if (text == NULL) {
        say_kept(n, tag.number, NOTE_FAILED);
        return 0;
    }
    bool again = note_replaces(kind);
    snprintf(text, ROOM, put_text, kind, id, (const char *)body.p, (int)body.n, seconds,
             again ? replaced : "NOTHING", again ? "" : "; NOTIFY durward_note");
    n->open++;
    database_ask(n->database, text, on_put, n, &tag);
    free(text);
    if (++n->puts % PRUNE_AFTER == 0)
        database_ask(n->database, prune, NULL, NULL, NULL);
    return 0;
}

/* ---- reading ---- */

enum { READ_ALL = 0, READ_MORE, READ_FAILED };

static void say_read(struct notes *n, uint32_t number, uint8_t more)
{
    struct msg m;
    msg_init(&m, W_NOTES_READ);
    msg_put_u32(&m, number);
    msg_put_u8(&m, more);
    (void)ipc_send(n->controller, &m);
}

static void say_note(struct notes *n, const struct note_row *row)
{
    struct msg m;
    msg_init(&m, W_NOTE);
    msg_put_u64(&m, row->place);
    msg_put_str(&m, row->kind);
    msg_put_str(&m, row->id);
    msg_put_slice(&m, row->body);
    (void)ipc_send(n->controller, &m);
}

/* A row that cannot be read is nobody's note: then nothing was read, and what is known grows old.
 */
static void on_read(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct notes *n = arg;
    struct note_row row;
    ssize_t end;
    unsigned count = 0;
    n->open--;
    if (tag->of != n->epoch || n->controller == NULL)
        return;
    while (ok && (end = slice_find(rows, '\n')) >= 0) {
        if (++count > NOTES_AT_ONCE ||
            note_row_read((struct slice){rows.p, (size_t)end}, &row) < 0) {
            proc_log("the database of the fleet has a note that cannot be read");
            ok = false;
            break;
        }
        say_note(n, &row);
        rows = (struct slice){rows.p + end + 1, rows.n - (size_t)end - 1};
    }
    say_read(n, tag->number, !ok ? READ_FAILED : count == NOTES_AT_ONCE ? READ_MORE : READ_ALL);
}

static int on_notes_ask(struct notes *n, struct msg *m)
{
    struct database_tag tag = {.of = n->epoch};
    char text[512];
    uint64_t after;
    if (msg_get_u32(m, &tag.number) < 0 || msg_get_u64(m, &after) < 0 || msg_end(m) < 0 ||
        after > UINT64_MAX / 2)
        return -1;
    if (!n->there)
        return 0;
    if (n->open >= NOTES_OPEN_MAX) {
        say_read(n, tag.number, READ_FAILED);
        return 0;
    }
    snprintf(text, sizeof text,
             "SELECT translate(concat_ws(' ', place, kind, id, body), chr(10), ' ') FROM "
             "durward_note WHERE place > %llu AND octet_length(body) <= %d AND octet_length(id) <= "
             "%d AND octet_length(kind) <= %d ORDER BY place LIMIT %d",
             (unsigned long long)after, NOTE_BODY_MAX, NOTE_ID_MAX, NOTE_KIND_MAX, NOTES_AT_ONCE);
    n->open++;
    database_ask(n->database, text, on_read, n, &tag);
    return 0;
}

/* ---- shares ---- */

static int on_shares_ask(const struct notes *n, struct msg *m)
{
    struct msg said;
    if (msg_end(m) < 0)
        return -1;
    msg_init(&said, W_SHARES);
    held_shares_put(n->shares, &said);
    (void)ipc_send(n->controller, &said);
    return 0;
}

/* ---- channels ---- */

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_NOTE_PUT:
        return on_note_put(arg, m);
    case W_NOTES_ASK:
        return on_notes_ask(arg, m);
    case W_SHARES_ASK:
        return on_shares_ask(arg, m);
    default:
        return -1;
    }
}

static void drop_controller(struct notes *n)
{
    ipc_free(n->controller);
    n->controller = NULL;
    n->epoch++;
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct notes *n = arg;
    drop_controller(n);
    peer_lost(n->control, n->channel);
}

void notes_attach(struct notes *n, int fd, uint32_t channel)
{
    drop_controller(n);
    n->channel = channel;
    n->controller = ipc_new(n->base, fd, on_message, on_closed, n);
    if (n->there)
        say(n, W_NOTES_UP);
}

static const char table[] =
    "SELECT '' FROM pg_advisory_xact_lock(1685418354, 2); "
    "CREATE TABLE IF NOT EXISTS durward_note (place bigserial UNIQUE, kind text NOT NULL, id text "
    "NOT NULL, body text NOT NULL, until bigint NOT NULL, PRIMARY KEY (kind, id))";

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct notes *n = arg;
    n->retrying = false;
    if (!n->there && !n->looking && database_is_up(n->database))
        notes_begin(n); /* not twice: the controller takes one W_NOTES_UP for one beginning */
}

/* A server that is not yet the primary, is full or too slow refuses, and keeps the connection. */
static void retry_soon(struct notes *n)
{
    static const struct timeval soon = {RETRY_SECONDS, 0};
    if (!n->retrying && event_base_once(n->base, -1, EV_TIMEOUT, on_retry, n, &soon) == 0)
        n->retrying = true;
}

static void on_table(void *arg, const struct database_tag *tag UNUSED, bool ok,
                     struct slice rows UNUSED)
{
    struct notes *n = arg;
    n->open--;
    n->looking = false;
    if (!ok) {
        retry_soon(n);
        return;
    }
    n->there = true;
    say(n, W_NOTES_UP);
}

static void on_looked(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct notes *n = arg;
    bool is = ok && slice_eq_str(rows, "true\n");
    if (ok && !is) {
        database_ask(n->database, table, on_table, n, tag);
        return;
    }
    if (is)
        database_ask(n->database, prune, NULL, NULL, NULL); /* whatever becomes of it */
    on_table(n, tag, is, SLICE(""));
}

void notes_begin(struct notes *n)
{
    n->there = false;
    n->looking = true;
    n->open++;
    database_ask(n->database,
                 "LISTEN durward_note; SELECT (to_regclass('durward_note') IS NOT NULL)::text",
                 on_looked, n, NULL);
}

struct notes *notes_new(struct event_base *base, struct database *d, struct ipc *control,
                        const struct held_shares *shares)
{
    struct notes *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    n->base = base;
    n->database = d;
    n->control = control;
    n->shares = shares;
    return n;
}

void notes_free(struct notes *n)
{
    if (n)
        ipc_free(n->controller);
    free(n);
}
