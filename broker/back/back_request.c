/* A request of a front's, from the decision to its last record. */
#include "back_request.h"

#include "budget_client.h"
#include "pending_approval.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 130 }; /* of two secrets */

static void set_closed(struct back_request *r)
{
    r->closed = buf_len(&r->held) > 0 || r->waiting;
    broker_stream_pause(r->stream, r->paused || r->closed);
}

void back_request_init(struct back_request *r, struct back *b, const struct back_asked *asked,
                       struct broker_stream *stream, const struct back_request_ops *ops, void *arg)
{
    r->back = b;
    r->ops = ops;
    r->arg = arg;
    r->at = asked->at;
    r->stream = stream;
    r->waiting = true;
    broker_stream_hold(stream, true); /* nobody would have what it asked for */
    set_closed(r);
    r->policy = policy_ref(b->policy);
    snprintf(r->sandbox, sizeof r->sandbox, "%s", asked->sandbox);
    buf_init_wiped(&r->held, BROKER_PACKET_MAX);
}

int back_request_begin(struct back_request *r, struct back *b, const struct back_asked *asked,
                       const struct broker_stream_ops *stream_ops,
                       const struct back_request_ops *ops, void *arg)
{
    if (quota_take(&b->requests, &r->place, slice_str(asked->sandbox), 1) != QUOTA_TAKEN) {
        close(asked->fd);
        return -1;
    }
    struct broker_stream *stream = broker_stream_new(b->base, asked->fd, stream_ops, arg);
    if (stream == NULL) {
        quota_leave(&r->place);
        return -1;
    }
    back_request_init(r, b, asked, stream, ops, arg);
    return 0;
}

void back_request_free(struct back_request *r, const char *code)
{
    pending_approval_cancel(r->approving);
    budget_client_free(r->budget);
    quota_leave(&r->lease);
    quota_leave(&r->place);
    journal_cancel(r->wait, code);
    policy_free(r->policy);
    buf_free(&r->held);
}

/* ---- records ---- */

/* The secret, or "LOGIN CERTIFICATE" of the two that a connection shows. */
static const char *credential_names(const struct credential *c, char *buf, size_t size)
{
    if (c->other == NULL)
        return c->secret;
    snprintf(buf, size, "%s %s", c->secret, c->other->secret);
    return buf;
}

void back_request_put(const struct back_request *r, struct record *to)
{
    char text[HOST_TEXT_MAX + 16], names[NAMES_MAX];
    record_put_str(to, RF_SCHEME, scheme_name(r->at.scheme));
    record_put_str(to, RF_AUTHORITY, authority_text(&r->at, text, sizeof text));
    record_put_str(to, RF_ENTRY, "transparent");
    record_put_str(to, RF_RULE, r->rule ? r->rule->text : "");
    record_put_str(to, RF_SANDBOX, r->sandbox);
    if (r->rule && r->rule->credential)
        record_put_str(to, RF_CREDENTIAL,
                       credential_names(r->rule->credential, names, sizeof names));
}

static void put(const struct back_request *r, struct record *to)
{
    back_request_put(r, to);
    r->ops->put(r->arg, to);
}

void back_request_deny(struct back_request *r, const char *code, const char *detail)
{
    struct record of;
    record_init(&of, RECORD_DENIED, 0);
    put(r, &of);
    record_put_str(&of, RF_CODE, code);
    record_put_str(&of, RF_DETAIL, detail);
    journal_note(r->back->journal, &of);
}

void back_request_end(struct back_request *r, enum record_kind kind, const char *code,
                      const char *address, const char *detail)
{
    struct timespec now;
    struct record of;
    if (!r->admitted)
        return;
    r->admitted = false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record_init(&of, kind, r->counter);
    record_put_str(&of, RF_CODE, code);
    record_put_u64(&of, RF_UP, r->n_up);
    record_put_u64(&of, RF_DOWN, r->n_down);
    record_put_u64(&of, RF_MS,
                   (uint64_t)((now.tv_sec - r->begun.tv_sec) * 1000 +
                              (now.tv_nsec - r->begun.tv_nsec) / 1000000));
    record_put_str(&of, RF_ADDRESS, address);
    r->ops->put_end(r->arg, &of);
    record_put_str(&of, RF_DETAIL, detail); /* if it has said none */
    journal_note(r->back->journal, &of);
}

