/* Lists what injectors hold, shows it to the API and to the user of `durward run --ask`, wakes
 * those who wait for news, and carries each decision to its injector, on record. */
#include "approvals.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "controller_internal.h"
#include "fleet_approvals.h"
#include "sandbox_events.h"
#include "held.h"
#include "identities.h"
#include "quota.h"
#include "wire.h"

enum { WAITS_MAX = 64 };

/* An injector. */
struct holder {
    struct approvals *of;
    struct ipc *ch;
    char policy[RUN_NAME_MAX];
    bool injector; /* it may end a sandbox and tell of calls, too */
    LIST_ENTRY(holder) link;
};

struct approval {
    struct holder *holder; /* NULL: it is held on another host */
    char host[FLEET_NAME_MAX + 1], policy[RUN_NAME_MAX];
    struct quota_part part, of_policy;
    uint32_t req; /* of the holder */
    uint64_t sequence;
    char id[APPROVAL_ID_MAX + 1];
    int64_t created, expires; /* seconds since 1970 */
    char sandbox[SANDBOX_ID_MAX + 1];
    char method[40], scheme[16], authority[300], credential[130];
    char path[PENDING_APPROVAL_PATH_MAX + 328], query[PENDING_APPROVAL_TEXT_MAX + 1],
        rule[PENDING_APPROVAL_TEXT_MAX + 1], type[PENDING_APPROVAL_TEXT_MAX + 1];
    uint64_t length;
    TAILQ_ENTRY(approval) link;
};

TAILQ_HEAD(approval_list, approval);

struct approvals_wait {
    struct quota_part part;
    struct approvals *of;
    struct event *timer;
    approvals_fn fn;
    void *arg;
    LIST_ENTRY(approvals_wait) link;
};

struct approvals {
    struct controller *controller;
    uint64_t sequence; /* of the latest; the first is 1 */
    unsigned n_holders;
    struct quota held, policies, waiting; /* by sandbox, by its policy, by who asks */
    struct quota elsewhere;               /* by host */
    struct approval_list list;
    LIST_HEAD(, holder) holders;
    LIST_HEAD(, approvals_wait) waits;
};

struct approvals *approvals_new(struct controller *c)
{
    struct approvals *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->controller = c;
    TAILQ_INIT(&a->list);
    LIST_INIT(&a->holders);
    LIST_INIT(&a->waits);
    a->held.total = APPROVALS_MAX;
    a->elsewhere = (struct quota){.total = APPROVALS_MAX, .each = APPROVALS_MAX};
    a->policies = (struct quota){.total = APPROVALS_MAX, .each = APPROVALS_MAX};
    a->waiting = (struct quota){.total = WAITS_MAX, .each = WAITS_MAX};
    return a;
}

/* ---- who waits for one ---- */

bool approvals_any(const struct approvals *a, uint64_t after)
{
    const struct approval *last = TAILQ_LAST(&a->list, approval_list);
    return last && last->sequence > after;
}

void approvals_wait_cancel(struct approvals_wait *w)
{
    LIST_REMOVE(w, link);
    quota_leave(&w->part);
    event_free(w->timer);
    free(w);
}

static void wait_end(struct approvals_wait *w, bool gone)
{
    approvals_fn fn = w->fn;
    void *arg = w->arg;
    approvals_wait_cancel(w);
    fn(arg, gone);
}

static void on_waited(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    wait_end(arg, false);
}

struct approvals_wait *approvals_await(struct approvals *a, struct slice owner, unsigned seconds,
                                       approvals_fn fn, void *arg)
{
    struct timeval tv = {(time_t)seconds, 0};
    struct approvals_wait *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    *w = (struct approvals_wait){.of = a, .fn = fn, .arg = arg};
    w->timer = event_new(a->controller->base, -1, 0, on_waited, w);
    if (w->timer == NULL || quota_take(&a->waiting, &w->part, owner, 1) != QUOTA_TAKEN ||
        event_add(w->timer, &tv) < 0) {
        quota_leave(&w->part);
        if (w->timer)
            event_free(w->timer);
        free(w);
        return NULL;
    }
    LIST_INSERT_HEAD(&a->waits, w, link);
    return w;
}

static void wake_all(struct approvals *a, bool gone)
{
    while (!LIST_EMPTY(&a->waits))
        wait_end(LIST_FIRST(&a->waits), gone);
}

/* ---- as JSON ---- */

