/* What OpenSSL says of its errors, without every role having all its texts in memory. */
#ifndef DURWARD_CRYPTO_TEXT_H
#define DURWARD_CRYPTO_TEXT_H

/* Before anything of OpenSSL is called, in every role: most never need such a text, and a table of
 * them all is 50 KiB in each. Those of TLS itself come with the first context as ever. */
void crypto_text_later(void);
/* The reason of an error of ERR_peek_error, a constant; loads the texts when it needs them. NULL: e
 * is 0, or nothing is known of it. */
const char *crypto_text(unsigned long e);

#endif
