/* Adds each record to the windows of its sandbox and queues what crosses a threshold. Of distinct
 * hosts it remembers 64 bits of SHA-256 each, and no more of them than the limit needs. */
#include "thresholds.h"

#include "open_requests.h"
#include "wire.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/queue.h>

enum {
    PARTS = 21, /* the one that is going on, and twenty whole ones */
    BUCKETS = 1024,
    OPEN_REQUESTS = 32768,               /* requests whose bytes are counted while they last, */
    OPEN_REQUEST_ONE = OPEN_REQUESTS / 4 /* and of one payer */
};

/* Who fills the table: a policy, or a gate that serves several. When it is full, the one with most
 * in it loses what was silent longest: nobody's sandboxes push another's out. */
struct payer {
    LIST_ENTRY(payer) link;
    char name[RENDER_NAME_MAX + 16];
    size_t n_boxes, n_open_requests;
};

struct host {
    uint64_t hash, last; /* s */
};

struct window {
    uint64_t part[PARTS];
    uint64_t at;          /* number of the part that is going on */
    uint64_t quiet_until; /* s */
    struct host *hosts;   /* NOTIFY_HOSTS: limit of them; NULL: none yet */
    size_t n_hosts;
};

struct box {
    TAILQ_ENTRY(box) age; /* silent longest first */
    LIST_ENTRY(box) same; /* bucket */
    char sandbox[RENDER_NAME_MAX + 1], policy[RENDER_NAME_MAX + 1];
    size_t bucket;
    struct payer *payer;
    struct open_requests open_requests;
    struct window window[NOTIFY_MAX];
};

struct thresholds {
    struct config_threshold list[NOTIFY_MAX];
    struct suppressions suppressions;
    size_t n, n_boxes, n_open_requests;
    TAILQ_HEAD(, box) boxes;
    LIST_HEAD(, box) bucket[BUCKETS];
    LIST_HEAD(, payer) payers; /* each has a box */
    struct crossing pending[THRESHOLDS_PENDING];
    size_t first, n_pending;
};

struct thresholds *thresholds_new(const struct config_threshold *list, size_t n)
{
    struct thresholds *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    memcpy(t->list, list, n * sizeof *list);
    t->n = n;
    TAILQ_INIT(&t->boxes);
    LIST_INIT(&t->payers);
    for (size_t i = 0; i < BUCKETS; i++)
        LIST_INIT(&t->bucket[i]);
    return t;
}

static void drop(struct thresholds *t, struct box *b)
{
    struct payer *p = b->payer;
    TAILQ_REMOVE(&t->boxes, b, age);
    LIST_REMOVE(b, same);
    t->n_boxes--;
    t->n_open_requests -= b->open_requests.n;
    p->n_open_requests -= b->open_requests.n;
    open_requests_free(&b->open_requests);
    if (--p->n_boxes == 0) {
        LIST_REMOVE(p, link);
        free(p);
    }
    for (size_t i = 0; i < t->n; i++)
        free(b->window[i].hosts);
    free(b);
}

void thresholds_free(struct thresholds *t)
{
    while (t && !TAILQ_EMPTY(&t->boxes))
        drop(t, TAILQ_FIRST(&t->boxes));
    free(t);
}

const struct config_threshold *thresholds_at(const struct thresholds *t, size_t index)
{
    return &t->list[index];
}

/* ---- whose ---- */

/* Of SHA-256: nobody can choose names that fall together. */
static uint64_t hash(struct slice a, struct slice b)
{
    unsigned char text[2 * (RENDER_NAME_MAX + 256)], out[SHA256_DIGEST_LENGTH];
    uint64_t h;
    size_t n = a.n < sizeof text / 2 ? a.n : sizeof text / 2 - 1;
    size_t m = b.n < sizeof text / 2 ? b.n : sizeof text / 2 - 1;
    if (n)
        memcpy(text, a.p, n);
    text[n] = 0;
    if (m)
        memcpy(text + n + 1, b.p, m);
    SHA256(text, n + 1 + m, out);
    memcpy(&h, out, sizeof h);
    return h;
}