void back_request_id(const struct back_request *r, char *id, size_t size)
{
    journal_id(r->back->journal, r->counter, id, size);
}

/* ---- the decision ---- */

const char *back_request_decide(struct back_request *r)
{
    struct decision d;
    r->ops->decide(r->arg, r->policy, &d);
    r->rule = d.rule;
    if (d.verdict != VERDICT_DENY)
        return NULL;
    back_request_deny(r, d.code, "");
    return d.code;
}

bool back_request_goes_on(const struct back_request *r)
{
    struct decision d;
    r->ops->decide(r->arg, r->back->policy, &d);
    return (d.verdict == VERDICT_ALLOW || (d.verdict == VERDICT_ASK && r->rule->ask)) &&
           strcmp(r->rule->said, d.rule->said) == 0;
}

/* ---- the record ---- */

static void on_recorded(void *arg, bool ok)
{
    struct back_request *r = arg;
    r->wait = NULL;
    r->admitted = ok;
    r->waiting = !ok;
    broker_stream_hold(r->stream, r->waiting);
    set_closed(r);
    if (ok)
        r->ops->admitted(r->arg, NULL, "");
    else
        r->ops->admitted(r->arg, "audit_unwritable", "it could not be recorded");
}

static void record_begin(struct back_request *r)
{
    struct record of;
    struct journal *j = r->back->journal;
    r->counter = journal_next(j);
    clock_gettime(CLOCK_MONOTONIC, &r->begun);
    record_init(&of, RECORD_ADMITTED, r->counter);
    put(r, &of);
    record_put_str(&of, RF_CODE, "ok");
    record_put_str(&of, RF_DETAIL, r->approval);
    struct journal_wait *w = journal_append(j, &of, on_recorded, r);
    if (w)
        r->wait = w; /* else on_recorded ran, and r may be gone */
}

/* ---- budgets ---- */

static void refuse(struct back_request *r, const char *code, const char *detail, const char *text)
{
    back_request_deny(r, code, detail);
    r->ops->admitted(r->arg, code, text);
}

static void on_budget(void *arg, unsigned status UNUSED, const char *code, unsigned retry)
{
    struct back_request *r = arg;
    char spent[160] = "", text[240];
    if (code == NULL) {
        record_begin(r);
        return;
    }
    const struct budget *b = budget_client_spent(r->budget);
    if (b)
        budget_text(b, spent, sizeof spent);
    if (retry)
        snprintf(text, sizeof text, "the budget is used up (%s); again in %u s", spent, retry);
    else
        snprintf(text, sizeof text, "the budget is used up (%s)", spent);
    refuse(r, code, spent, b ? text : "its budget cannot be had");
}

/* What is held goes first, as much as budgets leave, while its owner reads at all; the owner may
 * end in it. */
static void flow(struct back_request *r)
{
    unsigned char some[BROKER_PACKET_MAX];
    size_t held = buf_len(&r->held);
    size_t n = held && !r->paused ? budget_client_up_room(r->budget, held) : 0;
    if (n) {
        budget_client_up(r->budget, n);
        r->n_up += n;
        memcpy(some, buf_data(&r->held), n);
        buf_drain(&r->held, n);
        if (n < held)
            (void)budget_client_up_room(r->budget, 1); /* it is told when there is more */
    }
    set_closed(r);
    if (n && r->ops->up(r->arg, (struct slice){(const char *)some, n}) < 0)
        broker_stream_break(r->stream);
    explicit_bzero(some, n);
}

