/* Suppressions: what the controller says is kept here, and told to the logger and to the one after
 * it. */
#include "parent.h"

#include "suppression.h"
#include "wire.h"

#include <stdlib.h>

void parent_tell_suppressed(struct parent *p)
{
    struct child *c = p->logger;
    struct msg m;
    if (p->suppressions == NULL || c == NULL || c->ch == NULL || c->state != CHILD_READY)
        return;
    msg_init(&m, W_SUPPRESS);
    suppressions_put(p->suppressions, &m);
    parent_tell(c, &m);
}

int parent_suppress(struct parent *p, struct msg *m)
{
    struct suppressions *said = malloc(sizeof *said);
    if (said == NULL || suppressions_get(said, m) < 0) {
        free(said);
        return -1;
    }
    free(p->suppressions);
    p->suppressions = said;
    parent_tell_suppressed(p);
    return 0;
}
