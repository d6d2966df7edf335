/* Sums up what a run was denied and what failed. A name that was asked for is one thing however
 * often it was, and nothing of its own beside a request to it. */
#include "run_summary.h"

#include <stdio.h>
#include <string.h>

#include "out.h"
#include "price.h"
#include "slice.h"

enum { SHOWN = 5 };

static bool is_name(const struct denial *e)
{
    return strcmp(e->code, "dns_denied") == 0;
}

/* The host of "host" or "host:port". */
static struct slice host_of(const char *target)
{
    return (struct slice){target, strcspn(target, ": ")};
}

/* A request to it was denied or failed too, and says more. */
static bool said_otherwise(const struct denials *d, const struct denial *e)
{
    if (!is_name(e))
        return false;
    for (size_t i = 0; i < d->n; i++)
        if (!is_name(&d->list[i]) && slice_eq(host_of(d->list[i].target), host_of(e->target)))
            return true;
    return false;
}

static uint64_t times(const struct denial *e)
{
    return is_name(e) ? 1 : e->count;
}

/* One half of the line. -> how many. */
static uint64_t print_half(const struct denials *d, bool failed, const char *before)
{
    char target[DENIAL_TARGET_MAX + 1];
    uint64_t all = 0;
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->list[i].failed == failed && !said_otherwise(d, &d->list[i]))
            all += times(&d->list[i]);
    if (all == 0)
        return 0;
    fprintf(stderr, "%s%llu %s:", before, (unsigned long long)all, failed ? "failed" : "denied");
    for (size_t i = 0; i < d->n; i++) {
        const struct denial *e = &d->list[i];
        if (e->failed != failed || said_otherwise(d, e))
            continue;
        if (shown == SHOWN) {
            more++;
            continue;
        }
        fprintf(stderr, "%s %s (%s) x%llu", shown++ ? "," : "",
                out_clean(e->target, target, sizeof target), e->code, (unsigned long long)times(e));
    }
    if (more)
        fprintf(stderr, ", and %zu more", more);
    return all;
}

bool run_summary_print(const struct denials *d)
{
    uint64_t denied = print_half(d, false, "durward: ");
    return print_half(d, true, denied ? "; " : "durward: ") + denied > 0;
}

bool run_summary_has(const struct denials *d, const char *code)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->list[i].code, code) == 0)
            return true;
    return false;
}

void run_summary_print_calls(const struct denials *d)
{
    const struct denial_calls *c = &d->calls;
    if (c->n == 0)
        return;
    fprintf(stderr, "durward: %llu call%s to models: %llu tokens sent, %llu answered",
            (unsigned long long)c->n, c->n == 1 ? "" : "s", (unsigned long long)c->tokens_in,
            (unsigned long long)c->tokens_out);
    char text[PRICE_TEXT];
    if (c->cost)
        fprintf(stderr, ", cost %s", price_text(c->cost, text, sizeof text));
    fprintf(stderr, "\n");
}

json_t *run_summary_calls_json(const struct denials *d)
{
    const struct denial_calls *c = &d->calls;
    return json_pack("{s:I, s:I, s:I, s:I}", "count", (json_int_t)c->n, "tokens_in",
                     (json_int_t)c->tokens_in, "tokens_out", (json_int_t)c->tokens_out,
                     "cost_millionths", (json_int_t)c->cost);
}

json_t *run_summary_json(const struct denials *d, bool failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->n; i++) {
        const struct denial *e = &d->list[i];
        if (e->failed == failed)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "target", e->target, "code",
                                                  e->code, "count", (json_int_t)e->count));
    }
    return list;
}