static void put_url(const struct approval *p, char *to, size_t size)
{
    if (p->holder)
        snprintf(to, size, "%s://%s%s", p->scheme, p->authority, p->path);
    else
        snprintf(to, size, "%s", p->path);
}

static json_t *to_json(const struct approval *p)
{
    char url[sizeof p->path + 320];
    put_url(p, url, sizeof url);
    json_t *v =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "id", p->id,
                  "sandbox", p->sandbox, "policy", p->policy, "method", p->method, "url", url,
                  "query", p->query, "rule", p->rule, "credential", p->credential, "content_type",
                  p->type, "sequence", (json_int_t)p->sequence, "created", (json_int_t)p->created,
                  "expires", (json_int_t)p->expires);
    if (p->host[0])
        json_object_set_new(v, "host", json_string(p->host));
    json_object_set_new(
        v, "upload_bytes",
        p->length == PENDING_APPROVAL_UNKNOWN ? json_null() : json_integer((json_int_t)p->length));
    return v;
}

json_t *approvals_json(const struct approvals *a, uint64_t after)
{
    const struct approval *p;
    json_t *list = json_array();
    TAILQ_FOREACH(p, &a->list, link)
    if (p->sequence > after)
        json_array_append_new(list, to_json(p));
    return json_pack("{s:o, s:I}", "approvals", list, "next", (json_int_t)a->sequence);
}

static struct approval *find(const struct approvals *a, const char *id)
{
    struct approval *p;
    TAILQ_FOREACH(p, &a->list, link)
    if (strcmp(p->id, id) == 0)
        return p;
    return NULL;
}

json_t *approvals_show(const struct approvals *a, const char *id)
{
    const struct approval *p = find(a, id);
    return p ? to_json(p) : NULL;
}

size_t approvals_held(const struct approvals *a)
{
    const struct approval *p;
    size_t n = 0;
    TAILQ_FOREACH(p, &a->list, link)
    n += p->holder != NULL;
    return n;
}

bool approvals_wait_for(const struct approvals *a, const char *sandbox)
{
    const struct approval *p;
    TAILQ_FOREACH(p, &a->list, link)
    if (p->holder && strcmp(p->sandbox, sandbox) == 0)
        return true;
    return false;
}

/* ---- the user of a private one ---- */

static struct client *asked_client(const struct approvals *a, const char *sandbox)
{
    struct client *cl;
    LIST_FOREACH(cl, &a->controller->clients, link)
    if (cl->ask && cl->sandbox && strcmp(sandbox_id(cl->sandbox), sandbox) == 0)
        return cl;
    return NULL;
}

static void tell_client(const struct client *cl, const struct approval *p)
{
    char url[sizeof p->path + 320];
    struct msg m;
    put_url(p, url, sizeof url);
    msg_init(&m, W_HELD);
    msg_put_str(&m, p->id);
    msg_put_str(&m, p->method);
    msg_put_str(&m, url);
    msg_put_str(&m, p->query);
    msg_put_str(&m, p->rule);
    msg_put_str(&m, p->credential);
    msg_put_str(&m, p->type);
    msg_put_u64(&m, p->length);
    msg_put_u32(&m, (uint32_t)(p->expires - p->created));
    ipc_send(cl->ch, &m);
}

static void tell_client_over(const struct approvals *a, const struct approval *p)
{
    const struct client *cl = asked_client(a, p->sandbox);
    struct msg m;
    if (cl == NULL)
        return;
    msg_init(&m, W_HELD_OVER);
    msg_put_str(&m, p->id);
    ipc_send(cl->ch, &m);
}

int approvals_client_message(struct approvals *a, struct client *cl, struct msg *m)
{
    char id[APPROVAL_ID_MAX + 1], who[64];
    uint8_t allow;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_u8(m, &allow) < 0 || msg_end(m) < 0 ||
        allow > 1)
        return -1;
    const struct approval *p = find(a, id);
    if (p == NULL || p->holder == NULL || !cl->ask || asked_client(a, p->sandbox) != cl)
        return 0; /* it ended meanwhile */
    snprintf(who, sizeof who, "uid %u (terminal)", (unsigned)a->controller->owner_uid);
    (void)approvals_decide(a, id, allow != 0, who);
    return 0;
}

/* ---- what is held ---- */

static void give_back(struct approval *p)
{
    quota_leave(&p->part);
    quota_leave(&p->of_policy);
}

