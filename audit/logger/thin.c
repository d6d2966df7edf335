/* Reads a closed file twice: first to count what each sandbox wrote and to check chain and
 * signatures, then to write the copy in which gaps stand for the lines that go. */
#include "thin.h"

#include "checkpoint.h"
#include "gap.h"
#include "line_reader.h"
#include "log_blocks.h"
#include "log_index.h"
#include "prune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEP_LINES = 256,
    GAIN = 4096, /* bytes: fewer together are left, a gap is a line too */
    NAME_ROOM = LOG_NAME_MAX + 16,
    OUT_MAX = 1 << 20,
    OUT_FLUSH = 64 << 10,
    BUCKETS = 2 * THIN_BOXES,
};

struct box {
    char sandbox[RENDER_NAME_MAX + 1];
    uint64_t bytes, lost;
    bool takes; /* more than its part */
};

struct thin {
    int dirfd, in, out;
    char name[LOG_NAME_MAX], temporary[NAME_ROOM];
    enum thin_depth depth;
    const struct signing_key *key;
    struct line_reader *lines;
    bool writing; /* the second time through */
    bool behind;  /* the file before ends with a checkpoint, or there is none */
    bool closed;  /* the last line was a checkpoint */
    struct chain at;
    bool begun;          /* at is the line before */
    bool known;          /* since is whole: a checkpoint can be made of it */
    struct merkle since; /* from the last checkpoint on */
    uint64_t since_first;
    struct box box[BUCKETS];
    size_t n_boxes;
    uint64_t bytes;
    struct gap gap;         /* that is growing */
    const struct box *whom; /* whose; NULL: none is */
    struct buf run;         /* its lines, while they are few */
    uint64_t run_bytes;
    struct buf written;
    struct log_index *index;
};

void thin_free(struct thin *t)
{
    if (t == NULL)
        return;
    if (t->out >= 0) {
        close(t->out);
        unlinkat(t->dirfd, t->temporary, 0); /* gone already when it took the file's place */
    }
    line_reader_free(t->lines);
    if (t->in >= 0)
        close(t->in);
    log_index_free(t->index);
    buf_free(&t->run);
    buf_free(&t->written);
    free(t);
}

struct thin *thin_new(int dirfd, const char *name, const char *previous, enum thin_depth depth,
                      const struct signing_key *key, struct err *err)
{
    struct chain last;
    struct thin *t = calloc(1, sizeof *t);
    if (t == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    t->dirfd = dirfd;
    t->depth = depth;
    t->key = key;
    t->in = t->out = -1;
    buf_init(&t->run, GAIN + RENDER_LINE_MAX + 2);
    buf_init(&t->written, OUT_MAX);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->behind = previous[0] == 0 || prune_last_line(dirfd, previous, &last, NULL) == 1;
    t->in = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    t->lines = t->in < 0 ? NULL : line_reader_new(t->in);
    if (t->lines == NULL) {
        err_sys(err, "cannot read %s", name);
        thin_free(t);
        return NULL;
    }
    return t;
}

/* ---- whose a line is ---- */

/* Only what needs no escape: names that we give. */
static struct slice sandbox_of(struct slice line)
{
    static const struct slice key = SLICE(",\"sandbox\":\"");
    ssize_t at = slice_find_slice(line, key);
    if (at < 0)
        return (struct slice){"", 0};
    struct slice s = {line.p + at + key.n, line.n - (size_t)at - key.n};
    ssize_t end = slice_find(s, '"');
    if (end < 0 || end > RENDER_NAME_MAX || memchr(s.p, '\\', (size_t)end))
        return (struct slice){"", 0};
    return (struct slice){s.p, (size_t)end};
}

static struct box *box_of(struct thin *t, struct slice sandbox)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < sandbox.n; i++)
        h = (h ^ (unsigned char)sandbox.p[i]) * 16777619U;
    for (size_t i = h % BUCKETS;; i = (i + 1) % BUCKETS) {
        struct box *b = &t->box[i];
        if (slice_eq_str(sandbox, b->sandbox))
            return b;
        if (b->sandbox[0])
            continue;
        if (t->writing || t->n_boxes == THIN_BOXES)
            return NULL; /* beyond so many nobody's are taken */
        memcpy(b->sandbox, sandbox.p, sandbox.n);
        t->n_boxes++;
        return b;
    }
}

static bool is_taken(const struct thin *t, enum record_kind k)
{
    switch (k) {
    case RECORD_DENIED:
    case RECORD_DNS:
    case RECORD_PACKET:
    case RECORD_TLS_REFUSED:
        return true;
    case RECORD_LIFECYCLE:
    case RECORD_CHECKPOINT:
    case RECORD_GAP:
        return false;
    default:
        return t->depth == THIN_ALL;
    }
}

