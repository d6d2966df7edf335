/* Residents that do not run for a while: paused by the host's freezer, or stopped, and resumed. */
#include "resident_internal.h"

#include <stdio.h>

#include "layer_queue.h"
#include "proc.h"

bool resident_awake(const struct resident *r)
{
    return r->state == RESIDENT_RUNNING && !r->pausing;
}

/* ---- pause ---- */

static void on_frozen(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    struct err err = {0};
    bool wanted = r->wanted;
    r->pausing = r->wanted = false;
    if (r->state != RESIDENT_RUNNING)
        return; /* it ended meanwhile, which was told */
    if (result != LAYER_DONE) {
        controller_note(r->controller, r->id, "sandbox_not_paused", text);
        resident_tell(&r->running, r, "");
        resident_tell(&r->paused, NULL, text);
        return;
    }
    resident_set_state(r, RESIDENT_PAUSED);
    controller_note(r->controller, r->id, "sandbox_paused", "");
    resident_tell(&r->paused, r, "");
    if (wanted && resident_wake(r, &err) < 0)
        resident_tell(&r->running, NULL, err.text);
}

int resident_pause(struct resident *r, resident_fn fn, void *arg, struct err *err)
{
    if (r->state == RESIDENT_PAUSED) {
        if (fn)
            fn(arg, r, "");
        return 0;
    }
    if (r->state != RESIDENT_RUNNING || r->sandbox == NULL)
        return err_set(err, ERR_UNREADY, "the sandbox is %s", resident_state_name(r->state));
    if (fn && resident_wait_in(&r->paused, fn, arg) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (r->pausing)
        return 0;
    r->pausing = true;
    if (layer_queue_freeze(r->controller->layers, r->id, true, on_frozen, r) < 0)
        on_frozen(r, LAYER_FAILED, "the builder is not there");
    return 0;
}

/* ---- stop ---- */

int resident_stop(struct resident *r, const char *why, resident_fn fn, void *arg, struct err *err)
{
    if (r->state == RESIDENT_STOPPED) {
        if (fn)
            fn(arg, r, "");
        return 0;
    }
    if (r->sandbox == NULL || r->state == RESIDENT_STOPPING || r->state == RESIDENT_CREATING)
        return err_set(err, ERR_UNREADY, "the sandbox is %s", resident_state_name(r->state));
    if (fn && resident_wait_in(&r->stopped, fn, arg) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    sandbox_end(r->sandbox, 0, why);
    return 0;
}

/* ---- resume ---- */

static void on_thawed(void *arg, enum layer_result result, const char *text)
{
    struct resident *r = arg;
    if (r->state != RESIDENT_RESUMING)
        return;
    resident_set_state(r, result == LAYER_DONE ? RESIDENT_RUNNING : RESIDENT_PAUSED);
    if (result == LAYER_DONE)
        controller_note(r->controller, r->id, "sandbox_resumed", "");
    resident_used(r);
    resident_tell(&r->running, result == LAYER_DONE ? r : NULL, text);
}

/* Above the files that it has. */
static int start_again(struct resident *r, struct err *err)
{
    if (!r->kept)
        return err_set(err, ERR_UNREADY, "the sandbox is stopped, and its files were not kept");
    bool asked = r->restoring[0] && r->restore.fn == NULL;
    if (r->busy && !asked)
        return err_set(err, ERR_UNREADY, "the sandbox's files are being replaced");
    resident_set_state(r, RESIDENT_RESUMING);
    if (asked && !r->busy)
        resident_confirm(r);
    if (asked)
        return 0; /* it begins when it is known which files it has */
    if (resident_begin(r, false, err) == 0)
        return 0;
    snprintf(r->reason, sizeof r->reason, "%.255s", err->text);
    resident_set_state(r, RESIDENT_STOPPED);
    err->code = ERR_UNREADY;
    return -1;
}

int resident_wake(struct resident *r, struct err *err)
{
    switch (r->state) {
    case RESIDENT_CREATING:
    case RESIDENT_RESUMING:
        return 0;
    case RESIDENT_RUNNING:
        r->wanted = r->pausing;
        return 0;
    case RESIDENT_STOPPED:
        return start_again(r, err);
    case RESIDENT_PAUSED:
        break;
    case RESIDENT_STOPPING:
        return err_set(err, ERR_UNREADY, "the sandbox is being deleted");
    }
    resident_set_state(r, RESIDENT_RESUMING);
    if (layer_queue_freeze(r->controller->layers, r->id, false, on_thawed, r) < 0)
        on_thawed(r, LAYER_FAILED, "the builder is not there");
    return 0;
}
