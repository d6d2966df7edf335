/* What each refusal's code says to whoever sent the request: one table. The sentences are constant:
 * nothing of the request, of the policy or of a secret is in them. */
#ifndef DURWARD_ANSWER_WORDS_H
#define DURWARD_ANSWER_WORDS_H

#include <stddef.h>

enum answer_class {
    ANSWER_DENIED = 0, /* by policy */
    ANSWER_REFUSED,    /* not a request that can be carried: policy was not the reason */
    ANSWER_FAILED,     /* it was let through, or could not be: the origin's fault or ours */
};

struct answer_words {
    const char *code;
    unsigned status; /* 0: with any */
    enum answer_class class;
    const char *why; /* follows "Durward denied this request: " and the like; no full stop */
    const char *way; /* sentences: the way out */
    unsigned retry;  /* seconds after which it is worth trying again; 0: not said */
};

/* Never NULL: a code that is not in the table is described by its status alone (code is ""). */
const struct answer_words *answer_words(unsigned status, const char *code);
const struct answer_words *answer_words_at(size_t i); /* the table's rows; NULL past the end */
const char *answer_class_name(enum answer_class c);   /* "denied", "refused", "failed" */

#endif
