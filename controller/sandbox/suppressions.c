/* Takes suppressions, keeps them in the registry, and tells the parent which are in force. */
#include "suppressions.h"

#include "controller_internal.h"
#include "proc.h"
#include "quota.h"
#include "registry.h"
#include "sandbox_events.h"
#include "severity.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID_PREFIX = 3, WHO_MAX = 120 };

struct entry {
    struct quota_part part; /* while it is open or active */
    struct suppression what;
    char id[SUPPRESSION_ID_MAX + 1];
    char reason[SUPPRESSION_REASON_MAX + 1];
    char made_by[WHO_MAX + 1], accepted_by[WHO_MAX + 1], lifted_by[WHO_MAX + 1];
    int64_t created, accepted, lifted; /* seconds since 1970; 0: not yet */
    TAILQ_ENTRY(entry) link;
};

TAILQ_HEAD(entry_list, entry);

struct suppressing {
    struct controller *controller;
    struct quota quota; /* by who wrote it */
    struct entry_list list;
};

struct suppressing *suppressing_new(struct controller *c)
{
    struct suppressing *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->controller = c;
    s->quota = (struct quota){.total = SUPPRESSIONS_MAX, .each = SUPPRESSIONS_EACH};
    TAILQ_INIT(&s->list);
    return s;
}

static void drop(struct suppressing *s, struct entry *e)
{
    TAILQ_REMOVE(&s->list, e, link);
    quota_leave(&e->part);
    free(e);
}

void suppressing_free(struct suppressing *s)
{
    while (s && !TAILQ_EMPTY(&s->list))
        drop(s, TAILQ_FIRST(&s->list));
    free(s);
}

/* ---- states ---- */

static int64_t now_seconds(void)
{
    return (int64_t)time(NULL);
}

static bool is_over(const struct entry *e, int64_t now)
{
    return e->lifted || now >= e->what.expires;
}

static const char *state_of(const struct entry *e, int64_t now)
{
    return e->lifted                ? "lifted"
           : now >= e->what.expires ? "expired"
           : e->accepted            ? "active"
                                    : "open";
}

static struct entry *find(const struct suppressing *s, const char *id)
{
    struct entry *e;
    TAILQ_FOREACH(e, &s->list, link)
    if (strcmp(e->id, id) == 0)
        return e;
    return NULL;
}

static bool same(const struct suppression *a, const struct suppression *b)
{
    return strcmp(a->policy, b->policy) == 0 && strcmp(a->code, b->code) == 0 &&
           strcmp(a->host, b->host) == 0 && strcmp(a->method, b->method) == 0 &&
           strcmp(a->path, b->path) == 0 && strcmp(a->sandbox, b->sandbox) == 0;
}

void suppressing_announce(const struct suppressing *s)
{
    int64_t now = now_seconds();
    struct suppressions *all = calloc(1, sizeof *all);
    const struct entry *e;
    struct msg m;
    if (all == NULL)
        return; /* the parent has those of before: the next change says it again */
    TAILQ_FOREACH(e, &s->list, link)
    if (e->accepted && !is_over(e, now) && all->n < SUPPRESSIONS_MAX)
        all->list[all->n++] = e->what;
    msg_init(&m, W_SUPPRESS);
    suppressions_put(all, &m);
    ipc_send(s->controller->owner.parent, &m);
    free(all);
}

/* Gives back the places of those that expired, and forgets the oldest that ended. */
static void tidy(struct suppressing *s, int64_t now)
{
    struct entry *e, *next;
    struct err err = {0};
    size_t ended = 0;
    for (e = TAILQ_LAST(&s->list, entry_list); e; e = next) {
        next = TAILQ_PREV(e, entry_list, link);
        if (!is_over(e, now))
            continue;
        quota_leave(&e->part);
        if (++ended <= SUPPRESSIONS_ENDED_MAX)
            continue;
        if (registry_suppression_delete(s->controller->registry, e->id, &err) < 0)
            proc_log("a suppression that ended: %s", err.text);
        else
            drop(s, e);
    }
}

/* ---- rows ---- */

static int save(const struct suppressing *s, const struct entry *e, struct err *err)
{
    const struct registry_suppression row = {
        .id = e->id,
        .policy = e->what.policy,
        .code = e->what.code,
        .host = e->what.host,
        .method = e->what.method,
        .path = e->what.path,
        .sandbox = e->what.sandbox,
        .reason = e->reason,
        .made_by = e->made_by,
        .accepted_by = e->accepted_by,
        .lifted_by = e->lifted_by,
        .created = e->created,
        .expires = e->what.expires,
        .accepted = e->accepted,
        .lifted = e->lifted,
    };
    return registry_suppression_put(s->controller->registry, &row, err);
}

