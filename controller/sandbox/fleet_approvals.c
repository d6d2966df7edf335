/* Says what is held here, lists what is held elsewhere, and carries answers both ways. */
#include "fleet_approvals.h"

#include <event2/event.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <time.h>

#include "approvals.h"
#include "controller_internal.h"
#include "fleet_notes.h"
#include "fleet_seal.h"
#include "quota.h"
#include "proc.h"

enum {
    DIGEST = 2 * SHA256_DIGEST_LENGTH + 1,
    LATER = 600, /* a note outlives the request by so much, seconds */
    HOLD_MAX = 86400,
    SKEW = 300, /* of another host's clock; what is over there is said to be */
};

/* A request, of this host or of another one. */
struct asked {
    char id[APPROVAL_ID_MAX + 1];
    const char *host;    /* the seal's; "": this one */
    char digest[DIGEST]; /* of the text of its note */
    char by[FLEET_SEAL_KEY];
    int64_t expires;
    struct quota_part part; /* of what this host has shown to others */
    bool over;              /* it counts still, and is nothing else any more */
    TAILQ_ENTRY(asked) link;
};

struct answering {
    char id[APPROVAL_ID_MAX + 1];
    time_t until; /* monotonic */
    bool allow;
    fleet_answer_fn fn;
    void *arg;
    TAILQ_ENTRY(answering) link;
};

struct fleet_approvals {
    struct controller *controller;
    struct fleet_seal *seal;
    struct event *tick;
    size_t n_answering;
    struct quota shown; /* by policy and sandbox: notes that the database may still have */
    TAILQ_HEAD(, asked) asked;
    TAILQ_HEAD(, answering) answering;
};

static time_t monotonic(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

static void digest_of(struct slice body, char digest[DIGEST])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)body.p, body.n, hash);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(digest + 2 * i, 3, "%02x", hash[i]);
}

static struct asked *find(const struct fleet_approvals *f, const char *id)
{
    struct asked *k;
    TAILQ_FOREACH(k, &f->asked, link)
    if (!k->over && strcmp(k->id, id) == 0)
        return k;
    return NULL;
}

static struct asked *add(struct fleet_approvals *f, const char *id, const char *host,
                         struct slice body, int64_t expires)
{
    struct asked *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    snprintf(k->id, sizeof k->id, "%s", id);
    k->host = host;
    k->expires = expires;
    digest_of(body, k->digest);
    TAILQ_INSERT_TAIL(&f->asked, k, link);
    return k;
}

static void forget(struct fleet_approvals *f, struct asked *k)
{
    TAILQ_REMOVE(&f->asked, k, link);
    quota_leave(&k->part);
    free(k);
}

/* Puts v, of which it takes the reference, and gives its text. durable: somebody is told that it
 * was said. */
static int put(struct fleet_approvals *f, const char *kind, const char *id, json_t *v,
               int64_t seconds, bool durable, struct buf *text, struct err *err)
{
    int r = v && fleet_seal_put(f->seal, kind, id, v, text) == 0
                ? 0
                : err_set(err, ERR_LIMIT, "it is too long to be said");
    json_decref(v);
    if (r == 0)
        r = fleet_notes_put(f->controller->fleet, kind, id, buf_slice(text), (uint32_t)seconds,
                            durable, err);
    return r;
}

/* ---- what is held here ---- */

/* So that no other request has this note's digest, whatever became of the id. */
static json_t *nonce(void)
{
    unsigned char raw[16];
    char text[2 * sizeof raw + 1];
    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        abort();
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
    return json_string(text);
}

static int64_t left_of(const struct asked *k)
{
    int64_t left = k->expires - (int64_t)time(NULL);
    return left < 0 ? 0 : left < HOLD_MAX ? left : HOLD_MAX;
}

