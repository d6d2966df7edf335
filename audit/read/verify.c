/* Walks over every line once, checks sequence, hash, checkpoints and gaps, and keeps the first
 * break for the report. */
#include "verify.h"

#include "checkpoint.h"
#include "gap.h"
#include "head.h"
#include "verify_anchor.h"
#include "line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    struct verify_result *ret;
    const struct head *head;
    const struct signing_key *key;
    struct verify_anchor *anchor;     /* NULL: none */
    const struct verify_watch *watch; /* likewise */
    struct chain at;                  /* the last good line */
    struct chain pruned;              /* as the log says: what was removed ended here */
    struct merkle since;              /* leaves from the last checkpoint on */
    uint64_t since_first;
    bool head_seen;
};

/* Always -1. The first break is the one that is told. */
static int broken(struct verify_result *r, const char *file, uint64_t line, const char *fmt, ...)
    PRINTF(4, 5);
static int broken(struct verify_result *r, const char *file, uint64_t line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    snprintf(r->file, sizeof r->file, "%s", file);
    r->line = line;
    r->ok = false;
    return -1;
}

/* The tree over the lines since the last checkpoint. A log that begins later than with line 1 does
 * so behind a checkpoint, whose hash the first line carries. */
static int grow(struct walk *w, enum record_kind kind)
{
    if (kind == RECORD_CHECKPOINT || w->since.n == 0) {
        merkle_clear(&w->since);
        w->since_first = w->at.seq;
    }
    return merkle_add(&w->since, w->at.hash);
}

static int check_checkpoint(struct walk *w, struct slice line, const char *file, uint64_t number)
{
    struct checkpoint c;
    unsigned char root[CHAIN_HASH];
    if (checkpoint_parse(line, &c) < 0)
        return broken(w->ret, file, number, "this is not a checkpoint");
    if (!checkpoint_signed_by(&c, w->key))
        return broken(w->ret, file, number, "this checkpoint is not signed by this key");
    if (c.first != w->since_first || merkle_root(&w->since, root) < 0 ||
        memcmp(root, c.root, CHAIN_HASH) != 0)
        return broken(w->ret, file, number, "this checkpoint is not one over records %llu to %llu",
                      (unsigned long long)w->since_first, (unsigned long long)w->at.seq);
    w->ret->checkpoints++;
    return 0;
}

/* What the logger says of files that retention removed; the last one counts. */
static void note_pruned(struct walk *w, struct slice line)
{
    const char *event, *root;
    json_int_t count;
    if (slice_find_slice(line, SLICE("\"event\":\"log_pruned\"")) < 0)
        return;
    json_t *j = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
    const char *role;
    if (json_unpack(j, "{s:s,s:s,s:I,s:s}", "role", &role, "event", &event, "count", &count, "root",
                    &root) == 0 &&
        strcmp(role, "logger") == 0 && strcmp(event, "log_pruned") == 0 && count > 0 &&
        chain_unhex(slice_str(root), w->pruned.hash) == 0)
        w->pruned.seq = (uint64_t)count;
    json_decref(j);
}

/* The first line of all may be a later one than 1. */
static int begin(struct walk *w, uint64_t seq, const unsigned char prev[CHAIN_HASH])
{
    if (w->ret->first_seq)
        return 0;
    w->ret->first_seq = seq;
    if (seq <= 1)
        return 0;
    w->at.seq = seq - 1;
    memcpy(w->at.hash, prev, CHAIN_HASH);
    return grow(w, RECORD_CHECKPOINT);
}

/* The word in ,"kind":"…" */
static struct slice line_kind(struct slice rest)
{
    static const struct slice key = SLICE(",\"kind\":\"");
    if (!slice_starts(rest, key))
        return (struct slice){"", 0};
    struct slice s = {rest.p + key.n, rest.n - key.n};
    ssize_t end = slice_find(s, '"');
    return end < 0 ? (struct slice){"", 0} : (struct slice){s.p, (size_t)end};
}

