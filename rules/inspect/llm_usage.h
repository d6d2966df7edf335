/* Asking a stream of OpenAI's chat completions what it takes, where its client does not ask
 * (`request_usage` of a rule): `stream_options: { "include_usage": true }` goes into the request,
 * and what that adds to the reply is taken out again. By OpenAI's document that is an event whose
 * `choices` are empty and whose `usage` is an object, and `"usage": null` in every other one. */
#ifndef DURWARD_LLM_USAGE_H
#define DURWARD_LLM_USAGE_H

#include "buf.h"

enum {
    LLM_USAGE_EVENT = 16 * 1024 /* a longer event passes as it came: it is none that was added */
};

struct llm_usage_cut;

/* The body of such a call, as inspect_body has passed it, with the question in it: out, which is
 * empty. 0: nobody else's word stands in the way of that; -1: its `stream_options` are no object,
 * or memory is out, and the call goes as it is. */
int llm_usage_ask(struct slice body, struct buf *out) WUNUSED;

struct llm_usage_cut *llm_usage_cut_new(void);    /* NULL: memory is out */
void llm_usage_cut_free(struct llm_usage_cut *c); /* NULL is fine, here and below */
/* What goes on of the stream: at most what was held and in.n bytes, until the next call. -1: memory
 * is out. */
int llm_usage_cut_feed(struct llm_usage_cut *c, struct slice in, struct slice *out) WUNUSED;
/* There is no more: what was held. */
struct slice llm_usage_cut_end(const struct llm_usage_cut *c);
size_t llm_usage_cut_held(const struct llm_usage_cut *c);

#endif