static struct payer *payer_of(struct thresholds *t, const struct render_source *from)
{
    char name[sizeof(struct payer){0}.name];
    struct payer *p;
    if (from->policy[0])
        snprintf(name, sizeof name, "%s", from->policy);
    else
        snprintf(name, sizeof name, "#%u", (unsigned)from->channel); /* no policy's name */
    LIST_FOREACH(p, &t->payers, link)
    if (strcmp(p->name, name) == 0)
        return p;
    if ((p = calloc(1, sizeof *p)) == NULL)
        return NULL;
    memcpy(p->name, name, sizeof p->name);
    LIST_INSERT_HEAD(&t->payers, p, link);
    return p;
}

static void make_room(struct thresholds *t)
{
    struct payer *p, *most = LIST_FIRST(&t->payers);
    struct box *b;
    LIST_FOREACH(p, &t->payers, link)
    most = p->n_boxes > most->n_boxes ? p : most;
    TAILQ_FOREACH(b, &t->boxes, age)
    if (b->payer == most)
        break;
    drop(t, b);
}

static struct box *box_of(struct thresholds *t, struct slice sandbox, struct slice policy,
                          const struct render_source *from)
{
    size_t at = (size_t)(hash(sandbox, policy) % BUCKETS);
    struct box *b;
    LIST_FOREACH(b, &t->bucket[at], same)
    if (slice_eq_str(sandbox, b->sandbox) && slice_eq_str(policy, b->policy))
        break;
    if (b) {
        TAILQ_REMOVE(&t->boxes, b, age);
        TAILQ_INSERT_TAIL(&t->boxes, b, age);
        return b;
    }
    if (t->n_boxes == THRESHOLDS_BOXES)
        make_room(t);
    struct payer *p = payer_of(t, from);
    if (p == NULL || (b = calloc(1, sizeof *b)) == NULL) {
        if (p && p->n_boxes == 0) {
            LIST_REMOVE(p, link);
            free(p);
        }
        return NULL;
    }
    b->payer = p;
    p->n_boxes++;
    snprintf(b->sandbox, sizeof b->sandbox, "%.*s", (int)sandbox.n, sandbox.p);
    snprintf(b->policy, sizeof b->policy, "%.*s", (int)policy.n, policy.p);
    b->bucket = at;
    LIST_INSERT_HEAD(&t->bucket[at], b, same);
    TAILQ_INSERT_TAIL(&t->boxes, b, age);
    t->n_boxes++;
    return b;
}

/* ---- windows ---- */

static void clear(struct window *w)
{
    memset(w->part, 0, sizeof w->part);
    w->n_hosts = 0;
}

/* Parts whose time is over go. */
static uint64_t *part_now(struct window *w, unsigned seconds, uint64_t now)
{
    uint64_t at = now * (PARTS - 1) / seconds;
    if (at - w->at >= PARTS)
        memset(w->part, 0, sizeof w->part);
    else
        for (uint64_t i = w->at + 1; i <= at; i++)
            w->part[i % PARTS] = 0;
    w->at = at;
    return &w->part[at % PARTS];
}

static uint64_t sum(const struct window *w)
{
    uint64_t all = 0;
    for (size_t i = 0; i < PARTS; i++)
        all += w->part[i] < UINT64_MAX - all ? w->part[i] : UINT64_MAX - all;
    return all;
}