static void note_gap(struct verify_result *r, const struct gap *g)
{
    size_t i = 0;
    while (i < r->n_gaps && strcmp(r->gap[i].sandbox, g->sandbox) != 0)
        i++;
    if (i == VERIFY_GAPS)
        i--;
    if (i == r->n_gaps) {
        bool rest = ++r->n_gaps == VERIFY_GAPS;
        snprintf(r->gap[i].sandbox, sizeof r->gap[i].sandbox, "%s", rest ? "..." : g->sandbox);
    }
    r->gap[i].records += g->count;
    r->gap[i].places++;
    r->removed += g->count;
}

/* Its place in the chain is right; what it stands for is the logger's word. */
static int take_gap(struct walk *w, const struct gap *g, const char *file, uint64_t number)
{
    if (!gap_signed_by(g, w->key))
        return broken(w->ret, file, number, "this gap is not signed by this key");
    if (gap_grow(g, &w->since) < 0)
        return broken(w->ret, file, number, "this gap does not fit here");
    w->at.seq = g->first + g->count - 1;
    memcpy(w->at.hash, g->last, CHAIN_HASH);
    note_gap(w->ret, g);
    if (w->watch)
        w->watch->gap(w->watch->arg, g->first, w->at.seq);
    return 0;
}

static int check_gap(struct walk *w, struct slice line, const char *file, uint64_t number)
{
    struct gap *g = malloc(sizeof *g);
    int r = g && gap_parse(line, g) == 0 ? take_gap(w, g, file, number)
                                         : broken(w->ret, file, number, "this is not a gap");
    free(g);
    return r;
}

static int check_line(struct walk *w, struct slice line, const char *file, uint64_t number)
{
    uint64_t seq;
    unsigned char prev[CHAIN_HASH];
    struct slice rest;
    if (chain_parse(line, &seq, prev, &rest) < 0)
        return broken(w->ret, file, number, "this is not a line of an audit log");
    struct slice kind = line_kind(rest);
    bool is_checkpoint = slice_eq(kind, SLICE("checkpoint"));
    if (begin(w, seq, prev) < 0)
        return broken(w->ret, file, number, "SHA-256 failed");
    if (seq != w->at.seq + 1)
        return broken(w->ret, file, number,
                      "record %llu follows record %llu: lines were removed, added or moved",
                      (unsigned long long)seq, (unsigned long long)w->at.seq);
    if (memcmp(prev, w->at.hash, CHAIN_HASH) != 0)
        return broken(w->ret, file, number,
                      "record %llu does not continue record %llu: one of the two was changed",
                      (unsigned long long)seq, (unsigned long long)w->at.seq);
    w->ret->bytes += line.n + 1;
    if (slice_eq(kind, SLICE("gap")))
        return check_gap(w, line, file, number);
    if (is_checkpoint && check_checkpoint(w, line, file, number) < 0)
        return -1;
    if (slice_eq(kind, SLICE("lifecycle")))
        note_pruned(w, line);
    if (chain_step(&w->at, line) < 0 || grow(w, is_checkpoint ? RECORD_CHECKPOINT : 0) < 0)
        return broken(w->ret, file, number, "SHA-256 failed");
    if (is_checkpoint && w->anchor)
        w->ret->anchored += verify_anchor_seen(w->anchor, seq, line);
    if (seq == w->head->tip.seq) {
        if (memcmp(w->at.hash, w->head->tip.hash, CHAIN_HASH) != 0)
            return broken(w->ret, file, number, "record %llu is not the one that was signed",
                          (unsigned long long)seq);
        if (log_dir_order(file, w->head->file) != 0)
            return broken(w->ret, file, number, "record %llu is signed as one of %s",
                          (unsigned long long)seq, w->head->file);
        w->head_seen = true;
    }
    if (w->watch)
        w->watch->line(w->watch->arg, &w->at);
    w->ret->records++;
    if (seq > w->head->tip.seq)
        w->ret->unsigned_records++;
    return 0;
}

static int check_end(struct walk *w, enum line_state st, const char *file, uint64_t number,
                     bool last)
{
    if (st == LINE_ERROR)
        return broken(w->ret, file, number, "cannot be read: %s", strerror(errno));
    if (st == LINE_LONG)
        return broken(w->ret, file, number, "this line is too long to be one of an audit log");
    if (!last || !w->head_seen)
        return broken(w->ret, file, number, "this line is cut off");
    w->ret->torn = true;
    return 0;
}

