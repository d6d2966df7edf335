/* Appends lines to the active file and keeps the chain and the Merkle tree in step with what is on
 * disk. At the start it reads back as far as it must to find where both stand. */
#include "log_file.h"

#include "file_look.h"
#include "gap.h"
#include "meter.h"
#include "timestamp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUEUE_MAX = 1 << 20, QUEUE_HIGH = 256 << 10 };

struct log_file {
    int dirfd, fd;               /* fd -1: the next flush begins a file */
    char name[LOG_NAME_MAX];     /* of fd, or of the last file there was */
    char tip_name[LOG_NAME_MAX]; /* the file that holds the last line on disk */
    uint64_t size, begun_ns;     /* whole lines in fd; when it was begun */
    bool dirty;                  /* bytes behind size must be cut off first */
    bool unsynced;               /* fd has bytes that no sync has followed */
    struct chain disk, tip;      /* last line on disk, last line put */
    struct buf queue;            /* lines between the two */
    struct merkle since;         /* over the lines put from the last checkpoint on */
    uint64_t since_first;        /* seq of its first leaf */
    void (*on_lines)(void *arg, struct slice lines);
    void *on_lines_arg;
};

void log_file_on_lines(struct log_file *f, void (*fn)(void *arg, struct slice lines), void *arg)
{
    f->on_lines = fn;
    f->on_lines_arg = arg;
}

void log_file_free(struct log_file *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0)
        close(f->fd);
    buf_free(&f->queue);
    free(f);
}

/* ---- start: where the chain stands ---- */

struct scan {
    struct log_file *f;
    const struct head *head;
    bool head_seen, any;
    log_file_line_fn fn;
    void *arg;
};

/* The line that is the tip now is one more leaf; a checkpoint begins a new tree. */
static int grow(struct log_file *f, enum record_kind kind)
{
    if (kind == RECORD_CHECKPOINT || f->since.n == 0) {
        merkle_clear(&f->since);
        f->since_first = f->tip.seq;
    }
    return merkle_add(&f->since, f->tip.hash);
}

/* What stood there: the chain and the tree go on behind it. */
static int scan_gap(struct scan *s, struct slice line, const char *name)
{
    struct gap *g = malloc(sizeof *g);
    struct chain *tip = &s->f->tip;
    if (g == NULL)
        return -1;
    if (gap_parse(line, g) == 0) {
        tip->seq = g->first + g->count - 1;
        memcpy(tip->hash, g->last, CHAIN_HASH);
        if (gap_grow(g, &s->f->since) < 0) /* then its checkpoint is not what will be verified */
            merkle_clear(&s->f->since);
    }
    free(g);
    s->any = true;
    memcpy(s->f->tip_name, name, LOG_NAME_MAX);
    return 0;
}

static int scan_line(struct scan *s, struct slice line, const char *name)
{
    struct render_head h;
    struct chain *tip = &s->f->tip;
    bool good = render_parse(line, &h) == 0;
    if (good && h.kind == RECORD_GAP)
        return scan_gap(s, line, name);
    if (chain_step(tip, line) < 0)
        return -1;
    if (good) {
        tip->seq = h.seq;
        if (s->fn)
            s->fn(s->arg, &h);
    }
    if (grow(s->f, good ? h.kind : 0) < 0)
        return -1;
    if (s->head && tip->seq == s->head->tip.seq &&
        memcmp(tip->hash, s->head->tip.hash, CHAIN_HASH) == 0)
        s->head_seen = true;
    s->any = true;
    memcpy(s->f->tip_name, name, LOG_NAME_MAX);
    return 0;
}

/* All lines of one file; cut: a torn end is cut off (only the last file can have one). */
static int scan_file(struct scan *s, const char *name, bool cut, struct err *err)
{
    int fd = openat(s->f->dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW), r = 0;
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    if (lr == NULL) {
        r = err_sys(err, "cannot open the audit file %s", name);
        if (fd >= 0)
            close(fd);
        return r;
    }
    struct slice line;
    enum line_state st;
    while (r == 0 && (st = line_reader_next(lr, &line)) != LINE_END) {
        if (st == LINE_ERROR)
            r = err_sys(err, "cannot read the audit file %s", name);
        else if (st == LINE_TORN && cut && ftruncate(fd, (off_t)line_reader_at(lr)) < 0)
            r = err_sys(err, "cannot cut the torn end off %s", name);
        else if (st == LINE_WHOLE || st == LINE_LONG)
            r = scan_line(s, line, name) < 0 ? err_set(err, ERR_INTERNAL, "SHA-256 failed") : 0;
    }
    line_reader_free(lr);
    close(fd);
    return r;
}

