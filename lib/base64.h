/* Base64 (RFC 4648): written with padding, the url-safe kind read and written without. */
#ifndef DURWARD_BASE64_H
#define DURWARD_BASE64_H

#include "buf.h"

int base64_append(struct buf *out, struct slice bytes) WUNUSED;
int base64url_append(struct buf *out, struct slice bytes) WUNUSED;
/* -1: not base64 with its padding, whole, or out is full. */
int base64_decode(struct buf *out, struct slice text) WUNUSED;
/* -1: not base64url without padding, or out is full. */
int base64url_decode(struct buf *out, struct slice text) WUNUSED;

#endif
