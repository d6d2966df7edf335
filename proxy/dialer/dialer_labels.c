/* The labels of local sandboxes at the dialer, by which budgets are counted (`per label`). The
 * parent says them before a sandbox's gate is bound, and again to each next dialer. */
#include "dialer_internal.h"

#include "sandbox_labels.h"

#include <stdlib.h>
#include <string.h>

struct labelled {
    char sandbox[DIAL_NAME_MAX];
    struct sandbox_labels *labels; /* never NULL; may be of none */
    LIST_ENTRY(labelled) link;
};

static struct labelled_list *bucket(struct dialer *d, const char *sandbox)
{
    uint32_t h = 0x811c9dc5u;
    for (const char *p = sandbox; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x01000193u;
    return &d->labelled[h % DIALER_LABELLED_BUCKETS];
}

static struct labelled *find(struct dialer *d, const char *sandbox)
{
    struct labelled *one;
    LIST_FOREACH(one, bucket(d, sandbox), link)
    if (strcmp(one->sandbox, sandbox) == 0)
        return one;
    return NULL;
}

static void drop(struct labelled *one)
{
    LIST_REMOVE(one, link);
    sandbox_labels_unref(one->labels);
    free(one);
}

int dialer_labels_message(struct dialer *d, struct msg *m)
{
    char sandbox[DIAL_NAME_MAX];
    if (msg_get_str(m, sandbox, sizeof sandbox) < 0)
        return -1;
    struct sandbox_labels *labels = sandbox_labels_get(m);
    struct labelled *one = find(d, sandbox);
    if (labels && msg_end(m) == 0 && one == NULL && (one = calloc(1, sizeof *one)) != NULL) {
        memcpy(one->sandbox, sandbox, sizeof sandbox);
        LIST_INSERT_HEAD(bucket(d, sandbox), one, link);
    }
    if (labels == NULL || m->bad || one == NULL) {
        sandbox_labels_unref(labels);
        return -1;
    }
    sandbox_labels_unref(one->labels);
    one->labels = labels;
    return 0;
}

int dialer_labels_gone(struct dialer *d, struct msg *m)
{
    char sandbox[DIAL_NAME_MAX];
    if (msg_get_str(m, sandbox, sizeof sandbox) < 0 || msg_end(m) < 0)
        return -1;
    struct labelled *one = find(d, sandbox);
    if (one)
        drop(one);
    return 0;
}

struct sandbox_labels *dialer_labels_of(struct dialer *d, const char *sandbox)
{
    const struct labelled *one = find(d, sandbox);
    return one ? one->labels : NULL;
}

void dialer_labels_free(struct dialer *d)
{
    for (size_t i = 0; i < DIALER_LABELLED_BUCKETS; i++)
        while (!LIST_EMPTY(&d->labelled[i]))
            drop(LIST_FIRST(&d->labelled[i]));
}