void fleet_approvals_held(struct fleet_approvals *f, const char *id, const json_t *v)
{
    struct buf text;
    struct err err = {0};
    int64_t expires = json_integer_value(json_object_get(v, "expires"));
    json_t *said = f && v ? json_copy((json_t *)(uintptr_t)v) : NULL;
    if (said == NULL)
        return;
    struct asked held = {.expires = expires};
    char owner[RUN_NAME_MAX + SANDBOX_ID_MAX + 2];
    snprintf(owner, sizeof owner, "%s|%s", json_string_value(json_object_get(v, "policy")),
             json_string_value(json_object_get(v, "sandbox")));
    if (quota_take(&f->shown, &held.part, slice_str(owner), 1) != QUOTA_TAKEN) {
        json_decref(said); /* whoever makes so many is shown here alone */
        return;
    }
    json_object_set_new(said, "nonce", nonce());
    buf_init(&text, NOTE_BODY_MAX);
    struct asked *k = put(f, "asked", id, said, left_of(&held) + LATER, false, &text, &err) == 0
                          ? add(f, id, "", buf_slice(&text), expires)
                          : NULL;
    if (k) {
        k->part = held.part;
    } else {
        quota_leave(&held.part);
        proc_log("a request that waits is not shown on other hosts: %s", err.text);
    }
    buf_free(&text);
}

static void say_ended(struct fleet_approvals *f, const char *id, const char *digest,
                      const char *end, const char *by, int64_t seconds)
{
    struct buf text;
    struct err err = {0};
    buf_init(&text, NOTE_BODY_MAX);
    (void)put(f, "ended", id, json_pack("{s:s, s:s, s:s}", "asked", digest, "end", end, "by", by),
              seconds, false, &text, &err);
    buf_free(&text);
}

void fleet_approvals_over(struct fleet_approvals *f, const char *id, const char *end)
{
    struct asked *k = f ? find(f, id) : NULL;
    if (k == NULL || k->host[0])
        return;
    fleet_notes_forget(f->controller->fleet, "asked", id);
    say_ended(f, id, k->digest, end, k->by, left_of(k) + LATER);
    k->expires = (int64_t)time(NULL) + left_of(k) + LATER;
    k->over = true;
}

/* ---- answers ---- */

static bool names(const json_t *v, const struct asked *k)
{
    const char *digest = json_string_value(json_object_get(v, "asked"));
    return digest && strcmp(digest, k->digest) == 0;
}

static void decide(struct fleet_approvals *f, struct asked *k, const json_t *v, const char *host,
                   const char *key)
{
    char who[120], id[APPROVAL_ID_MAX + 1];
    const json_t *allow = json_object_get(v, "allow");
    const char *said = json_string_value(json_object_get(v, "who"));
    if (!json_is_boolean(allow) || said == NULL)
        return;
    snprintf(who, sizeof who, "%.60s at %.50s", said, host);
    for (char *p = who; *p; p++) /* another host's word, for a record and a terminal */
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    snprintf(k->by, sizeof k->by, "%s", key);
    snprintf(id, sizeof id, "%s", k->id);
    (void)approvals_decide(f->controller->approvals, id, json_is_true(allow), who);
}

/* This host's own answer to another one's request: of a life before this one, too, it is the one
 * that there is, and is said again where the database loses it. */
static void know_own(struct fleet_approvals *f, struct asked *k, const char *id, struct slice body)
{
    snprintf(k->by, sizeof k->by, "%s", fleet_seal_key(f->seal));
    fleet_notes_keep(f->controller->fleet, "answered", id, body, (uint32_t)left_of(k) + LATER);
}

/* "ap-…-KEY": of whose answer there is one. */
static void on_answered(void *arg, const char *id, struct slice body)
{
    struct fleet_approvals *f = arg;
    char of[NOTE_ID_MAX + 1];
    const char *host = "";
    snprintf(of, sizeof of, "%s", id);
    char *dash = strrchr(of, '-');
    if (dash == NULL || (size_t)(dash - of) > APPROVAL_ID_MAX)
        return;
    *dash = 0;
    struct asked *k = find(f, of);
    if (k == NULL || (k->host[0] && strcmp(dash + 1, fleet_seal_key(f->seal)) != 0))
        return;
    json_t *v = fleet_seal_get(f->seal, "answered", id, body, &host);
    /* the key in the id is the one that signed: a host has one answer */
    bool good = v && names(v, k) && body.n > strlen(dash + 1) &&
                memcmp(body.p, dash + 1, strlen(dash + 1)) == 0 && body.p[strlen(dash + 1)] == '.';
    if (good && host[0] && k->host[0] == 0)
        decide(f, k, v, host, dash + 1);
    else if (good && host[0] == 0 && k->host[0])
        know_own(f, k, id, body);
    json_decref(v);
}

