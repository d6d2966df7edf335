/* Certificates out of PEM text (RFC 7468), one by one, without OpenSSL's BIO machinery: bundles
 * have some 150 of them and are read on every start. */
#ifndef DURWARD_PEM_H
#define DURWARD_PEM_H

#include "buf.h"

/* Certificates of content networks name thousands of hosts. */
enum { PEM_TEXT_MAX = 1 << 20, PEM_TOO_LARGE = -2 };

/* Decode the next CERTIFICATE block of *rest into *der (replacing its content; buf_init'd by the
 * caller with PEM_TEXT_MAX) and move *rest behind it. Text between blocks and blocks of other types
 * are skipped. 1 found, 0 no more, -1 a malformed block, PEM_TOO_LARGE one of more than
 * PEM_TEXT_MAX bytes (*rest is behind it). */
int pem_next(struct slice *rest, struct buf *der);

#endif
