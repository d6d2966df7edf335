/* The policies that the dialer repeats host decisions by. */
#include "dialer_internal.h"

#include "policy_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct named_policy *dialer_policy_find(struct dialer *d, const char *name)
{
    struct named_policy *p;
    LIST_FOREACH(p, &d->policies, link)
    if (strcmp(p->name, name) == 0)
        return p;
    return NULL;
}

/* fd of what was told is closed. */
static int take(struct dialer *d, const struct policy_message *told, struct err *err)
{
    struct named_policy *p = dialer_policy_find(d, told->name);
    if (p && p->generation >= told->generation) {
        close(told->fd);
        return 0;
    }
    struct policy *fresh = policy_message_load(told, err);
    if (fresh == NULL)
        return -1;
    if (p == NULL) {
        p = d->n_policies < DIALER_POLICIES ? calloc(1, sizeof *p) : NULL;
        if (p == NULL) {
            policy_free(fresh);
            return err_set(err, ERR_LIMIT, "too many policies");
        }
        snprintf(p->name, sizeof p->name, "%s", told->name);
        LIST_INSERT_HEAD(&d->policies, p, link);
        d->n_policies++;
    }
    policy_free(p->policy);
    p->policy = fresh;
    p->generation = told->generation;
    return 0;
}

int dialer_policy_message(struct dialer *d, struct msg *m)
{
    struct policy_message told;
    struct err err = {0};
    if (policy_message_get(m, &told) < 0)
        return -1;
    if (msg_end(m) < 0) {
        close(told.fd);
        return -1;
    }
    if (take(d, &told, &err) < 0)
        dialer_tell_operator(d, err.text); /* the old one stays (promise P9) */
    return 0;
}

void dialer_policies_free(struct dialer *d)
{
    struct named_policy *p;
    while ((p = LIST_FIRST(&d->policies)) != NULL) {
        LIST_REMOVE(p, link);
        policy_free(p->policy);
        free(p);
    }
}