static bool copy(char *to, size_t size, const char *from)
{
    return snprintf(to, size, "%s", from ? from : "") < (int)size;
}

static bool fill(struct entry *e, const struct registry_suppression *row)
{
    struct err err = {0};
    e->what.expires = row->expires;
    e->created = row->created;
    e->accepted = row->accepted;
    e->lifted = row->lifted;
    return copy(e->id, sizeof e->id, row->id) &&
           copy(e->what.policy, sizeof e->what.policy, row->policy) &&
           copy(e->what.code, sizeof e->what.code, row->code) &&
           copy(e->what.host, sizeof e->what.host, row->host) &&
           copy(e->what.method, sizeof e->what.method, row->method) &&
           copy(e->what.path, sizeof e->what.path, row->path) &&
           copy(e->what.sandbox, sizeof e->what.sandbox, row->sandbox) &&
           copy(e->reason, sizeof e->reason, row->reason) &&
           copy(e->made_by, sizeof e->made_by, row->made_by) &&
           copy(e->accepted_by, sizeof e->accepted_by, row->accepted_by) &&
           copy(e->lifted_by, sizeof e->lifted_by, row->lifted_by) &&
           suppression_check(&e->what, &err) == 0;
}

static int on_row(void *arg, const struct registry_suppression *row)
{
    struct suppressing *s = arg;
    struct entry *e = calloc(1, sizeof *e);
    if (e == NULL || !fill(e, row)) {
        free(e);
        return -1;
    }
    TAILQ_INSERT_TAIL(&s->list, e, link);
    if (!is_over(e, now_seconds()))
        (void)quota_take(&s->quota, &e->part, slice_str(e->made_by), 1);
    return 0;
}

int suppressing_load(struct suppressing *s, struct err *err)
{
    int r = registry_suppression_each(s->controller->registry, on_row, s, err);
    if (r < 0 && err->code == 0)
        err_set(err, ERR_PARSE, "the registry holds a damaged suppression");
    return r;
}

/* ---- written, accepted, lifted ---- */

static void note(const struct suppressing *s, const struct entry *e, const char *what,
                 const char *who)
{
    struct record r;
    struct tm tm;
    char detail[600], until[32];
    time_t end = (time_t)e->what.expires;
    strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
    snprintf(detail, sizeof detail, "%s by %s, until %s: %s", e->id, who, until, e->reason);
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, what);
    record_put_str(&r, RF_TARGET, e->what.sandbox);
    record_put_str(&r, RF_POLICY, e->what.policy);
    record_put_str(&r, RF_AUTHORITY, e->what.host);
    record_put_str(&r, RF_METHOD, e->what.method);
    record_put_str(&r, RF_PATH, e->what.path);
    record_put_str(&r, RF_CODE, e->what.code);
    record_put_str(&r, RF_DETAIL, detail);
    controller_put(s->controller, &r);
    sandbox_events_add(s->controller->sandbox_events, e->what.sandbox, what, detail);
}

/* What people write goes to terminals and pages: printable ASCII. */
static void clean(char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            *s = '?';
}

static int check(const struct suppression *what, int64_t seconds, const char *reason,
                 struct err *err)
{
    bool critical = severity_of(RECORD_DENIED, what->code) == SEVERITY_CRITICAL;
    if (suppression_check(what, err) < 0)
        return -1;
    if (strspn(reason, " ") == strlen(reason))
        return err_set(err, ERR_PARSE, "'reason' says why nobody has to look at them");
    if (seconds < 1 || seconds > SUPPRESSION_SECONDS)
        return err_set(err, ERR_PARSE, "'expires_in' is a number of seconds, at most 90 days");
    if (critical && seconds > SUPPRESSION_CRITICAL_SECONDS)
        return err_set(err, ERR_PARSE, "'%s' is critical: it is suppressed for at most 7 days",
                       what->code);
    return 0;
}

static int make_id(char id[SUPPRESSION_ID_MAX + 1], struct err *err)
{
    char whole[SANDBOX_ID_MAX + 1];
    if (sandbox_make_id("su", whole, err) < 0)
        return -1;
    snprintf(id, SUPPRESSION_ID_MAX + 1, "%.*s", 12 + ID_PREFIX, whole);
    return 0;
}

static enum suppression_end take(struct suppressing *s, struct entry *e, struct err *err)
{
    if (quota_take(&s->quota, &e->part, slice_str(e->made_by), 1) != QUOTA_TAKEN)
        return SUPPRESSION_FULL;
    return make_id(e->id, err) < 0 || save(s, e, err) < 0 ? SUPPRESSION_FAILED : SUPPRESSION_DONE;
}

