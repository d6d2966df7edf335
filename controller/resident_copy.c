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
    if (r->restoring[0])
        return err_set(err, ERR_UNREADY, "what became of its restoring is not known yet");
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

/* What was filled for the former files is worth nothing beside these. The row last: until it is
 * written, a restoring is what it speaks of, and this is done again. */
static int become(struct resident *r, struct err *err)
{
    unsigned char seed[SANDBOX_SEED];
    if (getrandom(seed, sizeof seed, 0) != sizeof seed)
        return err_sys(err, "getrandom");
    if (registry_snapshot_names(r->controller->registry, r->restoring, r->id, err) < 0)
        return -1;
    char former[sizeof r->snapshot];
    memcpy(former, r->snapshot, sizeof former);
    memcpy(r->seed, seed, sizeof r->seed);
    memcpy(r->snapshot, r->restoring, sizeof r->snapshot);
    r->restoring[0] = '\0';
    r->generation++;
    if (resident_row_save(r, err) == 0) {
        controller_note(r->controller, r->id, "sandbox_restored", r->snapshot);
        return 0;
    }
    memcpy(r->restoring, r->snapshot, sizeof r->restoring);
    memcpy(r->snapshot, former, sizeof r->snapshot); /* as the row has it: see on_confirmed */
    return -1;
}

/* Its files are what they were. */
static int remain(struct resident *r, struct err *err)
{
    char snapshot[sizeof r->restoring];
    memcpy(snapshot, r->restoring, sizeof snapshot);
    r->restoring[0] = '\0';
    if (resident_row_save(r, err) == 0)
        return 0;
    memcpy(r->restoring, snapshot, sizeof snapshot);
    return -1;
}

/* Whoever asked for the restoring is told; it runs again if it did. */
static void conclude(struct resident *r, bool replaced, const char *text)
{
    struct err err = {0};
    if ((replaced ? become(r, &err) : remain(r, &err)) == 0 && !replaced)
        err_set(&err, ERR_SYS, "%s", text);
    else if (err.code == ERR_NONE && r->restore.again && resident_wake(r, &err) == 0 &&
             resident_await(r, on_awake, r) == 0)
        return;
    restored(r, err.code == ERR_NONE && !r->restore.again ? r : NULL, err.text);
    resident_arm(r);
}

/* The same when it is a former controller who was asked. */
static void go_on(struct resident *r, bool replaced)
{
    struct err err = {0};
    int bad = replaced ? become(r, &err) : remain(r, &err);
    if (r->state == RESIDENT_RESUMING && (bad < 0 || resident_begin(r, false, &err) < 0)) {
        snprintf(r->reason, sizeof r->reason, "%.255s", err.text);
        resident_set_state(r, RESIDENT_STOPPED);
        resident_tell(&r->running, NULL, err.text);
    } else if (bad < 0) {
        proc_log("%s: %s", r->id, err.text);
    }
    resident_arm(r);
}

bool resident_unsure(const struct resident *r)
{
    bool still = r->state == RESIDENT_STOPPED || r->state == RESIDENT_RESUMING;
    return still && r->restoring[0] && !r->busy && r->restore.fn == NULL;
}

static void on_confirmed(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    r->busy = false;
    if (r->state == RESIDENT_STOPPING) {
        if (r->restore.fn)
            restored(r, NULL, "the sandbox was deleted");
        resident_dispose(r);
    } else if (result != LAYER_FAILED) {
        if (r->restore.fn)
            conclude(r, result == LAYER_DONE, r->restore.why);
        else
            go_on(r, result == LAYER_DONE);
    } else { /* it is asked again in a while, or by the next who wants it to run */
        proc_log("%s: whether it is restored is not known: %s", r->id, text);
        if (r->restore.fn)
            restored(r, NULL, r->restore.why);
        if (r->state == RESIDENT_RESUMING) {
            resident_set_state(r, RESIDENT_STOPPED);
            resident_tell(&r->running, NULL, text);
        }
        resident_arm(r);
    }
}

void resident_confirm(struct resident *r)
{
    r->busy = true;
    if (layer_queue_add(r->controller->layers, LAYER_CONFIRM, r->id, r->restoring, on_confirmed,
                        r) < 0)
        on_confirmed(r, LAYER_FAILED, "out of memory");
}

static void on_replaced(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    if (r->state != RESIDENT_STOPPING &&
        result == LAYER_FAILED) { /* perhaps its last word was lost */
        snprintf(r->restore.why, sizeof r->restore.why, "%.255s", text);
        resident_confirm(r);
        return;
    }
    r->busy = false;
    if (r->state == RESIDENT_STOPPING) {
        restored(r, NULL, "the sandbox was deleted");
        resident_dispose(r);
        return;
    }
    conclude(r, result == LAYER_DONE, "the snapshot is gone");
}

static void replace(struct resident *r)
{
    struct err err = {0};
    memcpy(r->restoring, r->restore.snapshot, sizeof r->restoring);
    if (resident_row_save(r, &err) < 0) {
        r->restoring[0] = '\0';
        restored(r, NULL, err.text);
        return;
    }
    r->busy = true;
    if (layer_queue_add(r->controller->layers, LAYER_REPLACE, r->restore.snapshot, r->id,
                        on_replaced, r) < 0)
        on_replaced(r, LAYER_FAILED, "out of memory");
}

static void on_unmarked(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    r->busy = false;
    if (r->state == RESIDENT_STOPPING) {
        restored(r, NULL, "the sandbox was deleted");
        resident_dispose(r);
    } else if (result == LAYER_FAILED) {
        restored(r, NULL, text);
        resident_arm(r);
    } else {
        replace(r);
    }
}

/* Of the snapshot that it has already the files say so, whether or not they are replaced now. */
static void on_stopped(void *arg, struct resident *r, const char *why)
{
    struct resident *self = arg;
    if (r == NULL) { /* deleted */
        restored(self, NULL, why);
        return;
    }
    if (strcmp(r->snapshot, r->restore.snapshot) != 0) {
        replace(r);
        return;
    }
    r->busy = true;
    if (layer_queue_add(r->controller->layers, LAYER_UNMARK, r->id, r->snapshot, on_unmarked, r) <
        0)
        on_unmarked(r, LAYER_FAILED, "out of memory");
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
