/* Thresholds that the logger saw reached: who is told, and what is done to the sandbox. */
#include "notice_queue.h"

#include "meter.h"
#include "wire.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ACTS_MAX = 256, WHY_MAX = 200 };

/* Something to be done by the controller; kept until it says that it is, so that another controller
 * does it when this one dies. */
struct act {
    TAILQ_ENTRY(act) link;
    uint32_t number;
    enum notify_then then;
    char sandbox[65], policy[65], why[WHY_MAX];
};

struct notice {
    const struct config_threshold *threshold;
    uint64_t value, seq;
    char request[40], sandbox[257], policy[257];
};

static void tell_controller(struct parent *p, const struct act *a)
{
    struct child *c = p->controller;
    struct msg m;
    if (c == NULL || c->ch == NULL || c->state != CHILD_READY)
        return;
    msg_init(&m, W_ACT);
    msg_put_u32(&m, a->number);
    msg_put_str(&m, a->sandbox);
    msg_put_str(&m, a->policy);
    msg_put_u8(&m, (uint8_t)a->then);
    msg_put_str(&m, a->why);
    ipc_send(c->ch, &m);
}

static void act(struct parent *p, const struct notice *n)
{
    const struct config_threshold *t = n->threshold;
    struct act *a = p->n_acts < ACTS_MAX ? calloc(1, sizeof *a) : NULL;
    meter_add(METER_ACTIONS, 1);
    if (a == NULL || strlen(n->sandbox) >= sizeof a->sandbox ||
        strlen(n->policy) >= sizeof a->policy) {
        proc_log("sandbox %s was not to be %sd: too many wait", n->sandbox,
                 config_notify_then(t->then));
        free(a);
        return;
    }
    a->number = ++p->last_act;
    a->then = t->then;
    memcpy(a->sandbox, n->sandbox, strlen(n->sandbox));
    memcpy(a->policy, n->policy, strlen(n->policy));
    snprintf(a->why, sizeof a->why, "%s %llu within %u s (limit %llu)",
             config_notify_measure(t->measure), (unsigned long long)n->value, t->seconds,
             (unsigned long long)t->limit);
    TAILQ_INSERT_TAIL(&p->acts, a, link);
    p->n_acts++;
    tell_controller(p, a);
}

void parent_acts_again(struct parent *p)
{
    struct act *a;
    TAILQ_FOREACH(a, &p->acts, link)
    tell_controller(p, a);
}

int parent_acted(struct child *controller, struct msg *m)
{
    struct parent *p = controller->parent;
    struct act *a;
    uint32_t number;
    if (msg_get_u32(m, &number) < 0 || msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(a, &p->acts, link)
    if (a->number == number) {
        TAILQ_REMOVE(&p->acts, a, link);
        p->n_acts--;
        free(a);
        return 0;
    }
    return 0; /* another controller had it, too */
}

/* ---- who is told ---- */

/* An injector that is no longer ours may name anything. */
static void printable(char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            *s = '?';
}

static char *text_of(const struct notice *n, bool acts)
{
    const struct config_threshold *t = n->threshold;
    char timestamp[32], host[256] = "";
    struct tm tm;
    time_t now = time(NULL);
    strftime(timestamp, sizeof timestamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    if (gethostname(host, sizeof host - 1) < 0)
        host[0] = 0;
    printable(host);
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:s}", "event",
                  "threshold", "time", timestamp, "host", host, "sandbox", n->sandbox, "policy",
                  n->policy, "measure", config_notify_measure(t->measure), "value",
                  (json_int_t)n->value, "limit", (json_int_t)t->limit, "within_seconds",
                  (json_int_t)t->seconds, "then", config_notify_then(acts ? t->then : NOTIFY_ONLY),
                  "record", (json_int_t)n->seq, "request", n->request);
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    return text;
}

static void tell(struct parent *p, const struct notice *n, bool acts)
{
    const struct config_notify *to = &config_audit(p->config)->notify;
    char *text = text_of(n, acts);
    if (text == NULL) {
        proc_log("a notice of sandbox %s could not be made", n->sandbox);
        return;
    }
    if (config_exporter_url(p->config, EXPORTER_WEBHOOK))
        notice_queue_add(p, SINK_WEBHOOK, n->sandbox, text);
    if (to->command)
        notice_queue_add(p, SINK_COMMAND, n->sandbox, text);
    if (to->syslog)
        notice_queue_add(p, SINK_SYSLOG, n->sandbox, text);
    free(text);
}

int parent_notice(struct child *logger, struct msg *m)
{
    struct parent *p = logger->parent;
    const struct config_notify *list = &config_audit(p->config)->notify;
    struct notice n;
    uint32_t index;
    if (logger->role != ROLE_LOGGER || msg_get_u32(m, &index) < 0 || index >= list->n ||
        msg_get_u64(m, &n.value) < 0 || msg_get_u64(m, &n.seq) < 0 ||
        msg_get_str(m, n.request, sizeof n.request) < 0 ||
        msg_get_str(m, n.sandbox, sizeof n.sandbox) < 0 ||
        msg_get_str(m, n.policy, sizeof n.policy) < 0 || msg_end(m) < 0)
        return -1;
    n.threshold = &list->when[index];
    printable(n.sandbox);
    printable(n.policy);
    bool acts = n.threshold->then != NOTIFY_ONLY && n.sandbox[0] && !p->stopping;
    meter_add(METER_NOTICES, 1);
    if (acts)
        act(p, &n);
    tell(p, &n, acts);
    return 0;
}
