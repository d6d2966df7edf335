/* Runs c-ares on libevent, with a channel of its own for each state of the host's configuration.
 * Nothing is cached; queries are bounded by who pays for them and by the dialer's channel. */
#include "resolve.h"

#include "fair_queue.h"

#include <ares.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>

enum { WATCH_MAX = 64 };

/* One file descriptor that c-ares wants watched. */
struct watch {
    ares_socket_t fd;
    struct event *ev; /* NULL: free */
};

/* One c-ares channel. When the host's configuration changes a new one is made; the old one lives
 * until its queries are answered. */
struct requester {
    struct resolver *resolver;
    ares_channel channel;
    struct watch watches[WATCH_MAX];
    struct event *timer;
    unsigned queries;
    LIST_ENTRY(requester) link;
};

enum query_state {
    QUERY_QUEUED,   /* its payer has its part of those that are asked */
    QUERY_ASKED,    /* c-ares will call back */
    QUERY_ANSWERED, /* the answer is told from the loop */
    QUERY_CANCELLED /* c-ares will call back, nobody listens */
};

struct resolve_query {
    struct resolver *resolver;
    struct requester *requester; /* ASKED, CANCELLED */
    char *host, *payer;
    struct fair_item place;       /* QUEUED */
    struct quota_part part, asks; /* of the payer's, of its channel's */
    enum query_state state;
    uint16_t port;
    resolve_fn fn;
    void *arg;
    struct event *tell;
    const char *why;
    size_t n;
    struct address list[RESOLVE_ADDRESSES_MAX];
    LIST_ENTRY(resolve_query) link;
};

struct resolver {
    struct event_base *base;
    char *servers, *resolv_conf;
    struct requester *current;
    struct event *reap; /* frees requesters that are done, away from their own callbacks */
    struct timespec conf_mtime;
    time_t checked;
    struct quota quota, channels; /* of queries: by payer, by channel */
    struct fair_queue queue;
    struct event *turn; /* there is room for who waits; from the loop, not in c-ares' callbacks */
    LIST_HEAD(, requester) requesters;
    LIST_HEAD(, resolve_query) open;
};

static void requester_run(struct requester *a, ares_socket_t rd, ares_socket_t wr);

/* ---- c-ares on libevent ---- */

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    requester_run(arg, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    requester_run(arg, what & EV_READ ? fd : ARES_SOCKET_BAD,
                  what & EV_WRITE ? fd : ARES_SOCKET_BAD);
}

static void requester_arm(struct requester *a)
{
    struct timeval room, *tv = ares_timeout(a->channel, NULL, &room);
    if (tv)
        event_add(a->timer, tv);
    else
        event_del(a->timer);
}

static void requester_run(struct requester *a, ares_socket_t rd, ares_socket_t wr)
{
    ares_process_fd(a->channel, rd, wr);
    requester_arm(a);
}

static void on_watch(void *data, ares_socket_t fd, int readable, int writable)
{
    struct requester *a = data;
    struct watch *w = NULL;
    for (size_t i = 0; i < WATCH_MAX; i++) {
        if (a->watches[i].ev && a->watches[i].fd == fd) {
            w = &a->watches[i];
            break;
        }
        if (w == NULL && a->watches[i].ev == NULL)
            w = &a->watches[i];
    }
    if (w == NULL) /* more sockets than servers and tries explain: that query times out */
        return;
    if (w->ev) {
        event_free(w->ev);
        w->ev = NULL;
    }
    short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
    if (what == 0)
        return;
    w->fd = fd;
    w->ev = event_new(a->resolver->base, fd, (short)(what | EV_PERSIST), on_socket, a);
    if (w->ev)
        event_add(w->ev, NULL);
}

static void requester_free(struct requester *a)
{
    LIST_REMOVE(a, link);
    if (a->channel)
        ares_destroy(a->channel); /* calls back with ARES_EDESTRUCTION, then closes its sockets */
    for (size_t i = 0; i < WATCH_MAX; i++)
        if (a->watches[i].ev)
            event_free(a->watches[i].ev);
    if (a->timer)
        event_free(a->timer);
    free(a);
}

static struct requester *requester_new(struct resolver *r, struct err *err)
{
    char lookups[] = "fb";
    struct requester *a = calloc(1, sizeof *a);
    struct ares_options o = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                             .timeout = RESOLVE_TRY_MS,
                             .tries = RESOLVE_TRIES,
                             .ndots = 0,
                             .ndomains = 0,
                             .lookups = lookups,
                             .sock_state_cb = on_watch,
                             .sock_state_cb_data = a,
                             .resolvconf_path = r->resolv_conf};
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
               ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB |
               (r->resolv_conf ? ARES_OPT_RESOLVCONF : 0);
