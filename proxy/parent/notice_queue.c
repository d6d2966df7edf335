/* Keeps the notices and checkpoints that are due, hands them to the exporter, the command or
 * syslog, tries again, and tells the log how each ended. */
#include "notice_queue.h"

#include "meter.h"
#include "store_command.h"
#include "wire.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { COMMAND_MS = 30000, PAUSE_MS = 1000, PAUSE_MAX_MS = 64000, EXPORTER_MS = 500 };

struct notice {
    TAILQ_ENTRY(notice) link;
    uint32_t number; /* of W_CARRY */
    enum sink sink;
    unsigned tries;
    uint64_t due; /* ms, monotonic */
    bool out;     /* the exporter or the command has it */
    char sandbox[65];
    char text[];
};

struct notices {
    struct parent *parent;
    TAILQ_HEAD(, notice) list;
    size_t n;
    struct event *timer;
    uint32_t last;
    pid_t command; /* 0: none runs */
    uint64_t command_since;
};

static const char *const sink_names[SINKS] = {"webhook", "command", "syslog", "anchor"};

static uint64_t now_ms(void)
{
    return meter_now() / 1000;
}

/* ---- what came of one ---- */

static void tell_log(struct parent *p, const struct notice *d, bool ok, const char *text)
{
    struct msg m;
    char line[400];
    struct child *c = p->controller;
    snprintf(line, sizeof line, "%s: %.300s (try %u)", sink_names[d->sink], text, d->tries + 1);
    if (!ok)
        proc_log("could not be delivered: %s", line);
    if (c == NULL || c->ch == NULL || c->state != CHILD_READY)
        return;
    msg_init(&m, W_NOTIFIED);
    msg_put_str(&m, d->sandbox);
    msg_put_u8(&m, ok);
    msg_put_str(&m, line);
    ipc_send(c->ch, &m);
}

static void drop(struct notices *all, struct notice *d)
{
    TAILQ_REMOVE(&all->list, d, link);
    all->n--;
    free(d);
}

