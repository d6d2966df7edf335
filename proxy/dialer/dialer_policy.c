/* The policies that the dialer repeats host decisions by. */
#include "dialer_internal.h"

#include "policy_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLICY_JSON_MAX = 4 << 20 };

struct named_policy *dialer_policy_find(struct dialer *d, const char *name)
{
    struct named_policy *p;
    LIST_FOREACH(p, &d->policies, link)
    if (strcmp(p->name, name) == 0)
        return p;
    return NULL;
}

struct named_policy *dialer_policy_take(struct dialer *d, const char *name, uint32_t generation,
                                        struct slice json, struct err *err)
{
    struct named_policy *p = dialer_policy_find(d, name);
    if (p && p->generation >= generation)
        return p;
    struct policy *fresh = policy_parse(json.p, json.n, err);
    if (fresh == NULL)
        return NULL;
    if (p == NULL) {
        p = d->n_policies < DIALER_POLICIES ? calloc(1, sizeof *p) : NULL;
        if (p == NULL) {
            policy_free(fresh);
            err_set(err, ERR_LIMIT, "too many policies");
            return NULL;
        }
        snprintf(p->name, sizeof p->name, "%s", name);
        LIST_INSERT_HEAD(&d->policies, p, link);
        d->n_policies++;
    }
    policy_free(p->policy);
    p->policy = fresh;
    p->generation = generation;
    return p;
}

int dialer_policy_message(struct dialer *d, struct msg *m)
{
    char *json = NULL;
    struct policy_message p;
    size_t n;
    struct err err = {0};
    if (policy_message_get(m, &p) < 0)
        return -1;
    int r = msg_end(m);
    if (r == 0 && (ipc_memfd_read(p.fd, POLICY_JSON_MAX, &json, &n, &err) < 0 ||
                   !dialer_policy_take(d, p.name, p.generation, (struct slice){json, n}, &err)))
        dialer_tell_operator(d, err.text); /* the old one stays (promise P9) */
    free(json);
    close(p.fd);
    return r;
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