#ifdef ARES_OPT_QUERY_CACHE
    /* Later c-ares answers from a cache; here each answer is of this moment. */
    o.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    if (a == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    a->resolver = r;
    LIST_INSERT_HEAD(&r->requesters, a, link);
    a->timer = event_new(r->base, -1, 0, on_timer, a);
    int rc = ares_init_options(&a->channel, &o, mask);
    if (rc != ARES_SUCCESS)
        a->channel = NULL;
    else if (r->servers)
        rc = ares_set_servers_ports_csv(a->channel, r->servers);
    if (rc != ARES_SUCCESS || a->timer == NULL) {
        err_set(err, ERR_INTERNAL, "the resolver does not start: %s", ares_strerror(rc));
        requester_free(a);
        return NULL;
    }
    return a;
}

/* ---- queries ---- */

static void query_free(struct resolve_query *q)
{
    fair_queue_leave(&q->place);
    LIST_REMOVE(q, link);
    if (q->tell)
        event_free(q->tell);
    free(q->host);
    free(q->payer);
    free(q);
}

static void query_release(struct resolve_query *q)
{
    struct resolver *r = q->resolver;
    q->requester->queries--;
    quota_leave(&q->part);
    quota_leave(&q->asks);
    if (q->requester != r->current && q->requester->queries == 0)
        event_active(r->reap, EV_TIMEOUT, 0);
    q->requester = NULL;
    if (!TAILQ_EMPTY(&r->queue.groups))
        event_active(r->turn, EV_TIMEOUT, 0);
}

static void on_reap(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct resolver *r = arg;
    struct requester *a = LIST_FIRST(&r->requesters);
    while (a) {
        struct requester *next = LIST_NEXT(a, link);
        if (a != r->current && a->queries == 0)
            requester_free(a);
        a = next;
    }
}

static void on_tell(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct resolve_query *q = arg;
    struct address list[RESOLVE_ADDRESSES_MAX];
    resolve_fn fn = q->fn;
    void *fn_arg = q->arg;
    const char *why = q->why;
    size_t n = q->n;
    memcpy(list, q->list, n * sizeof list[0]);
    query_free(q);
    fn(fn_arg, list, n, why);
}

static const char *why_of(int status)
{
    switch (status) {
    case ARES_ENOTFOUND:
        return "no such name";
    case ARES_ENODATA:
        return "the name has no address";
    case ARES_ETIMEOUT:
        return "the name server does not answer";
    case ARES_ECONNREFUSED:
        return "no name server is reachable";
    case ARES_ESERVFAIL:
        return "the name server failed";
    case ARES_EREFUSED:
        return "the name server refused";
    default:
        return "the name could not be resolved";
    }
}

static void take_addresses(struct resolve_query *q, const struct ares_addrinfo *info)
{
    const struct ares_addrinfo_node *i = info ? info->nodes : NULL;
    for (; i && q->n < RESOLVE_ADDRESSES_MAX; i = i->ai_next) {
        if (i->ai_family == AF_INET)
            address_set(&q->list[q->n++], AF_INET,
                        &((const struct sockaddr_in *)(const void *)i->ai_addr)->sin_addr, q->port);
        else if (i->ai_family == AF_INET6)
            address_set(&q->list[q->n++], AF_INET6,
                        &((const struct sockaddr_in6 *)(const void *)i->ai_addr)->sin6_addr,
                        q->port);
    }
}

static void on_answer(void *arg, int status, int timeouts UNUSED, struct ares_addrinfo *info)
{
    struct resolve_query *q = arg;
    bool cancelled = q->state == QUERY_CANCELLED;
    query_release(q);
    if (cancelled) {
        query_free(q);
    } else {
        q->state = QUERY_ANSWERED;
        q->why = "";
        if (status == ARES_SUCCESS)
            take_addresses(q, info);
        if (q->n == 0)
            q->why = why_of(status == ARES_SUCCESS ? ARES_ENODATA : status);
        event_active(q->tell, EV_TIMEOUT, 0);
    }
    if (info)
        ares_freeaddrinfo(info);
}

/* The host's configuration may have changed (a laptop in another network). Looked at once a second
 * at most; when the new one cannot be used the old one goes on. */
static void reload(struct resolver *r)
{
    struct stat st;
    time_t now = time(NULL);
    if (r->servers || now == r->checked)
        return;
    r->checked = now;
    if (stat(r->resolv_conf ? r->resolv_conf : "/etc/resolv.conf", &st) < 0)
        memset(&st, 0, sizeof st);
    if (st.st_mtim.tv_sec == r->conf_mtime.tv_sec && st.st_mtim.tv_nsec == r->conf_mtime.tv_nsec)
        return;
    struct requester *a = requester_new(r, NULL);
    if (a == NULL)
        return;
    r->conf_mtime = st.st_mtim;
    r->current = a;
    event_active(r->reap, EV_TIMEOUT, 0);
}

static struct slice channel_of(struct slice payer)
{
    ssize_t bar = slice_find(payer, '|');
    return (struct slice){payer.p, bar < 0 ? payer.n : (size_t)bar};
}

