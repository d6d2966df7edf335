/* The beginning of a request's body, held in the gate until the rule's inspection of it has
 * decided; then it goes on from here. It stands before *admitted*: no byte of it has left.
 *
 * Memory: of one request at most inspect_bound() bytes, of all in a gate BODY_INSPECTION_TOTAL, of
 * which each sandbox has its share. */
#ifndef DURWARD_BODY_INSPECTION_H
#define DURWARD_BODY_INSPECTION_H

#include "inspect.h"
#include "quota.h"
#include "stream.h"

struct event_base;
struct body_inspection;

enum { BODY_INSPECTION_TOTAL = 64 << 20, BODY_INSPECTION_WASTE_MAX = 64 << 20 };

struct body_inspection_order {
    struct event_base *base;
    const struct inspection *inspection; /* both outlive the inspection */
    const struct head *head;
    unsigned seconds;          /* without a byte: refused */
    struct quota *total;       /* bytes held by all inspections of this gate */
    const char *owner;         /* whose part of them; outlives the inspection */
    void (*wanted)(void *arg); /* from the event loop: there is room again, after none */
    /* The decision, once, from the event loop: INSPECT_PASS or INSPECT_REFUSED. The inspection may
     * be freed in it. */
    void (*decided)(void *arg, enum inspect_answer a, const struct inspect_result *why);
    void *arg;
};

/* By the head alone. INSPECT_MORE: the body has to be inspected. */
enum inspect_answer body_inspection_head(const struct inspection *in, const struct head *h,
                                         struct inspect_result *why);
struct body_inspection *
body_inspection_new(const struct body_inspection_order *o); /* NULL when memory is out */
void body_inspection_free(struct body_inspection *p);       /* NULL is fine */

/* As the body comes; none of them decides before it returns. */
size_t body_inspection_room(const struct body_inspection *p);
void body_inspection_data(struct body_inspection *p, const void *bytes, size_t n);
void body_inspection_end(struct body_inspection *p);

/* After INSPECT_REFUSED of a push: what a receive-pack that refuses would say (status 200), so that
 * git shows the reason: told to the downstream, but for its end. False: not a byte was told. */
bool body_inspection_answer(const struct body_inspection *p, const struct downstream *f,
                            const char *code, const char *id);

/* After INSPECT_PASS: hand on what is held, as far as `to` has room. True: nothing is left. Only
 * `passed` is counted up, by what went. */
bool body_inspection_pump(struct body_inspection *p, const struct upstream *to, uint64_t *passed);

#endif
