/* Starts workers, at most WORKER_TABLE_MAX at once, and tells who asked. A removal is mostly done
 * at once, by taking the name away; the files go with the sweep that follows. */
#define _GNU_SOURCE 1
#include "worker_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "worker.h"
#include "proc.h"
#include "sandbox_spec.h"

enum {
    WORKER_TABLE_MAX = 12,
    FORGOTTEN_MAX = 64, /* layers without a name that wait for the next sweep */
    LAST_MS = 5000,     /* for what is being swept at our end */
};

struct worker_row {
    LIST_ENTRY(worker_row) link;
    struct worker_table *worker_table;
    void *requester; /* NULL: our own */
    struct worker *worker;
    uint32_t req;
};

struct worker_table {
    struct event_base *base;
    struct worker_place at;
    void (*tell)(void *requester, uint32_t req, enum layer_result result, const char *text);
    unsigned n;
    unsigned forgotten; /* since the sweep that is under way began, or the last one */
    bool sweeping;
    LIST_HEAD(, worker_row) list;
};

struct worker_table *worker_table_new(struct event_base *base, const struct worker_place *at,
                                      void (*tell)(void *requester, uint32_t req,
                                                   enum layer_result result, const char *text))
{
    struct worker_table *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->base = base;
    c->at = *at;
    c->tell = tell;
    return c;
}

static void release(struct worker_row *c)
{
    LIST_REMOVE(c, link);
    c->worker_table->n--;
    free(c);
}

static void give_up(struct worker_row *c)
{
    worker_abandon(c->worker);
    release(c);
}

void worker_table_free(struct worker_table *c)
{
    if (c == NULL)
        return;
    struct worker_row *each;
    while ((each = LIST_FIRST(&c->list)) != NULL) {
        if (each->requester == NULL) {
            worker_finish(each->worker, LAST_MS);
            release(each);
        } else {
            give_up(each);
        }
    }
    free(c);
}

static void on_worker(void *arg, enum layer_result result, const char *text)
{
    struct worker_row *c = arg;
    struct worker_table *all = c->worker_table;
    bool own = c->requester == NULL;
    if (c->requester)
        all->tell(c->requester, c->req, result, text);
    else if (result != LAYER_DONE)
        proc_log("what was left of sandboxes' files cannot be removed: %s", text);
    release(c);
    if (own)
        all->sweeping = false;
    if (own && all->forgotten)
        worker_table_sweep(all);
}

static int start(struct worker_table *all, void *requester, uint32_t req, enum layer_op op,
                 const char *from, const char *to, const struct layer_stream *stream)
{
    struct worker_row *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -1;
    c->worker_table = all;
    c->requester = requester;
    c->req = req;
    c->worker = worker_start(all->base, &all->at, op, from, to, stream, on_worker, c);
    if (c->worker == NULL) {
        free(c);
        return -1;
    }
    LIST_INSERT_HEAD(&all->list, c, link);
    all->n++;
    return 0;
}

void worker_table_start(struct worker_table *c, void *requester, uint32_t req, enum layer_op op,
                        const char *from, const char *to, const struct layer_stream *stream)
{
    if (layer_removes(op) && c->forgotten < FORGOTTEN_MAX &&
        layer_forget(c->at.state_dir, op, from) == LAYER_DONE) {
        c->forgotten++;
        worker_table_sweep(c);
        c->tell(requester, req, LAYER_DONE, "");
        return;
    }
    if (c->n >= WORKER_TABLE_MAX || start(c, requester, req, op, from, to, stream) < 0)
        c->tell(requester, req, LAYER_FAILED, "too much is being copied already");
}

int worker_table_read(struct worker_table *c, void *requester, uint32_t req, enum layer_op op,
                      const char *from, const char *to, struct msg *m)
{
    struct layer_stream s;
    uint32_t uid, gid;
    bool out = op != LAYER_IMPORT;
    if (!sandbox_spec_name_ok(out ? from : to) || (out ? to : from)[0] != '\0' ||
        msg_get_str(m, s.about, sizeof s.about) < 0 || msg_get_u32(m, &uid) < 0 ||
        msg_get_u32(m, &gid) < 0 || msg_get_fd(m, &s.fd) < 0)
        return -1;
    s.uid = uid;
    s.gid = gid;
    int r = msg_end(m);
    if (r == 0)
        worker_table_start(c, requester, req, op, from, to, &s);
    close(s.fd); /* the worker has its own */
    return r;
}

/* Has anything ever been kept there? */
static bool is_used(const char *state_dir)
{
    static const char *const below[] = {"sandboxes", "snapshots", "volumes"};
    int fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool used = fd < 0; /* the worker says why */
    for (size_t i = 0; i < ARRAY_LEN(below) && !used; i++)
        used = faccessat(fd, below[i], F_OK, 0) == 0;
    if (fd >= 0)
        close(fd);
    return used;
}

void worker_table_sweep(struct worker_table *c)
{
    if (c->sweeping || !is_used(c->at.state_dir))
        return; /* another follows it; or there is nothing */
    if (start(c, NULL, 0, LAYER_SWEEP, "", "", NULL) < 0)
        return; /* the next one finds it */
    c->sweeping = true;
    c->forgotten = 0;
}

void worker_table_drop(struct worker_table *c, const void *requester)
{
    bool any = false;
    for (struct worker_row *each = LIST_FIRST(&c->list), *next; each; each = next) {
        next = LIST_NEXT(each, link);
        if (each->requester != requester)
            continue;
        give_up(each);
        any = true;
    }
    if (any) {
        c->forgotten++; /* if one is under way, another has to follow */
        worker_table_sweep(c);
    }
}
