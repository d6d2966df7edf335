/* Named detectors of what is not to leave a sandbox: secrets whose shape is published, numbers with
 * a check digit, addresses. They look at text; detect_stream.h lets a body pass through them.
 *
 * They find what somebody sends by mistake. Who wants to hide a secret encodes it, and no detector
 * sees it then. */
#ifndef DURWARD_DETECTOR_H
#define DURWARD_DETECTOR_H

#include "slice.h"

enum detector {
    DETECT_PRIVATE_KEY = 0, /* PEM */
    DETECT_AWS,
    DETECT_GOOGLE,
    DETECT_AZURE,
    DETECT_GITHUB,
    DETECT_GITLAB,
    DETECT_SLACK,
    DETECT_STRIPE,
    DETECT_MODEL, /* keys of providers of models */
    DETECT_TOKEN, /* of other services, with a published prefix */
    DETECT_JWT,
    DETECT_URL_PASSWORD,
    DETECT_NAMED, /* what stands behind a name such as "token" */
    DETECT_CARD,
    DETECT_IBAN,
    DETECT_EMAIL,
    DETECT_ENTROPY,
    DETECT_ID_BE,
    DETECT_ID_BR,
    DETECT_ID_CA,
    DETECT_ID_CH,
    DETECT_ID_DE,
    DETECT_ID_ES,
    DETECT_ID_FR,
    DETECT_ID_GB,
    DETECT_ID_IN,
    DETECT_ID_IT,
    DETECT_ID_PL,
    DETECT_ID_SE,
    DETECT_ID_US,
    DETECTORS
};

#define DETECT_BIT(d) (1u << (d))

/* What a rule has looked for in bodies on their way out: a mask of DETECT_BIT each. None is in
 * both. */
struct detect_rules {
    uint32_t redact, refuse;
};

/* "github", "card"…; NULL past the end. */
const char *detector_name(enum detector d);
/* The detectors of a word, which may be a group ("credentials", "national_ids"); 0: no such word.
 */
uint32_t detectors_of(struct slice word);

enum { DETECT_FOUND_MAX = 640 };
/* "github 2, email 1", for records; returns to. */
char *detect_found_text(const uint32_t counts[DETECTORS], char to[DETECT_FOUND_MAX]);
/* Is it such a text, of names that are known, each once? */
bool detect_found_is(struct slice text);

/* A place in a text. */
struct detect_match {
    size_t at, n;
    size_t root; /* where that begins by which it is known */
    enum detector what;
    bool goes_on; /* the text ends in it, and what follows of its kind is of it */
};

enum {
    DETECT_OPEN_MAX = 1024, /* decided at the latest when so much of it is there */
    DETECT_BEHIND = 16,     /* of text before a match, for its left boundary */
    DETECT_MATCHES = 256,
    DETECT_LEADS = 21
};

struct detect_scan {
    struct slice text;
    size_t from;           /* matches begin here or later; before it stands what they follow */
    bool whole;            /* nothing comes after text */
    uint32_t what;         /* which detectors */
    const uint64_t *forms; /* of numbers: detector_internal.h */
    /* found: */
    size_t open; /* from here on it is not decided */
    bool stops;  /* a match goes on: nothing behind its beginning is looked at */
    size_t stop;
    size_t n;
    struct detect_match match[DETECT_MATCHES];
};

/* Which detectors there are to look for, made once. */
struct detector_set;
struct detector_set *detector_set_new(uint32_t what); /* NULL: memory is out */
void detector_set_free(struct detector_set *s);       /* NULL is fine */
/* text, from and whole are given. The matches end before `open`; they may overlap, and are in no
 * order. */
void detector_scan(const struct detector_set *set, struct detect_scan *s);
/* How many bytes of a text that follows a match which goes on are still of it. *done: no more will
 * be. */
size_t detector_rest(enum detector what, struct slice text, bool whole, bool *done);

#endif