/* How many distinct ones: no more are remembered than are needed to reach the limit. */
static uint64_t hosts_note(struct window *w, const struct config_threshold *c, uint64_t host,
                           uint64_t now)
{
    size_t kept = 0;
    bool known = false;
    if (w->hosts == NULL && (w->hosts = calloc(c->limit, sizeof *w->hosts)) == NULL)
        return 0;
    for (size_t i = 0; i < w->n_hosts; i++) {
        struct host h = w->hosts[i];
        if (h.hash == host) {
            h.last = now;
            known = true;
        }
        if (now - h.last <= c->seconds)
            w->hosts[kept++] = h;
    }
    w->n_hosts = kept;
    if (!known && kept < c->limit)
        w->hosts[w->n_hosts++] = (struct host){host, now};
    return w->n_hosts;
}

/* ---- crossings ---- */

static void cross(struct thresholds *t, size_t index, struct box *b, uint64_t value, uint64_t now,
                  const struct record_view *v, const struct render_source *from)
{
    const struct config_threshold *c = &t->list[index];
    struct window *w = &b->window[index];
    if (value < c->limit || now < w->quiet_until || t->n_pending == THRESHOLDS_PENDING)
        return; /* with no room it is tried again at the next record */
    struct crossing *to = &t->pending[(t->first + t->n_pending++) % THRESHOLDS_PENDING];
    *to = (struct crossing){.index = index, .value = value};
    memcpy(to->sandbox, b->sandbox, sizeof to->sandbox);
    memcpy(to->policy, b->policy, sizeof to->policy);
    snprintf(to->request, sizeof to->request, "%u-%llu", (unsigned)from->channel,
             (unsigned long long)v->counter);
    if (c->then == NOTIFY_ONLY)
        w->quiet_until = now + c->seconds;
    clear(w);
}

bool thresholds_take(struct thresholds *t, struct crossing *ret)
{
    if (t->n_pending == 0)
        return false;
    *ret = t->pending[t->first];
    t->first = (t->first + 1) % THRESHOLDS_PENDING;
    t->n_pending--;
    return true;
}

/* ---- records ---- */

static uint64_t number(struct slice s)
{
    uint64_t n;
    return s.n && slice_u64(s, INT64_MAX, &n) == 0 ? n : 0;
}

static uint64_t at_least_one(struct slice s)
{
    uint64_t n = number(s);
    return n ? n : 1;
}

/* Bytes of this request that were not counted yet. */
static uint64_t sent(struct thresholds *t, struct box *b, const struct record_view *v,
                     const struct render_source *from, uint64_t now)
{
    struct payer *p = b->payer;
    uint64_t id = ((uint64_t)from->channel << 40) ^ v->counter;
    size_t before = b->open_requests.n;
    uint64_t fresh = open_requests_note(
        &b->open_requests, id, number(v->field[RF_UP]), v->kind != RECORD_PROGRESS,
        t->n_open_requests < OPEN_REQUESTS && p->n_open_requests < OPEN_REQUEST_ONE, now);
    t->n_open_requests += b->open_requests.n - before;
    p->n_open_requests += b->open_requests.n - before;
    return fresh;
}

/* Where it has no place, or not as often as the rule says. */
static bool is_misplaced(struct slice code)
{
    return slice_eq_str(code, "secret_blocked") || slice_eq_str(code, "placeholder_count");
}

static uint64_t of_denial(const struct record_view *v, enum notify_measure m)
{
    struct slice code = v->field[RF_CODE];
    switch (m) {
    case NOTIFY_DENIED:
        return at_least_one(v->field[RF_COUNT]);
    case NOTIFY_FOREIGN:
        return slice_eq_str(code, "foreign_credential");
    case NOTIFY_CROSS:
        return slice_eq_str(code, "cross_sandbox");
    case NOTIFY_MISPLACED:
        return is_misplaced(code);
    default:
        return 0;
    }
}