/* ---- the chain ---- */

static int damaged(const struct thin *t, struct err *err)
{
    return err_set(err, ERR_PARSE, "%s is damaged: see 'durward audit verify'", t->name);
}

static int grow(struct thin *t, enum record_kind kind)
{
    if (kind == RECORD_CHECKPOINT) {
        merkle_clear(&t->since);
        t->since_first = t->at.seq;
        t->known = true;
    }
    return t->known ? merkle_add(&t->since, t->at.hash) : 0;
}

/* The first line: the tree begins with it, or with the checkpoint before it. */
static int begin(struct thin *t, const struct render_head *h)
{
    t->begun = true;
    t->at.seq = h->seq - 1;
    memcpy(t->at.hash, h->prev, CHAIN_HASH);
    t->since_first = 1;
    t->known = h->seq == 1;
    return h->seq > 1 && t->behind ? grow(t, RECORD_CHECKPOINT) : 0;
}

/* Nothing is taken out of what somebody changed: it would look as if the logger had. */
static bool is_signed(const struct thin *t, struct slice line)
{
    struct checkpoint c;
    unsigned char root[CHAIN_HASH];
    if (checkpoint_parse(line, &c) < 0 || !checkpoint_signed_by(&c, t->key))
        return false;
    return !t->known || (c.first == t->since_first && merkle_root(&t->since, root) == 0 &&
                         memcmp(root, c.root, CHAIN_HASH) == 0);
}

static int pass_gap(struct thin *t, struct slice line)
{
    struct gap *g = malloc(sizeof *g);
    int r = g && gap_parse(line, g) == 0 && gap_signed_by(g, t->key) ? 0 : -1;
    if (r == 0) {
        t->at.seq = g->first + g->count - 1;
        memcpy(t->at.hash, g->last, CHAIN_HASH);
        r = t->known ? gap_grow(g, &t->since) : 0;
    }
    free(g);
    return r;
}

/* ---- writing ---- */

static int flush(struct thin *t, size_t least, struct err *err)
{
    while (buf_len(&t->written) > least) {
        ssize_t n = write(t->out, buf_data(&t->written), buf_len(&t->written));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(err, "cannot write %s", t->temporary);
        buf_drain(&t->written, (size_t)n);
    }
    return 0;
}

static int put_line(struct thin *t, struct slice line, struct err *err)
{
    if (buf_append_slice(&t->written, line) < 0 || buf_append_str(&t->written, "\n") < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (t->index)
        log_index_line(t->index, line);
    return flush(t, OUT_FLUSH, err);
}

/* The run is over: a gap, or, where that is no gain, its lines. */
static int end_run(struct thin *t, struct err *err)
{
    struct buf line;
    int r = 0;
    if (t->whom == NULL)
        return 0;
    if (t->run_bytes > GAIN) {
        buf_init(&line, RENDER_LINE_MAX);
        if (gap_render(&t->gap, t->key, timestamp_now(), &line) < 0)
            r = err_set(err, ERR_INTERNAL, "a gap could not be signed");
        else
            r = put_line(t, buf_slice(&line), err);
        box_of(t, slice_str(t->whom->sandbox))->lost += t->gap.count;
        buf_free(&line);
    }
    struct slice kept = buf_slice(&t->run);
    for (ssize_t nl; r == 0 && t->run_bytes <= GAIN && (nl = slice_find(kept, '\n')) >= 0;) {
        r = put_line(t, (struct slice){kept.p, (size_t)nl}, err);
        kept.p += nl + 1;
        kept.n -= (size_t)nl + 1;
    }
    buf_clear(&t->run);
    t->whom = NULL;
    t->run_bytes = 0;
    return r;
}

/* t->at is this line already. */
static int take(struct thin *t, const struct box *b, const struct render_head *h, uint64_t leaf,
                struct slice line, struct err *err)
{
    if (t->whom != b || t->gap.n >= GAP_NODES - 1) {
        if (end_run(t, err) < 0)
            return -1;
        memset(&t->gap, 0, sizeof t->gap);
        t->gap.first = h->seq;
        memcpy(t->gap.prev, h->prev, CHAIN_HASH);
        memcpy(t->gap.sandbox, b->sandbox, sizeof t->gap.sandbox);
        t->whom = b;
    }
    if (gap_add(&t->gap, leaf, t->at.hash) < 0)
        return err_set(err, ERR_INTERNAL, "SHA-256 failed");
    bool few = t->run_bytes <= GAIN;
    t->run_bytes += line.n + 1;
    if (few && (buf_append_slice(&t->run, line) < 0 || buf_append_str(&t->run, "\n") < 0))
        return err_set(err, ERR_INTERNAL, "out of memory");
    return 0;
}

/* ---- lines ---- */

static int read_line(struct thin *t, struct slice line, struct err *err)
{
    struct render_head h;
    if (render_parse(line, &h) < 0 || (!t->begun && begin(t, &h) < 0) || h.seq != t->at.seq + 1 ||
        memcmp(h.prev, t->at.hash, CHAIN_HASH) != 0)
        return damaged(t, err);
    t->closed = h.kind == RECORD_CHECKPOINT;
    if (t->closed && !is_signed(t, line))
        return damaged(t, err);
    if (h.kind == RECORD_GAP) {
        if (pass_gap(t, line) < 0)
            return damaged(t, err);
        return t->writing && end_run(t, err) < 0 ? -1 : t->writing ? put_line(t, line, err) : 0;
    }
    uint64_t leaf = t->since.n;
    bool known = t->known;
    if (chain_step(&t->at, line) < 0 || grow(t, h.kind) < 0)
        return err_set(err, ERR_INTERNAL, "SHA-256 failed");
    struct slice sandbox = sandbox_of(line);
    struct box *b = sandbox.n ? box_of(t, sandbox) : NULL;
    if (!t->writing) {
        t->bytes += b ? line.n + 1 : 0;
        if (b)
            b->bytes += line.n + 1;
        return 0;
    }
    if (b && b->takes && known && is_taken(t, h.kind))
        return take(t, b, &h, leaf, line, err);
    return end_run(t, err) < 0 ? -1 : put_line(t, line, err);
}

/* Who has more than an even part; where there is one alone it loses what it was refused. */
static bool choose(struct thin *t)
{
    bool any = false;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct box *b = &t->box[i];
        b->takes = b->sandbox[0] && (t->n_boxes == 1 ? t->depth == THIN_REFUSED
                                                     : b->bytes / 2 * t->n_boxes > t->bytes / 2);
        any |= b->takes;
    }
    return any;
}

