/* The text that both ends of a SCRAM exchange sign (the AuthMessage of RFC 5802 3), as whoever
 * talks to the server writes it and whoever has the password reads it again before signing. */
#ifndef DURWARD_SCRAM_TEXT_H
#define DURWARD_SCRAM_TEXT_H

#include "err.h"
#include "slice.h"

enum {
    SCRAM_NONCE = 24,      /* characters of the client's */
    SCRAM_NONCE_MAX = 256, /* of both together */
    SCRAM_SALT_MAX = 256,  /* in base64 */
    SCRAM_TEXT_MAX = 2048,
    SCRAM_HASH = 32,
    SCRAM_SIGNED = 2 * SCRAM_HASH, /* what is made of the text: the proof, the server's signature */
    SCRAM_ITERATIONS_LEAST = 4096, /* RFC 7677 4 */
    SCRAM_ITERATIONS_MOST = 100000,
};

struct scram_parts {
    struct slice nonce, salt; /* salt: base64 */
    uint32_t iterations;
};

/* An attribute "x=value" up to the next comma or the end, off the front of *in. */
int scram_take(struct slice *in, char name, struct slice *ret) WUNUSED;
/* The nonce, the salt and the iterations of a server's first message, off the front of *in. */
int scram_server_parts(struct slice *in, struct scram_parts *ret, struct err *err) WUNUSED;
/* The whole text, of a client that names no user. -1: it is not that. */
int scram_text_read(struct slice text, struct scram_parts *ret, struct err *err) WUNUSED;

#endif
