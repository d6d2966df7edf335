/* AWS Signature Version 4: the part that needs the secret key. The vault holds a pair as one value;
 * whoever asks gets a signature over a canonical request that it hashed itself. */
#ifndef DURWARD_AWS_SIGN_H
#define DURWARD_AWS_SIGN_H

#include "buf.h"
#include "secret.h"

enum { AWS_TIME = 16, AWS_HEX = 64, AWS_SCOPE_MAX = 64, AWS_TOKEN_MAX = 16384 };

/* Views into the value it came from. */
struct aws_pair {
    struct slice id, key, token; /* token: of a session; empty for a long-lived pair */
};

/* The value under which the vault keeps a pair. NULL: a part is empty or has odd bytes. */
struct secret *aws_pair_pack(struct slice id, struct slice key, struct slice token);
int aws_pair_open(struct slice value, struct aws_pair *ret);
/* What of a pair may be known: "ID" or "ID TOKEN". NULL: the value is none, or memory. */
struct secret *aws_pair_told(struct slice value);

/* Which text is signed over the hash: of a canonical request, or, each chained to the signature
 * before it, of the data of a chunk or of the fields of a trailer. */
enum aws_text { AWS_REQUEST = 0, AWS_CHUNK, AWS_TRAILER };

/* What is to be signed: all of it is checked. */
struct aws_scope {
    char time[AWS_TIME + 1]; /* "20260102T030405Z" */
    char region[AWS_SCOPE_MAX + 1], service[AWS_SCOPE_MAX + 1];
    char hash[AWS_HEX + 1]; /* SHA-256 of what `text` says, lower-case hexadecimal */
    enum aws_text text;
    char previous[AWS_HEX + 1]; /* signature before this one; "" for a request */
};
bool aws_scope_ok(const struct aws_scope *s);
/* Lower-case hexadecimal with its NUL. 0 or -1. */
int aws_sign(const struct aws_pair *pair, const struct aws_scope *s, char to[AWS_HEX + 1]);
/* SHA-256 in that form. */
int aws_hash(struct slice text, char to[AWS_HEX + 1]);

#endif
