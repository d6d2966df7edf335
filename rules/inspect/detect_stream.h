/* A body that passes through detectors: what is found is made unreadable in its place, byte for
 * byte as long as it was, or ends the body. What may be the beginning of something is held back
 * until it is decided. Bounded. */
#ifndef DURWARD_DETECT_STREAM_H
#define DURWARD_DETECT_STREAM_H

#include "detector.h"

/* How characters are written in it. */
enum detect_form {
    DETECT_PLAIN = 0,
    DETECT_JSON,      /* "\u0041" is "A" */
    DETECT_URLENCODED /* "%41" is "A", "+" a space */
};

/* Is this text, which a detector found, one of our own placeholders? */
typedef bool (*detect_own_fn)(void *arg, struct slice text);

struct detect_stream;
enum { DETECT_STREAM_SIZE = 224 * 1024 }; /* bytes of memory that one is, at most */

struct detect_stream *detect_stream_new(const struct detect_rules *rules, enum detect_form form,
                                        detect_own_fn own, void *arg); /* NULL: memory is out */
void detect_stream_free(struct detect_stream *s);                      /* wipes; NULL is fine */
size_t detect_stream_room(const struct detect_stream *s);
void detect_stream_take(struct detect_stream *s, const void *p, size_t n); /* n <= room */
void detect_stream_end(struct detect_stream *s);                           /* nothing more comes */
/* What may go on, of which n bytes went. */
struct slice detect_stream_ready(const struct detect_stream *s);
void detect_stream_went(struct detect_stream *s, size_t n);
/* Does it hold nothing? */
bool detect_stream_empty(const struct detect_stream *s);

enum detect_end {
    DETECT_PASSES = 0,
    DETECT_REFUSED, /* something of `refuse` is in it; nothing is ready any more */
    DETECT_UNREADABLE
};
enum detect_end detect_stream_state(const struct detect_stream *s);
/* How often each was found so far. */
const uint32_t *detect_stream_counts(const struct detect_stream *s);

/* Of a Content-Type. false: characters are written in a way that no detector reads. */
bool detect_form_of(struct slice content_type, enum detect_form *ret);

#endif
