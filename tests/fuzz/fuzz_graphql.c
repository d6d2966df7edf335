/* graphql_read: any bytes; what it reads, it reads the same with white space about it. */
#include "graphql.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    unsigned n, types;
};

static bool on_operation(void *arg, enum graphql_type type, struct slice name)
{
    struct seen *s = arg;
    s->n++;
    s->types = s->types * 4 + (unsigned)type;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != '_' && !ascii_is_alnum(name.p[i]))
            abort();
    return true;
}

static bool on_field(void *arg, struct slice name)
{
    (void)name;
    return ((struct seen *)arg)->n > 0 || (abort(), false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen once = {0, 0}, again = {0, 0};
    struct graphql_visitor v = {on_operation, on_field, &once},
                           w = {on_operation, on_field, &again};
    if (size > GRAPHQL_MAX - 16)
        return 0;
    int r = graphql_read((struct slice){(const char *)data, size}, &v);
    char *text = malloc(size + 4);
    if (text == NULL)
        return 0;
    text[0] = ',';
    memcpy(text + 1, data, size);
    memcpy(text + 1 + size, "\n#", 2);
    int s = graphql_read((struct slice){text, size + 3}, &w);
    free(text);
    if (r == 0 && (s != 0 || once.n != again.n || once.types != again.types || once.n == 0))
        abort();
    return 0;
}
