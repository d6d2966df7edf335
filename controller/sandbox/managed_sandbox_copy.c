/* Managed sandboxes whose files come from elsewhere: a snapshot, or another managed sandbox. */
#include "managed_sandbox_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "layer_queue.h"
#include "proc.h"
#include "snapshot.h"

int managed_sandbox_has_files(const struct managed_sandbox *r, struct err *err)
{
    if (!r->kept)
        return err_set(err, ERR_UNREADY,
                       "unsupported: its files are in memory, as its policy limits them (disk)");
    if (r->busy || r->state == MANAGED_SANDBOX_CREATING || r->state == MANAGED_SANDBOX_STOPPING)
        return err_set(err, ERR_UNREADY, "the sandbox is %s",
                       r->busy ? "busy: its files are being copied"
                               : managed_sandbox_state_name(r->state));
    if (r->restoring[0])
        return err_set(err, ERR_UNREADY, "what became of its restoring is not known yet");
    return 0;
}

/* ---- a new one ---- */

/* Synthetic names are its files' too: what they remember goes on to mean what it did. */
static int take_names(struct managed_sandbox *r, struct err *err)
{
    struct registry *g = r->controller->registry;
    return r->parent[0] ? registry_name_copy(g, r->parent, r->id, err)
                        : registry_snapshot_names(g, r->snapshot, r->id, err);
}

static void on_copied(void *arg, enum layer_result result, const char *text)
{
    struct managed_sandbox *r = arg;
    struct err err = {0};
    r->busy = false;
    if (r->state == MANAGED_SANDBOX_STOPPING) {
        managed_sandbox_dispose(r);
        return;
    }
    if (result != LAYER_DONE) {
        managed_sandbox_fail(r, result == LAYER_ABSENT ? "the files to begin with are not there"
                                                       : text);
        return;
    }
    bool forked = r->parent[0] != '\0';
    controller_note(r->controller, r->id, forked ? "sandbox_forked" : "sandbox_restored",
                    forked ? r->parent : r->snapshot);
    if (take_names(r, &err) < 0 || managed_sandbox_begin(r, false, &err) < 0)
        managed_sandbox_fail(r, err.text);
}

int managed_sandbox_copy(struct managed_sandbox *r, const struct managed_sandbox_wish *w,
                         struct err *err)
{
    if (!r->kept)
        return err_set(err, ERR_UNREADY,
                       "unsupported: the policy limits files (disk), which are then in memory");
    if (w->parent && managed_sandbox_has_files(w->parent, err) < 0)
        return -1;
    r->busy = true;
    if (layer_queue_add(r->controller->layers, w->parent ? LAYER_FORK : LAYER_RESTORE,
                        w->parent ? w->parent->id : w->snapshot->layer.name, r->id, on_copied,
                        r) == 0)
        return 0;
    r->busy = false;
    return err_set(err, ERR_INTERNAL, "out of memory");
}

/* ---- one that is there ---- */

static void restored(struct managed_sandbox *r, struct managed_sandbox *ret, const char *why)
{
    managed_sandbox_fn fn = r->restore.fn;
    r->restore.fn = NULL;
    fn(r->restore.arg, ret, why);
}

static void on_awake(void *arg, struct managed_sandbox *r, const char *why)
{
    restored(arg, r, why);
}

/* What was filled for the former files is worth nothing beside these. The row last: until it is
 * written, a restoring is what it speaks of, and this is done again. */
static int become(struct managed_sandbox *r, struct err *err)
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
    if (managed_sandbox_row_save(r, err) == 0) {
        controller_note(r->controller, r->id, "sandbox_restored", r->snapshot);
        return 0;
    }
    memcpy(r->restoring, r->snapshot, sizeof r->restoring);
    memcpy(r->snapshot, former, sizeof r->snapshot); /* as the row has it: see on_confirmed */
    return -1;
}

/* Its files are what they were. */
static int remain(struct managed_sandbox *r, struct err *err)
{
    char snapshot[sizeof r->restoring];
    memcpy(snapshot, r->restoring, sizeof snapshot);
    r->restoring[0] = '\0';
    if (managed_sandbox_row_save(r, err) == 0)
        return 0;
    memcpy(r->restoring, snapshot, sizeof snapshot);
    return -1;
}

/* Whoever asked for the restoring is told; it runs again if it did. */
static void conclude(struct managed_sandbox *r, bool replaced, const char *text)
{
    struct err err = {0};
    if ((replaced ? become(r, &err) : remain(r, &err)) == 0 && !replaced)
        err_set(&err, ERR_SYS, "%s", text);
    else if (err.code == ERR_NONE && r->restore.again && managed_sandbox_wake(r, &err) == 0 &&
             managed_sandbox_await(r, on_awake, r) == 0)
        return;
    restored(r, err.code == ERR_NONE && !r->restore.again ? r : NULL, err.text);
    managed_sandbox_arm(r);
}

