#include "names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct name {
    uint32_t index;
    char host[];
};

struct names {
    void *tree; /* of struct name, by host */
    unsigned limit, count;
};

static int by_host(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->host, ((const struct name *)b)->host);
}

struct names *names_new(unsigned limit)
{
    struct names *n = calloc(1, sizeof *n);
    if (n)
        n->limit = limit < NAMES_LIMIT - NAMES_FIRST + 1 ? limit : NAMES_LIMIT - NAMES_FIRST + 1;
    return n;
}

void names_free(struct names *n)
{
    if (n)
        tdestroy(n->tree, free);
    free(n);
}

uint32_t names_index(struct names *n, const char *host)
{
    size_t len = strlen(host) + 1;
    struct name *e = malloc(sizeof *e + len);
    if (e == NULL)
        return 0;
    memcpy(e->host, host, len);
    struct name **found = tfind(e, &n->tree, by_host);
    if (found == NULL && n->count < n->limit) {
        e->index = NAMES_FIRST + n->count;
        if (tsearch(e, &n->tree, by_host)) {
            n->count++;
            return e->index;
        }
    }
    free(e);
    return found ? (*found)->index : 0;
}

size_t names_count(const struct names *n)
{
    return n->count;
}
