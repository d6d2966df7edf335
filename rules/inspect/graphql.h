/* A strict reader of GraphQL executable documents (October 2021): which operations does a text
 * hold? It refuses whatever it does not know: type system definitions, descriptions, text outside
 * strings and comments that is not ASCII. A server's own parser may refuse more; it must never see
 * other operations than those told here. */
#ifndef DURWARD_GRAPHQL_H
#define DURWARD_GRAPHQL_H

#include "slice.h"

enum { GRAPHQL_MAX = 64 * 1024, GRAPHQL_DEPTH = 64, GRAPHQL_OPERATIONS = 64 };

enum graphql_type { GRAPHQL_QUERY = 1, GRAPHQL_MUTATION, GRAPHQL_SUBSCRIPTION };

struct graphql_visitor {
    /* Each operation, in order; its name is empty when it has none. False: read no more. */
    bool (*operation)(void *arg, enum graphql_type type, struct slice name);
    /* Each field at the top of the operation told last, by its name, not its alias. Empty: a
     * fragment stands there. NULL: not wanted. */
    bool (*field)(void *arg, struct slice name);
    void *arg;
};

/* 0: read to its end. 1: the visitor has stopped it. -1: not such a document, longer than
 * GRAPHQL_MAX, deeper than GRAPHQL_DEPTH, without an operation, or an anonymous one beside others.
 * text: valid UTF-8. */
int graphql_read(struct slice text, const struct graphql_visitor *v);

#endif