static int check_file(struct walk *w, int dirfd, const char *file, bool last)
{
    int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    int r = lr ? 0 : broken(w->ret, file, 0, "cannot be opened: %s", strerror(errno));
    struct slice line;
    enum line_state st;
    w->ret->files++;
    for (uint64_t n = 1; r == 0 && (st = line_reader_next(lr, &line)) != LINE_END; n++)
        r = st == LINE_WHOLE ? check_line(w, line, file, n) : check_end(w, st, file, n, last);
    line_reader_free(lr);
    if (fd >= 0)
        close(fd);
    return r;
}

/* Every line is good; is the log all there? */
static void check_whole(struct walk *w, const char *first_file)
{
    uint64_t first = w->ret->first_seq;
    if (first > 1 && w->pruned.seq != first - 1)
        broken(w->ret, first_file, 1,
               "the log begins with record %llu, and nothing in it says that the ones before were "
               "removed by its retention",
               (unsigned long long)first);
}

void verify_settle(struct verify_anchor *a, const char *log, struct verify_result *ret)
{
    uint64_t seq;
    if (!verify_anchor_missing(a, log, ret->first_seq, &seq) || !ret->ok)
        return;
    broken(ret, "", 0,
           "checkpoint %llu of the anchor is not in this log: it was rolled back or replaced%s",
           (unsigned long long)seq,
           *log ? "" : " (or is one of a run's whose log was removed, kept without its name)");
}

void verify_absent(const char *log, uint64_t seq, struct verify_result *ret)
{
    memset(ret, 0, sizeof *ret);
    broken(ret, "", 0,
           *log ? "the anchor has checkpoint %llu of this log, and the log is not there: it was "
                  "removed (if by you, take its lines out of the anchor)"
                : "checkpoint %llu of the anchor is in no log here: one was removed",
           (unsigned long long)seq);
}

static void check_files(struct walk *w, int dirfd)
{
    struct log_dir d;
    struct err err = {0};
    if (log_dir_list(dirfd, &d, &err) < 0) {
        broken(w->ret, "", 0, "%s", err.text);
        return;
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < d.n; i++)
        r = check_file(w, dirfd, d.name[i], i + 1 == d.n);
    if (r == 0 && !w->head_seen)
        broken(w->ret, d.n ? d.name[d.n - 1] : "", 0,
               "the log is shorter than its signed head: it ends with record %llu, the head says "
               "%llu (%s)",
               (unsigned long long)w->at.seq, (unsigned long long)w->head->tip.seq, w->head->file);
    if (r == 0 && w->head_seen)
        check_whole(w, d.n ? d.name[0] : "");
    log_dir_done(&d);
}

void verify_dir(int dirfd, const struct signing_key *key, struct verify_anchor *anchor,
                struct verify_result *ret)
{
    verify_dir_watched(dirfd, key, anchor, NULL, ret);
}

void verify_dir_watched(int dirfd, const struct signing_key *key, struct verify_anchor *anchor,
                        const struct verify_watch *watch, struct verify_result *ret)
{
    struct head head;
    struct err err = {0};
    memset(ret, 0, sizeof *ret);
    ret->ok = true;
    /* the head first: a live daemon only ever adds lines after it */
    int had = head_read(dirfd, &head, key, &err);
    if (had < 0) {
        broken(ret, "head", 0, "%s", err.text);
        return;
    }
    if (had == 0) {
        broken(ret, "head", 0, "there is no signed head, so nothing says where the log ends");
        return;
    }
    ret->signed_seq = head.tip.seq;
    struct walk w = {.ret = ret, .head = &head, .key = key, .anchor = anchor, .watch = watch};
    chain_genesis(&w.at);
    check_files(&w, dirfd);
}

bool verify_has_log(int dirfd)
{
    struct stat st;
    struct log_dir d;
    if (fstatat(dirfd, "head", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
        fstatat(dirfd, "journal/next", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    if (log_dir_list(dirfd, &d, NULL) < 0)
        return false;
    bool any = d.n > 0;
    log_dir_done(&d);
    return any;
}
