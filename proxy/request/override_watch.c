/* Runs the scan of override.h over the bytes that pass, and tells its owner from the event loop,
 * again and again until the owner has ended the request. */
#include "override_watch.h"

#include "body_facts.h"
#include "override.h"

#include <event2/event.h>
#include <stdlib.h>

struct override_watch {
    struct override_scan scan;
    struct event *later;
    bool (*found)(void *arg);
    void *arg;
    bool told;
};

static void on_later(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    static const struct timeval soon = {0, 1000};
    struct override_watch *w = arg;
    struct event *again = w->later; /* its owner frees the watch when it says true */
    if (!w->found(w->arg))
        event_add(again, &soon);
}

/* Of several types each may be the one that the origin goes by, and a coded form cannot be read:
 * their first byte is one too many. Coded JSON is carried, for clients of many APIs compress
 * theirs. */
static bool begin(struct override_scan *s, const struct inspect_request *body)
{
    bool known = override_begin(s, body->type);
    bool coded = known && body->coded && s->form != OVERRIDE_JSON;
    s->found = s->found || coded || body->n_types > 1;
    return known || body->n_types > 1;
}

struct override_watch *override_watch_new(struct event_base *base, const struct head *h,
                                          bool (*found)(void *arg), void *arg, bool *memory)
{
    struct override_scan scan;
    *memory = false;
    struct inspect_request body = body_facts(h);
    /* without a type, or with an empty one, some frameworks take the body of a POST for a form's */
    if (slice_trim(body.type).n == 0 && slice_eq_str(h->method, "POST"))
        body.type = SLICE("application/x-www-form-urlencoded");
    if (h->body == BODY_NONE || !begin(&scan, &body))
        return NULL;
    struct override_watch *w = malloc(sizeof *w);
    struct event *later = w ? event_new(base, -1, 0, on_later, w) : NULL;
    if (later == NULL) {
        free(w);
        *memory = true;
        return NULL;
    }
    *w = (struct override_watch){scan, later, found, arg, false};
    return w;
}

void override_watch_free(struct override_watch *w)
{
    if (w == NULL)
        return;
    event_free(w->later);
    free(w);
}

bool override_watch_data(struct override_watch *w, const void *p, size_t n)
{
    if (w == NULL || !override_data(&w->scan, p, n))
        return false;
    if (!w->told)
        event_active(w->later, EV_TIMEOUT, 0);
    w->told = true;
    return true;
}

bool override_watch_found(const struct override_watch *w)
{
    return w && w->scan.found;
}
