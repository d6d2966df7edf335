/* A message's text: out of what a client sends, where a line with one dot ends it, and into what a
 * server gets. In between its lines end in CR LF, each of them, and no dot was doubled; so what one
 * side takes for the end the other cannot take for text, nor the other way round. */
#ifndef DURWARD_SMTP_MESSAGE_H
#define DURWARD_SMTP_MESSAGE_H

#include "buf.h"

enum { SMTP_TEXT_LINE_MAX = 998 }; /* RFC 5322, 2.1.1: some servers break longer ones up */

enum smtp_at { SMTP_AT_START = 0, SMTP_IN_LINE, SMTP_BEHIND_CR, SMTP_AT_DOT, SMTP_AT_DOT_CR };

struct smtp_reader {
    enum smtp_at at;
    size_t column;
    uint64_t n;      /* bytes so far, as they come out */
    const char *why; /* it cannot be carried; what follows is read to its end all the same */
};

/* Takes of *in, appends to out. 1: the message has ended; 0: more of it follows; -1: memory. */
int smtp_message_read(struct smtp_reader *r, struct slice *in, struct buf *out);

struct smtp_writer {
    bool begun, cr; /* within a line; behind CR */
    size_t column;
};

/* -1: it is not as the reader makes it; -2: memory. */
int smtp_message_write(struct smtp_writer *w, struct slice in, struct buf *out);
/* The line that ends it. -1: within a line. */
int smtp_message_end(const struct smtp_writer *w, struct buf *out);

#endif
