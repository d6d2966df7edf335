/* Residents whose files come from elsewhere: a snapshot, or another resident. */
#include "resident_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "layer_queue.h"
#include "proc.h"
#include "snapshot.h"

int resident_has_files(const struct resident *r, struct err *err)
{
    if (!r->kept)
        return err_set(err, ERR_UNREADY,
                       "unsupported: its files are in memory, as its policy limits them (disk)");
    if (r->busy || r->state == RESIDENT_CREATING || r->state == RESIDENT_STOPPING)
        return err_set(err, ERR_UNREADY, "the sandbox is %s",
                       r->busy ? "busy: its files are being copied"
                               : resident_state_name(r->state));
    return 0;
}

/* ---- a new one ---- */

/* Synthetic names are its files' too: what they remember goes on to mean what it did. */
static int take_names(struct resident *r, struct err *err)
{
    struct registry *g = r->controller->registry;
    return r->parent[0] ? registry_name_copy(g, r->parent, r->id, err)
                        : registry_snapshot_names(g, r->snapshot, r->id, err);
}

static void on_copied(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    struct err err = {0};
    r->busy = false;
    if (r->state == RESIDENT_STOPPING) {
        resident_dispose(r);
        return;
    }
    if (result != LAYER_DONE) {
        resident_fail(r, result == LAYER_ABSENT ? "the files to begin with are not there" : text);
        return;
    }
    bool forked = r->parent[0] != '\0';
    controller_note(r->controller, r->id, forked ? "sandbox_forked" : "sandbox_restored",
                    forked ? r->parent : r->snapshot);
    if (take_names(r, &err) < 0 || resident_begin(r, false, &err) < 0)
        resident_fail(r, err.text);
}

int resident_copy(struct resident *r, const struct resident_wish *w, struct err *err)
{
    if (!r->kept)
        return err_set(err, ERR_UNREADY,
                       "unsupported: the policy limits files (disk), which are then in memory");
    if (w->parent && resident_has_files(w->parent, err) < 0)
        return -1;
    r->busy = true;
    if (layer_queue_add(r->controller->layers, w->parent ? LAYER_FORK : LAYER_RESTORE,
                        w->parent ? w->parent->id : w->snapshot->name, r->id, on_copied, r) == 0)
        return 0;
    r->busy = false;
    return err_set(err, ERR_INTERNAL, "out of memory");
}

/* ---- one that is there ---- */

static void restored(struct resident *r, struct resident *ret, const char *why)
{
    resident_fn fn = r->restore.fn;
    r->restore.fn = NULL;
    fn(r->restore.arg, ret, why);
}

static void on_awake(void *arg, struct resident *r, const char *why)
{
    restored(arg, r, why);
}

/* What was filled for the former files is worth nothing beside these. */
static int become(struct resident *r, struct err *err)
{
    if (getrandom(r->seed, sizeof r->seed, 0) != sizeof r->seed)
        return err_sys(err, "getrandom");
    memcpy(r->snapshot, r->restore.snapshot, sizeof r->snapshot);
    r->generation++;
    if (resident_row_save(r, err) < 0 ||
        registry_snapshot_names(r->controller->registry, r->snapshot, r->id, err) < 0)
        return -1;
    controller_note(r->controller, r->id, "sandbox_restored", r->snapshot);
    return 0;
}

static void on_replaced(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    struct err err = {0};
    r->busy = false;
    if (r->state == RESIDENT_STOPPING) {
        restored(r, NULL, "the sandbox was deleted");
        resident_dispose(r);
        return;
    }
    if (result != LAYER_DONE)
        err_set(&err, ERR_SYS, "%s", result == LAYER_ABSENT ? "the snapshot is gone" : text);
    else if (become(r, &err) == 0 && r->restore.again && resident_wake(r, &err) == 0 &&
             resident_await(r, on_awake, r) == 0)
        return;
    restored(r, err.code == ERR_NONE && !r->restore.again ? r : NULL, err.text);
}

static void on_stopped(void *arg, struct resident *r, const char *why)
{
    struct resident *self = arg;
    if (r == NULL) { /* deleted */
        restored(self, NULL, why);
        return;
    }
    r->busy = true;
    if (layer_queue_add(r->controller->layers, LAYER_REPLACE, r->restore.snapshot, r->id,
                        on_replaced, r) < 0)
        on_replaced(r, LAYER_FAILED, "out of memory");
}

int resident_restore(struct resident *r, const struct snapshot *s, resident_fn fn, void *arg,
                     struct err *err)
{
    if (resident_has_files(r, err) < 0)
        return -1;
    if (r->restore.fn)
        return err_set(err, ERR_UNREADY, "the sandbox is being restored already");
    if (strcmp(r->image, s->image) != 0)
        return err_set(err, ERR_DENIED, "the snapshot is of the image '%s', the sandbox of '%s'",
                       s->image[0] ? s->image : "host", r->image[0] ? r->image : "host");
    r->restore.fn = fn;
    r->restore.arg = arg;
    r->restore.again = r->state != RESIDENT_STOPPED && r->state != RESIDENT_PAUSED;
    memcpy(r->restore.snapshot, s->name, sizeof r->restore.snapshot);
    if (resident_stop(r, "its files are being replaced", on_stopped, r, err) == 0)
        return 0;
    r->restore.fn = NULL;
    return -1;
}
