/* Brokers: a front for each local sandbox whose policy has rules of a broker's scheme, a back for
 * each such policy, started when the first sandbox needs them. */
#include "parent.h"

#include "policy.h"

#include <stdio.h>
#include <string.h>

static struct child *back_of(struct parent *p, const struct broker *b, const char *policy)
{
    struct child *c;
    TAILQ_FOREACH(c, &p->children, link)
    if (c->role == b->back && strcmp(c->policy, policy) == 0 && c->state != CHILD_RETIRED)
        return c;
    if (p->vault == NULL && (p->vault = parent_start(p, ROLE_VAULT, NULL)) != NULL)
        parent_init_child(p->vault);
    c = p->vault ? parent_start(p, b->back, policy) : NULL;
    if (c == NULL)
        return NULL;
    snprintf(c->policy, sizeof c->policy, "%s", policy);
    parent_init_child(c);
    parent_wire(p, c, p->vault, "", policy, false);
    parent_wire(p, c, p->dialer, "", policy, false);
    parent_wire(p, c, p->controller, "", policy, false);
    parent_wire(p, c, p->logger, "", policy, false);
    return c;
}

static struct child *front_of(struct parent *p, const struct broker *b, struct sandbox *s, size_t i)
{
    if (s->fronts[i])
        return s->fronts[i];
    struct child *back = back_of(p, b, s->policy);
    struct child *c = back ? parent_start(p, b->front, s->id) : NULL;
    if (c == NULL)
        return NULL;
    s->fronts[i] = c;
    c->front_of = s;
    snprintf(c->policy, sizeof c->policy, "%s", s->policy);
    parent_init_child(c);
    parent_wire(p, c, back, s->id, s->policy, false);
    if (b->tls)
        parent_wire(p, c, p->signer, s->id, "", false);
    parent_wire(p, c, p->logger, s->id, s->policy, false);
    return c;
}

void parent_wire_brokers(struct parent *p, struct sandbox *s)
{
    const struct broker *b;
    const struct policy *policy = config_policy(p->config, s->policy);
    if (s->mode != GATE_LOCAL || s->gate == NULL || policy == NULL)
        return;
    for (size_t i = 0; (b = broker_at(i)) != NULL; i++) {
        struct child *front = policy_speaks(policy, b->scheme) ? front_of(p, b, s, i) : NULL;
        if (front && !parent_is_wired(p, s->gate, front, s->policy))
            parent_wire(p, s->gate, front, s->id, s->policy, false);
    }
}

void parent_retire_brokers(struct sandbox *s)
{
    for (size_t i = 0; i < BROKERS; i++) {
        struct child *c = s->fronts[i];
        s->fronts[i] = NULL;
        if (c)
            c->front_of = NULL;
        parent_retire(c);
    }
}

void parent_forget_front(const struct child *c)
{
    for (size_t i = 0; c->front_of && i < BROKERS; i++)
        if (c->front_of->fronts[i] == c)
            c->front_of->fronts[i] = NULL;
}

bool parent_is_broker_of(const struct child *c, const char *policy)
{
    return broker_of(c->role) && strcmp(c->policy, policy) == 0;
}
