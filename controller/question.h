/* What would the policy say to this request? Asked of the same functions as in the gate; no daemon
 * is asked and nothing is sent. */
#ifndef DURWARD_QUESTION_H
#define DURWARD_QUESTION_H

#include "policy.h"

enum { QUESTION_HEADERS_MAX = 64 };

struct question {
    struct authority authority;
    struct slice method, path, query; /* borrowed */
    bool has_query;
    struct {
        const char *name, *value;
    } header[QUESTION_HEADERS_MAX];
    size_t n_headers;
};

struct answer {
    enum verdict verdict;
    const char *code, *why;
    const struct rule *rule; /* NULL: none; borrowed from the policy */
};

/* scheme://authority[/path][?query][#fragment]; no scheme is https, as in rules. Borrows url. */
int question_url(const char *url, struct question *q, struct err *err);
void question_decide(const struct policy *p, const struct question *q, struct answer *ret);
const char *question_verdict(enum verdict v); /* "allow", "ask", "deny" */

#endif
