/* What a threshold of `audit.notify` asks to be done to a sandbox. Where it cannot be paused (there
 * is no freezer, or it is the one of `durward run`) it is ended: what was asked for is that it
 * stops. */
#include "controller_internal.h"
#include "identities.h"
#include "proc.h"
#include "managed_sandbox.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 256 };

struct pausing {
    struct controller *controller;
    uint32_t number;
    char sandbox[SANDBOX_ID_MAX + 1], why[WHY_MAX];
};

static void acted(struct controller *c, uint32_t number)
{
    struct msg m;
    msg_init(&m, W_ACTED);
    msg_put_u32(&m, number);
    ipc_send(c->owner.parent, &m);
}

static void on_paused(void *arg, struct managed_sandbox *r, const char *why)
{
    struct pausing *p = arg;
    struct sandbox *s = r ? NULL : sandbox_find(&p->controller->owner, p->sandbox);
    if (s) {
        char text[2 * WHY_MAX];
        snprintf(text, sizeof text, "%s; it could not be paused: %s", p->why, why);
        controller_kill(p->controller, s, text);
    }
    acted(p->controller, p->number);
    free(p);
}

/* 0: on_paused will be called, or was. */
static int pause_it(struct controller *c, struct managed_sandbox *r, uint32_t number,
                    const char *why)
{
    struct err err = {0};
    struct pausing *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -1;
    r->auto_resume = false; /* what it is asked for next would wake it */
    p->controller = c;
    p->number = number;
    snprintf(p->sandbox, sizeof p->sandbox, "%s", r->id);
    snprintf(p->why, sizeof p->why, "%s", why);
    if (managed_sandbox_pause(r, on_paused, p, &err) == 0)
        return 0;
    free(p);
    return -1;
}

static void act(struct controller *c, uint32_t number, const char *id, const char *policy,
                enum notify_then then, const char *why)
{
    struct err err = {0};
    struct sandbox *s = sandbox_find(&c->owner, id);
    struct managed_sandbox *r = managed_sandbox_find(c, id);
    char text[WHY_MAX];
    snprintf(text, sizeof text, "threshold: %.200s", why);
    /* a writer that is no longer ours may name sandboxes of other policies */
    bool its = s && strcmp(sandbox_policy(s), policy) == 0;
    if (its || strncmp(id, "rt-", 3) == 0)
        controller_note(c, id, then == NOTIFY_KILL ? "threshold_kill" : "threshold_pause", why);
    if (its && then == NOTIFY_PAUSE && r && pause_it(c, r, number, text) == 0)
        return;
    if (its)
        controller_kill(c, s, text);
    else if (s == NULL && c->registry && strncmp(id, "rt-", 3) == 0)
        (void)identities_revoke_of(c, id, policy,
                                   &err); /* what it runs on is not ours to pause or end */
    acted(c, number);
}

int controller_act(struct controller *c, struct msg *m)
{
    uint32_t number;
    uint8_t then;
    char id[SANDBOX_ID_MAX + 1], policy[RUN_NAME_MAX], why[WHY_MAX];
    if (msg_get_u32(m, &number) < 0 || msg_get_str(m, id, sizeof id) < 0 ||
        msg_get_str(m, policy, sizeof policy) < 0 || msg_get_u8(m, &then) < 0 ||
        (then != NOTIFY_PAUSE && then != NOTIFY_KILL) || msg_get_str(m, why, sizeof why) < 0 ||
        msg_end(m) < 0)
        return -1;
    act(c, number, id, policy, (enum notify_then)then, why);
    return 0;
}

/* How a notice was delivered. */
int controller_notified(struct controller *c, struct msg *m)
{
    char id[SANDBOX_ID_MAX + 1], text[512];
    uint8_t ok;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    controller_note(c, id, ok ? "notified" : "notify_failed", text);
    return 0;
}
