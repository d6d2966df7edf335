/* For scan-build alone, put before every file. The analyser does not know that an element's `prev`
 * is its head's `first`, so that for it what TAILQ_REMOVE and LIST_REMOVE took off and somebody
 * freed is still what TAILQ_FIRST finds. Told that a list may hold anything, it looks at what is
 * done with an element, and at everything else. */
#include <sys/queue.h>
#ifdef __clang_analyzer__
void *analyser_any(const void *p);
void analyser_forget(void *p);
#define ANY(p) ((__typeof__(p))analyser_any(p))

#undef LIST_FIRST
#undef LIST_NEXT
#undef LIST_FOREACH
#undef LIST_INSERT_HEAD
#define LIST_FIRST(head)      ANY((head)->lh_first)
#define LIST_NEXT(elm, field) ANY((elm)->field.le_next)
#define LIST_FOREACH(var, head, field) \
    for ((var) = LIST_FIRST(head); (var); (var) = LIST_NEXT(var, field))
#define LIST_INSERT_HEAD(head, elm, field) \
    ((head)->lh_first = (elm), (elm)->field.le_prev = &(head)->lh_first, analyser_forget(head))

#undef TAILQ_FIRST
#undef TAILQ_NEXT
#undef TAILQ_LAST
#undef TAILQ_PREV
#undef TAILQ_FOREACH
#undef TAILQ_FOREACH_REVERSE
#undef TAILQ_INSERT_HEAD
#undef TAILQ_INSERT_TAIL
#undef TAILQ_REMOVE
#define TAILQ_FIRST(head)            ANY((head)->tqh_first)
#define TAILQ_NEXT(elm, field)       ANY((elm)->field.tqe_next)
#define TAILQ_LAST(head, name)       ANY((head)->tqh_first)
#define TAILQ_PREV(elm, name, field) ANY((elm)->field.tqe_next)
#define TAILQ_FOREACH(var, head, field) \
    for ((var) = TAILQ_FIRST(head); (var); (var) = TAILQ_NEXT(var, field))
#define TAILQ_FOREACH_REVERSE(var, head, name, field) TAILQ_FOREACH(var, head, field)
#define TAILQ_INSERT_HEAD(head, elm, field) \
    ((head)->tqh_first = (elm), (elm)->field.tqe_prev = &(head)->tqh_first, analyser_forget(head))
#define TAILQ_INSERT_TAIL(head, elm, field) TAILQ_INSERT_HEAD(head, elm, field)
#define TAILQ_REMOVE(head, elm, field) \
    (analyser_forget((elm)->field.tqe_next), analyser_forget(head))
#undef LIST_REMOVE
#define LIST_REMOVE(elm, field) analyser_forget((elm)->field.le_next)
#endif