/* The same when it is a former controller who was asked. */
static void go_on(struct managed_sandbox *r, bool replaced)
{
    struct err err = {0};
    int bad = replaced ? become(r, &err) : remain(r, &err);
    if (r->state == MANAGED_SANDBOX_RESUMING &&
        (bad < 0 || managed_sandbox_begin(r, false, &err) < 0)) {
        snprintf(r->reason, sizeof r->reason, "%.255s", err.text);
        managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPED);
        managed_sandbox_tell(&r->running, NULL, err.text);
    } else if (bad < 0) {
        proc_log("%s: %s", r->id, err.text);
    }
    managed_sandbox_arm(r);
}

bool managed_sandbox_unsure(const struct managed_sandbox *r)
{
    bool still = r->state == MANAGED_SANDBOX_STOPPED || r->state == MANAGED_SANDBOX_RESUMING;
    return still && r->restoring[0] && !r->busy && r->restore.fn == NULL;
}

static void on_confirmed(void *arg, enum layer_result result, const char *text)
{
    struct managed_sandbox *r = arg;
    r->busy = false;
    if (r->state == MANAGED_SANDBOX_STOPPING) {
        if (r->restore.fn)
            restored(r, NULL, "the sandbox was deleted");
        managed_sandbox_dispose(r);
    } else if (result != LAYER_FAILED) {
        if (r->restore.fn)
            conclude(r, result == LAYER_DONE, r->restore.why);
        else
            go_on(r, result == LAYER_DONE);
    } else { /* it is asked again in a while, or by the next who wants it to run */
        proc_log("%s: whether it is restored is not known: %s", r->id, text);
        if (r->restore.fn)
            restored(r, NULL, r->restore.why);
        if (r->state == MANAGED_SANDBOX_RESUMING) {
            managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPED);
            managed_sandbox_tell(&r->running, NULL, text);
        }
        managed_sandbox_arm(r);
    }
}

void managed_sandbox_confirm(struct managed_sandbox *r)
{
    r->busy = true;
    if (layer_queue_add(r->controller->layers, LAYER_CONFIRM, r->id, r->restoring, on_confirmed,
                        r) < 0)
        on_confirmed(r, LAYER_FAILED, "out of memory");
}

static void on_replaced(void *arg, enum layer_result result, const char *text)
{
    struct managed_sandbox *r = arg;
    if (r->state != MANAGED_SANDBOX_STOPPING &&
        result == LAYER_FAILED) { /* perhaps its last word was lost */
        snprintf(r->restore.why, sizeof r->restore.why, "%.255s", text);
        managed_sandbox_confirm(r);
        return;
    }
    r->busy = false;
    if (r->state == MANAGED_SANDBOX_STOPPING) {
        restored(r, NULL, "the sandbox was deleted");
        managed_sandbox_dispose(r);
        return;
    }
    conclude(r, result == LAYER_DONE, "the snapshot is gone");
}

static void replace(struct managed_sandbox *r)
{
    struct err err = {0};
    memcpy(r->restoring, r->restore.snapshot, sizeof r->restoring);
    if (managed_sandbox_row_save(r, &err) < 0) {
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
    struct managed_sandbox *r = arg;
    r->busy = false;
    if (r->state == MANAGED_SANDBOX_STOPPING) {
        restored(r, NULL, "the sandbox was deleted");
        managed_sandbox_dispose(r);
    } else if (result == LAYER_FAILED) {
        restored(r, NULL, text);
        managed_sandbox_arm(r);
    } else {
        replace(r);
    }
}

/* Of the snapshot that it has already the files say so, whether or not they are replaced now. */
static void on_stopped(void *arg, struct managed_sandbox *r, const char *why)
{
    struct managed_sandbox *self = arg;
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

int managed_sandbox_restore(struct managed_sandbox *r, const struct snapshot *s,
                            managed_sandbox_fn fn, void *arg, struct err *err)
{
    if (managed_sandbox_has_files(r, err) < 0)
        return -1;
    if (r->restore.fn)
        return err_set(err, ERR_UNREADY, "the sandbox is being restored already");
    if (strcmp(r->image, s->image) != 0)
        return err_set(err, ERR_DENIED, "the snapshot is of the image '%s', the sandbox of '%s'",
                       s->image[0] ? s->image : "host", r->image[0] ? r->image : "host");
    r->restore.fn = fn;
    r->restore.arg = arg;
    r->restore.again = r->state != MANAGED_SANDBOX_STOPPED && r->state != MANAGED_SANDBOX_PAUSED;
    memcpy(r->restore.snapshot, s->layer.name, sizeof r->restore.snapshot);
    if (managed_sandbox_stop(r, "its files are being replaced", on_stopped, r, err) == 0)
        return 0;
    r->restore.fn = NULL;
    return -1;
}
