/* Who sent a request on: a provider that takes its sandboxes' requests to a URL of ours and says,
 * in a JWT of its own (RFC 7519, RS256), which sandbox asked. Pure: no socket, no clock.
 *
 * A provider signs for all of its customers, so a good signature alone says nothing: the issuer,
 * the audience (our URL) and the team must be those of the configuration. */
#ifndef DURWARD_OIDC_H
#define DURWARD_OIDC_H

#include "err.h"
#include "slice.h"

enum {
    OIDC_SETTINGS_MAX = 64 * 1024, /* bytes of settings with their keys */
    OIDC_KEYS_MAX = 16,
    OIDC_TOKEN_MAX = 8 * 1024, /* bytes of a token */
    OIDC_SKEW = 60,            /* seconds that the two clocks may differ */
    OIDC_NAME_MAX = 48,        /* of a sandbox, without the NUL */
};

struct oidc;

/* From JSON: {"url", "issuer", "team", "project"?, "keys": a key set of RFC 7517}. Keys of other
 * kinds than RSA for signatures are passed over; none at all, or one that is not sound (under 2048
 * or over 8192 bits, an even or small exponent), is an error. */
struct oidc *oidc_new(struct slice json, struct err *err);
void oidc_free(struct oidc *o);

/* NULL when it is good at `now` (seconds since 1970), with the sandbox in ret (size at least
 * OIDC_NAME_MAX + 1); else the denial's code: "token_invalid" (not a token of this issuer for this
 * URL), "token_expired", "token_source" (another team's or project's). */
const char *oidc_verify(const struct oidc *o, struct slice token, int64_t now, char *ret,
                        size_t size);

/* Its two halves, for tests and fuzzing: a head says which key; claims are judged once the
 * signature was right. Texts are JSON. -1: refused. */
int oidc_head(const struct oidc *o, struct slice json, size_t *key);
const char *oidc_claims(const struct oidc *o, struct slice json, int64_t now, char *ret,
                        size_t size);

#endif
