/* Says what this host is doing, keeps what others say, and puts it together with what the logger
 * knows of their logs. */
#include "fleet_hosts.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "approvals.h"
#include "budget.h"
#include "controller_internal.h"
#include "fleet_line.h"
#include "fleet_notes.h"
#include "fleet_seal.h"
#include "journal.h"
#include "managed_sandbox.h"
#include "timestamp.h"
#include "wire.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

enum {
    LISTED_MAX = FLEET_HOSTS_MAX + FLEET_LINE_HOSTS + 1,
    VERSION_MAX = 32,
    LIMIT_MAX = 64,
    POLICY_MAX = 72,
    TEXT_MAX = 320,
    EVERY_MOST = 3600,
    MISSED = 3, /* notes that did not come: it is silent */
    SLACK_US = 2000000,
    SKEW_US = 300 * 1000000, /* a clock that is further behind has its host look silent */
};

static const char kind[] = "host";
static const json_int_t most = INT64_C(1) << 53;

struct known_log {
    bool told;
    uint64_t number, seq, heard; /* of its latest head, 0: none; heard: ns since 1970 */
    json_t *problems;            /* NULL: not told */
};

struct known_host {
    char name[FLEET_NAME_MAX + 1];
    bool own, named; /* named: by fleet.hosts, so that what it says can be checked */
    bool any;        /* it has said something */
    uint64_t number;
    int64_t heard; /* us of CLOCK_BOOTTIME, at the latest; before the host's start it is below 0 */
    int64_t every; /* seconds */
    json_t *said;
    struct known_log log;
};

struct fleet_hosts {
    struct controller *controller;
    struct fleet_seal *seal;
    struct event *tick;
    uint64_t number, due; /* due: us */
    json_t *shares;       /* what this host holds, as its role said last */
    json_int_t shares_more;
    size_t n;
    struct known_host list[LISTED_MAX]; /* the first is this host */
};

static int64_t boot_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static struct known_host *find(struct fleet_hosts *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return &f->list[i];
    return NULL;
}

static struct known_host *add(struct fleet_hosts *f, const char *name)
{
    struct known_host *h = find(f, name);
    if (h || f->n == LISTED_MAX)
        return h;
    h = &f->list[f->n++];
    snprintf(h->name, sizeof h->name, "%s", name);
    return h;
}

/* ---- what this host says ---- */

static size_t sandboxes(const struct controller *c)
{
    const struct managed_sandbox *r;
    size_t n = 0;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    n += !r->pooled; /* nobody has those yet */
    return n;
}

static json_t *own_words(const struct fleet_hosts *f)
{
    struct controller *c = f->controller;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return json_pack("{s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:O, s:I}", "number",
                     (json_int_t)f->number, "time", (json_int_t)time(NULL), "every",
                     (json_int_t)config_fleet(c->config)->logs.every, "version", PACKAGE_VERSION,
                     "uptime", (json_int_t)(now.tv_sec - c->started), "sandboxes",
                     (json_int_t)sandboxes(c), "held", (json_int_t)approvals_held(c->approvals),
                     "shares", f->shares, "shares_more", f->shares_more);
}

/* Above what this host said in a life before, too: its clock, or what it has read of itself. */
static void say(struct fleet_hosts *f)
{
    struct buf text;
    uint64_t now = timestamp_now() / 1000000;
    f->number = now > f->number ? now : f->number + 1;
    json_t *v = own_words(f);
    buf_init(&text, NOTE_BODY_MAX);
    if (v && fleet_seal_put(f->seal, kind, fleet_seal_key(f->seal), v, &text) == 0)
        fleet_notes_renew(f->controller->fleet, kind, fleet_seal_key(f->seal), buf_slice(&text),
                          FLEET_HOSTS_SECONDS);
    buf_free(&text);
    json_decref(v);
}

static json_t *share_json(struct msg *m)
{
    char policy[POLICY_MAX], limit[LIMIT_MAX];
    struct budget b = {.n = 1};
    uint8_t of;
    uint32_t seconds;
    uint64_t amount, held;
    if (msg_get_str(m, policy, sizeof policy) < 0 || msg_get_u8(m, &of) < 0 ||
        msg_get_u32(m, &seconds) < 0 || msg_get_u64(m, &amount) < 0 || msg_get_u64(m, &held) < 0 ||
        of >= BUDGET_KINDS || seconds == 0 || seconds > BUDGET_SECONDS_MAX ||
        amount > (uint64_t)most || held > amount)
        return NULL;
    b.limits[0] =
        (struct budget_limit){.kind = (enum budget_kind)of, .seconds = seconds, .amount = amount};
    return json_pack("{s:s, s:s, s:I, s:I}", "policy", policy, "limit",
                     budget_text(&b, limit, sizeof limit), "amount", (json_int_t)amount, "held",
                     (json_int_t)held);
}