static void tell(struct fleet_approvals *f, struct answering *w, enum fleet_answer end)
{
    fleet_answer_fn fn = w->fn;
    void *arg = w->arg;
    TAILQ_REMOVE(&f->answering, w, link);
    f->n_answering--;
    free(w);
    fn(arg, end);
}

static struct answering *waits_for(const struct fleet_approvals *f, const char *id)
{
    struct answering *w;
    TAILQ_FOREACH(w, &f->answering, link)
    if (strcmp(w->id, id) == 0)
        return w;
    return NULL;
}

/* Not mine: this host said another word before it was started anew, and that one counts. */
static void on_said(void *arg, const char *id, bool mine)
{
    struct fleet_approvals *f = arg;
    char of[NOTE_ID_MAX + 1];
    snprintf(of, sizeof of, "%s", id);
    char *dash = strrchr(of, '-');
    if (mine || dash == NULL)
        return;
    *dash = 0;
    struct answering *w = waits_for(f, of);
    if (w)
        tell(f, w, FLEET_ANSWER_OTHER);
}

int fleet_approvals_answer(struct fleet_approvals *f, const char *id, bool allow, const char *who,
                           fleet_answer_fn fn, void *arg, struct err *err)
{
    char note[NOTE_ID_MAX + 1];
    struct buf text;
    struct asked *k = f ? find(f, id) : NULL;
    if (k == NULL || k->host[0] == 0)
        return err_set(err, ERR_PARSE, "no other host holds it");
    snprintf(note, sizeof note, "%s-%s", id, fleet_seal_key(f->seal));
    /* by: in this life; what waits: in one before */
    if (k->by[0] || fleet_notes_waits(f->controller->fleet, "answered", note))
        return err_set(err, ERR_DENIED, "this host has answered it already");
    if (!fleet_notes_up(f->controller->fleet))
        return err_set(err, ERR_UNREADY, "the fleet's database cannot be reached");
    struct answering *w = f->n_answering < FLEET_ANSWERS_MAX ? calloc(1, sizeof *w) : NULL;
    if (w == NULL)
        return err_set(err, ERR_UNREADY, "too many wait for other hosts");
    *w = (struct answering){.until = monotonic() + FLEET_ANSWER_SECONDS, .fn = fn, .arg = arg};
    w->allow = allow;
    snprintf(w->id, sizeof w->id, "%s", id);
    buf_init(&text, NOTE_BODY_MAX);
    int r = put(f, "answered", note,
                json_pack("{s:s, s:b, s:s}", "asked", k->digest, "allow", allow, "who", who),
                left_of(k) + LATER, true, &text, err);
    buf_free(&text);
    if (r < 0) {
        free(w);
        return -1;
    }
    snprintf(k->by, sizeof k->by, "%s", fleet_seal_key(f->seal));
    TAILQ_INSERT_TAIL(&f->answering, w, link);
    f->n_answering++;
    return 0;
}

/* ---- what is held elsewhere ---- */

static bool is_approval(const char *id)
{
    return strncmp(id, "ap-", 3) == 0 && strlen(id) <= APPROVAL_ID_MAX;
}

static void drop_foreign(struct fleet_approvals *f, struct asked *k)
{
    char note[NOTE_ID_MAX + 1];
    snprintf(note, sizeof note, "%s-%s", k->id, fleet_seal_key(f->seal));
    fleet_notes_forget(f->controller->fleet, "answered", note); /* nobody needs it any more */
    approvals_foreign_over(f->controller->approvals, k->id);
    forget(f, k);
}

static void on_ended(void *arg, const char *id, struct slice body)
{
    struct fleet_approvals *f = arg;
    const char *host = "", *by, *end;
    struct asked *k = find(f, id);
    if (k == NULL || k->host[0] == 0)
        return;
    json_t *v = fleet_seal_get(f->seal, "ended", id, body, &host);
    if (v && strcmp(host, k->host) == 0 && names(v, k) &&
        (by = json_string_value(json_object_get(v, "by"))) != NULL &&
        (end = json_string_value(json_object_get(v, "end"))) != NULL) {
        struct answering *w = waits_for(f, id);
        bool ours = w && strcmp(by, fleet_seal_key(f->seal)) == 0 &&
                    strcmp(end, w->allow ? "allowed" : "denied") == 0;
        drop_foreign(f, k);
        if (w)
            tell(f, w, ours ? FLEET_ANSWER_TAKEN : FLEET_ANSWER_OTHER);
    }
    json_decref(v);
}

