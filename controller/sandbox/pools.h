/* Sandboxes by templates (config.h), and the pools of those that are kept ready for the next who
 * ask.
 *
 * A pooled sandbox is a managed one that nobody has: it is made, its template's warm-up runs
 * inside, then it is frozen where a warm-up may have left something running. It has an id, a CA and
 * placeholders of its own, no name, label or token, and nobody sees it. Whoever asks for the
 * template takes it over (managed_sandbox_claim); where none is ready one is made for them.
 *
 * Pools are filled one sandbox at a time, after everybody else's sandboxes and with pauses between,
 * so that they take a fraction of the builder. What fails is tried again later and later. A pool is
 * made anew by another configuration and by another controller. */
#ifndef DURWARD_POOLS_H
#define DURWARD_POOLS_H

#include "managed_sandbox.h"

struct pools;

struct pools *pools_new(struct controller *c); /* NULL: out of memory */
/* After managed_sandboxes_close. NULL is fine. */
void pools_free(struct pools *p);
/* Something changed that they may have waited for. NULL is fine. */
void pools_look(struct pools *p);
/* The configuration is another one: what was pooled by the former goes. */
void pools_reloaded(struct pools *p);

struct pools_wish {
    struct managed_sandbox_wish wish; /* labels and variables come before the template's */
    const json_t *publish;            /* ports beside the template's, as read; NULL: none */
};

/* One that is ready, or else a new one. fn runs when it can be had, or will not be. NULL with err,
 * and fn never runs. */
struct managed_sandbox *pools_take(struct pools *p, const struct config_template *t,
                                   const struct pools_wish *w, managed_sandbox_fn fn, void *arg,
                                   struct err *err);

/* What there is of it: {pool, ready, ...}; of one that has no pool, too. whole: with why it fails,
 * which may have text of its warm-up. */
json_t *pools_json(const struct pools *p, const struct config_template *t, bool whole);

#endif
