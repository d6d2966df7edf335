#include "chores.h"

#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "errand.h"
#include "proc.h"
#include "shape.h"

enum {
    CHORES_MAX = 12,
    FORGOTTEN_MAX = 64, /* layers without a name that wait for the next sweep */
    LAST_MS = 5000,     /* for what is being swept at our end */
};

struct chore {
    LIST_ENTRY(chore) link;
    struct chores *chores;
    void *asker; /* NULL: our own */
    struct errand *errand;
    uint32_t req;
};

struct chores {
    struct event_base *base;
    const char *state_dir;
    void (*tell)(void *asker, uint32_t req, enum layer_result result, const char *text);
    unsigned n;
    unsigned forgotten; /* since the sweep that is under way began, or the last one */
    bool sweeping;
    LIST_HEAD(, chore) list;
};

struct chores *chores_new(struct event_base *base, const char *state_dir,
                          void (*tell)(void *asker, uint32_t req, enum layer_result result,
                                       const char *text))
{
    struct chores *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->base = base;
    c->state_dir = state_dir;
    c->tell = tell;
    return c;
}

static void release(struct chore *c)
{
    LIST_REMOVE(c, link);
    c->chores->n--;
    free(c);
}

static void give_up(struct chore *c)
{
    errand_abandon(c->errand);
    release(c);
}

void chores_free(struct chores *c)
{
    if (c == NULL)
        return;
    struct chore *each;
    while ((each = LIST_FIRST(&c->list)) != NULL) {
        if (each->asker == NULL) {
            errand_finish(each->errand, LAST_MS);
            release(each);
        } else {
            give_up(each);
        }
    }
    free(c);
}

static void on_errand(void *arg, enum layer_result result, const char *text)
{
    struct chore *c = arg;
    struct chores *all = c->chores;
    bool own = c->asker == NULL;
    if (c->asker)
        all->tell(c->asker, c->req, result, text);
    else if (result != LAYER_DONE)
        proc_log("what was left of sandboxes' files cannot be removed: %s", text);
    release(c);
    if (own)
        all->sweeping = false;
    if (own && all->forgotten)
        chores_sweep(all);
}

static int start(struct chores *all, void *asker, uint32_t req, enum layer_op op, const char *from,
                 const char *to, const struct layer_stream *stream)
{
    struct chore *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -1;
    c->chores = all;
    c->asker = asker;
    c->req = req;
    c->errand = errand_start(all->base, all->state_dir, op, from, to, stream, on_errand, c);
    if (c->errand == NULL) {
        free(c);
        return -1;
    }
    LIST_INSERT_HEAD(&all->list, c, link);
    all->n++;
    return 0;
}

void chores_start(struct chores *c, void *asker, uint32_t req, enum layer_op op, const char *from,
                  const char *to, const struct layer_stream *stream)
{
    bool removes = op == LAYER_REMOVE || op == LAYER_REMOVE_SNAPSHOT;
    if (removes && c->forgotten < FORGOTTEN_MAX &&
        layer_forget(c->state_dir, op, from) == LAYER_DONE) {
        c->forgotten++;
        chores_sweep(c);
        c->tell(asker, req, LAYER_DONE, "");
        return;
    }
    if (c->n >= CHORES_MAX || start(c, asker, req, op, from, to, stream) < 0)
        c->tell(asker, req, LAYER_FAILED, "too much is being copied already");
}

int chores_read(struct chores *c, void *asker, uint32_t req, enum layer_op op, const char *from,
                const char *to, struct msg *m)
{
    struct layer_stream s;
    uint32_t uid, gid;
    bool out = op == LAYER_EXPORT;
    if (!shape_name_ok(out ? from : to) || (out ? to : from)[0] != '\0' ||
        msg_get_str(m, s.about, sizeof s.about) < 0 || msg_get_u32(m, &uid) < 0 ||
        msg_get_u32(m, &gid) < 0 || msg_get_fd(m, &s.fd) < 0)
        return -1;
    s.uid = uid;
    s.gid = gid;
    int r = msg_end(m);
    if (r == 0)
        chores_start(c, asker, req, op, from, to, &s);
    close(s.fd); /* the errand has its own */
    return r;
}

void chores_sweep(struct chores *c)
{
    if (c->sweeping)
        return; /* another follows it */
    if (start(c, NULL, 0, LAYER_SWEEP, "", "", NULL) < 0)
        return; /* the next one finds it */
    c->sweeping = true;
    c->forgotten = 0;
}

void chores_drop(struct chores *c, const void *asker)
{
    bool any = false;
    for (struct chore *each = LIST_FIRST(&c->list), *next; each; each = next) {
        next = LIST_NEXT(each, link);
        if (each->asker != asker)
            continue;
        give_up(each);
        any = true;
    }
    if (any) {
        c->forgotten++; /* if one is under way, another has to follow */
        chores_sweep(c);
    }
}
