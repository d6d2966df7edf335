/* Revoked tokens: what the controller says is kept here, and told to every role that looks at
 * tokens, those that start later included. */
#include "parent.h"

#include "revoked.h"
#include "wire.h"

#include <time.h>

static bool looks_at_tokens(const struct child *c)
{
    if (c->ch == NULL || (c->state != CHILD_INITED && c->state != CHILD_READY))
        return false;
    return c->role == ROLE_GATE || c->role == ROLE_DIALER || c->role == ROLE_INJECTOR;
}

void parent_tell_revoked(struct child *c)
{
    const struct revoked *r = c->parent->revoked;
    size_t from = 0, n;
    if (r == NULL || !looks_at_tokens(c))
        return;
    do {
        struct msg m;
        msg_init(&m, W_REVOKED);
        n = revoked_put(r, from, &m);
        ipc_send(c->ch, &m);
        from += n;
    } while (n == REVOKED_IN_MESSAGE);
}

int parent_revoked(struct parent *p, struct msg *m)
{
    struct child *c;
    if (p->revoked == NULL)
        p->revoked = revoked_new();
    /* without memory for it nothing can be told: the controller's channel ends, and its next life
     * says all of it again */
    if (p->revoked == NULL || revoked_get(p->revoked, m, (uint64_t)time(NULL)) < 0)
        return -1;
    TAILQ_FOREACH(c, &p->children, link)
    parent_tell_revoked(c);
    return 0;
}
