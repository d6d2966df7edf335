/* A credential that an origin refuses with 401, though its time is not over: the reply is held
 * while the vault makes another value, if it can and will. Then the request is sent once more,
 * where no byte of it is lost: it had no body, or all of that is still here; and where it would
 * be let pass as it was, uncounted. Else its client is told that it may ask again. What the origin
 * said to the old value goes on only where there is no new one.
 */
#include "injection_internal.h"

#include "aws_sign.h"

#include <stdlib.h>
#include <string.h>

struct injection_renewal {
    char sent[AWS_HEX + 1]; /* SHA-256 of the value */
    bool kept;              /* the head, as it is without the credential; and the body */
    bool gone;              /* the origin, while its reply is held */
    unsigned status;
    const char *code; /* it failed; NULL: it ended */
    struct head head;
};

void injection_renew_begin(struct injection *g)
{
    struct secret_client *c = g->injector->secrets;
    struct injection_renewal *r;
    if (g->renewed || !secret_client_renewable(c, g->decided.credential->secret))
        return;
    r = malloc(sizeof *r); /* without it the reply goes on as it comes */
    if (r == NULL)
        return;
    memset(r, 0, offsetof(struct injection_renewal, head));
    http_head_init(&r->head);
    g->renewal = r;
    if (aws_hash(secret_slice(g->value), r->sent) < 0)
        injection_renew_end(g);
}

void injection_renew_keep(struct injection *g)
{
    struct injection_renewal *r = g->renewal;
    bool none = g->body.state == BODY_BUFFER_OFF && g->head.body == BODY_NONE;
    bool held = g->body.state == BODY_BUFFER_WHOLE && g->placement.body == PLACEMENT_NO_BODY &&
                buf_len(&g->body.body) <= PLACEMENT_BODY_MAX;
    if (r == NULL || g->relay.upgrade || !(none || held))
        return;
    r->kept = http_head_copy(&r->head, &g->head) == 0;
    if (r->kept && held)
        body_buffer_keep(&g->body);
}

void injection_renew_end(struct injection *g)
{
    if (g->renewal == NULL)
        return;
    http_head_free(&g->renewal->head);
    free(g->renewal);
    g->renewal = NULL;
}

/* The origin took it: nothing is kept any longer. */
static void settle(struct injection *g)
{
    injection_renew_end(g);
    body_buffer_release(&g->body);
}

/* ---- what the vault answers ---- */

/* What the origin said, of a request that goes there once more under another id. */
static void record_first(struct injection *g)
{
    struct record r;
    g->admitted = false;
    g->relay.status = 401;
    relay_record(&g->relay, &r, RECORD_ABORTED, g->counter, "login_renewed");
    origin_record(g->origin ? origin_facts(g->origin) : &g->facts, relay_begun(&g->relay), &r);
    journal_note(g->injector->journal, &r);
}

/* Nothing but its credential is another now: the policy that let it pass is still the one, and
 * nobody was asked or charged for one request where the origin would get two. */
static bool may_send_again(const struct injection *g)
{
    return g->renewal->kept && g->relay.request_ended && g->decided.policy == g->injector->policy &&
           g->relay.budget_client == NULL && g->approval[0] == '\0';
}

static void send_again(struct injection *g)
{
    record_first(g);
    if (g->relay.upstream.ops)
        g->relay.upstream.ops->cancel(g->relay.upstream.self, "login_renewed");
    g->origin = NULL;
    g->facts = (struct origin_facts){.reused = false};
    relay_again(&g->relay);
    injection_taint_end(g);
    scrub_free(g->scrub);
    g->scrub = NULL;
    http_head_free(&g->held);
    http_head_free(&g->head);
    http_head_move(&g->head, &g->renewal->head);
    injection_renew_end(g);
    body_buffer_again(&g->body);
    g->filled = false;
    g->renewed = true;
    g->counter = 0;
    injection_secret(g);
}

static void pass_on(struct injection *g)
{
    bool gone = g->renewal->gone;
    unsigned status = g->renewal->status;
    const char *code = g->renewal->code;
    struct head h;
    http_head_move(&h, &g->held);
    settle(g);
    injection_set_state(g, G_OPEN);
    if (injection_take_reply(g, &h)) {
        if (code)
            injection_abandon(g, status, code);
        else if (gone)
            injection_reply_end(g);
        else
            relay_resume(&g->relay);
    }
    http_head_free(&h);
}

static void on_renewed(void *arg, bool ok)
{
    struct injection *g = arg;
    g->sign_wait = NULL;
    TRACE(&g->relay.trace, "credential", "%s", ok ? "is another now" : "is the same");
    if (!ok) {
        pass_on(g);
    } else if (may_send_again(g)) {
        send_again(g);
    } else {
        g->retry = 1;
        g->relay.status = 401;
        injection_abandon(g, 503, "login_renewed");
    }
}

/* ---- the reply ---- */

bool injection_renew_holds(struct injection *g, const struct head *h)
{
    if (g->renewal == NULL)
        return false;
    if (h->status == 401 && http_head_copy(&g->held, h) == 0)
        g->sign_wait =
            secret_client_refused(g->injector->secrets, g->decided.sandbox,
                                  g->decided.credential->secret, g->renewal->sent, on_renewed, g);
    if (g->sign_wait == NULL) {
        http_head_free(&g->held);
        settle(g);
        return false;
    }
    injection_set_state(g, G_RENEWING);
    return true;
}

bool injection_renew_gone(struct injection *g, unsigned status, const char *code)
{
    if (g->state != G_RENEWING)
        return false;
    g->renewal->gone = true;
    g->renewal->status = status;
    g->renewal->code = code;
    injection_leave_origin(g);
    return true;
}
