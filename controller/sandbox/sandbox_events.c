/* A ring of the last SANDBOX_EVENTS_MAX events; whatever is not printable ASCII in their texts is
 * replaced, as parts of it may come from inside. */
#include "sandbox_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct sandbox_event {
    int64_t time;
    char sandbox[65], what[32], detail[257];
};

struct sandbox_events {
    uint64_t next; /* number of the next one; the first is 1 */
    struct sandbox_event list[SANDBOX_EVENTS_MAX];
};

struct sandbox_events *sandbox_events_new(void)
{
    struct sandbox_events *h = calloc(1, sizeof *h);
    if (h)
        h->next = 1;
    return h;
}

void sandbox_events_free(struct sandbox_events *h)
{
    free(h);
}

void sandbox_events_add(struct sandbox_events *h, const char *sandbox, const char *what,
                        const char *detail)
{
    if (h == NULL)
        return;
    struct sandbox_event *e = &h->list[h->next++ % SANDBOX_EVENTS_MAX];
    e->time = (int64_t)time(NULL);
    snprintf(e->sandbox, sizeof e->sandbox, "%s", sandbox);
    snprintf(e->what, sizeof e->what, "%s", what);
    snprintf(e->detail, sizeof e->detail, "%s", detail);
    for (char *p = e->detail; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?'; /* parts of it may come from inside; and a cut may split a character */
}

json_t *sandbox_events_json(const struct sandbox_events *h, uint64_t after, unsigned limit)
{
    json_t *list = json_array();
    uint64_t first = h->next > SANDBOX_EVENTS_MAX ? h->next - SANDBOX_EVENTS_MAX : 1;
    uint64_t n = after >= first ? after + 1 : first;
    for (; n < h->next && limit > 0; n++, limit--) {
        const struct sandbox_event *e = &h->list[n % SANDBOX_EVENTS_MAX];
        json_array_append_new(list, json_pack("{s:I, s:I, s:s, s:s, s:s}", "sequence",
                                              (json_int_t)n, "time", (json_int_t)e->time, "sandbox",
                                              e->sandbox, "event", e->what, "detail", e->detail));
    }
    /* a number from another life of ours is no reason to be silent until it is reached again */
    uint64_t next = n > h->next ? h->next - 1 : n - 1;
    return json_pack("{s:o, s:I}", "events", list, "next", (json_int_t)next);
}
