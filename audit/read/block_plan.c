/* Asks a file's index of blocks which of them to read. For each term or piece of text that the
 * filter wants it reads a row of bits and rules out the blocks that lack it. */
#include "block_plan.h"

#include "index_file.h"
#include "ngrams.h"
#include "timestamp.h"
#include "terms.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct question {
    struct terms_wanted terms;
    size_t n_ngrams;
    uint32_t ngram[NGRAMS_WANTED];
    unsigned kinds;
    char since[TIMESTAMP_MAX], until[TIMESTAMP_MAX]; /* "": any time */
};

struct reading {
    int fd;
    off_t at; /* of the rows of the chapter at hand */
    struct blocks_head head;
    struct blocks_entry entry[BLOCKS_CHAPTER];
};

typedef unsigned char columns[BLOCKS_CHAPTER / 8]; /* a bit a block */

static void ask(struct question *q, const struct query_filter *f)
{
    terms_filter(f, &q->terms);
    q->n_ngrams = f->text ? ngrams_wanted(slice_str(f->text), q->ngram) : 0;
    q->kinds = f->kinds;
    q->since[0] = q->until[0] = 0;
    if (f->since)
        timestamp_text(f->since, q->since, sizeof q->since);
    if (f->until)
        timestamp_text(f->until, q->until, sizeof q->until);
}

/* The blocks that have not this bit fall out of `set`. A row that is damaged says nothing. */
static void and_row(const struct reading *r, uint32_t row, columns set)
{
    unsigned char bytes[BLOCKS_CHAPTER / 8 + BLOCKS_ROW_SUM];
    size_t stride = r->head.stride, width = stride - BLOCKS_ROW_SUM;
    uint16_t sum;
    if (pread(r->fd, bytes, stride, r->at + (off_t)(row * stride)) != (ssize_t)stride)
        return;
    memcpy(&sum, bytes + width, sizeof sum);
    if (sum != log_blocks_row_sum(row, bytes, width))
        return;
    for (size_t i = 0; i < width; i++)
        set[i] &= bytes[i];
}

static void and_terms(const struct reading *r, const uint64_t *term, size_t n, columns set)
{
    uint32_t row[BLOCKS_TERM_ROWS];
    for (size_t i = 0; i < n; i++) {
        log_blocks_rows(term[i], row);
        for (int k = 0; k < BLOCKS_TERM_ROWS; k++)
            and_row(r, row[k], set);
    }
}

static bool own_may(const struct question *q, const struct blocks_entry *e)
{
    return (q->kinds == 0 || (q->kinds & e->kinds)) &&
           (q->since[0] == 0 || strcmp(e->last, q->since) >= 0) &&
           (q->until[0] == 0 || strcmp(e->first, q->until) < 0);
}

static bool bit(const columns set, uint32_t i)
{
    return set[i / 8] >> i % 8 & 1;
}

static int add_chapter(struct block_plan *p, const struct reading *r, const struct question *q)
{
    columns request, own;
    void *more = realloc(p->at, (p->n + r->head.n) * sizeof *p->at);
    if (more == NULL)
        return -1;
    p->at = more;
    memset(request, 0xff, sizeof request);
    memset(own, 0xff, sizeof own);
    if (r->head.stride) {
        and_terms(r, q->terms.request, q->terms.n_request, request);
        and_terms(r, q->terms.own, q->terms.n_own, own);
        for (size_t i = 0; i < q->n_ngrams; i++)
            and_row(r, q->ngram[i], own);
    }
    for (uint32_t i = 0; i < r->head.n; i++) {
        const struct blocks_entry *e = &r->entry[i];
        bool of_request = bit(request, i), loose = e->flags & BLOCK_LOOSE;
        unsigned flags = of_request ? PLAN_REQUEST : 0;
        if ((of_request || loose) && bit(own, i) && own_may(q, e))
            flags |= PLAN_MATCH;
        if (q->since[0] && strcmp(e->last, q->since) < 0)
            flags |= PLAN_BEFORE;
        p->at[p->n++] = (struct planned_block){e->where, flags};
    }
    return 0;
}

/* 1; 0 at the end; -1 for what is no good chapter. */
static int read_chapter(struct reading *r, off_t *at)
{
    ssize_t n = pread(r->fd, &r->head, sizeof r->head, *at);
    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof r->head || r->head.n == 0 || r->head.n > BLOCKS_CHAPTER ||
        (r->head.stride && r->head.stride != (r->head.n + 7) / 8 + BLOCKS_ROW_SUM))
        return -1;
    size_t size = r->head.n * sizeof *r->entry;
    if (pread(r->fd, r->entry, size, *at + (off_t)sizeof r->head) != (ssize_t)size ||
        !log_blocks_head_good(&r->head, r->entry))
        return -1;
    for (uint32_t i = 0; i < r->head.n; i++)
        if (r->entry[i].first[TIMESTAMP_MAX - 1] || r->entry[i].last[TIMESTAMP_MAX - 1])
            return -1;
    r->at = *at + (off_t)(sizeof r->head + size);
    *at = r->at + (off_t)r->head.stride * NGRAM_BITS;
    return 1;
}

/* The blocks follow each other from the beginning, as in a file of this kind. */
static bool whole(const struct block_plan *p, bool packed)
{
    uint64_t plain = 0, file = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct span *s = &p->at[i].where;
        if (s->plain_at != plain || s->plain_n == 0 || s->plain_n > BLOCK_MAX ||
            (packed && (s->packed_at != file || s->packed_n == 0)))
            return false;
        plain += s->plain_n;
        file += s->packed_n;
    }
    return p->n > 0;
}

int block_plan_load(struct block_plan *p, int dirfd, const char *log, bool packed,
                    const struct query_filter *f)
{
    char name[INDEX_NAME_MAX];
    struct question q;
    off_t at = 0;
    int got = -1, r = 0;
    *p = (struct block_plan){0};
    index_file_name(log, BLOCKS_ENDING, name);
    struct reading *reading = malloc(sizeof *reading);
    if (reading == NULL)
        return -1;
    ask(&q, f);
    reading->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    while (reading->fd >= 0 && r == 0 && (got = read_chapter(reading, &at)) > 0)
        r = add_chapter(p, reading, &q);
    if (reading->fd >= 0)
        close(reading->fd);
    free(reading);
    if (r == 0 && got == 0 && whole(p, packed))
        return 1;
    block_plan_done(p);
    return r;
}

int block_plan_all(struct block_plan *p, uint64_t size)
{
    size_t n = (size_t)((size + BLOCK_STEP - 1) / BLOCK_STEP);
    *p = (struct block_plan){.n = n, .at = calloc(n ? n : 1, sizeof *p->at)};
    if (p->at == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        uint64_t from = (uint64_t)i * BLOCK_STEP, left = size - from;
        p->at[i].where = (struct span){.plain_at = from,
                                       .plain_n = left < BLOCK_STEP ? (uint32_t)left : BLOCK_STEP};
        p->at[i].flags = PLAN_MATCH | PLAN_REQUEST;
    }
    return 1;
}

void block_plan_done(struct block_plan *p)
{
    free(p->at);
    *p = (struct block_plan){0};
}
