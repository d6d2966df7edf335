/* Placeholders: what stands in a sandbox's environment where a secret would be.
 *
 * A placeholder is worth nothing by itself: 128 bits that only this sandbox's gate knows to name a
 * slot, and a 32-bit tag under the installation's key, by which every gate of the installation
 * tells a placeholder of another sandbox from ordinary text without a list (attacks C7, C8).
 *
 *   dwd_ 0AbC…           prefix of the kind, 27 base62 digits (bits and tag), then filler up to the
 *       └ 27 digits ┘    length that real keys of the kind have; all of it deterministic
 */
#ifndef DURWARD_PLACEHOLDER_H
#define DURWARD_PLACEHOLDER_H

#include "slice.h"

enum {
    PLACEHOLDER_SEED = 16,    /* bytes, random for each sandbox */
    PLACEHOLDER_TAG_KEY = 32, /* bytes, one for an installation */
    PLACEHOLDER_MAX = 128,    /* text with its NUL */
};

struct placeholder_key;

struct placeholder_key *placeholder_key_new(const unsigned char key[PLACEHOLDER_TAG_KEY]);
void placeholder_key_free(struct placeholder_key *k);

/* The placeholder of a secret in the sandbox with this seed; the same arguments give the same text.
 * kind: "github-pat", "openai", "anthropic", "anthropic-oauth"; any other, "" or NULL has a shape
 * of our own. A github-pat has a checksum that is wrong, so scanners that verify it stay silent. 0
 * or -1. */
int placeholder_make(struct placeholder_key *k, const unsigned char seed[PLACEHOLDER_SEED],
                     const char *secret, const char *kind, char to[PLACEHOLDER_MAX]);

/* Is this text as a whole a placeholder of this installation, of whatever sandbox? */
bool placeholder_is(struct placeholder_key *k, struct slice text);
/* Find every placeholder of this installation in text of any kind (a header value, a path, a query,
 * a decoded Basic credential). fn gets each, whole as far as it is there, and may be NULL. Returns
 * how many there are. Linear in the text; at most one HMAC every 31 bytes. When a tag cannot be
 * checked the text counts as a placeholder. */
typedef void (*placeholder_fn)(void *arg, struct slice placeholder);
size_t placeholder_scan(struct placeholder_key *k, struct slice text, placeholder_fn fn, void *arg);
/* For text that comes in pieces: how many bytes at its end may be the beginning of a placeholder
 * that is not all there. Less than PLACEHOLDER_MAX. */
size_t placeholder_partial(struct slice text);
/* Of text that is cut there (cut <= text.n): how many bytes behind the cut are still of what has
 * the shape of a placeholder and begins before it. The last letters of one may begin another, and
 * be held back: it is then judged with them. */
size_t placeholder_beyond(struct slice text, size_t cut);

#endif