static int begin_writing(struct thin *t, struct err *err)
{
    t->writing = true;
    t->begun = t->known = false;
    merkle_clear(&t->since);
    line_reader_seek(t->lines, 0);
    snprintf(t->temporary, sizeof t->temporary, ".%s.thin", t->name);
    t->out =
        openat(t->dirfd, t->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (t->out < 0)
        return err_sys(err, "cannot write %s", t->temporary);
    t->index = log_index_new();
    return 1;
}

static int end_pass(struct thin *t, struct err *err)
{
    if (!t->closed) /* then its lines are no checkpoint's yet */
        return err_set(err, ERR_UNREADY, "%s does not end with a checkpoint", t->name);
    if (!t->writing)
        return choose(t) ? begin_writing(t, err) : 0;
    if (end_run(t, err) < 0 || flush(t, 0, err) < 0)
        return -1;
    return fdatasync(t->out) < 0 ? err_sys(err, "cannot sync %s", t->temporary) : 0;
}

int thin_step(struct thin *t, struct err *err)
{
    struct slice line;
    for (int i = 0; i < STEP_LINES; i++) {
        enum line_state st = line_reader_next(t->lines, &line);
        if (st == LINE_END)
            return end_pass(t, err);
        if (st != LINE_WHOLE)
            return damaged(t, err);
        if (read_line(t, line, err) < 0)
            return -1;
    }
    return 1;
}

bool thin_loss(const struct thin *t, size_t i, struct thin_loss *ret)
{
    for (size_t k = 0; k < BUCKETS; k++)
        if (t->box[k].lost && i-- == 0) {
            *ret = (struct thin_loss){t->box[k].sandbox, t->box[k].lost};
            return true;
        }
    return false;
}

int thin_commit(struct thin *t, char plain[LOG_NAME_MAX], struct err *err)
{
    size_t n = strlen(t->name);
    bool packed = log_dir_packed(t->name);
    snprintf(plain, LOG_NAME_MAX, "%.*s", (int)(packed ? n - strlen(".zst") : n), t->name);
    log_index_remove(t->dirfd, t->name); /* they are of other bytes from here on */
    log_blocks_remove(t->dirfd, t->name);
    if (renameat(t->dirfd, t->temporary, t->dirfd, plain) < 0 || fsync(t->dirfd) < 0)
        return err_sys(err, "cannot finish %s", plain);
    if (packed && unlinkat(t->dirfd, t->name, 0) < 0)
        return err_sys(err, "cannot remove %s", t->name);
    if (t->index)
        log_index_write(t->index, t->dirfd, plain, NULL); /* it can be made again */
    return 0;
}
