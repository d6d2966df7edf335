/* What lines are looked up by: a key with its value, as one number, and the texts that a search by
 * text reads. Both indexes (log_index, log_blocks) and their questions take them from here. */
#ifndef DURWARD_TERMS_H
#define DURWARD_TERMS_H

#include "query.h"

enum { TERMS_FILTER_MAX = 12 };

/* of_request: an end that does not say it has it from its admitted record. */
typedef void (*terms_fn)(void *arg, uint64_t term, bool of_request);

uint64_t terms_sum(uint64_t h, const void *bytes, size_t n); /* FNV-1a, going on from h */
uint64_t terms_hash(const char *key, struct slice value);
uint64_t terms_host(struct slice host); /* of a host, or a domain with its dot; case is folded */
/* The value of a key (",\"sandbox\":") in a line; n is 0 when there is none. */
struct slice terms_value(struct slice line, const char *key);
/* What an index takes of a line beside its terms; empty where there is none. */
struct terms_marks {
    struct slice id, received;
};
/* All of a line but its id and times. A host gives itself, with its port, and each domain above it
 * with a leading dot. */
struct terms_marks terms_line(struct slice line, terms_fn fn, void *arg);
/* What the log writes as it is given; other values are not looked up. */
bool terms_plain(const char *value);

struct terms_wanted { /* what each match must have: of its request, and of itself */
    size_t n_request, n_own;
    uint64_t request[TERMS_FILTER_MAX], own[TERMS_FILTER_MAX];
};
/* id as a whole is among them. */
void terms_filter(const struct query_filter *f, struct terms_wanted *ret);

#endif
