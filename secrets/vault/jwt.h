/* A JSON Web Token (RFC 7519) signed with a private key in PEM. */
#ifndef DURWARD_JWT_H
#define DURWARD_JWT_H

#include "buf.h"
#include "err.h"

/* Appends the compact form. algorithm: "RS256" or "ES256"; key_id "" for none; claims: JSON. */
int jwt_sign(struct buf *out, const char *algorithm, const char *key_id, struct slice claims,
             struct slice pem, struct err *err);

#endif
