/* The secrets of `env` stores, collected once at start into an anonymous file that the parent keeps
 * (unmapped) and each vault gets: JSON object, secret name → base64 of the value. It exists because
 * the variables themselves are wiped. */
#ifndef DURWARD_ENV_BLOCK_H
#define DURWARD_ENV_BLOCK_H

#include "buf.h"
#include "err.h"
#include "secret.h"

enum { ENV_BLOCK_MAX = 4 << 20 };

/* Build: begin with a fresh buffer, add each, end: the sealed memfd, or -1. The buffer is wiped. A
 * name is printable ASCII without '"' and '\'. */
void env_block_begin(struct buf *b);
int env_block_add(struct buf *b, const char *name, struct slice value, struct err *err);
int env_block_end(struct buf *b, struct err *err);
/* The value of one name, decoded straight into secret memory. NULL with ERR_UNREADY when the block
 * has no such name, ERR_PARSE when it is damaged. The caller unrefs. */
struct secret *env_block_get(int memfd, const char *name, struct err *err);

#endif
