/* Hosted sandboxes that `durward env --for` knows: how each is kept from everything but the proxy.
 */
#ifndef DURWARD_ENV_FOR_H
#define DURWARD_ENV_FOR_H

#define ENV_FOR_NAMES \
    "modal, daytona, runloop, langsmith, agentcore, vercel, deno, e2b, sandbox0, or other"
#define ENV_FOR_DIR "/tmp/durward" /* where its files are to be there, unless said otherwise */

struct env_for;

/* NULL when there is none of this name. */
const struct env_for *env_for_find(const char *name);
/* What is left to do, as lines of comment on stdout: the files to bring (from, to), and the lock.
 * proxy: the URL, whose token is not printed. 1 when it leads nowhere from another host, else 0. */
int env_for_print(const struct env_for *f, const char *proxy, const char *from, const char *to);

#endif
