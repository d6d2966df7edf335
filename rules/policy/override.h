/* What asks an origin to act on another method than the request line's: the names that frameworks
 * read (PHP, Rack, Rails, Laravel, Symfony, Spring, ASP.NET, Express, OData, Google's APIs), in a
 * query, a form and a JSON object. Where a policy decides by method, a request with one of them is
 * refused. */
#ifndef DURWARD_OVERRIDE_H
#define DURWARD_OVERRIDE_H

#include "slice.h"

/* The next byte of a parameter's name as its reader will see it: percent escapes decoded, case
 * folded. *i moves on. */
char parameter_byte(struct slice name, size_t *i);

/* Does a parameter of this name, as it is written (escapes, "+"), name another method? */
bool override_parameter(struct slice name);

enum override_form { OVERRIDE_NONE = 0, OVERRIDE_URLENCODED, OVERRIDE_MULTIPART, OVERRIDE_JSON };

enum {
    OVERRIDE_NAME_MAX = 256,
    OVERRIDE_KNOWN_MAX = 144, /* more than the longest of the names takes, all of it escapes */
    OVERRIDE_LINE_MAX = 1024,
    OVERRIDE_BOUNDARY_MAX = 70
};

/* A body as it passes. Holds no more of it than one name or one line of a part's head. */
struct override_scan {
    enum override_form form;
    bool found; /* also: it cannot be read as every reader reads it */
    bool in_value, in_string, escaped, at_key; /* of the name or string that is being read */
    bool in_head, line_long;                   /* multipart */
    unsigned hex;                              /* digits of \uXXXX that are still to come */
    unsigned code;
    size_t n;
    size_t boundary_n;
    char boundary[OVERRIDE_BOUNDARY_MAX + 2]; /* "--" and what the head says (RFC 2046, 5.1.1) */
    char text[OVERRIDE_LINE_MAX];
};

/* By the Content-Type. False: a body of that type has no such parameter. */
bool override_begin(struct override_scan *s, struct slice content_type);
/* The next bytes of the body. True from the byte on that ends such a name. */
bool override_data(struct override_scan *s, const char *p, size_t n);

#endif
