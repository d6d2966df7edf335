/* The beginning of a request's body, held in the gate until the rule's inspection of it has
 * decided; then it goes on from here. It stands before *admitted*: no byte of it has left.
 *
 * Memory: of one request at most inspect_bound() bytes, of all in a gate PREVIEW_TOTAL. */
#ifndef DURWARD_PREVIEW_H
#define DURWARD_PREVIEW_H

#include "inspect.h"
#include "stream.h"

struct event_base;
struct preview;

enum { PREVIEW_TOTAL = 64 << 20, PREVIEW_WASTE_MAX = 64 << 20 };

struct preview_order {
    struct event_base *base;
    const struct inspection *inspection; /* both outlive the preview */
    const struct head *head;
    unsigned seconds;          /* without a byte: refused */
    size_t *total;             /* bytes held by all previews of this gate */
    void (*wanted)(void *arg); /* from the event loop: there is room again, after none */
    /* The decision, once, from the event loop: INSPECT_PASS or INSPECT_REFUSED. The preview may be
     * freed in it. */
    void (*decided)(void *arg, enum inspect_answer a, const struct inspect_result *why);
    void *arg;
};

/* By the head alone. INSPECT_MORE: a preview of the body is needed. */
enum inspect_answer preview_head(const struct inspection *in, const struct head *h,
                                 struct inspect_result *why);
struct preview *preview_new(const struct preview_order *o); /* NULL when memory is out */
void preview_free(struct preview *p);                       /* NULL is fine */

/* As the body comes; none of them decides before it returns. */
size_t preview_room(const struct preview *p);
void preview_data(struct preview *p, const void *bytes, size_t n);
void preview_end(struct preview *p);

/* After INSPECT_REFUSED of a push: what a receive-pack that refuses would say (status 200), so that
 * git shows the reason: told to the front, but for its end. False: not a byte was told. */
bool preview_answer(const struct preview *p, const struct front *f, const char *code,
                    const char *id);

/* After INSPECT_PASS: hand on what is held, as far as `to` has room. True: nothing is left. Only
 * `passed` is counted up, by what went. */
bool preview_pump(struct preview *p, const struct back *to, uint64_t *passed);

#endif
