/* What the logger does beside writing: checkpoints, rotation, compression, retention. Nothing here
 * is ever waited for by a writer. */
#include "logger_internal.h"

#include "checkpoint.h"
#include "log_blocks.h"
#include "prune.h"
#include "squeeze.h"
#include "stamp.h"
#include "wire.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHECKPOINT_MS = 60 * 1000, PRUNE_MS = 60 * 1000, SQUEEZE_PAUSE_MS = 4 };

/* The checkpoint that was put last is in the file: a copy goes to whoever keeps it elsewhere. */
static void anchor(struct logger *l)
{
    struct msg m;
    if (!l->anchored || l->control == NULL || l->checkpoint[0] == 0)
        return;
    msg_init(&m, W_ANCHOR);
    msg_put_str(&m, l->checkpoint);
    ipc_send(l->control, &m);
    l->checkpoint[0] = 0;
}

/* 1: one is in the file now. 0: nothing to cover, or it could not be written yet. */
static int checkpoint(struct logger *l)
{
    struct err err = {0};
    int r = checkpoint_put(l->log, l->key, stamp_now());
    l->checkpoint_ms = logger_ms();
    if (r < 0)
        logger_warn(l, "a checkpoint could not be made");
    if (r <= 0 || !log_file_last(l->log, l->checkpoint, sizeof l->checkpoint) ||
        log_file_flush(l->log, &err) < 0)
        return 0;
    anchor(l);
    return 1;
}

void logger_index(struct logger *l, struct slice lines)
{
    ssize_t nl;
    while (l->index && (nl = slice_find(lines, '\n')) >= 0) {
        log_index_line(l->index, (struct slice){lines.p, (size_t)nl});
        lines.p += nl + 1;
        lines.n -= (size_t)nl + 1;
    }
}

/* Of a file that this logger did not begin there is none: 'durward audit index' makes it. */
static void close_index(struct logger *l, const char *closed)
{
    struct err err = {0};
    if (l->index && log_index_write(l->index, l->dir, closed, &err) < 0)
        logger_warn(l, "%s; queries read the file instead", err.text);
    log_index_free(l->index);
    l->index = log_index_new();
}

static void rotate(struct logger *l)
{
    struct err err = {0};
    char closed[LOG_NAME_MAX];
    checkpoint(l);
    if (log_file_flush(l->log, &err) < 0 || log_file_rotate(l->log, closed, &err) < 0) {
        logger_warn(l, "%s; the file is kept open", err.text);
        return;
    }
    l->rotate_asked = false;
    if (closed[0])
        close_index(l, closed);
    if (closed[0] == 0 || !l->keep.compress || l->squeeze)
        return;
    l->squeeze = squeeze_new(l->dir, closed, l->begun, &err);
    if (l->squeeze == NULL)
        logger_warn(l, "%s", err.text);
    else
        logger_arm(l->squeeze_turn, SQUEEZE_PAUSE_MS);
}

static void on_squeeze(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    struct err err = {0};
    int r = l->squeeze ? squeeze_step(l->squeeze, &err) : 0;
    if (r > 0) {
        logger_arm(l->squeeze_turn, SQUEEZE_PAUSE_MS);
        return;
    }
    if (r < 0)
        logger_warn(l, "%s", err.text);
    squeeze_free(l->squeeze);
    l->squeeze = NULL;
}

/* A file goes only when the log itself says so first. */
static void prune(struct logger *l)
{
    struct err err = {0};
    struct prune p;
    struct prune_limits limits = {l->keep.keep_bytes, l->keep.keep_seconds};
    l->prune_ms = logger_ms();
    int r = prune_pick(l->dir, &limits, stamp_now(), &p, &err);
    if (r < 0)
        logger_warn(l, "%s; it is kept", err.text);
    if (r <= 0)
        return;
    char count[24], hex[CHAIN_HEX];
    int n = snprintf(count, sizeof count, "%" PRIu64, p.last.seq);
    struct render_source from = {.role = role_name(ROLE_LOGGER), .sandbox = "", .policy = ""};
    struct record_view v = {
        .kind = RECORD_LIFECYCLE, .wall_ns = stamp_now(), .counter = log_file_seq(l->log) + 1};
    v.field[RF_EVENT] = SLICE("log_pruned");
    v.field[RF_DETAIL] = slice_str(p.name);
    v.field[RF_COUNT] = (struct slice){count, (size_t)n};
    v.field[RF_ROOT] = slice_str(chain_hex(p.last.hash, hex));
    if (log_file_put(l->log, &v, &from, 0, v.wall_ns) < 0 || log_file_flush(l->log, &err) < 0 ||
        log_file_sync(l->log, &err) < 0)
        return;
    if (unlinkat(l->dir, p.name, 0) < 0)
        logger_warn(l, "%s could not be removed", p.name);
    log_index_remove(l->dir, p.name);
    log_blocks_remove(l->dir, p.name);
    l->prune_ms = 0; /* there may be more */
}

void logger_keep(struct logger *l)
{
    uint64_t now = logger_ms();
    if (l->failing || l->stopping)
        return;
    bool due = l->rotate_asked ||
               log_file_due(l->log, l->keep.rotate_bytes, l->keep.rotate_seconds, stamp_now());
    if (due)
        rotate(l);
    else if (now - l->checkpoint_ms >= CHECKPOINT_MS)
        checkpoint(l);
    if (l->prune_ms == 0 || now - l->prune_ms >= PRUNE_MS)
        prune(l);
}

void logger_keep_last(struct logger *l)
{
    checkpoint(l);
}

int logger_keep_start(struct logger *l)
{
    l->checkpoint_ms = logger_ms();
    l->begun = begun_terms_new(); /* without it there is no index of blocks */
    l->squeeze_turn = event_new(l->base, -1, 0, on_squeeze, l);
    return l->squeeze_turn ? 0 : -1;
}

void logger_keep_end(struct logger *l)
{
    squeeze_free(l->squeeze);
    l->squeeze = NULL;
    begun_terms_free(l->begun);
    if (l->squeeze_turn)
        event_free(l->squeeze_turn);
}
