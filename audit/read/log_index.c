/* Fills a Bloom filter (2^20 bits, four for a term) from a closed file's lines, writes it as it
 * lies in memory, and tells from it whether a query can match any line. */
#include "log_index.h"

#include "line_reader.h"
#include "log_dir.h"
#include "render.h"
#include "timestamp.h"
#include "terms.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASHES = 4, PENDING_SUFFIX = 5 };

/* As it lies on disk, in the byte order of this machine: another's is not taken. */
struct log_index {
    char magic[16];
    uint32_t bits, kinds;
    char first[TIMESTAMP_MAX], last[TIMESTAMP_MAX]; /* received; "" if none */
    uint64_t sum; /* of all else: against damage, not against malice */
    unsigned char filter[LOG_INDEX_BITS / 8];
};

static const char magic[16] = "durward index 1";

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

static uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(1099511628211);
    return h;
}

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
    uint64_t h = hash_bytes(x->kinds, x->first, sizeof x->first);
    h = hash_bytes(h, x->last, sizeof x->last);
    return hash_bytes(h, (const char *)x->filter, sizeof x->filter);
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
    terms_line(line, add_term, x);
    set(x, terms_hash("id", writer_of(terms_value(line, ",\"id\":"))));
    struct slice at = terms_value(line, ",\"received\":");
    if (at.n == 0 || at.n >= TIMESTAMP_MAX)
        return;
    if (x->first[0] == 0 || memcmp(at.p, x->first, at.n) < 0)
        memcpy(x->first, at.p, at.n);
    if (memcmp(at.p, x->last, at.n) > 0)
        memcpy(x->last, at.p, at.n);
}

/* ---- files ---- */

static void name_of(const char *log, char name[LOG_INDEX_NAME_MAX])
{
    size_t n = strlen(log);
    if (log_dir_packed(log))
        n -= strlen(".zst");
    snprintf(name, LOG_INDEX_NAME_MAX, "%.*s.idx", (int)(n < 60 ? n : 60), log);
}

int log_index_write(const struct log_index *x, int dirfd, const char *log, struct err *err)
{
    char name[LOG_INDEX_NAME_MAX], pending[LOG_INDEX_NAME_MAX + PENDING_SUFFIX];
    struct log_index *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    *copy = *x;
    copy->sum = sum_of(x);
    name_of(log, name);
    snprintf(pending, sizeof pending, "%s.new", name);
    int fd = openat(dirfd, pending, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd >= 0 && write(fd, copy, sizeof *copy) == (ssize_t)sizeof *copy ? 0 : -1;
    if (fd >= 0)
        close(fd);
    if (r < 0 || renameat(dirfd, pending, dirfd, name) < 0)
        r = err_sys(err, "cannot write %s", name);
    if (r < 0)
        unlinkat(dirfd, pending, 0);
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
    char name[LOG_INDEX_NAME_MAX];
    struct stat st;
    name_of(log, name);
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void log_index_remove(int dirfd, const char *log)
{
    char name[LOG_INDEX_NAME_MAX];
    name_of(log, name);
    unlinkat(dirfd, name, 0);
}

/* NULL: none, or none that can be believed. */
static struct log_index *load(int dirfd, const char *log)
{
    char name[LOG_INDEX_NAME_MAX];
    name_of(log, name);
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
    char text[TERMS_HOST_MAX];
    return host && terms_plain(host) && strlen(host) < TERMS_HOST_MAX &&
           !has(x, terms_hash("host", terms_lower(slice_str(host), text)));
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
