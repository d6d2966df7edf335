#include "happenings.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct happening {
    int64_t time;
    char sandbox[65], what[32], detail[257];
};

struct happenings {
    uint64_t next; /* number of the next one; the first is 1 */
    struct happening list[HAPPENINGS_MAX];
};

struct happenings *happenings_new(void)
{
    struct happenings *h = calloc(1, sizeof *h);
    if (h)
        h->next = 1;
    return h;
}

void happenings_free(struct happenings *h)
{
    free(h);
}

void happenings_add(struct happenings *h, const char *sandbox, const char *what, const char *detail)
{
    if (h == NULL)
        return;
    struct happening *e = &h->list[h->next++ % HAPPENINGS_MAX];
    e->time = (int64_t)time(NULL);
    snprintf(e->sandbox, sizeof e->sandbox, "%s", sandbox);
    snprintf(e->what, sizeof e->what, "%s", what);
    snprintf(e->detail, sizeof e->detail, "%s", detail);
    for (char *p = e->detail; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?'; /* parts of it may come from inside; and a cut may split a character */
}

json_t *happenings_json(const struct happenings *h, uint64_t after, unsigned limit)
{
    json_t *list = json_array();
    uint64_t first = h->next > HAPPENINGS_MAX ? h->next - HAPPENINGS_MAX : 1;
    uint64_t n = after >= first ? after + 1 : first;
    for (; n < h->next && limit > 0; n++, limit--) {
        const struct happening *e = &h->list[n % HAPPENINGS_MAX];
        json_array_append_new(list, json_pack("{s:I, s:I, s:s, s:s, s:s}", "sequence",
                                              (json_int_t)n, "time", (json_int_t)e->time, "sandbox",
                                              e->sandbox, "event", e->what, "detail", e->detail));
    }
    /* a number from another life of ours is no reason to be silent until it is reached again */
    uint64_t next = n > h->next ? h->next - 1 : n - 1;
    return json_pack("{s:o, s:I}", "events", list, "next", (json_int_t)next);
}