/* seq of a file's first line; 0 when it has none that reads as one. */
static uint64_t first_seq(int dirfd, const char *name)
{
    struct render_head h;
    struct slice line;
    uint64_t seq = 0;
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    struct line_reader *lr = line_reader_new(fd);
    if (lr && line_reader_next(lr, &line) == LINE_WHOLE && render_parse(line, &h) == 0)
        seq = h.seq;
    line_reader_free(lr);
    close(fd);
    return seq;
}

/* It holds a checkpoint: the tree over what is not covered yet begins in it, or later. */
static bool has_checkpoint(int dirfd, const char *name)
{
    struct render_head h;
    struct slice line;
    bool found = false;
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    for (enum line_state st = LINE_WHOLE; lr && !found && st != LINE_END && st != LINE_ERROR;) {
        st = line_reader_next(lr, &line);
        found = st == LINE_WHOLE && render_parse(line, &h) == 0 && h.kind == RECORD_CHECKPOINT;
    }
    line_reader_free(lr);
    if (fd >= 0)
        close(fd);
    return found;
}

static int scan_dir(struct scan *s, uint64_t from_seq, struct err *err)
{
    struct log_dir d;
    if (log_dir_list(s->f->dirfd, &d, err) < 0)
        return -1;
    size_t i = d.n;
    while (i > 0) {
        uint64_t seq = first_seq(s->f->dirfd, d.name[--i]);
        if (seq && seq - 1 <= from_seq && has_checkpoint(s->f->dirfd, d.name[i]))
            break;
    }
    int r = 0;
    if (d.n)
        memcpy(s->f->name, d.name[d.n - 1], LOG_NAME_MAX);
    for (; r == 0 && i < d.n; i++)
        r = scan_file(s, d.name[i], i + 1 == d.n, err);
    log_dir_done(&d);
    return r;
}

