/* What the logger does beside writing: checkpoints, rotation, compression, retention. Nothing here
 * is ever waited for by a writer. */
#include "logger_internal.h"

#include "checkpoint.h"
#include "log_blocks.h"
#include "prune.h"
#include "log_compress.h"
#include "timestamp.h"
#include "thin.h"
#include "wire.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHECKPOINT_MS = 60 * 1000, PRUNE_MS = 60 * 1000, LOG_COMPRESS_PAUSE_MS = 4 };

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
    int r = checkpoint_put(l->log, l->key, timestamp_now());
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

static void compress(struct logger *l, const char *closed, struct open_request_terms *begun)
{
    struct err err = {0};
    if (l->log_compress)
        return;
    l->log_compress = log_compress_new(l->dir, closed, begun, &err);
    if (l->log_compress == NULL)
        logger_warn(l, "%s", err.text);
    else
        logger_arm(l->log_compress_turn, LOG_COMPRESS_PAUSE_MS);
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
    if (closed[0] && l->keep.compress)
        compress(l, closed, l->begun);
}

static void on_log_compress(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    struct err err = {0};
    int r = l->log_compress ? log_compress_step(l->log_compress, &err) : 0;
    if (r > 0) {
        logger_arm(l->log_compress_turn, LOG_COMPRESS_PAUSE_MS);
        return;
    }
    if (r < 0)
        logger_warn(l, "%s", err.text);
    log_compress_free(l->log_compress);
    l->log_compress = NULL;
}

/* ---- retention ---- */

/* Nothing goes before the log itself says so. */
static int say(struct logger *l, struct record_view *v, const char *sandbox)
{
    struct err err = {0};
    struct render_source from = {.role = role_name(ROLE_LOGGER), .sandbox = sandbox, .policy = ""};
    v->kind = RECORD_LIFECYCLE;
    v->wall_ns = timestamp_now();
    v->counter = log_file_seq(l->log) + 1;
    if (log_file_put(l->log, v, &from, 0, v->wall_ns) < 0 || log_file_flush(l->log, &err) < 0)
        return -1;
    return log_file_sync(l->log, &err);
}

static void remove_file(struct logger *l, const struct prune *p)
{
    char count[24], hex[CHAIN_HEX];
    int n = snprintf(count, sizeof count, "%" PRIu64, p->last.seq);
    struct record_view v = {.kind = 0};
    v.field[RF_EVENT] = SLICE("log_pruned");
    v.field[RF_DETAIL] = slice_str(p->name);
    v.field[RF_COUNT] = (struct slice){count, (size_t)n};
    v.field[RF_ROOT] = slice_str(chain_hex(p->last.hash, hex));
    if (say(l, &v, "") < 0)
        return;
    if (unlinkat(l->dir, p->name, 0) < 0)
        logger_warn(l, "%s could not be removed", p->name);
    log_index_remove(l->dir, p->name);
    log_blocks_remove(l->dir, p->name);
    l->prune_ms = 0; /* there may be more */
}

static void prune(struct logger *l, uint64_t bytes, uint64_t seconds)
{
    struct err err = {0};
    struct prune p;
    struct prune_limits limits = {bytes, seconds};
    int r = prune_pick(l->dir, &limits, timestamp_now(), &p, &err);
    if (r < 0)
        logger_warn(l, "retention: %s; nothing is removed", err.text);
    if (r > 0)
        remove_file(l, &p);
}

/* What each sandbox loses stands in the log with its name. */
static int say_lost(struct logger *l, const char *name)
{
    struct thin_loss loss;
    char count[24];
    for (size_t i = 0; thin_loss(l->thin, i, &loss); i++) {
        int n = snprintf(count, sizeof count, "%" PRIu64, loss.records);
        struct record_view v = {.kind = 0};
        v.field[RF_EVENT] = SLICE("log_thinned");
        v.field[RF_DETAIL] = slice_str(name);
        v.field[RF_COUNT] = (struct slice){count, (size_t)n};
        if (say(l, &v, loss.sandbox) < 0)
            return -1;
    }
    return 0;
}

static void retain(struct logger *l);