static int on_shares(void *arg, struct msg *m)
{
    struct fleet_hosts *f = arg;
    uint32_t n;
    json_t *list = json_array();
    if (list == NULL || msg_get_u32(m, &n) < 0)
        goto bad;
    for (uint32_t i = 0; i < n; i++) {
        json_t *one = share_json(m);
        if (one == NULL)
            goto bad;
        if (i < FLEET_HOSTS_SHARES)
            json_array_append(list, one);
        json_decref(one);
    }
    if (msg_end(m) < 0)
        goto bad;
    json_decref(f->shares);
    f->shares = list;
    f->shares_more = n > FLEET_HOSTS_SHARES ? n - FLEET_HOSTS_SHARES : 0;
    return 0;
bad:
    json_decref(list);
    return -1;
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct fleet_hosts *f = arg;
    struct controller *c = f->controller;
    uint64_t now = (uint64_t)boot_us();
    fleet_notes_ask_shares(c->fleet);
    (void)journal_ask_fleet(c->journal);
    /* what this host said in a life before is known first: it is replaced by what is said now */
    if (now < f->due || !fleet_notes_up(c->fleet) || fleet_notes_read_at(c->fleet) == 0)
        return;
    f->due = now + config_fleet(c->config)->logs.every * UINT64_C(1000000);
    say(f);
}

/* ---- what others say ---- */

/* Another host's word, for a person's eyes. */
static int take_text(json_t *to, const json_t *v, const char *key, size_t max)
{
    char text[TEXT_MAX];
    const char *said = json_string_value(json_object_get(v, key));
    if (said == NULL || strlen(said) >= max || max > sizeof text)
        return -1;
    snprintf(text, sizeof text, "%s", said);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    return json_object_set_new(to, key, json_string(text));
}

static int take_number(json_t *to, const json_t *v, const char *key)
{
    const json_t *n = json_object_get(v, key);
    if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) > most)
        return -1;
    return json_object_set_new(to, key, json_integer(json_integer_value(n)));
}

static json_t *take_share(const json_t *v)
{
    json_t *to = json_object();
    if (to && take_text(to, v, "policy", POLICY_MAX) == 0 &&
        take_text(to, v, "limit", LIMIT_MAX) == 0 && take_number(to, v, "amount") == 0 &&
        take_number(to, v, "held") == 0)
        return to;
    json_decref(to);
    return NULL;
}

/* What it may have said, and no more. NULL: it is none. */
static json_t *take_words(const json_t *v)
{
    static const char *const numbers[] = {"number", "time",      "every",      "uptime",
                                          "held",   "sandboxes", "shares_more"};
    const json_t *shares = json_object_get(v, "shares");
    json_t *to = json_object(), *list = json_array();
    int bad = to == NULL || !json_is_array(shares) ||
              json_array_size(shares) > FLEET_HOSTS_SHARES ||
              take_text(to, v, "version", VERSION_MAX) < 0;
    for (size_t i = 0; !bad && i < ARRAY_LEN(numbers); i++)
        bad = take_number(to, v, numbers[i]) < 0;
    for (size_t i = 0; !bad && i < json_array_size(shares); i++) {
        json_t *one = take_share(json_array_get(shares, i));
        bad = one == NULL || json_array_append_new(list, one) < 0;
    }
    if (!bad && json_object_set(to, "shares", list) == 0) {
        json_decref(list);
        return to;
    }
    json_decref(list);
    json_decref(to);
    return NULL;
}

static int64_t of(const json_t *v, const char *key)
{
    return json_integer_value(json_object_get(v, key));
}

/* When it was said: by that host's clock, but not before all was read without it, and not later
 * than now. Whoever has the database may have held it back: what makes up for a clock that is
 * behind is bounded. */
static int64_t said_at(const struct fleet_hosts *f, const json_t *v)
{
    int64_t now = boot_us(), read = (int64_t)fleet_notes_read_at(f->controller->fleet);
    int64_t seconds = (int64_t)time(NULL) - of(v, "time"); /* which may be any number */
    int64_t age = seconds > 0 ? seconds * 1000000 : 0, sure = age - SKEW_US;
    if (read && age > now - read)
        age = sure > now - read ? sure : now - read;
    return now - age;
}

