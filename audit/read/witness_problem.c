/* One sentence for each kind of fault and doubt. */
#include "witness_problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct telling {
    witness_problem_fn fn;
    void *arg;
};

static void tell(const struct telling *t, size_t host, const char *what, const char *fmt, ...)
    PRINTF(4, 5);
static void tell(const struct telling *t, size_t host, const char *what, const char *fmt, ...)
{
    char text[WITNESS_PROBLEM_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->fn(t->arg, host, what, text);
}

static void on_fault(void *arg, size_t host, const struct witness_fault *f)
{
    const struct telling *t = arg;
    unsigned long long n = f->number, last = f->last;
    switch (f->kind) {
    case FAULT_NONE:
        tell(t, host, "unknown", "no head of it is known here");
        break;
    case FAULT_MISSING:
        tell(t, host, "missing", "heads %llu to %llu are missing", n, last);
        break;
    case FAULT_UNSEEN:
        tell(t, host, "missing", "head %llu is missing, which %s has seen", n, f->by);
        break;
    case FAULT_FORKED:
        tell(t, host, "forked", "it signed two heads %llu that differ", n);
        break;
    case FAULT_BACK:
        tell(t, host, "rolled_back",
             "its log went back: head %llu says less, or another record, than the one before", n);
        break;
    case FAULT_ANEW:
        tell(t, host, "rolled_back",
             "it says with head %llu that its log is not the one of the head before", n);
        break;
    }
}

/* What another one says of it in its latest head. */
static void tell_doubts(const struct telling *t, const struct witness *w, size_t host,
                        const struct fleet_head *by)
{
    for (size_t i = 0; by && i < by->n_doubts; i++) {
        const struct fleet_doubt *d = &by->doubt[i];
        if (strcmp(d->host, witness_name(w, host)) != 0)
            continue;
        if (d->kind == DOUBT_FORKED)
            tell(t, host, "forked", "%s has two heads %llu of it that differ", by->host,
                 (unsigned long long)d->number);
        else
            tell(t, host, fleet_doubt_word(d->kind), "head %llu is %s in the database, says %s",
                 (unsigned long long)d->number, fleet_doubt_word(d->kind), by->host);
    }
}

void witness_problems(const struct witness *w, size_t host, witness_problem_fn fn, void *arg)
{
    struct telling t = {fn, arg};
    witness_faults(w, host, on_fault, &t);
    for (size_t i = 0; i < witness_hosts(w); i++)
        tell_doubts(&t, w, host, witness_latest(w, i));
}

void witness_silence(const struct witness *w, size_t host, uint64_t now, uint64_t silent,
                     witness_problem_fn fn, void *arg)
{
    struct telling t = {fn, arg};
    char since[TIMESTAMP_MAX];
    uint64_t heard = witness_heard(w, host), number;
    if (heard && heard + silent < now)
        tell(&t, host, "silent", "nothing was heard of it since %s",
             timestamp_text(heard, since, sizeof since));
    for (size_t i = 0; i < witness_hosts(w); i++)
        if (witness_misses(w, host, i, silent, &number))
            tell(&t, host, "unseen", "%s has seen none of its heads since %llu", witness_name(w, i),
                 (unsigned long long)number);
}
