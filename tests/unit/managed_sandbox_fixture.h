/* A controller over a real registry, whose parent, builder and durward-init are socket ends held
 * here, and one managed sandbox of it. */
#ifndef DURWARD_MANAGED_SANDBOX_FIXTURE_H
#define DURWARD_MANAGED_SANDBOX_FIXTURE_H

#include <CUnit/CUnit.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "controller_internal.h"
#include "execution.h"
#include "sandbox_events.h"
#include "backlog.h"
#include "journal.h"
#include "layer_queue.h"
#include "registry.h"
#include "managed_sandbox.h"
#include "tap_main.h"
#include "wire.h"

static const char config_text[] =
    "{\"version\": 1, \"policies\": {\"p\": {\"rules\": [{\"allow\": \"a.example.com\"}]}}}";

struct world {
    struct controller c;
    char dir[64];
    int parent, builder, init; /* the far ends */
    struct managed_sandbox *r;
    unsigned ran, failed, ended;
    uint32_t status;
    char out[64];
};

static int ignore(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static void on_gone(void *arg, struct sandbox *s)
{
    managed_sandboxes_gone(arg, s);
    sandbox_free(s);
}

static struct ipc *channel(struct world *w, int *far)
{
    int p[2] = {-1, -1};
    CU_ASSERT_EQUAL_FATAL(ipc_pair(p, NULL), 0);
    *far = p[1];
    return ipc_new(w->c.base, p[0], ignore, closed, w);
}

/* A controller over the directory, as after a start. */
static void begin(struct world *w)
{
    struct err err = {0};
    struct controller *c = &w->c;
    memset(c, 0, sizeof *c);
    LIST_INIT(&c->owner.list);
    TAILQ_INIT(&c->managed_sandboxes);
    w->init = -1;
    c->base = event_base_new();
    c->config = config_from_json(config_text, sizeof config_text - 1, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c->config);
    c->state_dir = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->registry = registry_open(c->state_dir, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c->registry);
    c->sandbox_events = sandbox_events_new();
    snprintf(c->trust_inside, sizeof c->trust_inside, "/etc/durward");
    c->owner.base = c->base;
    c->owner.gone = on_gone;
    c->owner.running = managed_sandboxes_running;
    c->owner.said = managed_sandboxes_said;
    c->owner.named = managed_sandboxes_named;
    c->owner.arg = c;
    c->owner.recording = true;
    c->owner.parent = channel(w, &w->parent);
    c->owner.builder = channel(w, &w->builder);
    c->journal = journal_new(c->base, false);
    c->backlog = backlog_new(c->base, c->journal);
    c->layers = layer_queue_new();
    layer_queue_builder(c->layers, c->owner.builder);
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* killed: nothing is written any more, as after SIGKILL. */
static void end(struct world *w, bool killed)
{
    struct controller *c = &w->c;
    struct sandbox *s;
    if (killed) {
        registry_close(c->registry);
        c->registry = registry_open(c->state_dir, NULL);
        struct managed_sandbox *r;
        TAILQ_FOREACH(r, &c->managed_sandboxes, link)
        if (r->state == MANAGED_SANDBOX_RUNNING || r->state == MANAGED_SANDBOX_PAUSED)
            r->state = MANAGED_SANDBOX_STOPPED;
    }
    managed_sandboxes_close(c);
    while ((s = sandbox_next(&c->owner, NULL)) != NULL)
        sandbox_free(s);
    ipc_free(c->owner.parent);
    ipc_free(c->owner.builder);
    registry_close(c->registry);
    sandbox_events_free(c->sandbox_events);
    layer_queue_free(c->layers);
    backlog_free(c->backlog);
    journal_free(c->journal);
    config_unref(c->config);
    close(c->state_dir);
    event_base_free(c->base);
    shut(&w->parent);
    shut(&w->builder);
    shut(&w->init);
}

static void turn(struct world *w)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(w->c.base, EVLOOP_NONBLOCK);
}

static bool got(struct world *w, int fd, uint16_t type)
{
    for (int i = 0; i < 300; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        struct msg m;
        event_base_loop(w->c.base, EVLOOP_NONBLOCK);
        if (poll(&p, 1, 10) != 1)
            continue;
        bool right = msg_recv(fd, &m) == 1 && m.type == type;
        msg_done(&m);
        return right;
    }
    return false;
}

static void send_to(struct world *w, int fd, struct msg *m)
{
    CU_ASSERT_EQUAL(msg_send(fd, m), 0);
    msg_done(m);
    turn(w);
}

static void answer_built(struct world *w, bool ok)
{
    int p[2] = {-1, -1};
    struct msg m;
    msg_init(&m, W_BUILT);
    msg_put_u8(&m, ok);
    msg_put_str(&m, "");
    if (ok) {
        CU_ASSERT_EQUAL_FATAL(ipc_pair(p, NULL), 0);
        msg_put_fd(&m, p[0]);
        w->init = p[1];
    }
    CU_ASSERT_EQUAL(sandbox_built(w->r->sandbox, &m), 0);
    msg_done(&m);
}

/* The builder is asked for this with a sandbox's files, and does it. */
static void do_layer(struct world *w, enum layer_op op, enum layer_result result)
{
    struct pollfd p = {.fd = w->builder, .events = POLLIN};
    struct msg m;
    uint32_t req;
    uint8_t asked;
    turn(w);
    CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 3000), 1);
    CU_ASSERT_EQUAL(msg_recv(w->builder, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_LAYER);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    CU_ASSERT_EQUAL(msg_get_u8(&m, &asked), 0);
    CU_ASSERT_EQUAL(asked, op);
    msg_done(&m);
    msg_init(&m, W_LAYERED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)result);
    msg_put_str(&m, "so it is");
    CU_ASSERT_EQUAL(layer_queue_answer(w->c.layers, &m), 0);
    msg_done(&m);
    turn(w);
}

