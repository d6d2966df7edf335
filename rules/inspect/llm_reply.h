/* What a model's reply says that it used (`usage`), read as the reply passes: nothing of it is held
 * and nothing altered. A usage that cannot be read with certainty is unknown. */
#ifndef DURWARD_LLM_REPLY_H
#define DURWARD_LLM_REPLY_H

#include "inspect.h"

struct llm_usage {
    bool known;
    bool any;                 /* something was read of it */
    uint64_t in;              /* tokens sent, those of the next two among them */
    uint64_t cached, written; /* read from the provider's cache, written into it */
    uint64_t out;             /* thoughts too */
    uint64_t seen; /* of the answer, by what came of it: a quarter of its texts' bytes, or a token
                    * for each event, whichever is more. Thoughts that are not shown are not seen */
};

struct llm_reply;

/* By the media type of the reply. NULL: memory is out. */
struct llm_reply *llm_reply_new(enum llm_form form, const struct inspect_request *facts);
void llm_reply_free(struct llm_reply *r);            /* NULL is fine, here and below */
bool llm_reply_is_events(const struct llm_reply *r); /* server-sent */
void llm_reply_feed(struct llm_reply *r, struct slice bytes);
void llm_reply_close(struct llm_reply *r); /* that was all of it */
struct llm_usage llm_reply_usage(const struct llm_reply *r);

#endif
