/* What a server echoes of a secret becomes as many '*', so that lengths in its protocol stay right.
 */
#ifndef DURWARD_BACK_SCRUB_H
#define DURWARD_BACK_SCRUB_H

#include "buf.h"
#include "secret.h"

enum { BACK_SCRUB_LEAST = 8 }; /* shorter ones are words of every text */

/* held: how much of the word the bytes so far end with; they wait. */
struct back_scrub {
    struct secret *word;
    size_t *borders; /* of its beginnings: the longest that each ends with */
    size_t held;
};

int back_scrub_begin(struct back_scrub *s, struct slice word);
void back_scrub_end(struct back_scrub *s);
int back_scrub_put(struct back_scrub *s, struct slice in, struct buf *out);

#endif