static void on_running(void *arg, struct managed_sandbox *r, const char *why UNUSED)
{
    struct world *w = arg;
    w->ran += r != NULL;
    w->failed += r == NULL;
}

static void make(struct world *w, int64_t ttl)
{
    struct err err = {0};
    struct managed_sandbox_wish wish = {.policy = "p", .ttl = ttl, .idle_ttl = 0};
    w->ran = w->failed = 0;
    w->r = managed_sandbox_new(&w->c, &wish, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->r);
    CU_ASSERT_EQUAL(managed_sandbox_await(w->r, on_running, w), 0);
}

static void self_test(struct world *w)
{
    struct msg m;
    msg_init(&m, W_INIT_READY);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "probe");
    msg_put_u8(&m, 1);
    msg_put_str(&m, "");
    send_to(w, w->init, &m);
}

static void to_running(struct world *w)
{
    make(w, 600);
    CU_ASSERT_TRUE(got(w, w->parent, W_SANDBOX));
    CU_ASSERT_TRUE(got(w, w->builder, W_BUILD));
    CU_ASSERT_TRUE(got(w, w->builder, W_KEEP));
    answer_built(w, true);
    self_test(w);
    CU_ASSERT_EQUAL(w->r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_EQUAL(w->ran, 1);
}

struct seen {
    int state;
    unsigned n;
    int64_t generation;
};

static int see(void *arg, const struct registry_sandbox *row)
{
    struct seen *s = arg;
    s->n++;
    s->state = row->state;
    s->generation = row->generation;
    return 0;
}

static struct seen rows(struct world *w)
{
    struct seen s = {0};
    CU_ASSERT_EQUAL(registry_sandbox_each(w->c.registry, see, &s, NULL), 0);
    return s;
}

static void world_new(struct world *w)
{
    memset(w, 0, sizeof *w);
    snprintf(w->dir, sizeof w->dir, "/tmp/durward-managed-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(w->dir));
    begin(w);
}

static void world_remove(struct world *w)
{
    static const char *const files[] = {"registry.db", "registry.db-wal", "registry.db-shm"};
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", w->dir, files[i]);
        unlink(path);
    }
    CU_ASSERT_EQUAL(rmdir(w->dir), 0);
}

#endif
