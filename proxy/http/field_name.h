/* What is known of field names: which are between client and proxy only, which lie about where a
 * request comes from or goes to, which carry a credential. Names are lower case.
 *
 * Many servers hand fields on as CGI variables, where "x_api_key" and "x-api-key" are one: a name
 * with "_", or another mark, that equals a known one with "-" is its twin (attacks B9, B21). */
#ifndef DURWARD_FIELD_NAME_H
#define DURWARD_FIELD_NAME_H

#include "http_head.h"

enum field_kind {
    FIELD_HOP = 1,        /* RFC 9110 7.6.1, or rewritten by us */
    FIELD_ROUTE = 2,      /* forwarding, and framing that is written anew */
    FIELD_CREDENTIAL = 4, /* carries a credential */
    FIELD_OVERRIDE = 8,   /* another method than the one decided on */
    FIELD_OTHER = 16,     /* known for its twin only */
};

/* The kinds of this very name (of forwarding fields each of their families, however their marks are
 * written); 0 when it is not known. */
unsigned field_kinds(struct slice name);
/* The i-th name of the table, in the order of bytes; empty behind the last. */
struct slice field_known(size_t i);
/* It carries a credential, by this name or by its last words ("-token"), any mark read as "-".
 * Cookies and tokens against cross-site requests are none here. */
bool field_is_credential(struct slice name);
/* The same, or the name is a session's and the value is what a token looks like. */
bool field_holds_credential(const struct field *f);
/* The same name when every mark is one byte. */
bool field_same(struct slice name, struct slice known);
/* It has another mark than "-", and is the twin of a known name. */
bool field_is_twin(struct slice name);

#endif
