/* Goes along with verify.c's walk, with the heads sorted by the records that they say. */
#include "witness_log.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    const struct witness_known **at; /* by seq */
    size_t n, next;
    struct witness_log *ret;
    bool begun;
};

static int by_seq(const void *a, const void *b)
{
    const struct witness_known *x = *(const struct witness_known *const *)a,
                               *y = *(const struct witness_known *const *)b;
    return x->log.seq < y->log.seq ? -1 : x->log.seq > y->log.seq;
}

static void first_of(uint64_t *number, uint64_t *seq, const struct witness_known *k)
{
    if (*number && *number <= k->number)
        return;
    *number = k->number;
    *seq = k->log.seq;
}

static void on_line(void *arg, const struct chain *at)
{
    struct walk *w = arg;
    for (; !w->begun && w->next < w->n && w->at[w->next]->log.seq < at->seq; w->next++)
        w->ret->removed++;
    w->begun = true;
    w->ret->end = at->seq;
    for (; w->next < w->n && w->at[w->next]->log.seq == at->seq; w->next++) {
        const struct witness_known *k = w->at[w->next];
        if (memcmp(k->log.hash, at->hash, CHAIN_HASH) == 0)
            w->ret->held++;
        else
            first_of(&w->ret->forked, &w->ret->forked_seq, k);
    }
}

static void on_gap(void *arg, uint64_t first UNUSED, uint64_t last)
{
    struct walk *w = arg;
    w->begun = true;
    w->ret->end = last;
    for (; w->next < w->n && w->at[w->next]->log.seq <= last; w->next++)
        w->ret->removed++;
}

int witness_log_verify(int dirfd, const struct witness *w, size_t host, struct verify_result *v,
                       struct witness_log *ret)
{
    struct walk walk = {.ret = ret};
    const struct witness_known *known = witness_known(w, host, &walk.n);
    const struct verify_watch watch = {on_line, on_gap, &walk};
    memset(ret, 0, sizeof *ret);
    walk.at = calloc(walk.n + 1, sizeof(*walk.at));
    if (walk.at == NULL)
        return -1;
    for (size_t i = 0; i < walk.n; i++)
        walk.at[i] = &known[i];
    qsort(walk.at, walk.n, sizeof(*walk.at), by_seq);
    verify_dir_watched(dirfd, witness_key(w, host), NULL, &watch, v);
    /* where a line is broken nothing is said of what follows it */
    for (; (v->ok || v->line == 0) && walk.next < walk.n; walk.next++)
        first_of(&ret->cut, &ret->cut_seq, walk.at[walk.next]);
    free(walk.at);
    return 0;
}
