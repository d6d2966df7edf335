/* What roles count, added up by role for the controller's /metrics. */
#include "parent.h"

#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of all processes of one role. */
struct role_sum {
    uint32_t processes;
    uint64_t rss, cpu_ms;
    struct meters meters;
};

int parent_meters(struct child *c, struct msg *m)
{
    struct meters v;
    if (meters_get(m, &v) < 0 || msg_end(m) < 0)
        return -1;
    c->meters = v;
    return 0;
}

int parent_counts(struct child *logger, struct msg *m)
{
    if (logger->role != ROLE_LOGGER || counts_get(m, &logger->parent->counts) < 0)
        return -1;
    return msg_end(m);
}

void parent_meters_past(struct child *c)
{
    meters_sum(&c->parent->past[c->role], &c->meters, true);
    memset(&c->meters, 0, sizeof c->meters);
}

/* Both files are open to everybody, also of processes that are not dumpable. 0 where /proc hides
 * them. */
static void add_process(struct role_sum *s, pid_t pid)
{
    char path[64];
    unsigned long size, managed_sandbox, user, system;
    s->processes++;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%lu %lu", &size, &managed_sandbox) == 2)
        s->rss += (uint64_t)managed_sandbox * (uint64_t)sysconf(_SC_PAGESIZE);
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    char line[1024];
    char *name_end = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (name_end && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                           &user, &system) == 2)
        s->cpu_ms += (uint64_t)(user + system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    if (f)
        fclose(f);
}

static void put_role(struct msg *a, struct parent *p, enum role r, const struct role_sum *s)
{
    msg_put_u8(a, (uint8_t)r);
    msg_put_u32(a, s->processes);
    msg_put_u64(a, p->starts[r]);
    msg_put_u64(a, s->rss);
    msg_put_u64(a, s->cpu_ms);
    meters_put(a, &s->meters);
}

int parent_meters_all(struct child *controller, struct msg *m)
{
    struct parent *p = controller->parent;
    struct msg a;
    if (msg_end(m) < 0)
        return -1;
    msg_init(&a, W_METERS_ALL);
    msg_put_u32(&a, ROLE_COUNT - ROLE_PARENT - 1);
    for (enum role r = ROLE_PARENT; r < ROLE_COUNT; r++) {
        struct role_sum s = {.meters = p->past[r]};
        struct child *c;
        if (r == ROLE_CLIENT)
            continue; /* none of ours */
        if (r == ROLE_PARENT) {
            add_process(&s, getpid());
            meters_sum(&s.meters, meters_own(), false);
        }
        TAILQ_FOREACH(c, &p->children, link)
        {
            if (c->role != r || c->pid <= 0)
                continue;
            add_process(&s, c->pid);
            meters_sum(&s.meters, &c->meters, false);
        }
        put_role(&a, p, r, &s);
    }
    msg_put_u32(&a, p->generation);
    counts_put(&a, &p->counts);
    return ipc_send(controller->ch, &a);
}
