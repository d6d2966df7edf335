/* The reply to an injection whose rule reads messages (`mcp`): it is cut to what the rule lets its
 * client see, and then searched for secrets as any other. Its request is injection_judge.c's. */
#include "injection_internal.h"

#include "body_facts.h"
#include "mcp_host.h"
#include "mcp_message.h"
#include "mcp_reply.h"
#include "media_type.h"
#include "path.h"
#include "policy.h"
#include "scrub_places.h"

#include <stdio.h>
#include <stdlib.h>

static const struct inspection *inspection(const struct injection *g)
{
    return g->decided.rule->inspection;
}

bool injection_mcp(const struct injection *g)
{
    return rule_reads_messages(g->decided.rule);
}

/* ---- what tools were ---- */

struct mcp_pins *injection_pins(const struct injection *g)
{
    if (g->injector->pins == NULL)
        g->injector->pins = mcp_pins_new();
    return g->injector->pins;
}

/* Rules compare the path's normal form, and so is a server known by it. One of ours each sandbox
 * has for itself. */
bool injection_place(const struct injection *g, char place[MCP_PIN_TEXT + 1])
{
    char host[HOST_TEXT_MAX + 16], *path = malloc(g->head.path.n + 1);
    if (path == NULL)
        return false;
    struct slice normal = {path, path_normal(g->head.path, path)};
    bool ok = mcp_pin_place(authority_text(&g->authority, host, sizeof host), normal,
                            mcp_host_is(&g->authority) ? g->decided.sandbox : "", place);
    free(path);
    return ok;
}

/* A name as a server lists it, before it is written into the log. */
static bool holds_secret(void *arg, struct slice text)
{
    struct injection *g = arg;
    if (g->unsearched)
        return true;
    if (g->scrub == NULL)
        return false;
    char *copy = slice_dup(text);
    ssize_t hits = copy ? scrub_whole(scrub_set(g->scrub), copy, text.n) : -1;
    free(copy);
    g->head_hits += hits > 0 ? (uint64_t)hits : 0;
    return hits != 0;
}

/* ---- the reply ---- */

void injection_mcp_asked(struct injection *g)
{
    const struct head *h = &g->head;
    for (size_t i = 0; i < h->n && slice_eq_str(h->method, "GET"); i++)
        if (slice_eq_str(h->fields[i].name, "accept") &&
            media_type_has_word(h->fields[i].value, SLICE("event-stream")))
            g->wants_events = true;
}

/* The official client for Node reads events in whatever answers its GET; that for Python reads an
 * error in a reply of any status (2026-07-28). */
enum mcp_form injection_mcp_form(const struct injection *g, const struct head *h)
{
    struct inspect_request facts = body_facts(h);
    if (!injection_mcp(g) || h->body == BODY_NONE || h->body == BODY_TUNNEL)
        return MCP_FORM_NONE;
    enum mcp_form form = mcp_reply_form(&facts);
    bool events = g->wants_events && h->status / 100 == 2;
    return form == MCP_FORM_NONE && events ? MCP_FORM_DOUBTFUL : form;
}

int injection_mcp_reply(struct injection *g, const struct head *h, enum mcp_form form)
{
    struct mcp_view view = {.rules = inspection(g)->mcp,
                            .pins = injection_pins(g),
                            .sandbox = g->decided.sandbox,
                            .failed = h->status / 100 != 2,
                            .holds_secret = holds_secret,
                            .arg = g};
    if (view.pins == NULL || !injection_place(g, view.place))
        return -1;
    g->messages = mcp_reply_new(&view, form);
    g->messages_whole = form == MCP_FORM_JSON;
    return g->messages == NULL || (g->messages_whole && http_head_copy(&g->held, h) < 0) ? -1 : 0;
}

static void abandon(struct injection *g, unsigned status, const char *code)
{
    if (g->relay.upstream.ops) {
        injection_abandon(g, status, code);
        return;
    }
    injection_end_record(g, RECORD_ABORTED, code);
    injection_tell_fail(g, status, code);
}

/* False: the injection is gone. */
static bool settle(struct injection *g, enum mcp_reply_end end)
{
    size_t held = mcp_reply_held(g->messages);
    enum quota_end full = QUOTA_TAKEN;
    if (held < g->messages_held.n)
        quota_give(&g->messages_held, g->messages_held.n - held);
    else if (held > g->messages_held.n)
        full = quota_take(&g->injector->gathered, &g->messages_held, slice_str(g->decided.sandbox),
                          held - g->messages_held.n);
    if (end == MCP_REPLY_OK && full == QUOTA_TAKEN)
        return true;
    if (end == MCP_REPLY_MEMORY)
        abandon(g, 503, "memory");
    else if (end != MCP_REPLY_OK)
        abandon(g, 502, end == MCP_REPLY_TOO_LARGE ? "mcp_reply_too_large" : "mcp_reply");
    else
        abandon(g, 503, full == QUOTA_SHARE ? "share_used" : "overload");
    return false;
}

bool injection_mcp_feed(struct injection *g, const void *p, size_t n)
{
    return settle(g, mcp_reply_feed(g->messages, (struct slice){p, n}));
}

bool injection_mcp_close(struct injection *g)
{
    if (!settle(g, mcp_reply_close(g->messages)))
        return false;
    g->held.body = BODY_LENGTH;
    g->held.length = mcp_reply_out(g->messages).n;
    return true;
}

/* While more than a piece waits to go on, nothing more is taken. */
size_t injection_mcp_room(const struct injection *g)
{
    return mcp_reply_out(g->messages).n < STREAM_IN_MAX ? STREAM_CHUNK : 0;
}

struct slice injection_mcp_out(const struct injection *g)
{
    return g->messages ? mcp_reply_out(g->messages) : (struct slice){"", 0};
}

void injection_mcp_drain(struct injection *g, size_t n)
{
    mcp_reply_drain(g->messages, n);
    quota_give(&g->messages_held, n);
}

void injection_mcp_record(const struct injection *g, struct record *r)
{
    char text[MCP_NOTES_MAX + 96];
    const char *notes = g->messages ? mcp_reply_notes(g->messages) : "";
    unsigned hidden = g->messages ? mcp_reply_hidden(g->messages) : 0,
             refused = g->messages ? mcp_reply_refused(g->messages) : 0;
    if (hidden + refused == 0 && *notes == 0)
        return;
    snprintf(text, sizeof text, "hidden: %u, requests of the server refused: %u%s%s", hidden,
             refused, *notes ? "; tools " : "", notes);
    record_put_str(r, RF_DETAIL, text);
}

void injection_mcp_end(struct injection *g)
{
    mcp_reply_free(g->messages);
    quota_leave(&g->messages_held);
}