/* end: of what is held here, for other hosts. */
static void drop(struct approvals *a, struct approval *p, const char *end)
{
    if (p->holder)
        fleet_approvals_over(a->controller->fleet_approvals, p->id, end);
    TAILQ_REMOVE(&a->list, p, link);
    give_back(p);
    free(p);
}

static void answer(struct holder *h, uint32_t req, enum pending_approval_end end, const char *who)
{
    struct msg m;
    msg_init(&m, W_PENDING_APPROVAL_ANSWER);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)end);
    msg_put_str(&m, who);
    ipc_send(h->ch, &m);
}

/* Without the path, which may hold what no record may. */
static void note(const struct approvals *a, const struct approval *p, const char *what,
                 const char *who)
{
    struct record r;
    char detail[400];
    snprintf(detail, sizeof detail, "%s%s%.200s", p->id, who[0] ? " by " : "", who);
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, what);
    record_put_str(&r, RF_TARGET, p->sandbox);
    record_put_str(&r, RF_SCHEME, p->scheme);
    record_put_str(&r, RF_AUTHORITY, p->authority);
    record_put_str(&r, RF_METHOD, p->method);
    record_put_str(&r, RF_RULE, p->rule);
    record_put_str(&r, RF_CREDENTIAL, p->credential);
    record_put_str(&r, RF_DETAIL, detail);
    controller_put(a->controller, &r);
}

static void happened(const struct approvals *a, const struct approval *p, const char *what,
                     const char *who)
{
    char detail[900];
    snprintf(detail, sizeof detail, "%s%s%s: %s %s://%s%.100s", p->id, who[0] ? " by " : "", who,
             p->method, p->scheme, p->authority, p->path);
    sandbox_events_add(a->controller->sandbox_events, p->sandbox, what, detail);
    note(a, p, what, who);
}

int approvals_decide(struct approvals *a, const char *id, bool allow, const char *who)
{
    struct approval *p = find(a, id);
    if (p == NULL || p->holder == NULL)
        return 1;
    answer(p->holder, p->req, allow ? PENDING_APPROVAL_ALLOWED : PENDING_APPROVAL_DENIED, who);
    happened(a, p, allow ? "approval_allowed" : "approval_denied", who);
    drop(a, p, allow ? "allowed" : "denied");
    return 0;
}

/* An injector says whose its request is: of its own policy's part only, which it has whatever
 * names it makes up. */
static bool has_room(struct approvals *a, struct approval *p)
{
    char owner[RUN_NAME_MAX + SANDBOX_ID_MAX + 2];
    snprintf(owner, sizeof owner, "%s|%s", p->holder->policy, p->sandbox);
    a->held.each = config_limits(a->controller->config)->approvals;
    if (quota_take(&a->policies, &p->of_policy, slice_str(p->holder->policy), 1) == QUOTA_TAKEN &&
        quota_take(&a->held, &p->part, slice_str(owner), 1) == QUOTA_TAKEN)
        return true;
    give_back(p);
    return false;
}

/* It is shown to people: nothing of it may drive a terminal or hide what comes after. */
static void clean(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x21 || (unsigned char)*s >= 0x7f)
            *s = *s == ' ' ? ' ' : '?';
}

static int take_summary(struct msg *m, struct approval *p)
{
    uint32_t seconds;
    uint8_t cut;
    char path[PENDING_APPROVAL_PATH_MAX + 1];
    if (msg_get_u32(m, &p->req) < 0 || msg_get_u32(m, &seconds) < 0 || seconds > 86400 ||
        msg_get_str(m, p->sandbox, sizeof p->sandbox) < 0 ||
        msg_get_str(m, p->method, sizeof p->method) < 0 ||
        msg_get_str(m, p->scheme, sizeof p->scheme) < 0 ||
        msg_get_str(m, p->authority, sizeof p->authority) < 0 ||
        msg_get_str(m, path, sizeof path) < 0 || msg_get_str(m, p->query, sizeof p->query) < 0 ||
        msg_get_str(m, p->rule, sizeof p->rule) < 0 ||
        msg_get_str(m, p->credential, sizeof p->credential) < 0 ||
        msg_get_str(m, p->type, sizeof p->type) < 0 || msg_get_u64(m, &p->length) < 0 ||
        msg_get_u8(m, &cut) < 0 || msg_end(m) < 0)
        return -1;
    snprintf(p->path, sizeof p->path, "%s%s", path, cut ? " [...]" : "");
    char *const texts[] = {p->sandbox, p->method, p->scheme, p->authority, p->path,
                           p->query,   p->rule,   p->type,   p->credential};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        clean(texts[i]);
    p->created = (int64_t)time(NULL);
    p->expires = p->created + seconds;
    return 0;
}

