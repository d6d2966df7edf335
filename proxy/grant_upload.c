/* A body of signed chunks, of a grant's request: what signs them stands before its origin. */
#include "grant_internal.h"

#include <event2/event.h>

/* Perhaps from a call of the front, to which nothing may be answered before it returns. */
static void on_failed(void *self, unsigned status, const char *code)
{
    struct grant *g = self;
    g->refuse_status = status;
    g->refuse_code = code;
    event_active(g->later, EV_TIMEOUT, 0);
}

const char *grant_key_owner(const struct grant *g)
{
    return g->decided.credential->captured ? g->decided.sandbox : "";
}

int grant_upload_begin(struct grant *g)
{
    struct injector *i = g->injector;
    struct aws_upload_owner owner = {on_failed, relay_wanted, g};
    const struct aws_claim *c = &g->fill.claim;
    if (!fill_chunks(&g->fill))
        return 0;
    g->upload = aws_upload_new(owner, i->secrets, g->decided.credential->secret, grant_key_owner(g),
                               g->fill.key_id, &g->fill.scope, g->fill.signature, c->decoded,
                               c->trailer[0] ? c->trailer : NULL, &i->gathered);
    return g->upload ? 0 : -1;
}

struct back grant_upload_back(struct grant *g)
{
    struct back origin = origin_back(g->origin);
    return g->upload ? aws_upload_back(g->upload, origin) : origin;
}
