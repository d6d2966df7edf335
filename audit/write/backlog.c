/* Queues records that the journal does not take and tries again every 200 ms until it takes
 * them. */
#include "backlog.h"

#include <event2/event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "journal.h"

enum { RETRY_MS = 200 };

struct waiting {
    TAILQ_ENTRY(waiting) link;
    enum record_kind kind;
    bool cut;
    size_t n;
    unsigned char body[];
};

struct backlog {
    struct journal *journal;
    struct event *retry;
    size_t bytes;
    uint64_t lost;
    TAILQ_HEAD(, waiting) list;
};

static void drop(struct backlog *b, struct waiting *w)
{
    TAILQ_REMOVE(&b->list, w, link);
    b->bytes -= sizeof *w + w->n;
    free(w);
}

static int write_one(struct backlog *b, const struct waiting *w)
{
    struct record r;
    record_init(&r, w->kind, 0);
    r.cut = w->cut;
    r.n = w->n;
    memcpy(r.body, w->body, w->n);
    return journal_note(b->journal, &r);
}

static int write_lost(struct backlog *b)
{
    struct record r;
    if (b->lost == 0)
        return 0;
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, "records_lost");
    record_put_u64(&r, RF_COUNT, b->lost);
    if (journal_note(b->journal, &r) < 0)
        return -1;
    b->lost = 0;
    return 0;
}

/* -> whether nothing waits any more. */
static bool write_all(struct backlog *b)
{
    struct waiting *w;
    while ((w = TAILQ_FIRST(&b->list)) != NULL && write_one(b, w) == 0)
        drop(b, w);
    return w == NULL && write_lost(b) == 0;
}

void backlog_write(struct backlog *b)
{
    struct timeval t = {0, RETRY_MS * 1000};
    if (!write_all(b))
        event_add(b->retry, &t);
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    backlog_write(arg);
}

static int keep(struct backlog *b, const struct record *r)
{
    size_t size = sizeof(struct waiting) + r->n;
    struct waiting *w = size <= BACKLOG_BYTES - b->bytes ? malloc(size) : NULL;
    if (w == NULL) {
        b->lost++;
        return -1;
    }
    w->kind = r->kind;
    w->cut = r->cut;
    w->n = r->n;
    memcpy(w->body, r->body, r->n);
    TAILQ_INSERT_TAIL(&b->list, w, link);
    b->bytes += size;
    return 0;
}

int backlog_note(struct backlog *b, const struct record *r)
{
    if (write_all(b) && journal_note(b->journal, r) == 0)
        return 0;
    int kept = keep(b, r);
    backlog_write(b); /* or it is tried again */
    return kept;
}

struct backlog *backlog_new(struct event_base *base, struct journal *journal)
{
    struct backlog *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    TAILQ_INIT(&b->list);
    b->journal = journal;
    b->retry = event_new(base, -1, 0, on_retry, b);
    if (b->retry == NULL) {
        free(b);
        return NULL;
    }
    return b;
}

void backlog_free(struct backlog *b)
{
    if (b == NULL)
        return;
    (void)write_all(b);
    while (!TAILQ_EMPTY(&b->list))
        drop(b, TAILQ_FIRST(&b->list));
    event_free(b->retry);
    free(b);
}
