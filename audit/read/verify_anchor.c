/* Reads an anchor's checkpoints, sorts them by seq, marks each that the walk of verify.c finds in a
 * log, and knows by a second order what is missing of each log. */
#include "verify_anchor.h"

#include "checkpoint.h"
#include "line_reader.h"
#include "log_dir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { CHECKPOINTS_MAX = 1 << 24, NAMED_LINE_MAX = 4096 };

/* A log's name. A line of the same log as the one before has its; so a name may be there twice. */
struct named {
    SLIST_ENTRY(named) link;
    char name[LOG_NAME_MAX];
};

struct kept {
    uint64_t seq;
    const char *log;
    unsigned char hash[CHAIN_HASH];
    bool seen, told;
};

struct verify_anchor {
    struct kept *at;      /* by seq once all are read */
    struct kept **by_log; /* the same by log, then by seq */
    size_t n, room, next; /* of by_log, whose logs were told up to there */
    SLIST_HEAD(, named) names;
};

static int by_seq(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int by_log(const void *a, const void *b)
{
    const struct kept *x = *(struct kept *const *)a, *y = *(struct kept *const *)b;
    int order = strcmp(x->log, y->log);
    return order ? order : by_seq(x, y);
}

/* The word at the end of what stands before the line, if it names a run's log; "": the daemon's.
 * NULL: memory is out. */
static const char *log_of(struct verify_anchor *a, struct slice before)
{
    static const struct slice run = SLICE("run-");
    while (before.n && before.p[before.n - 1] == ' ')
        before.n--;
    size_t n = 0;
    while (n < before.n &&
           (ascii_is_alnum(before.p[before.n - 1 - n]) || before.p[before.n - 1 - n] == '-'))
        n++;
    struct slice word = {before.p + before.n - n, n};
    if (n >= LOG_NAME_MAX || !slice_starts(word, run))
        return "";
    struct named *last = SLIST_FIRST(&a->names);
    if (last && slice_eq(word, slice_str(last->name)))
        return last->name;
    struct named *one = calloc(1, sizeof *one);
    if (one == NULL)
        return NULL;
    memcpy(one->name, word.p, n);
    SLIST_INSERT_HEAD(&a->names, one, link);
    return one->name;
}

/* What goes by https is one JSON object, in which a run's name is the first member: taken out of
 * it, the line is as it was signed. */
static void take_name(struct slice *line, struct slice *before, char whole[NAMED_LINE_MAX])
{
    static const struct slice member = SLICE("{\"log\":\"");
    if (!slice_starts(*line, member) || line->n >= NAMED_LINE_MAX)
        return;
    struct slice name = {line->p + member.n, line->n - member.n};
    ssize_t end = slice_find_slice(name, SLICE("\","));
    if (end < 0)
        return;
    size_t n = name.n - (size_t)end - 2;
    whole[0] = '{';
    memcpy(whole + 1, name.p + end + 2, n);
    *before = (struct slice){name.p, (size_t)end};
    *line = (struct slice){whole, n + 1};
}

static int keep(struct verify_anchor *a, struct slice line, const struct signing_key *key,
                struct err *err)
{
    struct checkpoint c;
    char whole[NAMED_LINE_MAX];
    ssize_t brace = slice_find(line, '{');
    if (brace < 0)
        return 0;
    struct slice before = {line.p, (size_t)brace};
    line.p += brace;
    line.n -= (size_t)brace;
    take_name(&line, &before, whole);
    if (checkpoint_parse(line, &c) < 0)
        return 0;
    if (!checkpoint_signed_by(&c, key))
        return err_set(err, ERR_DENIED, "the anchor's checkpoint %llu is not signed by this key",
                       (unsigned long long)c.last + 1);
    if (a->n == a->room) {
        size_t room = a->room ? a->room * 2 : 64;
        struct kept *grown = room > CHECKPOINTS_MAX ? NULL : realloc(a->at, room * sizeof *grown);
        if (grown == NULL)
            return err_set(err, ERR_LIMIT, "the anchor has too many checkpoints");
        a->at = grown;
        a->room = room;
    }
    struct kept *k = &a->at[a->n++];
    *k = (struct kept){.seq = c.last + 1, .log = log_of(a, before)};
    if (k->log == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return chain_hash(line, k->hash) < 0 ? err_set(err, ERR_INTERNAL, "SHA-256 failed") : 0;
}

static int order(struct verify_anchor *a, struct err *err)
{
    a->by_log = calloc(a->n, sizeof *a->by_log);
    if (a->by_log == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    qsort(a->at, a->n, sizeof *a->at, by_seq);
    for (size_t i = 0; i < a->n; i++)
        a->by_log[i] = &a->at[i];
    qsort(a->by_log, a->n, sizeof *a->by_log, by_log);
    return 0;
}

struct verify_anchor *verify_anchor_read(int fd, const struct signing_key *key, struct err *err)
{
    struct verify_anchor *a = calloc(1, sizeof *a);
    struct line_reader *lr = a ? line_reader_new(fd) : NULL;
    struct slice line;
    enum line_state st = LINE_END;
    int r = lr ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    while (r == 0 && (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_ERROR)
        r = keep(a, line, key, err);
    if (r == 0 && st == LINE_ERROR)
        r = err_sys(err, "cannot read the anchor");
    if (r == 0 && a->n == 0)
        r = err_set(err, ERR_PARSE, "the anchor holds no checkpoint");
    line_reader_free(lr);
    if (r == 0 && order(a, err) == 0)
        return a;
    verify_anchor_free(a);
    return NULL;
}

void verify_anchor_free(struct verify_anchor *a)
{
    if (a == NULL)
        return;
    for (struct named *one; (one = SLIST_FIRST(&a->names)) != NULL;) {
        SLIST_REMOVE_HEAD(&a->names, link);
        free(one);
    }
    free(a->by_log);
    free(a->at);
    free(a);
}

unsigned verify_anchor_seen(struct verify_anchor *a, uint64_t seq, struct slice line)
{
    unsigned char hash[CHAIN_HASH];
    struct kept want = {.seq = seq};
    struct kept *k = bsearch(&want, a->at, a->n, sizeof *a->at, by_seq);
    if (k == NULL || chain_hash(line, hash) < 0)
        return 0;
    while (k > a->at && k[-1].seq == seq)
        k--;
    unsigned seen = 0;
    for (; k < a->at + a->n && k->seq == seq; k++) /* one may be kept twice */
        if (memcmp(k->hash, hash, CHAIN_HASH) == 0) {
            k->seen = true;
            seen = 1;
        }
    return seen;
}

/* Where this log's begin in by_log, or would. */
static size_t first_of(const struct verify_anchor *a, const char *log)
{
    size_t low = 0, high = a->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(a->by_log[mid]->log, log) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_of(const struct verify_anchor *a, size_t i, const char *log)
{
    return i < a->n && strcmp(a->by_log[i]->log, log) == 0;
}

size_t verify_anchor_of(const struct verify_anchor *a, const char *log)
{
    size_t from = first_of(a, log), i = from;
    while (is_of(a, i, log))
        i++;
    return i - from;
}

bool verify_anchor_missing(struct verify_anchor *a, const char *log, uint64_t first, uint64_t *seq)
{
    bool missing = false;
    for (size_t i = first_of(a, log); is_of(a, i, log); i++) {
        struct kept *k = a->by_log[i];
        if (!missing && !k->seen && k->seq >= first) {
            *seq = k->seq;
            missing = true;
        }
        k->told = true;
    }
    return missing;
}

const char *verify_anchor_absent(struct verify_anchor *a, uint64_t *seq)
{
    for (; a->next < a->n; a->next++) {
        struct kept *k = a->by_log[a->next];
        if (!k->told && verify_anchor_missing(a, k->log, 0, seq))
            return k->log;
    }
    return NULL;
}
