/* The placeholders of one sandbox: for each secret of its policy a text shaped like the real thing,
 * made from the sandbox's seed, tagged under the installation's key. The same seed gives the same
 * placeholders again. */
#ifndef DURWARD_PLACEHOLDERS_H
#define DURWARD_PLACEHOLDERS_H

#include "config.h"
#include "sandbox.h"

struct placeholders {
    struct sandbox_placeholder *list;
    size_t n;
};

int placeholders_make(const struct config *c, const char *policy, const unsigned char *seed,
                      const unsigned char *tag_key, struct placeholders *ret, struct err *err);
void placeholders_done(struct placeholders *p);
/* Text with {{placeholder NAME}} and {{placeholder NAME last N}} filled in, malloc'd; NULL where
 * one cannot be. */
char *placeholders_fill(const struct placeholders *p, const char *text);
/* The policy's `env` with its placeholders filled in, added to `env` (replacing). */
int placeholders_env(const struct config *c, const char *policy, const struct placeholders *p,
                     struct strlist *env, struct err *err);

#endif
