/* Starting, losing and starting again. */
#include "parent.h"

#include "assertion.h"
#include "store_broker.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUICK_MS = 1000, QUICK_MAX = 5, AGAIN_MS = 100, LATER_MS = 2000, WAKE_MS = 100 };

void parent_set_state(struct child *c, enum child_state s)
{
    /* one that is to end never comes back */
    ASSERT(c->state != CHILD_RETIRED);
    ASSERT(s != CHILD_ASLEEP);
    ASSERT(s != CHILD_INITED || c->state == CHILD_STARTED);
    ASSERT(s != CHILD_READY || c->state == CHILD_INITED);
    c->state = s;
}

const char *parent_child_name(const struct child *c)
{
    static char name[32 + sizeof c->tag];
    snprintf(name, sizeof name, "%s%s%s", role_name(c->role), c->tag[0] ? " " : "", c->tag);
    return name;
}

static void on_channel_closed(struct ipc *ch, const char *why, void *arg)
{
    struct child *c = arg;
    ipc_free(ch);
    c->ch = NULL;
    if (c->state == CHILD_RETIRED || c->parent->stopping)
        return;
    /* a role without a control channel is of no use: SIGCHLD brings the rest */
    if (strcmp(why, "closed by the peer") != 0)
        proc_log("%s: control channel: %s", parent_child_name(c), why);
    if (c->pid > 0)
        kill(c->pid, SIGKILL);
}

int parent_tell(struct child *c, struct msg *m)
{
    bool bad = m->bad;
    if (ipc_send(c->ch, m) == 0)
        return 0;
    if (bad && c->pid > 0) { /* else its channel is dead, which on_channel_closed sees to */
        proc_log("%s cannot be told what holds now: it is ended", parent_child_name(c));
        kill(c->pid, SIGKILL);
    }
    return -1;
}

static int spawn(struct child *c, struct err *err)
{
    int fds[2];
    if (ipc_pair(fds, err) < 0)
        return -1;
    int r = proc_spawn(c->role, c->parent->programs[c->role], c->tag[0] ? c->tag : NULL,
                       config_debugs(c->parent->config, role_name(c->role)), fds[1], &c->pid, err);
    close(fds[1]);
    if (r < 0) {
        close(fds[0]);
        return -1;
    }
    c->ch = ipc_new(c->parent->base, fds[0], parent_message, on_channel_closed, c);
    if (c->ch == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    clock_gettime(CLOCK_MONOTONIC, &c->started);
    c->lost = c->revoked_asked = c->revoked_taken = 0;
    parent_set_state(c, CHILD_STARTED);
    c->parent->starts[c->role]++;
    return 0;
}

static struct child *child_new(struct parent *p, enum role r, const char *tag)
{
    struct child *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->parent = p;
    c->role = r;
    c->state = CHILD_ASLEEP;
    snprintf(c->tag, sizeof c->tag, "%s", tag ? tag : "");
    return c;
}

struct child *parent_start(struct parent *p, enum role r, const char *tag)
{
    struct err err = {0};
    struct child *c = child_new(p, r, tag);
    if (c == NULL)
        return NULL;
    if (spawn(c, &err) < 0) {
        proc_log("%s", err.text);
        free(c);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&p->children, c, link);
    return c;
}

static void on_again(evutil_socket_t fd, short what, void *arg);

static void start_later(struct child *c, unsigned ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    if (c->again == NULL)
        c->again = event_new(c->parent->base, -1, 0, on_again, c);
    if (c->again == NULL || event_add(c->again, &tv) < 0) {
        proc_log("no timer to start the %s again", role_name(c->role));
        parent_stop(c->parent, 1);
    }
}

/* Where no process can be made just now, there may be one later. */
static void start_again(struct child *c)
{
    struct err err = {0};
    if (c->pid > 0) /* it was asked for before its time */
        return;
    if (c->parent->stopping || c->state == CHILD_RETIRED ||
        (c->parent->draining && c->role == ROLE_GATE))
        return;
    if (spawn(c, &err) == 0) {
        parent_init_child(c);
        return;
    }
    proc_log("%s", err.text);
    if (c->pid > 0) /* it has no channel: SIGCHLD brings the rest */
        kill(c->pid, SIGKILL);
    else
        start_later(c, LATER_MS);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    start_again(arg);
}

struct child *parent_start_later(struct parent *p, enum role r)
{
    struct child *c = child_new(p, r, NULL);
    if (c)
        TAILQ_INSERT_TAIL(&p->children, c, link);
    return c;
}

void parent_wake(struct child *c)
{
    if (c && c->state == CHILD_ASLEEP)
        start_again(c);
}

void parent_wake_soon(struct child *c)
{
    if (c && c->state == CHILD_ASLEEP && c->again == NULL)
        start_later(c, WAKE_MS);
}

static unsigned lived_ms(const struct child *c)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ms = (now.tv_sec - c->started.tv_sec) * INT64_C(1000) +
                 (now.tv_nsec - c->started.tv_nsec) / 1000000;
    return ms < 0 ? 0 : ms > 1000000 ? 1000000 : (unsigned)ms;
}