/* Short enough to be typed, and not the number of another life of ours. */
static void make_id(char id[APPROVAL_ID_MAX + 1])
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char r[8];
    if (getrandom(r, sizeof r, 0) != sizeof r)
        abort();
    memcpy(id, "ap-", 3);
    for (size_t i = 0; i < sizeof r; i++)
        id[3 + i] = digits[r[i] & 31];
    id[3 + sizeof r] = 0;
}

/* NULL, or why nobody can be asked. */
static const char *list_it(struct approvals *a, const struct approval *p)
{
    const struct client *cl = a->controller->private ? asked_client(a, p->sandbox) : NULL;
    if (a->controller->private && cl == NULL)
        return "nobody: it was not started with --ask";
    if (cl)
        tell_client(cl, p);
    happened(a, p, "approval_wanted", "");
    return NULL;
}

/* Only a sandbox of its own policy: a person who decides trusts what he is shown. At a listener
 * that is bound to the policy there is none, or a provider's, which is in no list of ours. */
static bool is_of(const struct holder *h, const char *id)
{
    struct controller *c = h->of->controller;
    const struct sandbox *s = sandbox_find(&c->owner, id);
    if (s)
        return strcmp(sandbox_policy(s), h->policy) == 0;
    if (c->registry && strncmp(id, "rt-", 3) == 0)
        return identities_are_of(c, id, h->policy);
    return id[0] == 0 || strncmp(id, "vercel:", 7) == 0;
}

static int on_hold(struct holder *h, struct msg *m)
{
    struct approvals *a = h->of;
    struct approval *p = calloc(1, sizeof *p);
    if (p == NULL || take_summary(m, p) < 0) {
        free(p);
        return -1;
    }
    p->holder = h;
    snprintf(p->policy, sizeof p->policy, "%s", h->policy);
    if (!has_room(a, p)) {
        answer(h, p->req, PENDING_APPROVAL_FULL, "");
        free(p);
        return 0;
    }
    make_id(p->id);
    const char *nobody =
        is_of(h, p->sandbox) ? list_it(a, p) : "nobody: its sandbox is none of this policy";
    if (nobody) {
        answer(h, p->req, PENDING_APPROVAL_DENIED, nobody);
        give_back(p);
        free(p);
        return 0;
    }
    p->sequence = ++a->sequence;
    TAILQ_INSERT_TAIL(&a->list, p, link);
    json_t *v = a->controller->fleet_approvals ? to_json(p) : NULL;
    fleet_approvals_held(a->controller->fleet_approvals, p->id, v);
    json_decref(v);
    wake_all(a, false);
    return 0;
}

/* ---- what is held elsewhere ---- */

static int take_text(const json_t *v, const char *key, char *to, size_t size)
{
    const char *text = json_string_value(json_object_get(v, key));
    if (text == NULL || strlen(text) >= size)
        return -1;
    snprintf(to, size, "%s", text);
    clean(to);
    return 0;
}

static int take_foreign(struct approval *p, const json_t *v)
{
    const json_t *length = json_object_get(v, "upload_bytes");
    if (take_text(v, "sandbox", p->sandbox, sizeof p->sandbox) < 0 ||
        take_text(v, "policy", p->policy, sizeof p->policy) < 0 ||
        take_text(v, "method", p->method, sizeof p->method) < 0 ||
        take_text(v, "url", p->path, sizeof p->path) < 0 ||
        take_text(v, "query", p->query, sizeof p->query) < 0 ||
        take_text(v, "rule", p->rule, sizeof p->rule) < 0 ||
        take_text(v, "credential", p->credential, sizeof p->credential) < 0 ||
        take_text(v, "content_type", p->type, sizeof p->type) < 0)
        return -1;
    p->length =
        json_is_integer(length) ? (uint64_t)json_integer_value(length) : PENDING_APPROVAL_UNKNOWN;
    p->created = json_integer_value(json_object_get(v, "created"));
    p->expires = json_integer_value(json_object_get(v, "expires"));
    return 0;
}

