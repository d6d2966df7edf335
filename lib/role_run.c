/* Runs a role from its entry to its exit, and answers the first message of its parent. */
#include "role_run.h"

#include "compiler.h"
#include "meter.h"
#include "trace.h"
#include "wire.h"

#include <event2/event.h>
#include <malloc.h>

enum { FAREWELL_MS = 1000, SETTLED_S = 2 };

/* What it freed while it started (a configuration's text, a compiled filter) goes back to the host.
 */
static void on_settled(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
    (void)malloc_trim(0);
}

static bool run_loop(const struct role_life *life, struct event_base *base, struct ipc *control)
{
    static const struct timeval settled = {SETTLED_S, 0};
    (void)event_base_once(base, -1, EV_TIMEOUT, on_settled, NULL,
                          &settled); /* else it keeps them */
    if (life->traces)
        trace_report(control);
    if (life->counts && meter_report(base, control) < 0) {
        proc_log("out of memory");
        return false;
    }
    bool ran = event_base_dispatch(base) >= 0;
    if (!ran)
        proc_log("the event loop failed");
    meter_report_end();
    return ran;
}

int role_run(const struct role_life *life, void *self)
{
    struct err err = {0};
    struct event_base *base;
    struct ipc *control = NULL;
    if (life->first)
        life->first();
    if (proc_enter(life->role, &err) == 0 && (base = event_base_new()) != NULL)
        control = life->open(self, base, PROC_CONTROL_FD, &err);
    if (control == NULL) {
        proc_log("%s", err.text[0] ? err.text : "out of memory");
        return 1;
    }
    bool ran = run_loop(life, base, control);
    int status = life->leave(self, base);
    return ran ? status : 1;
}

static void say_failed(struct ipc *control, const struct err *err)
{
    struct msg m;
    msg_init(&m, W_FAILED);
    msg_put_str(&m, err->text);
    ipc_send(control, &m);
    ipc_flush(control, FAREWELL_MS);
}

int role_start(const struct role_start *s, void *self, struct ipc *control, struct msg *m)
{
    struct err err = {0};
    struct msg ready;
    msg_init(&ready, W_READY);
    int r = s->load(self, m, &ready, &err);
    if (r == 0 && s->confine)
        r = s->confine(self, &err);
    if (r < 0) {
        msg_done(&ready);
        if (err.text[0])
            say_failed(control, &err);
        return -1;
    }
    r = ipc_send(control, &ready);
    if (s->begun)
        s->begun(self);
    return r;
}
