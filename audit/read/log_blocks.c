/* Makes the index of blocks: collects what each block holds as a column of bits, and writes a
 * chapter out by rows, so that a query reads a row for each term. block_plan.c reads it. */
#include "log_blocks.h"

#include "index_file.h"
#include "ngrams.h"
#include "render.h"
#include "terms.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROW = BLOCKS_CHAPTER / 8 };

static const char magic[INDEX_MAGIC] = "durward blocks 2";

struct log_blocks {
    struct index_file file;
    uint32_t n;                       /* blocks of this chapter */
    struct open_request_terms *begun; /* the owner's, who has it for the next file, too */
    struct begun *now;                /* of the line at hand */
    struct blocks_entry entry[BLOCKS_CHAPTER];
    unsigned char set[NGRAM_BITS / 8]; /* of the block at hand */
    unsigned char rows[NGRAM_BITS][ROW + BLOCKS_ROW_SUM];
};

/* ---- the form ---- */

static uint64_t head_sum(const struct blocks_head *h, const struct blocks_entry *entries)
{
    uint64_t sum = terms_sum(h->n * UINT64_C(65537) + h->stride, magic, sizeof magic);
    return terms_sum(sum, entries, h->n * sizeof *entries);
}

bool log_blocks_head_good(const struct blocks_head *h, const struct blocks_entry *entries)
{
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->sum == head_sum(h, entries);
}

uint16_t log_blocks_row_sum(uint32_t row, const unsigned char *bits, size_t n)
{
    uint64_t h = terms_sum(row, bits, n);
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
    b->begun = begun;
    if (index_file_begin(&b->file, dirfd, log, BLOCKS_ENDING, err) == 0)
        return b;
    free(b);
    return NULL;
}

void log_blocks_free(struct log_blocks *b)
{
    if (b == NULL)
        return;
    index_file_close(&b->file);
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
    struct terms_marks marks = terms_line(line, add_term, b);
    set_term(b, terms_hash("id", marks.id));
    index_file_times(e->first, e->last, marks.received);
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
    if (index_file_put(&b->file, &h, sizeof h, err) < 0 ||
        index_file_put(&b->file, b->entry, b->n * sizeof *b->entry, err) < 0 ||
        index_file_put(&b->file, b->rows[0], (size_t)h.stride * NGRAM_BITS, err) < 0)
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
    return put_chapter(b, err) < 0 ? -1 : index_file_finish(&b->file, err);
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
    return index_file_exists(dirfd, log, BLOCKS_ENDING, magic);
}

void log_blocks_remove(int dirfd, const char *log)
{
    index_file_remove(dirfd, log, BLOCKS_ENDING);
}