static void on_more(void *arg, bool up)
{
    struct back_request *r = arg;
    if (up)
        flow(r);
    else
        r->ops->more(r->arg);
}

static void on_over(void *arg, unsigned retry UNUSED)
{
    struct back_request *r = arg;
    r->ops->spent(r->arg);
}

static void ask_budget(struct back_request *r)
{
    const struct budget_client_owner owner = {on_budget, on_more, on_over, r};
    const struct budget *own = r->rule->budget, *whole = policy_budget(r->policy);
    const struct budget_need need = {0};
    if (own == NULL && whole == NULL) {
        record_begin(r);
        return;
    }
    struct budget_channel *of = dial_client_budget_channel(r->back->dial);
    if (quota_take(budget_channel_leases(of), &r->lease, slice_str(r->sandbox), 1) == QUOTA_TAKEN)
        r->budget = budget_client_new(of, own, whole, &need, &owner);
    if (r->budget == NULL)
        refuse(r, "overload", "requests with a budget", "too many requests with a budget at once");
}

/* ---- somebody's word ---- */

static void on_decided(void *arg, enum pending_approval_end end, const char *who)
{
    struct back_request *r = arg;
    r->approving = NULL;
    if (end == PENDING_APPROVAL_ALLOWED && back_request_goes_on(r)) {
        snprintf(r->approval, sizeof r->approval, "approved by %s", who);
        ask_budget(r);
    } else if (end == PENDING_APPROVAL_ALLOWED) {
        refuse(r, "policy_changed", "while it was held", "the policy was changed meanwhile");
    } else if (end == PENDING_APPROVAL_DENIED) {
        snprintf(r->approval, sizeof r->approval, "denied by %s", who);
        refuse(r, "approval_denied", r->approval, "somebody was asked, and denied it");
    } else if (end == PENDING_APPROVAL_FULL) {
        refuse(r, "approval_full", "", "too many requests are held already");
    } else {
        refuse(r, "approval_timeout", "", "nobody decided in time");
    }
}

void back_request_admit(struct back_request *r)
{
    char at[HOST_TEXT_MAX + 16], names[NAMES_MAX];
    struct buf path;
    const char *verb = "";
    if (!r->rule->ask) {
        ask_budget(r);
        return;
    }
    buf_init(&path, PENDING_APPROVAL_PATH_MAX);
    if (r->ops->show(r->arg, &verb, &path) == 0) {
        const struct pending_approval_summary s = {
            .sandbox = r->sandbox,
            .scheme = scheme_name(r->at.scheme),
            .authority = authority_text(&r->at, at, sizeof at),
            .rule = r->rule->text,
            .credential = credential_names(r->rule->credential, names, sizeof names),
            .method = slice_str(verb),
            .path = buf_slice(&path),
            .length = PENDING_APPROVAL_UNKNOWN,
        };
        r->approving = pending_approval_new(r->back->approvals, &s, on_decided, r);
    }
    buf_free(&path);
    if (r->approving == NULL)
        refuse(r, "approval_full", "", "as many requests as this sandbox may have are held");
}

/* ---- bytes ---- */

int back_request_up(struct back_request *r, struct slice bytes)
{
    size_t n = budget_client_up_room(r->budget, bytes.n);
    budget_client_up(r->budget, n);
    r->n_up += n;
    if (n < bytes.n) {
        if (buf_append(&r->held, bytes.p + n, bytes.n - n) < 0)
            return -1;
        flow(r);
    }
    return n || bytes.n == 0 ? r->ops->up(r->arg, (struct slice){bytes.p, n}) : 0;
}

void back_request_pause(struct back_request *r, bool paused)
{
    r->paused = paused;
    flow(r);
}

size_t back_request_down_room(struct back_request *r, size_t n)
{
    return budget_client_down_room(r->budget, n);
}

void back_request_down(struct back_request *r, size_t n)
{
    r->n_down += n;
    budget_client_down(r->budget, n);
}