static void on_host(void *arg, const char *id, struct slice body)
{
    struct fleet_hosts *f = arg;
    const char *name = "";
    size_t n = strlen(id);
    json_t *v = fleet_seal_get(f->seal, kind, id, body, &name);
    /* the key in the id is the one that signed: a host speaks for itself alone */
    json_t *said =
        v && body.n > n && memcmp(body.p, id, n) == 0 && body.p[n] == '.' ? take_words(v) : NULL;
    json_decref(v);
    struct known_host *h = said ? name[0] ? find(f, name) : &f->list[0] : NULL;
    uint64_t number = (uint64_t)of(said, "number");
    if (h && h->own && number > f->number)
        f->number = number; /* in a life before this one */
    if (h && !h->own && number > h->number && of(said, "every") <= EVERY_MOST) {
        h->heard = said_at(f, said);
        h->number = number;
        h->every = of(said, "every");
        h->any = true;
        json_decref(h->said);
        h->said = json_incref(said);
    }
    json_decref(said);
}

/* ---- what is known of logs ---- */

static json_t *take_problems(struct msg *m)
{
    char what[32], text[TEXT_MAX];
    uint32_t n;
    json_t *list = json_array();
    if (msg_get_u32(m, &n) < 0 || n > FLEET_HOSTS_PROBLEMS)
        goto bad;
    for (uint32_t i = 0; i < n; i++) {
        if (msg_get_str(m, what, sizeof what) < 0 || msg_get_str(m, text, sizeof text) < 0)
            goto bad;
        json_array_append_new(list, json_pack("{s:s, s:s}", "what", what, "text", text));
    }
    if (msg_end(m) == 0)
        return list;
bad:
    json_decref(list);
    return NULL;
}

int fleet_hosts_log(struct fleet_hosts *f, struct msg *m)
{
    char name[FLEET_LINE_NAME + 1];
    struct known_log log = {.told = true};
    if (msg_get_str(m, name, sizeof name) < 0 || msg_get_u64(m, &log.number) < 0 ||
        msg_get_u64(m, &log.seq) < 0 || msg_get_u64(m, &log.heard) < 0 ||
        (log.problems = take_problems(m)) == NULL)
        return -1;
    struct known_host *h = f ? find(f, name) : NULL;
    if (h == NULL) {
        json_decref(log.problems);
        return 0; /* it is none of the configuration's */
    }
    json_decref(h->log.problems);
    h->log = log;
    return 0;
}

/* ---- as JSON ---- */

/* Sets `at` and `age_seconds`; both are null where it was never. */
static void put_age(json_t *v, const char *at, bool ever, int64_t age_us)
{
    int64_t seconds = age_us > 0 ? age_us / 1000000 : 0;
    json_object_set_new(v, at, ever ? json_integer((int64_t)time(NULL) - seconds) : json_null());
    json_object_set_new(v, "age_seconds", ever ? json_integer(seconds) : json_null());
}

static json_t *log_json(const struct known_log *l)
{
    if (!l->told)
        return json_null();
    bool good = l->number && json_array_size(l->problems) == 0;
    json_t *v = json_pack("{s:s, s:I, s:I, s:O}", "state",
                          good             ? "agrees"
                          : l->number == 0 ? "unknown"
                                           : "doubted",
                          "head", (json_int_t)l->number, "records", (json_int_t)l->seq, "problems",
                          l->problems);
    uint64_t now = timestamp_now(); /* heard: by that host's clock, which may be ahead of ours */
    put_age(v, "heard", l->heard != 0, now > l->heard ? (int64_t)((now - l->heard) / 1000) : 0);
    return v;
}

static bool reads(const struct fleet_hosts *f)
{
    int64_t at = (int64_t)fleet_notes_read_at(f->controller->fleet);
    return at && boot_us() - at < FLEET_HOSTS_STALE * INT64_C(1000000);
}

static const char *state_of(const struct fleet_hosts *f, const struct known_host *h,
                            const char **why)
{
    *why = NULL;
    if (h->own)
        return reads(f) ? "connected" : "silent";
    if (!h->named)
        *why = "fleet.hosts does not name it, so nothing that it says of itself can be checked";
    else if (!h->any)
        *why = "nothing that it says of itself was read here";
    else if (!reads(f))
        *why = "this host does not hear the fleet, and cannot say whether that one is there";
    if (*why)
        return "unknown";
    return boot_us() - h->heard > h->every * MISSED * 1000000 + SLACK_US ? "silent" : "connected";
}

