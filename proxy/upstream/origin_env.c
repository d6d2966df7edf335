/* Makes what all connections of a role to origins share: a pool, a client context, and the roots by
 * which origins are verified. */
#include "origin.h"

#include "io.h"
#include "roots.h"
#include "verified_chains.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

int origin_env_init(struct origin_env *env, struct event_base *base, const struct limits *limits,
                    unsigned idle_max, unsigned idle_seconds)
{
    *env = (struct origin_env){.base = base,
                               .limits = limits,
                               .pool = pool_new(base, idle_max, idle_seconds),
                               .tls = io_tls_client_ctx()};
    if (env->pool == NULL || env->tls == NULL)
        return -1;
    return verified_chains_setup(env->tls, VERIFIED_CHAINS_SECONDS);
}

int origin_env_trust(struct origin_env *env, int roots_fd, struct err *err)
{
    struct roots *roots = roots_load(roots_fd, err);
    close(roots_fd);
    if (roots == NULL)
        return -1;
    SSL_CTX_set1_cert_store(env->tls, roots_store(roots));
    verified_chains_forget(env->tls); /* what the former roots vouched for */
    roots_free(env->roots);
    env->roots = roots;
    return 0;
}

void origin_env_done(struct origin_env *env)
{
    pool_free(env->pool);
    if (env->base) /* connections that were kept say farewell, and go */
        event_base_loop(env->base, EVLOOP_NONBLOCK);
    SSL_CTX_free(env->tls);
    roots_free(env->roots);
    memset(env, 0, sizeof *env);
}