static void done(struct notices *all, struct notice *d, bool ok, const char *text)
{
    d->out = false;
    if (!ok && d->tries + 1 < NOTICE_QUEUE_TRIES) {
        uint64_t pause = (uint64_t)PAUSE_MS << d->tries++;
        d->due = now_ms() + (pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
        meter_add(METER_DELIVERY_RETRIES, 1);
        return;
    }
    meter_add(ok ? METER_DELIVERED : METER_DELIVERIES_LOST, 1);
    if (!ok || d->sink != SINK_ANCHOR) /* each checkpoint would make a record, and that the next */
        tell_log(all->parent, d, ok, text);
    drop(all, d);
}

/* ---- sinks ---- */

static void give_command(struct notices *all, struct notice *d)
{
    const char *const *argv = config_audit(all->parent->config)->notify.command;
    struct err err = {0};
    if (all->command)
        return; /* one at a time */
    all->command_since = now_ms();
    if (store_command_tell(argv, d->text, &all->command, &err) < 0)
        done(all, d, false, err.text);
    else
        d->out = true;
}

static void give_exporter(struct notices *all, struct notice *d)
{
    struct child *c = all->parent->exporter;
    struct msg m;
    if (c == NULL || c->ch == NULL || c->state != CHILD_READY) {
        d->due = now_ms() + EXPORTER_MS;
        return;
    }
    msg_init(&m, W_CARRY);
    msg_put_u32(&m, d->number);
    msg_put_u8(&m, d->sink == SINK_ANCHOR ? EXPORTER_ANCHOR : EXPORTER_WEBHOOK);
    msg_put_str(&m, d->text);
    d->out = ipc_send(c->ch, &m) == 0;
}

static void give(struct notices *all, struct notice *d)
{
    struct err err = {0};
    if (d->sink == SINK_COMMAND)
        give_command(all, d);
    else if (d->sink != SINK_SYSLOG)
        give_exporter(all, d);
    else
        done(all, d,
             parent_syslog(config_audit(all->parent->config)->notify.syslog, "notice", d->text,
                           &err) == 0,
             err.text[0] ? err.text : "sent");
}

/* ---- turns ---- */

static void turn(struct notices *all)
{
    struct notice *d, *next;
    uint64_t now = now_ms();
    struct timeval tv = {0, 100000};
    if (all->command && now - all->command_since > COMMAND_MS)
        kill(-all->command, SIGKILL); /* its end is told as of any other */
    for (d = TAILQ_FIRST(&all->list); d; d = next) {
        next = TAILQ_NEXT(d, link);
        if (!d->out && d->due <= now)
            give(all, d);
    }
    if (all->n)
        event_add(all->timer, &tv);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    turn(arg);
}

static struct notices *notices_of(struct parent *p)
{
    struct notices *all = p->notices ? NULL : calloc(1, sizeof *all);
    if (all == NULL)
        return p->notices;
    all->parent = p;
    TAILQ_INIT(&all->list);
    all->timer = evtimer_new(p->base, on_timer, all);
    if (all->timer)
        return p->notices = all;
    free(all);
    return NULL;
}

void notice_queue_add(struct parent *p, enum sink s, const char *sandbox, const char *text)
{
    struct notices *all = notices_of(p);
    size_t n = strlen(text);
    struct notice *d = NULL;
    if (all && all->n < NOTICES_MAX && n <= NOTICE_QUEUE_TEXT_MAX)
        d = calloc(1, sizeof *d + n + 1);
    if (d == NULL) {
        meter_add(METER_DELIVERIES_LOST, 1);
        proc_log("a notice was not delivered: too many wait");
        return;
    }
    d->sink = s;
    d->number = ++all->last;
    memcpy(d->text, text, n + 1);
    snprintf(d->sandbox, sizeof d->sandbox, "%s", sandbox);
    TAILQ_INSERT_TAIL(&all->list, d, link);
    all->n++;
    turn(all);
}

int notice_queue_carried(struct child *exporter, struct msg *m)
{
    struct notices *all = exporter->parent->notices;
    struct notice *d;
    uint32_t number;
    uint8_t ok;
    char text[256];
    if (exporter->role != ROLE_EXPORTER || msg_get_u32(m, &number) < 0 || msg_get_u8(m, &ok) < 0 ||
        ok > 1 || msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    if (all == NULL)
        return -1;
    TAILQ_FOREACH(d, &all->list, link)
    if (d->number == number && d->out && d->sink != SINK_COMMAND) {
        done(all, d, ok, text);
        return 0;
    }
    return -1;
}

void notice_queue_exporter_ready(struct parent *p)
{
    struct notice *d;
    if (p->notices == NULL)
        return;
    TAILQ_FOREACH(d, &p->notices->list, link)
    if (d->sink != SINK_COMMAND)
        d->out = false;
    turn(p->notices);
}

bool notice_queue_reaped(struct parent *p, pid_t pid, int status)
{
    struct notices *all = p->notices;
    struct notice *d;
    char text[64];
    if (all == NULL || pid != all->command)
        return false;
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    snprintf(text, sizeof text, "wait status %d", status);
    all->command = 0;
    TAILQ_FOREACH(d, &all->list, link)
    if (d->sink == SINK_COMMAND && d->out)
        break;
    if (d)
        done(all, d, ok, text);
    return true;
}

void notice_queue_finish(struct parent *p, unsigned ms)
{
    struct timeval tv = {0, 50000};
    uint64_t end = now_ms() + ms;
    while (p->notices && p->notices->n && now_ms() < end) {
        event_base_loopexit(p->base, &tv);
        event_base_dispatch(p->base);
    }
    for (struct notice *d; p->notices && (d = TAILQ_FIRST(&p->notices->list)) != NULL;) {
        proc_log("not delivered at the end: %s", sink_names[d->sink]);
        drop(p->notices, d);
    }
}
