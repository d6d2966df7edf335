/* Base64 (RFC 4648): written with padding, the url-safe kind read and written without. */
#ifndef DURWARD_BASE64_H
#define DURWARD_BASE64_H

#include "buf.h"

int base64_append(struct buf *out, struct slice bytes) WUNUSED;
int base64url_append(struct buf *out, struct slice bytes) WUNUSED;
/* The one decoder of the tree, strict: no blanks, no characters of the other alphabet, padding
 * where it belongs and nowhere else, and no bits left over that are not zero (RFC 4648, 3.5), so
 * that a text and what it means belong to one another. Appends the bytes. -1: it is not that, or
 * out is full; what was appended by then is taken back. */
int base64_decode(struct buf *out, struct slice text) WUNUSED;    /* with padding */
int base64url_decode(struct buf *out, struct slice text) WUNUSED; /* without */
/* The same into memory of the caller's; at most text.n / 4 * 3 bytes. -> how many, or -1: size is
 * too small, too. */
ssize_t base64_read(struct slice text, void *to, size_t size) WUNUSED;

#endif
