/* Fills a Bloom filter (2^20 bits, four for a term) from a closed file's lines, writes it as it
 * lies in memory, and tells from it whether a query can match any line. */
#include "log_index.h"

#include "index_file.h"
#include "line_reader.h"
#include "render.h"
#include "timestamp.h"
#include "terms.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HASHES = 4 };

#define ENDING ".idx"

/* As it lies on disk, in the byte order of this machine: another's is not taken. */
struct log_index {
    char magic[INDEX_MAGIC];
    uint32_t bits, kinds;
    char first[TIMESTAMP_MAX], last[TIMESTAMP_MAX]; /* received; "" if none */
    uint64_t sum; /* of all else: against damage, not against malice */
    unsigned char filter[LOG_INDEX_BITS / 8];
};

static const char magic[INDEX_MAGIC] = "durward index 2";

struct log_index *log_index_new(void)
{
    struct log_index *x = calloc(1, sizeof *x);
    if (x) {
        memcpy(x->magic, magic, sizeof magic);
        x->bits = LOG_INDEX_BITS;
    }
    return x;
}

void log_index_free(struct log_index *x)
{
    free(x);
}

/* ---- the filter ---- */

static void set(struct log_index *x, uint64_t h)
{
    for (int i = 0; i < HASHES; i++, h = h * UINT64_C(6364136223846793005) + 1442695040888963407u) {
        uint64_t bit = h >> 40 & (LOG_INDEX_BITS - 1);
        x->filter[bit / 8] |= (unsigned char)(1U << bit % 8);
    }
}

static bool has(const struct log_index *x, uint64_t h)
{
    for (int i = 0; i < HASHES; i++, h = h * UINT64_C(6364136223846793005) + 1442695040888963407u) {
        uint64_t bit = h >> 40 & (LOG_INDEX_BITS - 1);
        if (!(x->filter[bit / 8] & 1U << bit % 8))
            return false;
    }
    return true;
}

static uint64_t sum_of(const struct log_index *x)
{
    uint64_t h = terms_sum(x->kinds, x->first, sizeof x->first);
    h = terms_sum(h, x->last, sizeof x->last);
    return terms_sum(h, x->filter, sizeof x->filter);
}

/* ---- lines ---- */

/* Of an id: the number of its writer's journal. Whole ids are too many. */
static struct slice writer_of(struct slice id)
{
    ssize_t dash = slice_find(id, '-');
    return dash > 0 ? (struct slice){id.p, (size_t)dash} : id;
}

static void add_term(void *arg, uint64_t term, bool of_request UNUSED)
{
    set(arg, term);
}

void log_index_line(struct log_index *x, struct slice line)
{
    struct render_head h;
    if (render_parse(line, &h) < 0)
        return;
    x->kinds |= 1U << h.kind;
    struct terms_marks marks = terms_line(line, add_term, x);
    set(x, terms_hash("id", writer_of(marks.id)));
    index_file_times(x->first, x->last, marks.received);
}

/* ---- files ---- */

int log_index_write(const struct log_index *x, int dirfd, const char *log, struct err *err)
{
    struct index_file f;
    struct log_index *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    *copy = *x;
    copy->sum = sum_of(x);
    int r = index_file_begin(&f, dirfd, log, ENDING, err);
    if (r == 0)
        r = index_file_put(&f, copy, sizeof *copy, err);
    if (r == 0)
        r = index_file_finish(&f, err);
    index_file_close(&f);
    free(copy);
    return r;
}

int log_index_make(int dirfd, const char *log, struct err *err)
{
    int fd = openat(dirfd, log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(err, "cannot open %s", log);
    struct line_reader *lr = line_reader_new(fd);
    struct log_index *x = lr ? log_index_new() : NULL;
    enum line_state st = LINE_ERROR;
    struct slice line;
    while (x && (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_ERROR)
        if (st == LINE_WHOLE)
            log_index_line(x, line);
    int r = x && st == LINE_END ? log_index_write(x, dirfd, log, err)
                                : err_set(err, ERR_SYS, "cannot read %s", log);
    log_index_free(x);
    line_reader_free(lr);
    close(fd);
    return r;
}

bool log_index_exists(int dirfd, const char *log)
{
    return index_file_exists(dirfd, log, ENDING, magic);
}

void log_index_remove(int dirfd, const char *log)
{
    index_file_remove(dirfd, log, ENDING);
}

/* NULL: none, or none that can be believed. */
static struct log_index *load(int dirfd, const char *log)
{
    char name[INDEX_NAME_MAX];
    index_file_name(log, ENDING, name);
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct log_index *x = fd >= 0 ? malloc(sizeof *x) : NULL;
    bool good = x && read(fd, x, sizeof *x) == (ssize_t)sizeof *x &&
                memcmp(x->magic, magic, sizeof magic) == 0 && x->bits == LOG_INDEX_BITS &&
                x->sum == sum_of(x) && x->first[TIMESTAMP_MAX - 1] == 0 &&
                x->last[TIMESTAMP_MAX - 1] == 0;
    if (fd >= 0)
        close(fd);
    if (good)
        return x;
    free(x);
    return NULL;
}

/* ---- questions ---- */

static bool absent(const struct log_index *x, const char *key, const char *value)
{
    return value && terms_plain(value) && !has(x, terms_hash(key, slice_str(value)));
}

static bool host_absent(const struct log_index *x, const char *host)
{
    return host && terms_plain(host) && !has(x, terms_host(slice_str(host)));
}

bool log_index_follows(const struct query_filter *f)
{
    return f->sandbox || f->policy || f->rule || f->credential || f->method || f->host || f->id;
}

static bool may(const struct log_index *x, const struct query_filter *f)
{
    char timestamp[TIMESTAMP_MAX], status[24];
    if (f->since && strcmp(x->last, timestamp_text(f->since, timestamp, sizeof timestamp)) < 0)
        return false;
    if (f->until && strcmp(x->first, timestamp_text(f->until, timestamp, sizeof timestamp)) >= 0)
        return false;
    if (absent(x, "sandbox", f->sandbox) || absent(x, "policy", f->policy) ||
        absent(x, "rule", f->rule) || absent(x, "credential", f->credential) ||
        absent(x, "method", f->method) || host_absent(x, f->host) ||
        (f->id && !has(x, terms_hash("id", writer_of(slice_str(f->id))))))
        return false;
    if (log_index_follows(f))
        return true; /* what an end says of itself may stand in another file than its beginning */
    snprintf(status, sizeof status, "%" PRId64, f->status);
    return !absent(x, "code", f->code) && !absent(x, "role", f->role) &&
           !absent(x, "status", f->status ? status : NULL) &&
           (f->kinds == 0 || (f->kinds & x->kinds));
}

bool log_index_may(int dirfd, const char *name, const struct query_filter *f)
{
    struct log_index *x = load(dirfd, name);
    bool yes = x == NULL || may(x, f);
    log_index_free(x);
    return yes;
}
