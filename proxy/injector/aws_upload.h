/* A body of signed chunks on its way to the origin: each is held until it is whole, its signature
 * made anew by the vault, chained to the one before, and then it goes on. Stands between an
 * injection and its origin as the injection's back; at most one chunk and a little more are held.
 */
#ifndef DURWARD_AWS_UPLOAD_H
#define DURWARD_AWS_UPLOAD_H

#include "aws_chunks.h"
#include "stream.h"

struct aws_upload;
struct quota;
struct secret_client;

enum { AWS_UPLOAD_AHEAD = 64 * 1024 }; /* bytes taken of what follows a piece */

/* Told once, perhaps from within a call of the downstream: the upload cannot go on. */
struct aws_upload_owner {
    void (*failed)(void *self, unsigned status, const char *code); /* constant text */
    void (*wanted)(void *self);                                    /* there is room again */
    void *self;
};

/* total: what bodies hold in the process (body_buffer.h), ours counts as payer's. seed: the scope
 * and signature of the request's head. secret, sandbox, key_id: as for that; secrets must outlive
 * it. NULL: memory, or names too long. */
struct aws_upload *aws_upload_new(struct aws_upload_owner owner, struct secret_client *secrets,
                                  const char *secret, const char *sandbox, const char *key_id,
                                  const struct aws_scope *seed, const char *signature,
                                  uint64_t decoded, const char *names, struct quota *total,
                                  const char *payer);
void aws_upload_free(struct aws_upload *u); /* NULL is fine */
struct upstream aws_upload_upstream(struct aws_upload *u, struct upstream origin);
/* The origin has room. */
void aws_upload_pump(struct aws_upload *u);

#endif
