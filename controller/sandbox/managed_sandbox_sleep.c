/* Managed sandboxes that do not run for a while: paused by the host's freezer, or stopped, and
 * resumed. */
#include "managed_sandbox_internal.h"

#include <stdio.h>

#include "layer_queue.h"
#include "proc.h"

bool managed_sandbox_awake(const struct managed_sandbox *r)
{
    return r->state == MANAGED_SANDBOX_RUNNING && !r->pausing;
}

/* ---- pause ---- */

static void on_frozen(void *arg, enum layer_result result, const char *text)
{
    struct managed_sandbox *r = arg;
    struct err err = {0};
    bool wanted = r->wanted;
    r->pausing = r->wanted = false;
    if (r->state != MANAGED_SANDBOX_RUNNING)
        return; /* it ended meanwhile, which was told */
    if (result != LAYER_DONE) {
        controller_note(r->controller, r->id, "sandbox_not_paused", text);
        managed_sandbox_tell(&r->running, r, "");
        managed_sandbox_tell(&r->paused, NULL, text);
        return;
    }
    managed_sandbox_set_state(r, MANAGED_SANDBOX_PAUSED);
    controller_note(r->controller, r->id, "sandbox_paused", "");
    managed_sandbox_tell(&r->paused, r, "");
    if (wanted && managed_sandbox_wake(r, &err) < 0)
        managed_sandbox_tell(&r->running, NULL, err.text);
}

int managed_sandbox_pause(struct managed_sandbox *r, managed_sandbox_fn fn, void *arg,
                          struct err *err)
{
    if (r->state == MANAGED_SANDBOX_PAUSED) {
        if (fn)
            fn(arg, r, "");
        return 0;
    }
    if (r->state != MANAGED_SANDBOX_RUNNING || r->sandbox == NULL)
        return err_set(err, ERR_UNREADY, "the sandbox is %s", managed_sandbox_state_name(r->state));
    if (fn && managed_sandbox_wait_in(&r->paused, fn, arg) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (r->pausing)
        return 0;
    r->pausing = true;
    if (layer_queue_freeze(r->controller->layers, r->id, true, on_frozen, r) < 0)
        on_frozen(r, LAYER_FAILED, "the builder is not there");
    return 0;
}

/* ---- stop ---- */

int managed_sandbox_stop(struct managed_sandbox *r, const char *why, managed_sandbox_fn fn,
                         void *arg, struct err *err)
{
    if (r->state == MANAGED_SANDBOX_STOPPED) {
        if (fn)
            fn(arg, r, "");
        return 0;
    }
    if (r->sandbox == NULL || r->state == MANAGED_SANDBOX_STOPPING ||
        r->state == MANAGED_SANDBOX_CREATING)
        return err_set(err, ERR_UNREADY, "the sandbox is %s", managed_sandbox_state_name(r->state));
    if (r->pod)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a pod is stopped by its cluster; deleted here, it has no way "
                       "out any more");
    if (fn && managed_sandbox_wait_in(&r->stopped, fn, arg) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    sandbox_end(r->sandbox, 0, why);
    return 0;
}

/* ---- resume ---- */

static void on_thawed(void *arg, enum layer_result result, const char *text)
{
    struct managed_sandbox *r = arg;
    if (r->state != MANAGED_SANDBOX_RESUMING)
        return;
    r->wanted = false;
    managed_sandbox_set_state(r, result == LAYER_DONE ? MANAGED_SANDBOX_RUNNING
                                                      : MANAGED_SANDBOX_PAUSED);
    if (result == LAYER_DONE)
        controller_note(r->controller, r->id, "sandbox_resumed", "");
    managed_sandbox_used(r);
    managed_sandbox_tell(&r->running, result == LAYER_DONE ? r : NULL, text);
}

/* Above the files that it has. */
static int start_again(struct managed_sandbox *r, struct err *err)
{
    if (!r->kept && !r->pod)
        return err_set(err, ERR_UNREADY, "the sandbox is stopped, and its files were not kept");
    bool asked = r->restoring[0] && r->restore.fn == NULL;
    if (r->busy && !asked)
        return err_set(err, ERR_UNREADY, "the sandbox's files are being replaced");
    managed_sandbox_set_state(r, MANAGED_SANDBOX_RESUMING);
    if (asked && !r->busy)
        managed_sandbox_confirm(r);
    if (asked)
        return 0; /* it begins when it is known which files it has */
    if (managed_sandbox_begin(r, false, err) == 0)
        return 0;
    snprintf(r->reason, sizeof r->reason, "%.255s", err->text);
    managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPED);
    err->code = ERR_UNREADY;
    return -1;
}

int managed_sandbox_wake(struct managed_sandbox *r, struct err *err)
{
    switch (r->state) {
    case MANAGED_SANDBOX_CREATING:
        return 0;
    case MANAGED_SANDBOX_RESUMING:
        r->wanted = r->wanted || r->adopted;
        return 0;
    case MANAGED_SANDBOX_RUNNING:
        r->wanted = r->pausing;
        return 0;
    case MANAGED_SANDBOX_STOPPED:
        return start_again(r, err);
    case MANAGED_SANDBOX_PAUSED:
        break;
    case MANAGED_SANDBOX_STOPPING:
        return err_set(err, ERR_UNREADY, "the sandbox is being deleted");
    }
    managed_sandbox_set_state(r, MANAGED_SANDBOX_RESUMING);
    r->wanted = true;
    if (layer_queue_freeze(r->controller->layers, r->id, false, on_thawed, r) < 0)
        on_thawed(r, LAYER_FAILED, "the builder is not there");
    return 0;
}
