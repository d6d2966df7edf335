/* A push as it comes over a stream that stays open until its report: held until a rule's `refs`
 * have decided about it, whose end is that of its commands or of its pack. */
#ifndef DURWARD_PUSH_STREAM_H
#define DURWARD_PUSH_STREAM_H

#include "buf.h"
#include "inspect.h"
#include "quota.h"

struct push_stream;

enum { PUSH_STREAM_ANSWER_MAX = 96 * 1024 };

/* in, total and owner must outlive it. total: of all pushes that are held beside it. NULL: out of
 * memory. */
struct push_stream *push_stream_new(const struct inspection *in, struct quota *total,
                                    const char *owner);
void push_stream_free(struct push_stream *p); /* NULL is fine */
/* More of it, until it is decided. end: no more comes. */
enum inspect_answer push_stream_take(struct push_stream *p, struct slice bytes, bool end);
const struct inspect_result *push_stream_why(const struct push_stream *p); /* of a refusal */
/* What was held, to be sent on; n of it was. */
struct slice push_stream_held(const struct push_stream *p);
void push_stream_sent(struct push_stream *p, size_t n);
/* A refusal in git's own words. 1: appended; 0: this client asked for no report. */
int push_stream_answer(const struct push_stream *p, struct buf *out) WUNUSED;

#endif