/* What the record adds to a measure that is no set. */
static uint64_t adds(const struct record_view *v, enum notify_measure m, uint64_t bytes,
                     size_t line)
{
    if (m == NOTIFY_LOG_BYTES)
        return line;
    struct slice code = v->field[RF_CODE];
    switch (v->kind) {
    case RECORD_DENIED:
        return of_denial(v, m);
    case RECORD_COMPLETED:
    case RECORD_ABORTED:
    case RECORD_PROGRESS:
        if (m == NOTIFY_REFLECTED && v->kind != RECORD_PROGRESS &&
            slice_eq_str(code, "secret_reflected"))
            return at_least_one(v->field[RF_COUNT]);
        if (v->kind == RECORD_ABORTED &&
            ((m == NOTIFY_MISPLACED && is_misplaced(code)) ||
             (m == NOTIFY_CROSS && slice_eq_str(code, "cross_sandbox"))))
            return 1; /* it came after the head, as in a message of a WebSocket */
        return m == NOTIFY_BYTES_UP ? bytes : 0;
    case RECORD_DNS:
        return m == NOTIFY_NAMES && !slice_eq_str(code, "ok") &&
                       !slice_eq_str(v->field[RF_TARGET], WIRE_SELFTEST_NAME)
                   ? at_least_one(v->field[RF_COUNT])
                   : 0;
    case RECORD_PACKET:
        return m == NOTIFY_PACKETS ? at_least_one(v->field[RF_COUNT]) : 0;
    default:
        return 0;
    }
}

static bool is_counted(enum record_kind k)
{
    return k == RECORD_ADMITTED || k == RECORD_DENIED || k == RECORD_COMPLETED ||
           k == RECORD_ABORTED || k == RECORD_PROGRESS || k == RECORD_DNS || k == RECORD_PACKET;
}

/* Bytes that left, and those of the log, are no findings. */
static bool leaves_out(const struct config_threshold *c)
{
    return c->then == NOTIFY_ONLY && c->measure != NOTIFY_LOG_BYTES &&
           c->measure != NOTIFY_BYTES_UP;
}

void thresholds_suppress(struct thresholds *t, const struct suppressions *list)
{
    t->suppressions = *list;
}

static struct slice owner(const char *channel, struct slice field)
{
    return channel[0] ? slice_str(channel) : field;
}

void thresholds_note(struct thresholds *t, const struct record_view *v,
                     const struct render_source *from, size_t line, uint64_t now)
{
    if (t == NULL || !is_counted(v->kind))
        return;
    bool moves =
        v->kind == RECORD_COMPLETED || v->kind == RECORD_ABORTED || v->kind == RECORD_PROGRESS;
    bool asks = v->kind == RECORD_ADMITTED || v->kind == RECORD_DENIED;
    /* who asks for previews is outside: what they do sets off nothing against the sandbox */
    bool outside = slice_eq_str(v->field[RF_ENTRY], "inbound");
    struct slice host = v->field[RF_AUTHORITY].n ? v->field[RF_AUTHORITY] : v->field[RF_TARGET];
    struct box *b = box_of(t, owner(from->sandbox, v->field[RF_SANDBOX]),
                           owner(from->policy, v->field[RF_POLICY]), from);
    uint64_t bytes = b && moves ? sent(t, b, v, from, now) : 0;
    bool suppressed = b && suppressions_fit(&t->suppressions, v, from, (int64_t)time(NULL));
    for (size_t i = 0; b && i < t->n; i++) {
        const struct config_threshold *c = &t->list[i];
        struct window *w = &b->window[i];
        uint64_t n = 0, value = 0;
        if ((suppressed && leaves_out(c)) || (outside && c->measure != NOTIFY_LOG_BYTES))
            continue;
        if (c->measure == NOTIFY_HOSTS) {
            if (asks && host.n)
                value = hosts_note(w, c, hash(host, SLICE("host")), now);
        } else if ((n = adds(v, c->measure, bytes, line)) > 0) {
            uint64_t *part = part_now(w, c->seconds, now);
            *part += n < UINT64_MAX / 2 ? n : UINT64_MAX / 2;
            value = sum(w);
        }
        if (value)
            cross(t, i, b, value, now, v, from);
    }
}
