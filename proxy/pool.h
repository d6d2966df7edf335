/* Idle upstream connections, leased and returned. The key says everything that two requests must
 * share to share a connection: sandbox or policy, authority, TLS identity, credential. */
#ifndef DURWARD_POOL_H
#define DURWARD_POOL_H

#include "http1_client.h"

struct pool;

/* max: idle connections kept, the longest idle goes first; seconds: how long one is kept. */
struct pool *pool_new(unsigned max, unsigned seconds);
void pool_free(struct pool *p);
/* A live connection for this key, most recently used first, now the caller's; NULL when none. */
struct http1_client *pool_take(struct pool *p, const char *key);
/* Give a reusable connection back; closes it when it cannot be kept. */
void pool_give(struct pool *p, const char *key, struct http1_client *c);
/* Close every idle connection whose key starts with prefix (a credential changed); "" is all. */
void pool_drop(struct pool *p, const char *prefix);
size_t pool_idle(const struct pool *p);

#endif
