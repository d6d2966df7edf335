/* Makes the index of blocks: collects what each block holds as a column of bits, and writes a
 * chapter out by rows, so that a query reads a row for each term. block_plan.c reads it. */
#include "log_blocks.h"

#include "ngrams.h"
#include "log_dir.h"
#include "render.h"
#include "terms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROW = BLOCKS_CHAPTER / 8, NAME_ROOM = 80 };

static const char magic[16] = "durward blocks 1";

struct log_blocks {
    int dirfd, fd;
    bool finished;
    char name[BLOCKS_NAME_MAX], temporary[NAME_ROOM];
    uint32_t n;                       /* blocks of this chapter */
    struct open_request_terms *begun; /* the owner's, who has it for the next file, too */
    struct begun *now;                /* of the line at hand */
    struct blocks_entry entry[BLOCKS_CHAPTER];
    unsigned char set[NGRAM_BITS / 8]; /* of the block at hand */
    unsigned char rows[NGRAM_BITS][ROW + BLOCKS_ROW_SUM];
};

/* ---- the form ---- */

void log_blocks_name(const char *log, char name[BLOCKS_NAME_MAX])
{
    size_t n = strlen(log);
    if (log_dir_packed(log))
        n -= strlen(".zst");
    snprintf(name, BLOCKS_NAME_MAX, "%.*s.blk", (int)(n < 60 ? n : 60), log);
}

static uint64_t sum_of(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

static uint64_t head_sum(const struct blocks_head *h, const struct blocks_entry *entries)
{
    uint64_t sum = sum_of(h->n * UINT64_C(65537) + h->stride, magic, sizeof magic);
    return sum_of(sum, entries, h->n * sizeof *entries);
}

bool log_blocks_head_good(const struct blocks_head *h, const struct blocks_entry *entries)
{
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->sum == head_sum(h, entries);
}

uint16_t log_blocks_row_sum(uint32_t row, const unsigned char *bits, size_t n)
{
    uint64_t h = sum_of(row, bits, n);
    return (uint16_t)(h ^ h >> 23 ^ h >> 47);
}

void log_blocks_rows(uint64_t term, uint32_t row[BLOCKS_TERM_ROWS])
{
    term *= UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < BLOCKS_TERM_ROWS; i++)
        row[i] = (uint32_t)(term >> (16 + 16 * i) & (NGRAM_BITS - 1));
}

/* ---- making one ---- */

