/* Labels of local sandboxes on their way from the controller to the dialer, which counts budgets by
 * them. They are kept here for the next dialer; no other role hears of them. */
#include "parent.h"

#include "sandbox_labels.h"
#include "wire.h"

#include <string.h>

static struct child *dialer_there(const struct parent *p)
{
    struct child *d = p->dialer;
    bool there = d && d->ch && (d->state == CHILD_INITED || d->state == CHILD_READY);
    return there ? d : NULL; /* else it is told with its start */
}

void parent_labels_tell(struct parent *p, const struct sandbox *s)
{
    struct child *d = dialer_there(p);
    struct msg m;
    if (d == NULL || s->labels == NULL)
        return;
    msg_init(&m, W_LABELS);
    msg_put_str(&m, s->id);
    sandbox_labels_put(s->labels, &m);
    parent_tell(d, &m);
}

void parent_labels_tell_all(struct parent *p)
{
    struct sandbox *s;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    parent_labels_tell(p, s);
}

void parent_labels_gone(struct parent *p, const char *sandbox)
{
    struct child *d = dialer_there(p);
    struct msg m;
    if (d == NULL)
        return;
    msg_init(&m, W_SANDBOX_GONE);
    msg_put_str(&m, sandbox);
    parent_tell(d, &m);
}

int parent_labels(struct parent *p, struct msg *m)
{
    char id[65];
    if (msg_get_str(m, id, sizeof id) < 0)
        return -1;
    struct sandbox_labels *labels = sandbox_labels_get(m);
    if (labels == NULL || msg_end(m) < 0) {
        sandbox_labels_unref(labels);
        return -1;
    }
    struct sandbox *s = parent_sandbox_find(p, id);
    if (s == NULL || s->labels == NULL) { /* it is gone, or is told of with W_SANDBOX */
        sandbox_labels_unref(labels);
        return 0;
    }
    sandbox_labels_unref(s->labels);
    s->labels = labels;
    parent_labels_tell(p, s);
    return 0;
}
