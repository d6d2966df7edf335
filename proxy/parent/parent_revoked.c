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

static void tell(struct child *c, const struct revoked *r)
{
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

void parent_tell_revoked(struct child *c)
{
    tell(c, c->parent->revoked);
}

int parent_revoked(struct parent *p, struct msg *m)
{
    struct child *c;
    struct revoked *said = revoked_new();
    uint64_t now = (uint64_t)time(NULL);
    int r = -1;
    if (p->revoked == NULL)
        p->revoked = revoked_new();
    /* without memory for it nothing can be told: the controller's channel ends, and its next life
     * says all of it again */
    if (p->revoked && said && revoked_get(said, m, now) == 0) {
        revoked_merge(p->revoked, said, now);
        TAILQ_FOREACH(c, &p->children, link)
        tell(c, said); /* the others have the rest */
        r = 0;
    }
    revoked_free(said);
    return r;
}
