/* Two questions to a table of lines, and what is put into it. */
#include "heads.h"

#include "database.h"
#include "fleet_line.h"
#include "ipc.h"
#include "peer.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRUNE_EACH = 32, TEXT_MAX = FLEET_LINE_MAX + 1024, RETRY_SECONDS = 1 };

static const uint64_t most = INT64_MAX;

struct heads {
    struct event_base *base;
    struct database *database;
    struct ipc *control, *logger;
    uint32_t channel, loggers; /* loggers: how many channels there were before */
    bool retrying;
};

/* As it may stand in a text of SQL. */
static bool is_plain(const char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~' || *s == '\'' || *s == '\\')
            return false;
    return true;
}

/* ---- reading ---- */

static void say_end(struct heads *h, uint32_t ask, bool ok)
{
    struct msg m;
    if (h->logger == NULL)
        return;
    msg_init(&m, W_FLEET_HEADS_END);
    msg_put_u32(&m, ask);
    msg_put_u8(&m, ok);
    (void)ipc_send(h->logger, &m);
}

static void on_rows(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct heads *h = arg;
    ssize_t end;
    if (tag->of != h->loggers)
        return; /* another one asked */
    for (size_t n = 0; ok && n < FLEET_PAGE && h->logger && (end = slice_find(rows, '\n')) >= 0;
         n++) {
        struct msg m;
        msg_init(&m, W_FLEET_HEADS_ROW);
        msg_put_u32(&m, tag->number);
        msg_put_slice(&m, (struct slice){rows.p, (size_t)end});
        (void)ipc_send(h->logger, &m);
        rows = (struct slice){rows.p + end + 1, rows.n - (size_t)end - 1};
    }
    say_end(h, tag->number, ok);
}

/* Lines in the order in which they came, so that none comes before one that it has seen; of one
 * host by number. */
static int on_ask(struct heads *h, struct msg *m)
{
    struct database_tag tag = {.of = h->loggers};
    char host[FLEET_LINE_NAME + 1];
    uint64_t after;
    uint32_t n;
    struct buf text;
    if (msg_get_u32(m, &tag.number) < 0 || msg_get_u32(m, &n) < 0 || n == 0 || n > FLEET_LINE_HOSTS)
        return -1;
    buf_init(&text, TEXT_MAX);
    int r = buf_printf(&text,
                       "SELECT translate(concat_ws(' ', host, number, line), chr(10), '') FROM "
                       "durward_head WHERE octet_length(line) <= %d AND (false",
                       FLEET_LINE_MAX);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = msg_get_str(m, host, sizeof host) < 0 || msg_get_u64(m, &after) < 0 || after > most ||
                    !is_plain(host)
                ? -1
                : buf_printf(&text, " OR (host = '%s' AND number > %llu)", host,
                             (unsigned long long)after);
    if (r == 0)
        r = msg_end(m) < 0
                ? -1
                : buf_printf(&text, ") ORDER BY %s LIMIT %d", n == 1 ? "number" : "id", FLEET_PAGE);
    if (r == 0 && buf_append(&text, "", 1) == 0)
        database_ask(h->database, (const char *)buf_data(&text), on_rows, h, &tag);
    buf_free(&text);
    return r;
}

/* ---- writing ---- */

/* What stands there stays: whoever asks sees whether it is what was put. */
static int on_put(struct heads *h, struct msg *m)
{
    char host[FLEET_LINE_NAME + 1], line[FLEET_LINE_MAX + 1], text[TEXT_MAX];
    uint64_t number;
    if (msg_get_str(m, host, sizeof host) < 0 || msg_get_u64(m, &number) < 0 ||
        msg_get_str(m, line, sizeof line) < 0 || msg_end(m) < 0 || number > most ||
        !is_plain(host) || !is_plain(line))
        return -1;
    snprintf(text, sizeof text,
             "INSERT INTO durward_head (host, number, line) VALUES ('%s', %llu, '%s') ON CONFLICT "
             "(host, number) DO NOTHING",
             host, (unsigned long long)number, line);
    database_ask(h->database, text, NULL, NULL, NULL);
    if (number % PRUNE_EACH != 0 || number <= FLEET_KEEP)
        return 0;
    snprintf(text, sizeof text, "DELETE FROM durward_head WHERE host = '%s' AND number <= %llu",
             host, (unsigned long long)number - FLEET_KEEP);
    database_ask(h->database, text, NULL, NULL, NULL);
    return 0;
}

static int on_logger(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_FLEET_HEADS_ASK:
        return on_ask(arg, m);
    case W_FLEET_HEADS_PUT:
        return on_put(arg, m);
    default:
        return -1;
    }
}

/* ---- the table ---- */

static const char table[] =
    "SELECT '' FROM pg_advisory_xact_lock(1685418354, 3); "
    "CREATE TABLE IF NOT EXISTS durward_head (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "host text NOT NULL, number bigint NOT NULL, line text NOT NULL, UNIQUE (host, number))";

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct heads *h = arg;
    h->retrying = false;
    if (database_is_up(h->database))
        heads_begin(h);
}

/* A server that is not yet the primary, is full or too slow refuses, and keeps the connection. */
static void on_table(void *arg, const struct database_tag *tag UNUSED, bool ok,
                     struct slice rows UNUSED)
{
    static const struct timeval soon = {RETRY_SECONDS, 0};
    struct heads *h = arg;
    if (!ok && !h->retrying && event_base_once(h->base, -1, EV_TIMEOUT, on_retry, h, &soon) == 0)
        h->retrying = true;
}

/* A login that may not create needs a table that is there. */
static void on_looked(void *arg, const struct database_tag *tag, bool ok, struct slice rows)
{
    struct heads *h = arg;
    if (ok && slice_eq_str(rows, "false\n"))
        database_ask(h->database, table, on_table, h, tag);
    else
        on_table(h, tag, ok, rows);
}

void heads_begin(struct heads *h)
{
    database_ask(h->database, "SELECT (to_regclass('durward_head') IS NOT NULL)::text", on_looked,
                 h, NULL);
}

/* ---- the channel ---- */

static void on_logger_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct heads *h = arg;
    ipc_free(ch);
    h->logger = NULL;
    h->loggers++;
    peer_lost(h->control, h->channel);
}

struct heads *heads_new(struct event_base *base, struct database *d, struct ipc *control)
{
    struct heads *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->base = base;
    h->database = d;
    h->control = control;
    return h;
}

void heads_free(struct heads *h)
{
    if (h)
        ipc_free(h->logger);
    free(h);
}

void heads_attach(struct heads *h, int fd, uint32_t channel)
{
    ipc_free(h->logger);
    h->loggers++;
    h->channel = channel;
    h->logger = ipc_new(h->base, fd, on_logger, on_logger_closed, h);
}
