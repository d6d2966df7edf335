/* A reply that holds new secrets: held whole, given to the vault, and passed on as the vault wrote
 * it, with the sandbox's placeholders in their place. What cannot be read so is not passed on. */
#include "injection_internal.h"

#include "capture.h"

#include <stdio.h>

/* -1: nothing that is read. */
static int form_of(const struct head *h)
{
    const struct field *type = http_head_find(h, "content-type");
    if (type == NULL || http_head_count(h, "content-type") > 1)
        return -1;
    ssize_t semicolon = slice_find(type->value, ';');
    struct slice t = slice_trim(
        (struct slice){type->value.p, semicolon < 0 ? type->value.n : (size_t)semicolon});
    struct slice json = {t.p + t.n - (t.n > 5 ? 5 : 0), t.n > 5 ? 5 : 0},
                 xml = {t.p + t.n - (t.n > 4 ? 4 : 0), t.n > 4 ? 4 : 0};
    if (slice_ieq(t, SLICE("application/json")) || slice_ieq(json, SLICE("+json")))
        return CAPTURED_JSON;
    if (slice_ieq(t, SLICE("application/x-www-form-urlencoded")))
        return CAPTURED_FORM;
    if (slice_ieq(t, SLICE("text/xml")) || slice_ieq(t, SLICE("application/xml")) ||
        slice_ieq(xml, SLICE("+xml")))
        return CAPTURED_XML;
    return -1;
}

bool injection_captures(const struct injection *g, const struct head *h)
{
    return g->decided.rule->n_captures > 0 && h->status / 100 == 2 && h->body != BODY_NONE;
}

void injection_capture_begin(struct injection *g, const struct head *h)
{
    if (http_head_find(h, "content-encoding") || form_of(h) < 0) {
        injection_abandon(g, 502, "capture_unreadable");
        return;
    }
    if (h->body == BODY_LENGTH && h->length > CAPTURED_REPLY_MAX) {
        injection_abandon(g, 502, "capture_too_large");
        return;
    }
    if (http_head_copy(&g->held, h) < 0) {
        injection_abandon(g, 503, "memory");
        return;
    }
    body_buffer_begin(&g->reply, CAPTURED_REPLY_MAX, &g->injector->gathered, g->decided.sandbox);
}

void injection_capture_data(struct injection *g, const void *p, size_t n)
{
    body_buffer_data(&g->reply, p, n);
    if (g->reply.state == BODY_BUFFER_LARGE)
        injection_abandon(g, 502, "capture_too_large");
    else if (g->reply.state == BODY_BUFFER_FULL)
        injection_abandon(g, 503, g->reply.full == QUOTA_SHARE ? "share_used" : "overload");
}

/* A field that repeats what was taken out of the body. */
static void drop_fields(struct head *h, const struct slice *values, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++) {
        bool holds = false;
        for (size_t k = 0; k < n; k++)
            holds = holds || slice_find_slice(h->fields[i].value, values[k]) >= 0;
        if (!holds)
            h->fields[kept++] = h->fields[i];
    }
    h->n = kept;
}

/* Which of several is which is not told: each counts as each. */
static int remember(struct injection *g, const struct slice *values, size_t n)
{
    const struct rule *rule = g->decided.rule;
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        struct secret *v = values[i].n ? secret_new(values[i].p, values[i].n) : NULL;
        if (values[i].n && v == NULL)
            r = -1;
        for (size_t k = 0; v && k < rule->n_captures && r >= 0; k++)
            r = injection_remember(g->injector, rule->captures[k].secret, g->decided.sandbox, v);
        secret_unref(v);
    }
    return r;
}

/* All of it goes at once, whether the gate has room or not: so it is within its first credit. */
_Static_assert((int)CAPTURED_WRITTEN_MAX <= (int)INJECTOR_CHANNEL_FIRST, "a gate takes it at once");

static void on_captured(void *arg, struct slice body, const struct slice *values, size_t n,
                        const struct err *err)
{
    struct injection *g = arg;
    g->sign_wait = NULL;
    if (body.n == 0) {
        snprintf(g->facts.detail, sizeof g->facts.detail, "%.180s", err->text);
        bool share = err->code == ERR_LIMIT;
        const char *code = share ? "share_used" : "capture_unreadable";
        injection_end_record(g, RECORD_ABORTED, code);
        injection_tell_fail(g, share ? 503 : 502, code);
        return;
    }
    body_buffer_free(&g->reply);
    if (remember(g, values, n) < 0) {
        injection_end_record(g, RECORD_ABORTED, "memory");
        injection_tell_fail(g, 503, "memory");
        return;
    }
    drop_fields(&g->held, values, n);
    g->held.body = BODY_LENGTH;
    g->held.length = body.n;
    injection_pass_whole(g, &g->held, body);
}

/* The origin is gone when this returns. */
void injection_capture_end(struct injection *g)
{
    struct captured_field fields[CAPTURES_MAX];
    const struct rule *rule = g->decided.rule;
    body_buffer_end(&g->reply);
    g->facts = *origin_facts(g->origin);
    g->origin = NULL;
    g->relay.upstream = (struct upstream){NULL, NULL};
    injection_set_state(g, G_CAPTURING);
    for (size_t i = 0; i < rule->n_captures; i++)
        fields[i] = (struct captured_field){rule->captures[i].path, g->blanks.text[i],
                                            rule->captures[i].secret, NULL};
    if (buf_len(&g->reply.body) == 0) { /* nothing in it that could be one */
        body_buffer_free(&g->reply);
        g->held.body = BODY_LENGTH;
        g->held.length = 0;
        injection_pass_whole(g, &g->held, (struct slice){"", 0});
        return;
    }
    struct sign_wait *w = secret_client_capture(
        g->injector->secrets, g->decided.sandbox, fields, rule->n_captures,
        (enum captured_form)form_of(&g->held), buf_slice(&g->reply.body), on_captured, g);
    if (w)
        g->sign_wait = w;
}
