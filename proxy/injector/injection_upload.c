/* A body of signed chunks, of an injection's request: what signs them stands before its origin. */
#include "injection_internal.h"

#include <event2/event.h>

/* Perhaps from a call of the downstream, to which nothing may be answered before it returns. */
static void on_failed(void *self, unsigned status, const char *code)
{
    struct injection *g = self;
    g->refuse_status = status;
    g->refuse_code = code;
    event_active(g->later, EV_TIMEOUT, 0);
}

const char *injection_key_owner(const struct injection *g)
{
    return g->decided.credential->captured ? g->decided.sandbox : "";
}

int injection_upload_begin(struct injection *g)
{
    struct injector *i = g->injector;
    struct aws_upload_owner owner = {on_failed, relay_wanted, g};
    const struct aws_claim *c = &g->placement.claim;
    if (!placement_chunks(&g->placement))
        return 0;
    g->upload =
        aws_upload_new(owner, i->secrets, g->decided.credential->secret, injection_key_owner(g),
                       g->placement.key_id, &g->placement.scope, g->placement.signature, c->decoded,
                       c->trailer[0] ? c->trailer : NULL, &i->gathered, g->decided.sandbox);
    return g->upload ? 0 : -1;
}

struct upstream injection_upload_upstream(struct injection *g)
{
    struct upstream origin = origin_upstream(g->origin);
    return g->upload ? aws_upload_upstream(g->upload, origin) : origin;
}
