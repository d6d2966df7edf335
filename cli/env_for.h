/* Containers and hosted sandboxes that `durward env --for` knows: how each is kept from everything
 * but the proxy.
 */
#ifndef DURWARD_ENV_FOR_H
#define DURWARD_ENV_FOR_H

#include "env_print.h"

#define ENV_FOR_NAMES                                                                              \
    "docker, compose, devcontainer, modal, daytona, runloop, langsmith, agentcore, vercel, deno, " \
    "e2b, sandbox0, or other"
#define ENV_FOR_DIR "/tmp/durward" /* where its files are to be there, unless said otherwise */

struct env_for;

/* NULL when there is none of this name. */
const struct env_for *env_for_find(const char *name);
/* In which form its variables are printed, unless another is asked for. */
enum env_format env_for_format(const struct env_for *f);
/* What is left to do, as lines of comment (on stderr where `format` has none): the files to bring
 * (from, to), and the lock. proxy: the URL, whose token is not printed. 1 when it leads nowhere
 * from another host, else 0. */
int env_for_print(const struct env_for *f, enum env_format format, const char *proxy,
                  const char *from, const char *to);

#endif