struct log_file *log_file_open(int dirfd, const struct head *head, uint64_t from_seq,
                               log_file_line_fn fn, void *arg, bool *broken, struct err *err)
{
    struct log_file *f = calloc(1, sizeof *f);
    if (f == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    f->dirfd = dirfd;
    f->fd = -1;
    buf_init(&f->queue, QUEUE_MAX);
    chain_genesis(&f->tip);
    struct scan s = {.f = f, .head = head, .fn = fn, .arg = arg};
    /* the head's own line must be looked at, too */
    if (head && head->tip.seq - 1 < from_seq)
        from_seq = head->tip.seq - 1;
    if (scan_dir(&s, from_seq, err) < 0) {
        log_file_free(f);
        return NULL;
    }
    *broken = head ? !s.head_seen : s.any;
    if (head && !s.head_seen) {
        uint64_t seq = f->tip.seq > head->tip.seq ? f->tip.seq : head->tip.seq;
        f->tip = head->tip;
        f->tip.seq = seq;
        merkle_clear(&f->since);
    }
    f->disk = f->tip;
    return f;
}

/* ---- writing ---- */

bool log_file_room(const struct log_file *f)
{
    return buf_len(&f->queue) < QUEUE_HIGH;
}

int log_file_put(struct log_file *f, const struct record_view *v, const struct render_source *from,
                 uint64_t at, uint64_t received_ns)
{
    size_t before = buf_len(&f->queue);
    if (render_line(&f->queue, &f->tip, v, from, at, received_ns) < 0)
        return -1;
    struct slice line = buf_slice(&f->queue);
    line.p += before;
    line.n -= before;
    struct chain was = f->tip;
    if (buf_room(&f->queue) == 0 || chain_step(&f->tip, line) < 0 || grow(f, v->kind) < 0 ||
        buf_append_str(&f->queue, "\n") < 0) {
        f->tip = was;
        f->queue.len = before;
        return -1;
    }
    meter_add(METER_RECORDS, 1);
    meter_add(METER_RECORD_BYTES, line.n + 1);
    return 0;
}

static int begin_file(struct log_file *f, struct err *err)
{
    char name[LOG_NAME_MAX];
    log_dir_next_name(timestamp_now(), f->name, name);
    int fd = openat(f->dirfd, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0)
        return err_sys(err, "cannot make the audit file %s", name);
    f->fd = fd;
    f->unsynced = true; /* its name */
    f->size = 0;
    f->begun_ns = timestamp_now();
    f->dirty = false;
    memcpy(f->name, name, sizeof name);
    return 0;
}

/* n bytes of the queue are in the file: count their lines, leave the rest queued. */
static int took(struct log_file *f, size_t n)
{
    struct slice q = {(const char *)buf_data(&f->queue), n};
    if (n == buf_len(&f->queue)) { /* all of it, as nearly always: its last hash is known */
        f->disk = f->tip;
        q.n = 0;
    }
    while (q.n) {
        ssize_t nl = slice_find(q, '\n');
        if (nl < 0)
            break;
        if (chain_step(&f->disk, (struct slice){q.p, (size_t)nl}) < 0)
            return -1;
        q.p += nl + 1;
        q.n -= (size_t)nl + 1;
    }
    size_t whole = n - q.n;
    f->size += whole;
    f->dirty = q.n > 0;
    if (whole) {
        memcpy(f->tip_name, f->name, sizeof f->tip_name);
        if (f->on_lines)
            f->on_lines(f->on_lines_arg, (struct slice){(const char *)buf_data(&f->queue), whole});
    }
    buf_drain(&f->queue, whole);
    return 0;
}

int log_file_rotate(struct log_file *f, char closed[LOG_NAME_MAX], struct err *err)
{
    closed[0] = 0;
    if (f->fd < 0 || f->dirty || buf_len(&f->queue) > 0)
        return 0;
    if (fdatasync(f->fd) < 0)
        return err_sys(err, "cannot sync %s", f->name);
    close(f->fd);
    f->fd = -1;
    memcpy(closed, f->name, LOG_NAME_MAX);
    return 0;
}

bool log_file_last(const struct log_file *f, char *to, size_t size)
{
    struct slice q = buf_slice(&f->queue);
    if (q.n < 2)
        return false;
    size_t at = --q.n; /* its newline */
    while (at > 0 && q.p[at - 1] != '\n')
        at--;
    if (q.n - at >= size)
        return false;
    memcpy(to, q.p + at, q.n - at);
    to[q.n - at] = 0;
    return true;
}

bool log_file_due(const struct log_file *f, uint64_t bytes, uint64_t seconds, uint64_t now_ns)
{
    if (f->fd < 0 || f->size == 0)
        return false;
    if (f->size >= bytes)
        return true;
    /* with the clock put back its age counts again from where it began */
    return seconds && now_ns > f->begun_ns && now_ns - f->begun_ns >= seconds * 1000000000U;
}

int log_file_flush(struct log_file *f, struct err *err)
{
    if (buf_len(&f->queue) == 0)
        return 0;
    if (f->fd < 0 && begin_file(f, err) < 0)
        return -1;
    if (f->dirty && ftruncate(f->fd, (off_t)f->size) < 0)
        return err_sys(err, "cannot cut the torn end off %s", f->name);
    f->dirty = false;
    size_t want = buf_len(&f->queue);
    ssize_t n;
    f->unsynced = true;
    do
        n = write(f->fd, buf_data(&f->queue), want);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(err, "cannot write %s", f->name);
    if (took(f, (size_t)n) < 0)
        return err_set(err, ERR_INTERNAL, "SHA-256 failed");
    /* the torn end is cut off just before the next try: cut now, its room would go to a journal */
    if ((size_t)n < want)
        return err_set(err, ERR_SYS, "cannot write all of a line to %s: no room", f->name);
    return 0;
}

int log_file_sync(struct log_file *f, struct err *err)
{
    if (f->fd >= 0 && f->unsynced && fdatasync(f->fd) < 0)
        return err_sys(err, "cannot sync %s", f->name);
    f->unsynced = false;
    return 0;
}

size_t log_file_queued(const struct log_file *f)
{
    return buf_len(&f->queue);
}

bool log_file_pending(const struct log_file *f)
{
    return buf_len(&f->queue) > 0;
}

bool log_file_lost(struct log_file *f)
{
    struct file_look look;
    if (f->fd < 0 || (file_look(f->fd, &look) == 0 && !look.removed))
        return false;
    close(f->fd);
    f->fd = -1;
    return true;
}

bool log_file_since(const struct log_file *f, uint64_t *first, unsigned char root[CHAIN_HASH],
                    struct chain *tip)
{
    /* one leaf that is not the log's first line is the last checkpoint itself */
    if (f->since.n < (f->since_first > 1 ? 2 : 1) || merkle_root(&f->since, root) < 0)
        return false;
    *first = f->since_first;
    *tip = f->tip;
    return true;
}

uint64_t log_file_seq(const struct log_file *f)
{
    return f->tip.seq;
}

bool log_file_tip(const struct log_file *f, struct head *ret)
{
    if (f->tip_name[0] == 0)
        return false;
    memcpy(ret->file, f->tip_name, sizeof ret->file);
    ret->tip = f->disk;
    return true;
}