struct log_blocks *log_blocks_new(int dirfd, const char *log, struct open_request_terms *begun,
                                  struct err *err)
{
    struct log_blocks *b = calloc(1, sizeof *b);
    if (b == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    b->dirfd = dirfd;
    b->begun = begun;
    log_blocks_name(log, b->name);
    snprintf(b->temporary, sizeof b->temporary, "%s.new", b->name);
    b->fd =
        openat(dirfd, b->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (b->fd >= 0)
        return b;
    err_sys(err, "cannot write %s", b->name);
    free(b);
    return NULL;
}

void log_blocks_free(struct log_blocks *b)
{
    if (b == NULL)
        return;
    close(b->fd);
    if (!b->finished)
        unlinkat(b->dirfd, b->temporary, 0);
    free(b);
}

static void set_term(struct log_blocks *b, uint64_t term)
{
    uint32_t row[BLOCKS_TERM_ROWS];
    log_blocks_rows(term, row);
    for (int i = 0; i < BLOCKS_TERM_ROWS; i++)
        b->set[row[i] / 8] |= (unsigned char)(1U << row[i] % 8);
}

static void add_term(void *arg, uint64_t term, bool of_request)
{
    struct log_blocks *b = arg;
    set_term(b, term);
    if (b->now && of_request)
        open_request_terms_add(b->now, term);
}

static void add_end(struct log_blocks *b, struct blocks_entry *e, const struct render_head *h)
{
    struct begun *g = open_request_terms_find(b->begun, h->channel, h->counter);
    if (g == NULL || g->n > OPEN_REQUEST_TERMS_MOST)
        e->flags |= BLOCK_LOOSE;
    for (uint32_t i = 0; g && i < g->n && i < OPEN_REQUEST_TERMS_MOST; i++)
        set_term(b, g->term[i]);
    if (g)
        g->n = 0;
}

static void add_time(struct blocks_entry *e, struct slice at)
{
    if (at.n == 0 || at.n >= TIMESTAMP_MAX)
        return;
    if (e->first[0] == 0 || memcmp(at.p, e->first, at.n) < 0)
        memcpy(e->first, at.p, at.n);
    if (memcmp(at.p, e->last, at.n) > 0)
        memcpy(e->last, at.p, at.n);
}

static void add_line(struct log_blocks *b, struct blocks_entry *e, struct slice line)
{
    struct render_head h;
    struct slice part[2];
    if (line.n > RENDER_LINE_MAX || render_parse(line, &h) < 0)
        return;
    e->kinds |= 1U << h.kind;
    b->now = NULL;
    if (h.kind == RECORD_ADMITTED)
        b->now = open_request_terms_put(b->begun, h.channel, h.counter);
    else if (h.kind == RECORD_COMPLETED || h.kind == RECORD_ABORTED)
        add_end(b, e, &h);
    terms_line(line, add_term, b);
    set_term(b, terms_hash("id", terms_value(line, ",\"id\":")));
    add_time(e, terms_value(line, ",\"received\":"));
    ngrams_parts(line, part);
    ngrams_add(b->set, part[0]);
    ngrams_add(b->set, part[1]);
}

/* The set of the block at hand goes into its column. */
static void put_set(struct log_blocks *b)
{
    unsigned char bit = (unsigned char)(1U << b->n % 8);
    for (size_t i = 0; i < sizeof b->set; i++)
        for (unsigned bits = b->set[i]; bits; bits &= bits - 1)
            b->rows[8 * i + (size_t)__builtin_ctz(bits)][b->n / 8] |= bit;
    memset(b->set, 0, sizeof b->set);
}

static int put(struct log_blocks *b, const void *bytes, size_t n, struct err *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = write(b->fd, (const char *)bytes + at, n - at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_sys(err, "cannot write %s", b->temporary);
        at += (size_t)k;
    }
    return 0;
}

static int put_chapter(struct log_blocks *b, struct err *err)
{
    size_t width = (b->n + 7) / 8;
    struct blocks_head h = {
        .n = b->n, .stride = b->n < BLOCKS_SETS_FROM ? 0 : (uint32_t)width + BLOCKS_ROW_SUM};
    if (b->n == 0)
        return 0;
    memcpy(h.magic, magic, sizeof magic);
    h.sum = head_sum(&h, b->entry);
    unsigned char *to = b->rows[0]; /* rows move together in their own place */
    for (uint32_t i = 0; h.stride && i < NGRAM_BITS; i++, to += h.stride) {
        uint16_t sum = log_blocks_row_sum(i, b->rows[i], width);
        memmove(to, b->rows[i], width);
        memcpy(to + width, &sum, sizeof sum);
    }
    if (put(b, &h, sizeof h, err) < 0 || put(b, b->entry, b->n * sizeof *b->entry, err) < 0 ||
        put(b, b->rows[0], (size_t)h.stride * NGRAM_BITS, err) < 0)
        return -1;
    memset(b->rows, 0, sizeof b->rows);
    memset(b->entry, 0, sizeof b->entry);
    b->n = 0;
    return 0;
}

int log_blocks_add(struct log_blocks *b, struct slice lines, const struct span *where,
                   struct err *err)
{
    struct blocks_entry *e = &b->entry[b->n];
    e->where = *where;
    for (ssize_t nl; lines.n; lines.p += nl + 1, lines.n -= (size_t)nl + 1) {
        if ((nl = slice_find(lines, '\n')) < 0)
            break;
        add_line(b, e, (struct slice){lines.p, (size_t)nl});
    }
    put_set(b);
    return ++b->n == BLOCKS_CHAPTER ? put_chapter(b, err) : 0;
}

int log_blocks_finish(struct log_blocks *b, struct err *err)
{
    if (put_chapter(b, err) < 0)
        return -1;
    if (renameat(b->dirfd, b->temporary, b->dirfd, b->name) < 0)
        return err_sys(err, "cannot write %s", b->name);
    b->finished = true;
    return 0;
}

int log_blocks_make(int dirfd, const char *log, struct open_request_terms *begun, struct err *err)
{
    int fd = openat(dirfd, log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(err, "cannot open %s", log);
    struct block_source *s = block_source_new(fd);
    struct log_blocks *b = s ? log_blocks_new(dirfd, log, begun, err) : NULL;
    struct slice lines;
    struct span where;
    int r = b ? 1 : -1, got = 0;
    while (r > 0 && (got = block_source_next(s, &lines, &where)) > 0)
        r = log_blocks_add(b, lines, &where, err) < 0 ? -1 : 1;
    if (r > 0)
        r = got < 0 ? 0 : log_blocks_finish(b, err) < 0 ? -1 : 1;
    log_blocks_free(b);
    block_source_free(s);
    close(fd);
    return r;
}

bool log_blocks_exists(int dirfd, const char *log)
{
    char name[BLOCKS_NAME_MAX];
    struct stat st;
    log_blocks_name(log, name);
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void log_blocks_remove(int dirfd, const char *log)
{
    char name[BLOCKS_NAME_MAX];
    log_blocks_name(log, name);
    unlinkat(dirfd, name, 0);
}