enum suppression_end suppressing_add(struct suppressing *s, const struct suppression *what,
                                     int64_t seconds, const char *reason, const char *who,
                                     char id[SUPPRESSION_ID_MAX + 1], struct err *err)
{
    int64_t now = now_seconds();
    struct entry *e;
    if (check(what, seconds, reason, err) < 0)
        return SUPPRESSION_FAILED;
    tidy(s, now);
    TAILQ_FOREACH(e, &s->list, link)
    if (!is_over(e, now) && same(&e->what, what)) {
        memcpy(id, e->id, sizeof e->id);
        return SUPPRESSION_KNOWN;
    }
    if ((e = calloc(1, sizeof *e)) == NULL)
        return SUPPRESSION_FULL;
    e->what = *what;
    e->what.expires = now + seconds;
    e->created = now;
    copy(e->reason, sizeof e->reason, reason);
    clean(e->reason);
    copy(e->made_by, sizeof e->made_by, who);
    enum suppression_end end = take(s, e, err);
    if (end != SUPPRESSION_DONE) {
        quota_leave(&e->part);
        free(e);
        return end;
    }
    TAILQ_INSERT_TAIL(&s->list, e, link);
    memcpy(id, e->id, sizeof e->id);
    note(s, e, "suppression_made", who);
    return end;
}

enum suppression_end suppressing_accept(struct suppressing *s, const char *id, const char *who,
                                        bool owner, struct err *err)
{
    struct entry *e = find(s, id);
    if (e == NULL)
        return SUPPRESSION_NONE;
    if (is_over(e, now_seconds()))
        return SUPPRESSION_OVER;
    if (e->accepted)
        return SUPPRESSION_DONE;
    if (!owner && strcmp(e->made_by, who) == 0)
        return SUPPRESSION_OWN;
    e->accepted = now_seconds();
    copy(e->accepted_by, sizeof e->accepted_by, who);
    if (save(s, e, err) < 0) {
        e->accepted = 0;
        e->accepted_by[0] = 0;
        return SUPPRESSION_FAILED;
    }
    note(s, e, "suppression_accepted", who);
    suppressing_announce(s);
    return SUPPRESSION_DONE;
}

enum suppression_end suppressing_lift(struct suppressing *s, const char *id, const char *who,
                                      struct err *err)
{
    struct entry *e = find(s, id);
    if (e == NULL)
        return SUPPRESSION_NONE;
    if (e->lifted)
        return SUPPRESSION_DONE;
    if (is_over(e, now_seconds()))
        return SUPPRESSION_OVER;
    e->lifted = now_seconds();
    copy(e->lifted_by, sizeof e->lifted_by, who);
    if (save(s, e, err) < 0) {
        e->lifted = 0;
        e->lifted_by[0] = 0;
        return SUPPRESSION_FAILED;
    }
    quota_leave(&e->part);
    note(s, e, "suppression_lifted", who);
    suppressing_announce(s);
    return SUPPRESSION_DONE;
}

/* ---- shown ---- */

static void put(json_t *v, const char *key, const char *text)
{
    if (*text)
        json_object_set_new(v, key, json_string(text));
}

static json_t *to_json(const struct entry *e)
{
    enum severity bad = severity_of(RECORD_DENIED, e->what.code);
    json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "id", e->id,
                          "state", state_of(e, now_seconds()), "policy", e->what.policy, "code",
                          e->what.code, "severity", severity_name(bad), "host", e->what.host,
                          "reason", e->reason, "made_by", e->made_by, "created",
                          (json_int_t)e->created, "expires", (json_int_t)e->what.expires);
    if (v == NULL)
        return NULL;
    put(v, "method", e->what.method);
    put(v, "path", e->what.path);
    put(v, "sandbox", e->what.sandbox);
    put(v, "accepted_by", e->accepted_by);
    put(v, "lifted_by", e->lifted_by);
    if (e->accepted)
        json_object_set_new(v, "accepted", json_integer(e->accepted));
    if (e->lifted)
        json_object_set_new(v, "lifted", json_integer(e->lifted));
    return v;
}

json_t *suppressing_show(const struct suppressing *s, const char *id)
{
    const struct entry *e = find(s, id);
    return e ? to_json(e) : NULL;
}

json_t *suppressing_json(const struct suppressing *s)
{
    json_t *list = json_array();
    const struct entry *e;
    TAILQ_FOREACH(e, &s->list, link)
    json_array_append_new(list, to_json(e));
    return json_pack("{s:o}", "suppressions", list);
}
