/* Shared by inspect_llm.c (a call in a request's body) and llm_session.c (events of a WebSocket)
 * only: reading one text of a client's, and refusing it. */
#ifndef DURWARD_LLM_READING_H
#define DURWARD_LLM_READING_H

#include "inspect_internal.h"
#include "llm.h"

struct llm_keys;

struct llm_reading {
    const struct llm_rules *rules;
    const struct llm_keys *keys;
    struct llm_call *call;
    struct inspect_result *ret;
    bool free;
};

/* Refusals: names and numbers, no other value. */
enum inspect_answer llm_refuse(const struct llm_reading *r, const char *what, const char *which);
enum inspect_answer llm_doubt(const struct llm_reading *r, const char *key);
/* One more model that may answer, unless it is named already; of a path or a query, as it stands
 * there. */
enum inspect_answer llm_add_model(const struct llm_reading *r, const char *name);
enum inspect_answer llm_add_written_model(const struct llm_reading *r, struct slice s);
/* The largest of those said in this object. limitless: one of them says that there is none, as APIs
 * take what is below one. NULL, or the key that leaves a doubt. */
const char *llm_read_counts(const struct llm_reading *r, const json_t *at,
                            const char *const names[2], uint64_t *ret, bool *said, bool *limitless);
/* Models, maxima and what else a body of that form says. */
enum inspect_answer llm_read_body(struct llm_reading *r, enum llm_form form, const json_t *root);
/* Tokens, by length. key: whose value it is, where that is a file's. */
uint64_t llm_count(const json_t *v, const char *key);

#endif
