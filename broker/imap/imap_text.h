/* The words of IMAP's grammar (RFC 3501, 9): taken off the front of a text, and written anew. */
#ifndef DURWARD_IMAP_TEXT_H
#define DURWARD_IMAP_TEXT_H

#include "buf.h"

enum { IMAP_STRING_MAX = 8 * 1024 };

/* Each takes what it names off *s, or leaves *s somewhere within and says false. */
bool imap_take(struct slice *s, char c);
bool imap_take_word(struct slice *s, const char *word); /* in any case, and no letter behind it */
bool imap_take_atom(struct slice *s, struct slice *ret);
bool imap_take_number(struct slice *s, uint64_t most, uint64_t *ret);
/* Of messages: "1:4,7,9:*". */
bool imap_take_set(struct slice *s, struct slice *ret);
/* "quoted", or a literal; its bytes are appended. No CR, LF and byte 0 in it. */
bool imap_take_string(struct slice *s, struct buf *to);
bool imap_take_astring(struct slice *s, struct buf *to);      /* or an atom, in which ']' may be */
bool imap_take_list_pattern(struct slice *s, struct buf *to); /* or one with wildcards */

/* Quoted where that can be, else a literal whose reader has to be waited for. */
int imap_put_string(struct buf *out, struct slice s) WUNUSED;

#endif
