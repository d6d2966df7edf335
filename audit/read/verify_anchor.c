/* Reads an anchor's checkpoints, sorts them by seq, and marks each that the walk of verify.c finds
 * in the log. */
#include "verify_anchor.h"

#include "checkpoint.h"
#include "line_reader.h"

#include <stdlib.h>
#include <string.h>

enum { CHECKPOINTS_MAX = 1 << 24 };

struct kept {
    uint64_t seq;
    unsigned char hash[CHAIN_HASH];
    bool seen;
};

struct verify_anchor {
    struct kept *at; /* by seq once all are read */
    size_t n, room;
};

static int by_seq(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int keep(struct verify_anchor *a, struct slice line, const struct signing_key *key,
                struct err *err)
{
    struct checkpoint c;
    ssize_t brace = slice_find(line, '{');
    if (brace < 0)
        return 0;
    line.p += brace;
    line.n -= (size_t)brace;
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
    *k = (struct kept){.seq = c.last + 1};
    return chain_hash(line, k->hash) < 0 ? err_set(err, ERR_INTERNAL, "SHA-256 failed") : 0;
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
    if (r < 0) {
        verify_anchor_free(a);
        return NULL;
    }
    qsort(a->at, a->n, sizeof *a->at, by_seq);
    return a;
}

void verify_anchor_free(struct verify_anchor *a)
{
    if (a)
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

bool verify_anchor_missing(const struct verify_anchor *a, uint64_t first, uint64_t *seq)
{
    for (size_t i = 0; i < a->n; i++)
        if (!a->at[i].seen && a->at[i].seq >= first) {
            *seq = a->at[i].seq;
            return true;
        }
    return false;
}
