/* Holds a request to a token endpoint in buffers that are wiped when they are freed. */
#include "token_fetch.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 64 * 1024 };

void token_request_init(struct token_request *r, const char *url)
{
    memset(r, 0, sizeof *r);
    r->method = "POST";
    r->url = url;
    buf_init_wiped(&r->body, VALUE_MAX);
}

void token_request_free(struct token_request *r)
{
    for (size_t i = 0; i < r->n; i++)
        buf_free(&r->fields[i].value);
    buf_free(&r->body);
    if (r->made)
        explicit_bzero(r->made, strlen(r->made));
    free(r->made);
    r->made = NULL;
    r->n = 0;
}

struct buf *token_request_field(struct token_request *r, const char *name)
{
    if (r->n == TOKEN_FIELDS_MAX)
        return NULL;
    r->fields[r->n].name = name;
    buf_init_wiped(&r->fields[r->n].value, VALUE_MAX);
    return &r->fields[r->n++].value;
}