int approvals_foreign(struct approvals *a, const char *id, const char *host, const json_t *v)
{
    struct approval *p = find(a, id) ? NULL : calloc(1, sizeof *p);
    if (p == NULL)
        return -1;
    snprintf(p->id, sizeof p->id, "%s", id);
    snprintf(p->host, sizeof p->host, "%s", host);
    if (take_foreign(p, v) < 0 ||
        quota_take(&a->elsewhere, &p->part, slice_str(host), 1) != QUOTA_TAKEN) {
        free(p);
        return -1;
    }
    p->sequence = ++a->sequence;
    TAILQ_INSERT_TAIL(&a->list, p, link);
    wake_all(a, false);
    return 0;
}

void approvals_foreign_over(struct approvals *a, const char *id)
{
    struct approval *p = find(a, id);
    if (p && p->holder == NULL)
        drop(a, p, "");
}

static int on_over(struct holder *h, struct msg *m)
{
    struct approvals *a = h->of;
    struct approval *p;
    uint32_t req;
    if (msg_get_u32(m, &req) < 0 || msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(p, &a->list, link)
    if (p->holder == h && p->req == req) {
        tell_client_over(a, p);
        happened(a, p, "approval_over", "");
        drop(a, p, "over");
        break;
    }
    return 0;
}

/* A secret came back into it, and its rule says what becomes of that. */
static int on_kill(struct holder *h, struct msg *m)
{
    struct controller *c = h->of->controller;
    char id[SANDBOX_ID_MAX + 1], why[128];
    struct err err = {0};
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_str(m, why, sizeof why) < 0 || msg_end(m) < 0)
        return -1;
    struct sandbox *s = sandbox_find(&c->owner, id);
    clean(why);
    if (s && strcmp(sandbox_policy(s), h->policy) == 0)
        controller_kill(c, s, why);
    else if (s == NULL && c->registry && strncmp(id, "rt-", 3) == 0)
        (void)identities_revoke_of(c, id, h->policy, &err); /* what it runs on is not ours to end */
    return 0;
}

/* A call to a model of it is over. */
static int on_called(struct holder *h, struct msg *m)
{
    struct controller *c = h->of->controller;
    struct denial_calls one = {.n = 1};
    char id[SANDBOX_ID_MAX + 1];
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_u64(m, &one.tokens_in) < 0 ||
        msg_get_u64(m, &one.tokens_out) < 0 || msg_get_u64(m, &one.cost) < 0 || msg_end(m) < 0)
        return -1;
    struct sandbox *s = sandbox_find(&c->owner, id);
    if (s && strcmp(sandbox_policy(s), h->policy) == 0)
        sandbox_called(s, &one);
    return 0;
}

/* ---- channels ---- */

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct holder *h = arg;
    switch (m->type) {
    case W_PENDING_APPROVAL:
        return on_hold(h, m);
    case W_PENDING_APPROVAL_OVER:
        return on_over(h, m);
    case W_KILL:
        return h->injector ? on_kill(h, m) : -1;
    case W_CALLED:
        return h->injector ? on_called(h, m) : -1;
    default:
        return -1;
    }
}

static void holder_free(struct holder *h)
{
    struct approvals *a = h->of;
    struct approval *p, *next;
    for (p = TAILQ_FIRST(&a->list); p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (p->holder != h)
            continue;
        tell_client_over(a, p);
        drop(a, p, "over");
    }
    LIST_REMOVE(h, link);
    a->n_holders--;
    ipc_free(h->ch);
    free(h);
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    holder_free(arg);
}

void approvals_holder(struct approvals *a, const char *policy, bool injector, int fd)
{
    struct holder *h = a->n_holders < APPROVALS_HOLDERS_MAX ? calloc(1, sizeof *h) : NULL;
    if (h == NULL) {
        close(fd);
        return;
    }
    h->of = a;
    h->injector = injector;
    snprintf(h->policy, sizeof h->policy, "%s", policy);
    h->ch = ipc_new(a->controller->base, fd, on_message, on_closed, h);
    if (h->ch == NULL) {
        free(h);
        return;
    }
    LIST_INSERT_HEAD(&a->holders, h, link);
    a->n_holders++;
}

void approvals_free(struct approvals *a)
{
    if (a == NULL)
        return;
    wake_all(a, true);
    while (!LIST_EMPTY(&a->holders))
        holder_free(LIST_FIRST(&a->holders));
    while (!TAILQ_EMPTY(&a->list))
        drop(a, TAILQ_FIRST(&a->list), "");
    free(a);
}
