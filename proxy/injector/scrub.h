/* Finding the forms of secrets in a stream, whatever its pieces, and replacing each by
 * "[REDACTED:name]", cut or padded with "*" to the same length (attacks C1, C15).
 *
 * A set is one automaton of all forms of all of them (Aho-Corasick), made once and shared. A stream
 * holds back only the bytes that may still be the beginning of a form: fewer than the longest form
 * has. Forms that overlap are replaced as one. Time is linear in the bytes, whatever they are. */
#ifndef DURWARD_SCRUB_H
#define DURWARD_SCRUB_H

#include "scrub_forms.h"

enum {
    SCRUB_FEED_MAX = 1 << 20,
    SCRUB_PARTS_MAX = 4096,
    SCRUB_EARLY = 3, /* bytes at the beginning of a form that are nothing yet */
    SCRUB_LONGEST = SCRUB_FORM_MAX,
};

struct scrub_set;
struct scrub;

/* name: the secret's. NULL: no form, one longer than SCRUB_LONGEST, or out of memory. */
struct scrub_set *scrub_set_new(const struct scrub_forms *f, const char *name);
/* The forms of several secrets, each replaced by its own mark. NULL also: more of them, or of their
 * bytes, than one search takes. n may be 0: nothing is found. */
struct scrub_part {
    const struct scrub_forms *forms;
    const char *name;
};
struct scrub_set *scrub_set_join(const struct scrub_part *part, size_t n);
struct scrub_set *scrub_set_ref(struct scrub_set *s);
void scrub_set_unref(struct scrub_set *s); /* NULL is fine; the last one wipes */
size_t scrub_set_longest(const struct scrub_set *s);
/* A text that is whole, such as a field's value; returns how many hits were replaced, or -1 when
 * memory is out. */
ssize_t scrub_whole(const struct scrub_set *s, char *p, size_t n) WUNUSED;

struct scrub *scrub_new(struct scrub_set *s); /* takes a reference of its own; NULL: memory */
void scrub_free(struct scrub *s);             /* wipes; NULL is fine */
const struct scrub_set *scrub_set(const struct scrub *s);
/* From here on it looks for what another set has, which should be all of the present one's and
 * more: a secret got a new value while the reply is on its way. -1: out of memory. */
int scrub_switch(struct scrub *s, struct scrub_set *to) WUNUSED;
/* in: at most SCRUB_FEED_MAX bytes. out: what may pass now, at most what was held and in.n; valid
 * until the next call and as long as in is. -1: out of memory; nothing more may pass. */
int scrub_feed(struct scrub *s, struct slice in, struct slice *out) WUNUSED;
/* More may be long in coming: what is held, where that is at most SCRUB_EARLY bytes. Should they
 * have begun a form, the rest of it is replaced all the same. */
int scrub_early(struct scrub *s, struct slice *out) WUNUSED;
/* No more comes: what is held. */
int scrub_end(struct scrub *s, struct slice *out) WUNUSED;
size_t scrub_held(const struct scrub *s);
uint64_t scrub_hits(const struct scrub *s); /* that began in what has passed */

#endif