/* A note of ours that we hold no more: of a controller before this one. */
static void end_own(struct fleet_approvals *f, const char *id, struct slice body)
{
    char digest[DIGEST];
    const struct asked *k;
    TAILQ_FOREACH(k, &f->asked, link)
    if (strcmp(k->id, id) == 0)
        return;
    digest_of(body, digest);
    say_ended(f, id, digest, "over", "", HOLD_MAX);
}

static void on_asked(void *arg, const char *id, struct slice body)
{
    struct fleet_approvals *f = arg;
    const char *host = "";
    int64_t now = (int64_t)time(NULL);
    if (!is_approval(id) || find(f, id))
        return;
    json_t *v = fleet_seal_get(f->seal, "asked", id, body, &host);
    int64_t expires = json_integer_value(json_object_get(v, "expires"));
    if (expires > INT64_MAX / 2)
        expires = INT64_MAX / 2; /* any host's word */
    if (v && host[0] == 0)
        end_own(f, id, body);
    else if (v && expires + SKEW > now &&
             approvals_foreign(f->controller->approvals, id, host, v) == 0 &&
             add(f, id, host, body, expires < now + HOLD_MAX ? expires + SKEW : now + HOLD_MAX) ==
                 NULL)
        approvals_foreign_over(f->controller->approvals, id);
    json_decref(v);
}

/* ---- time ---- */

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct fleet_approvals *f = arg;
    struct asked *k, *next;
    struct answering *w, *after;
    int64_t now = (int64_t)time(NULL);
    for (k = TAILQ_FIRST(&f->asked); k; k = next) {
        next = TAILQ_NEXT(k, link);
        if (k->host[0] && k->expires <= now)
            drop_foreign(f, k);
        else if (k->over && k->expires <= now)
            forget(f, k);
    }
    for (w = TAILQ_FIRST(&f->answering); w; w = after) {
        after = TAILQ_NEXT(w, link);
        if (w->until <= monotonic())
            tell(f, w, FLEET_ANSWER_WAITS);
    }
}

struct fleet_approvals *fleet_approvals_new(struct controller *c, struct err *err)
{
    static const struct timeval often = {1, 0};
    struct fleet_approvals *f = calloc(1, sizeof *f);
    if (f == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    f->controller = c;
    TAILQ_INIT(&f->asked);
    TAILQ_INIT(&f->answering);
    f->shown = (struct quota){.total = FLEET_SHOWN_MAX, .each = FLEET_SHOWN_EACH};
    f->seal = fleet_seal_new(c->keys.fleet, config_fleet(c->config), err);
    f->tick = event_new(c->base, -1, EV_PERSIST, on_tick, f);
    if (f->seal == NULL || f->tick == NULL || event_add(f->tick, &often) < 0) {
        if (!err->code)
            err_set(err, ERR_INTERNAL, "out of memory");
        fleet_approvals_free(f);
        return NULL;
    }
    const struct fleet_reader readers[] = {
        {.kind = "asked", .note = on_asked, .arg = f},
        {.kind = "answered", .note = on_answered, .kept = on_said, .arg = f},
        {.kind = "ended", .note = on_ended, .arg = f}};
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        fleet_notes_reader(c->fleet, &readers[i]);
    return f;
}

void fleet_approvals_free(struct fleet_approvals *f)
{
    struct asked *k;
    struct answering *w;
    if (f == NULL)
        return;
    while ((w = TAILQ_FIRST(&f->answering)) != NULL)
        tell(f, w, FLEET_ANSWER_WAITS);
    while ((k = TAILQ_FIRST(&f->asked)) != NULL)
        forget(f, k);
    fleet_seal_free(f->seal);
    if (f->tick)
        event_free(f->tick);
    free(f);
}