static void end_thin(struct logger *l)
{
    struct err err = {0};
    struct thin_loss loss;
    char plain[LOG_NAME_MAX];
    bool any = thin_loss(l->thin, 0, &loss);
    if (any && say_lost(l, l->thinning) == 0) {
        if (thin_commit(l->thin, plain, &err) < 0)
            logger_warn(l, "%s", err.text);
        else if (l->keep.compress)
            compress(l, plain, NULL); /* in order of time alone are requests that go on known */
    }
    thin_free(l->thin);
    l->thin = NULL;
    l->prune_ms = 0; /* it may be enough, or not: at once, or when it is compressed */
    retain(l);
}

static void on_thin(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    struct err err = {0};
    int r = l->thin ? thin_step(l->thin, &err) : -1;
    if (r > 0) {
        logger_arm(l->thin_turn, LOG_COMPRESS_PAUSE_MS);
        return;
    }
    if (r == 0) {
        end_thin(l);
        return;
    }
    if (err.text[0])
        logger_warn(l, "%s; it is left as it is", err.text);
    thin_free(l->thin);
    l->thin = NULL;
    l->prune_ms = 0;
}

/* The oldest closed file that was not thinned so far. */
static bool begin_thin(struct logger *l, const struct log_dir *d, enum thin_depth depth)
{
    struct err err = {0};
    size_t i = 0;
    while (i < d->n && l->thinned[depth][0] && log_dir_order(d->name[i], l->thinned[depth]) <= 0)
        i++;
    if (i + 1 >= d->n) /* the latest is the active one */
        return false;
    memcpy(l->thinned[depth], d->name[i], LOG_NAME_MAX);
    memcpy(l->thinning, d->name[i], LOG_NAME_MAX);
    l->thin = thin_new(l->dir, d->name[i], i ? d->name[i - 1] : "", depth, l->key, &err);
    if (l->thin == NULL)
        logger_warn(l, "%s; it is left as it is", err.text);
    else
        logger_arm(l->thin_turn, LOG_COMPRESS_PAUSE_MS);
    return true;
}

/* Over its size the log loses first what was refused to those who filled it, then all of theirs;
 * only then a whole file, the oldest. */
static void retain(struct logger *l)
{
    struct err err = {0};
    struct log_dir d;
    l->prune_ms = logger_ms();
    prune(l, 0, l->keep.keep_seconds);
    if (l->log_compress)
        l->prune_ms = 0; /* when that is done */
    if (l->keep.keep_bytes == 0 || l->thin || l->log_compress)
        return;
    if (log_dir_list(l->dir, &d, &err) < 0)
        return;
    if (prune_total(l->dir, &d) > l->keep.keep_bytes && !begin_thin(l, &d, THIN_REFUSED) &&
        !begin_thin(l, &d, THIN_ALL))
        prune(l, l->keep.keep_bytes, 0);
    log_dir_done(&d);
}

void logger_keep(struct logger *l)
{
    uint64_t now = logger_ms();
    if (l->failing || l->stopping)
        return;
    bool due = l->rotate_asked ||
               log_file_due(l->log, l->keep.rotate_bytes, l->keep.rotate_seconds, timestamp_now());
    if (due)
        rotate(l);
    else if (now - l->checkpoint_ms >= CHECKPOINT_MS)
        checkpoint(l);
    if (l->prune_ms == 0 || now - l->prune_ms >= PRUNE_MS)
        retain(l);
}

void logger_keep_last(struct logger *l)
{
    checkpoint(l);
}

int logger_keep_start(struct logger *l)
{
    l->checkpoint_ms = logger_ms();
    l->begun = open_request_terms_new(); /* without it there is no index of blocks */
    l->log_compress_turn = event_new(l->base, -1, 0, on_log_compress, l);
    l->thin_turn = event_new(l->base, -1, 0, on_thin, l);
    return l->log_compress_turn && l->thin_turn ? 0 : -1;
}

void logger_keep_end(struct logger *l)
{
    log_compress_free(l->log_compress);
    l->log_compress = NULL;
    open_request_terms_free(l->begun);
    thin_free(l->thin);
    l->thin = NULL;
    if (l->log_compress_turn)
        event_free(l->log_compress_turn);
    if (l->thin_turn)
        event_free(l->thin_turn);
}
