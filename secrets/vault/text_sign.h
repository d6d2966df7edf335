/* Keys that sign texts which the injector wrote: generic HMAC, Azure Storage's SharedKey, HTTP
 * message signatures (RFC 9421). What a key signs with is said where it is declared, not by who
 * asks. */
#ifndef DURWARD_TEXT_SIGN_H
#define DURWARD_TEXT_SIGN_H

#include "buf.h"
#include "err.h"
#include "secret.h"

/* algorithm: "sha1", "sha256", "sha512"; encoding, of the key: "text", "hex", "base64". The
 * signature's bytes are appended. */
int text_sign_hmac(struct slice key, const char *encoding, const char *algorithm, struct slice text,
                   struct buf *out, struct err *err) WUNUSED;
/* algorithm: a name of RFC 9421 6.2.2. key: PEM, or for hmac-sha256 base64. The text must be a
 * signature base: its last line is that of the parameters. */
int text_sign_http(struct slice key, const char *algorithm, struct slice text, struct buf *out,
                   struct err *err) WUNUSED;

#endif