static void forget(struct child *c)
{
    parent_meters_past(c);
    parent_unwire(c);
    if (c->sandbox)
        c->sandbox->gate = NULL;
    parent_forget_front(c);
    TAILQ_REMOVE(&c->parent->children, c, link);
    if (c->again)
        event_free(c->again);
    ipc_free(c->ch);
    free(c);
}

static struct child *by_pid(struct parent *p, pid_t pid)
{
    struct child *c;
    TAILQ_FOREACH(c, &p->children, link)
    if (c->pid == pid)
        return c;
    return NULL;
}

/* The last gate has let its requests end. A retired one has none that count. */
static void drained(struct parent *p)
{
    struct child *c;
    TAILQ_FOREACH(c, &p->children, link)
    if (c->role == ROLE_GATE && c->pid > 0 && c->state != CHILD_RETIRED)
        return;
    parent_stop(p, 0);
}

/* What makes a role fall again and again may be one sandbox's or origin's doing, and is no reason
 * to end the others: without it what needs it is refused, and it is tried every LATER_MS. */
static void died(struct child *c, bool quick)
{
    if (!quick) {
        c->quick_deaths = 0;
        start_again(c);
        return;
    }
    if (++c->quick_deaths == QUICK_MAX + 1)
        proc_log("the %s does not stay up: it is started every %u s from now on",
                 role_name(c->role), LATER_MS / 1000U);
    start_later(c, c->quick_deaths > QUICK_MAX ? LATER_MS : AGAIN_MS);
}

void parent_reaped(struct parent *p, pid_t pid, int status)
{
    struct child *c = by_pid(p, pid);
    if (c == NULL)
        return;
    c->pid = 0;
    bool drains = p->draining && !p->stopping && c->role == ROLE_GATE;
    if (c->state == CHILD_RETIRED || drains) {
        forget(c);
        if (drains)
            drained(p);
        return;
    }
    if (p->stopping)
        return;
    parent_meters_past(c);
    bool quick = lived_ms(c) < QUICK_MS;
    if (c->role == ROLE_CONTROLLER) {
        parent_ports_gone(p);
        parent_revocations_gone(p);
    }
    if (c->role == ROLE_VAULT)
        store_broker_vault_gone(p->store_broker);
    parent_wires_dead(c);
    bool never_ready = c->state < CHILD_READY && !p->told_ready;
    ipc_free(c->ch);
    c->ch = NULL;
    parent_set_state(c, CHILD_DEAD);
    if (c->replaced)
        c->replaced = false;
    else
        parent_ended(c, status);
    if (never_ready) {
        proc_log("the %s does not come up: giving up", role_name(c->role));
        parent_stop(p, 1);
        return;
    }
    died(c, quick);
}

void parent_retire(struct child *c)
{
    if (c == NULL || c->state == CHILD_RETIRED)
        return;
    bool gone = c->pid == 0;
    parent_set_state(c, CHILD_RETIRED);
    ipc_free(c->ch); /* its event loop ends when the channel does */
    c->ch = NULL;
    if (gone)
        forget(c);
}
