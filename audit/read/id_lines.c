/* Keeps copies of lines in a hash table of fixed size, with eight places for an id. query.c holds
 * beginnings of requests in one, and ends that wait for their beginning in another. */
#include "id_lines.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 8 }; /* slots where one id may be */

struct place {
    struct line_id id;
    bool used;
    char *line;
    size_t n, room;
    uint64_t since; /* the oldest of PLACES goes first */
};

struct id_lines {
    size_t slots, count;
    uint64_t puts;
    struct place at[];
};

struct id_lines *id_lines_new(size_t slots)
{
    struct id_lines *t = calloc(1, sizeof *t + slots * sizeof *t->at);
    if (t)
        t->slots = slots;
    return t;
}

void id_lines_free(struct id_lines *t)
{
    for (size_t i = 0; t && i < t->slots; i++)
        free(t->at[i].line);
    free(t);
}

void id_lines_clear(struct id_lines *t)
{
    for (size_t i = 0; t && t->count && i < t->slots; i++)
        t->at[i].used = false;
    if (t)
        t->count = 0;
}

static size_t first_of(const struct id_lines *t, const struct line_id *id)
{
    uint64_t n = (id->counter ^ (uint64_t)id->channel << 40 ^ (uint64_t)id->tag << 56) *
                 UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(n >> 32) & (t->slots - 1) & ~(size_t)(PLACES - 1);
}

static struct place *find(const struct id_lines *t, const struct line_id *id)
{
    const struct place *p = &t->at[first_of(t, id)];
    for (int i = 0; i < PLACES; i++)
        if (p[i].used && p[i].id.counter == id->counter && p[i].id.channel == id->channel &&
            p[i].id.tag == id->tag)
            return (struct place *)&p[i];
    return NULL;
}

static struct place *oldest(struct id_lines *t, const struct line_id *id)
{
    struct place *p = &t->at[first_of(t, id)], *best = p;
    for (int i = 0; i < PLACES; i++) {
        if (!p[i].used)
            return &p[i];
        if (p[i].since < best->since)
            best = &p[i];
    }
    return best;
}

void id_lines_put(struct id_lines *t, const struct line_id *id, struct slice line)
{
    struct place *p = find(t, id);
    if (p == NULL)
        p = oldest(t, id);
    t->count -= p->used;
    p->used = false;
    if (line.n > p->room) {
        free(p->line);
        p->line = malloc(line.n);
        p->room = p->line ? line.n : 0;
    }
    if (line.n && p->line == NULL)
        return;
    if (line.n)
        memcpy(p->line, line.p, line.n);
    p->n = line.n;
    p->id = *id;
    p->since = ++t->puts;
    p->used = true;
    t->count++;
}

bool id_lines_get(const struct id_lines *t, const struct line_id *id, struct slice *line)
{
    const struct place *p = t->count ? find(t, id) : NULL;
    if (p)
        *line = (struct slice){p->line, p->n};
    return p != NULL;
}

void id_lines_drop(struct id_lines *t, const struct line_id *id)
{
    struct place *p = find(t, id);
    if (p) {
        p->used = false;
        t->count--;
    }
}

size_t id_lines_count(const struct id_lines *t)
{
    return t->count;
}
