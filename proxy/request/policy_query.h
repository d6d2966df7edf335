/* What would the policy say to this request? Asked of the same functions as in the gate; no daemon
 * is asked and nothing is sent. */
#ifndef DURWARD_POLICY_QUERY_H
#define DURWARD_POLICY_QUERY_H

#include "policy.h"

#include <jansson.h>

enum { POLICY_QUERY_HEADERS_MAX = 64 };

struct policy_query {
    struct authority authority;
    struct slice method, path, query; /* borrowed */
    bool has_query;
    struct slice user; /* of ssh:// */
    struct slice text; /* what stands behind the URL: a command, a target, a file, addresses, a
                        * folder; n 0: nothing */
    struct {
        const char *name, *value;
    } header[POLICY_QUERY_HEADERS_MAX];
    size_t n_headers;
};

struct answer {
    enum verdict verdict;
    const char *code, *why;
    const struct rule *rule; /* NULL: none; borrowed from the policy */
};

/* scheme://authority[/path][?query][#fragment]; no scheme is https, as in rules. Borrows url. */
int policy_query_url(const char *url, struct policy_query *q, struct err *err);
/* The same, or a URL of what brokers carry (ssh, postgres, mysql, redis, smtp, imap), which is
 * checked against q's method and text: they are set already. */
int policy_query_read(const char *url, struct policy_query *q, struct err *err);
void policy_query_decide(const struct policy *p, const struct policy_query *q, struct answer *ret);
const char *policy_query_verdict(enum verdict v); /* "allow", "ask", "deny" */
/* A secret that the origin makes and that no capture takes: the sandbox would have it. NULL: none.
 */
const char *policy_query_uncaptured(const struct answer *w, const struct policy_query *q);
/* What a cluster is asked, and which entry of the rule's `kubernetes` has that. NULL: it has none.
 */
const char *policy_query_kubernetes(const struct answer *w, const struct policy_query *q, char *to,
                                    size_t size);
/* All of it, as the command and the API say it. policy: p's name. NULL: out of memory. */
json_t *policy_query_json(const struct policy *p, const struct policy_query *q,
                          const struct answer *w, const char *policy);

#endif