/* A channel says whose its queries are: it cannot have more by naming many. */
static bool may_ask(void *arg, const struct fair_item *i)
{
    const struct resolver *r = arg;
    struct slice payer = slice_str(((const struct resolve_query *)i->self)->payer);
    return quota_would(&r->channels, channel_of(payer), 1) == QUOTA_TAKEN &&
           quota_would(&r->quota, payer, 1) == QUOTA_TAKEN;
}

static bool take_part(struct resolver *r, struct resolve_query *q)
{
    struct slice payer = slice_str(q->payer);
    return quota_take(&r->channels, &q->asks, channel_of(payer), 1) == QUOTA_TAKEN &&
           quota_take(&r->quota, &q->part, payer, 1) == QUOTA_TAKEN;
}

static void ask(struct resolver *r, struct resolve_query *q)
{
    struct ares_addrinfo_hints hints = {
        .ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    reload(r);
    struct requester *a = r->current;
    q->requester = a;
    q->state = QUERY_ASKED;
    a->queries++;
    if (take_part(r, q)) {
        ares_getaddrinfo(a->channel, q->host, NULL, &hints, on_answer, q); /* may answer at once */
        requester_arm(a);
    } else {
        on_answer(q, ARES_ENOMEM, 0, NULL);
    }
}

static void on_turns(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct resolver *r = arg;
    struct fair_item *i;
    while (r->quota.used < r->quota.total && (i = fair_queue_next(&r->queue, may_ask, r)) != NULL)
        ask(r, i->self);
}

struct resolve_query *resolver_get(struct resolver *r, struct slice payer, const char *host,
                                   uint16_t port, resolve_fn fn, void *arg)
{
    struct resolve_query *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    LIST_INSERT_HEAD(&r->open, q, link);
    q->resolver = r;
    q->state = QUERY_QUEUED;
    q->port = port;
    q->fn = fn;
    q->arg = arg;
    q->place.self = q;
    q->tell = event_new(r->base, -1, 0, on_tell, q);
    q->host = strdup(host);
    q->payer = slice_dup(payer);
    if (q->tell == NULL || q->host == NULL || q->payer == NULL) {
        query_free(q);
        return NULL;
    }
    if (!fair_queue_has(&r->queue, payer) && may_ask(r, &q->place)) {
        ask(r, q);
        return q;
    }
    if (fair_queue_add(&r->queue, &q->place, payer, q) == QUOTA_TAKEN)
        return q;
    query_free(q);
    return NULL;
}

bool resolve_waits(const struct resolve_query *q)
{
    return q->state == QUERY_QUEUED;
}

void resolve_cancel(struct resolve_query *q)
{
    if (q->state == QUERY_ANSWERED || q->state == QUERY_QUEUED)
        query_free(q);
    else
        q->state = QUERY_CANCELLED;
}

/* ---- the resolver ---- */

struct resolver *resolver_new(struct event_base *base, const struct resolver_options *o,
                              struct err *err)
{
    struct resolver *r = calloc(1, sizeof *r);
    if (r == NULL || ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
        free(r);
        err_set(err, ERR_INTERNAL, "the resolver library does not start");
        return NULL;
    }
    LIST_INIT(&r->requesters);
    LIST_INIT(&r->open);
    r->quota = (struct quota){.total = RESOLVE_QUERIES_MAX, .each = RESOLVE_QUERIES_EACH};
    r->channels = (struct quota){.total = RESOLVE_QUERIES_MAX, .each = RESOLVE_QUERIES_MAX};
    fair_queue_init(&r->queue, RESOLVE_WAITING_MAX, RESOLVE_WAITING_EACH);
    r->base = base;
    r->servers = o && o->servers ? strdup(o->servers) : NULL;
    r->resolv_conf = o && o->resolv_conf ? strdup(o->resolv_conf) : NULL;
    r->reap = event_new(base, -1, 0, on_reap, r);
    r->turn = event_new(base, -1, 0, on_turns, r);
    struct stat st;
    if (stat(r->resolv_conf ? r->resolv_conf : "/etc/resolv.conf", &st) == 0)
        r->conf_mtime = st.st_mtim;
    r->current = r->reap && r->turn ? requester_new(r, err) : NULL;
    if (r->current == NULL) {
        resolver_free(r);
        return NULL;
    }
    return r;
}

void resolver_free(struct resolver *r)
{
    struct resolve_query *q;
    struct requester *a;
    if (r == NULL)
        return;
    LIST_FOREACH(q, &r->open, link)
    if (q->state == QUERY_ASKED)
        q->state = QUERY_CANCELLED;
    r->current = LIST_FIRST(&r->requesters); /* nothing is reaped from the callbacks below */
    while ((a = LIST_FIRST(&r->requesters)) != NULL)
        requester_free(a);
    while ((q = LIST_FIRST(&r->open)) != NULL)
        query_free(q);
    if (r->reap)
        event_free(r->reap);
    if (r->turn)
        event_free(r->turn);
    free(r->servers);
    free(r->resolv_conf);
    free(r);
    ares_library_cleanup();
}
