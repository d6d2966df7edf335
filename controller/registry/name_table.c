/* A search tree by host name, whose entries are numbered as they come; a full table has no number
 * for a new name. */
#include "name_table.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_TABLE_MAX = NAME_TABLE_LAST - NAME_TABLE_FIRST + 1 };

struct name {
    uint32_t index;
    char host[];
};

struct name_table {
    void *tree; /* of struct name, by host */
    unsigned limit, count;
};

struct walk {
    void (*fn)(void *arg, const char *host, uint32_t index);
    void *arg;
};

static int by_host(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->host, ((const struct name *)b)->host);
}

struct name_table *name_table_new(unsigned limit)
{
    struct name_table *t = calloc(1, sizeof *t);
    if (t)
        t->limit = limit < NAME_TABLE_MAX ? limit : NAME_TABLE_MAX;
    return t;
}

void name_table_free(struct name_table *t)
{
    if (t)
        tdestroy(t->tree, free);
    free(t);
}

uint32_t name_table_index(struct name_table *t, const char *host)
{
    size_t len = strlen(host) + 1;
    struct name *e = malloc(sizeof *e + len);
    if (e == NULL)
        return 0;
    memcpy(e->host, host, len);
    struct name **found = tfind(e, &t->tree, by_host);
    if (found == NULL && t->count < t->limit) {
        e->index = NAME_TABLE_FIRST + t->count;
        if (tsearch(e, &t->tree, by_host)) {
            t->count++;
            return e->index;
        }
    }
    free(e);
    return found ? (*found)->index : 0;
}

size_t name_table_count(const struct name_table *t)
{
    return t->count;
}

static void visit(const void *node, VISIT order, void *arg)
{
    const struct name *e = *(const struct name *const *)node;
    const struct walk *w = arg;
    if (order == postorder || order == leaf)
        w->fn(w->arg, e->host, e->index);
}

void name_table_each(const struct name_table *t,
                     void (*fn)(void *arg, const char *host, uint32_t index), void *arg)
{
    struct walk w = {fn, arg};
    twalk_r(t->tree, visit, &w);
}