static void put_words(json_t *v, const json_t *said)
{
    static const char *const keys[][2] = {
        {"version", "version"}, {"uptime_seconds", "uptime"}, {"sandboxes", "sandboxes"},
        {"held", "held"},       {"shares", "shares"},         {"shares_more", "shares_more"}};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_t *one = json_object_get(said, keys[i][1]);
        json_object_set(v, keys[i][0], one ? one : json_null());
    }
}

static json_t *host_json(const struct fleet_hosts *f, const struct known_host *h)
{
    const char *why, *state = state_of(f, h, &why);
    json_t *v = json_pack("{s:s, s:b, s:s, s:s?}", "host", h->name, "this", h->own, "state", state,
                          "why", why);
    json_t *own = h->own ? own_words(f) : NULL;
    if (h->own)
        put_age(v, "heard", true, 0);
    else
        put_age(v, "heard", h->any, boot_us() - h->heard);
    put_words(v, h->own ? own : h->said);
    json_object_set_new(v, "log", log_json(&h->log));
    json_decref(own);
    return v;
}

json_t *fleet_hosts_json(const struct fleet_hosts *f)
{
    if (f == NULL)
        return json_pack("{s:n, s:b, s:n, s:n, s:[]}", "host", "connected", 0, "read",
                         "age_seconds", "hosts");
    uint64_t read = fleet_notes_read_at(f->controller->fleet);
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, host_json(f, &f->list[i]));
    json_t *v =
        json_pack("{s:s, s:b, s:o}", "host", f->list[0].name, "connected", reads(f), "hosts", list);
    put_age(v, "read", read != 0, boot_us() - (int64_t)read);
    return v;
}

/* ---- birth and death ---- */

/* Its name: as its log's, else as the list of hosts has it, if that serves all of them. */
static void add_own(struct fleet_hosts *f, const struct config_fleet *config,
                    const unsigned char key[FLEET_KEY])
{
    char name[FLEET_NAME_MAX + 1] = "";
    if (gethostname(name, sizeof name - 1) < 0 || name[0] == 0)
        snprintf(name, sizeof name, "this host");
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    for (size_t i = 0; i < config->n_hosts; i++)
        if (memcmp(config->hosts[i].key, key, FLEET_KEY) == 0)
            snprintf(name, sizeof name, "%s", config->hosts[i].name);
    if (config->logs.host)
        snprintf(name, sizeof name, "%s", config->logs.host);
    add(f, name)->own = true;
}

static void add_all(struct fleet_hosts *f, const struct config_fleet *config,
                    const unsigned char key[FLEET_KEY])
{
    add_own(f, config, key);
    for (size_t i = 0; i < config->n_hosts; i++) {
        struct known_host *h = memcmp(config->hosts[i].key, key, FLEET_KEY) == 0
                                   ? NULL
                                   : add(f, config->hosts[i].name);
        if (h)
            h->named = true;
    }
    for (size_t i = 0; i < config->logs.n; i++)
        (void)add(f, config->logs.all[i].name);
}

struct fleet_hosts *fleet_hosts_new(struct controller *c, struct err *err)
{
    static const struct timeval often = {1, 0};
    struct fleet_hosts *f = calloc(1, sizeof *f);
    if (f == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    f->controller = c;
    f->shares = json_array();
    f->seal = fleet_seal_new(c->keys.fleet, config_fleet(c->config), err);
    f->tick = event_new(c->base, -1, EV_PERSIST, on_tick, f);
    if (f->seal == NULL || f->tick == NULL || event_add(f->tick, &often) < 0) {
        if (!err->code)
            err_set(err, ERR_INTERNAL, "out of memory");
        fleet_hosts_free(f);
        return NULL;
    }
    add_all(f, config_fleet(c->config), c->keys.fleet_public);
    fleet_notes_reader(c->fleet, &(struct fleet_reader){.kind = kind, .note = on_host, .arg = f});
    fleet_notes_on_shares(c->fleet, on_shares, f);
    return f;
}

void fleet_hosts_free(struct fleet_hosts *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->n; i++) {
        json_decref(f->list[i].said);
        json_decref(f->list[i].log.problems);
    }
    json_decref(f->shares);
    fleet_seal_free(f->seal);
    if (f->tick)
        event_free(f->tick);
    free(f);
}
