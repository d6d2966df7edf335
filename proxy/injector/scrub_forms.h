/* The forms in which a secret's value may come back in a reply: as it is, base64 at its three
 * alignments, hexadecimal, percent-encoded, escaped for JSON, scripts and HTML as encoders in use
 * do it, UTF-16; of a JSON web token also its claims and its signature, each as it is. All of it is
 * as secret as the value: it lies in memory that is wiped and never leaves the process. */
#ifndef DURWARD_SCRUB_FORMS_H
#define DURWARD_SCRUB_FORMS_H

#include "buf.h"

enum {
    SCRUB_VALUE_MIN = 16,   /* shorter values are not looked for: too many chance hits */
    SCRUB_VALUE_MAX = 8192, /* longer ones are not taken: what is held back must fit an injector
                               channel's window */
    SCRUB_FORM_MAX = 6 * SCRUB_VALUE_MAX,
    SCRUB_FORMS_MAX = 96,
};

struct scrub_forms {
    struct buf bytes; /* all forms, one after the other */
    size_t n;
    struct {
        size_t at, n;
    } form[SCRUB_FORMS_MAX];
};

/* user: of a Basic credential, whose base64 pair is a form too; else NULL. -1: the value's length
 * is out of bounds, or out of memory. Free it in either case. */
int scrub_forms_make(struct scrub_forms *f, struct slice value, const char *user) WUNUSED;
/* For a list of one's own: start empty, then add; a form that is there already is not added. */
void scrub_forms_init(struct scrub_forms *f);
int scrub_forms_add(struct scrub_forms *f, struct slice form) WUNUSED;
struct slice scrub_forms_get(const struct scrub_forms *f, size_t i);
void scrub_forms_free(struct scrub_forms *f); /* wipes */

#endif
