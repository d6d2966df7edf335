/* Shared by the detectors' files only. */
#ifndef DURWARD_DETECTOR_INTERNAL_H
#define DURWARD_DETECTOR_INTERNAL_H

#include "detector.h"

enum detect_answer { DETECT_NO = 0, DETECT_YES, DETECT_MORE };

enum detect_class {
    CLASS_ALNUM = 1, /* [A-Za-z0-9] */
    CLASS_DIGIT = 2,
    CLASS_UPPER = 4,
    CLASS_WORD = 8,       /* [A-Za-z0-9_] */
    CLASS_NAME = 16,      /* [A-Za-z0-9_-] */
    CLASS_DOTTED = 32,    /* [A-Za-z0-9_.-] */
    CLASS_BASE64 = 64,    /* [A-Za-z0-9+/=] */
    CLASS_HEX = 128,      /* [0-9a-f] */
    CLASS_UPDIGIT = 256,  /* [A-Z0-9] */
    CLASS_LOCAL = 512,    /* [A-Za-z0-9._%+-]: of an address before its @ */
    CLASS_ENTROPY = 1024, /* [A-Za-z0-9+/=_-] */
    CLASS_PEM = 2048,     /* what stands between the lines of a PEM block */
    CLASS_SLASHED = 4096, /* [A-Za-z0-9/] */
};

extern const uint16_t detect_classes[256];

static inline bool detect_is(char c, unsigned classes)
{
    return (detect_classes[(unsigned char)c] & classes) != 0;
}

/* The byte before i; a space where there is none. */
static inline char detect_before(const struct detect_scan *s, size_t i)
{
    return i > 0 ? s->text.p[i - 1] : ' ';
}

/* How far a run of the class goes from i on. */
static inline size_t detect_run(const struct detect_scan *s, size_t i, unsigned classes)
{
    while (i < s->text.n && detect_is(s->text.p[i], classes))
        i++;
    return i;
}

/* The text ends before it is decided, and more will come. */
static inline bool detect_cut(const struct detect_scan *s, size_t end)
{
    return end >= s->text.n && !s->whole;
}

void detect_open(struct detect_scan *s, size_t at); /* undecided from there on */
void detect_found(struct detect_scan *s, enum detector what, size_t at, size_t end);
/* It is known by what stands before it, from root on. */
void detect_found_behind(struct detect_scan *s, enum detector what, size_t root, size_t at,
                         size_t end);

/* detect_skim.c: what begins with three bytes is known by them, many at once. Bits of a byte of
 * these tables stand for some of the beginnings. */
enum { DETECT_BEGINS = 0x1f, DETECT_NAMES = 0xe0 };
struct detect_filter {
    unsigned char low[3][16], high[3][16]; /* of the halves of each byte of the beginnings */
    unsigned char byte[3][64];             /* of its lower six bits */
};
void detect_filter_add(struct detect_filter *f, const char *prefix); /* of three bytes or more */
struct detect_skim {
    bool cards, ibans; /* as they are written */
    bool digits;       /* whatever begins with a digit */
    const struct detect_filter *filter;
    bool wide; /* 64 bytes at once, where the processor can */
};
/* Something may begin there, or a value behind a sign behind a name. Whether to go on. */
typedef bool (*detect_place_fn)(void *arg, size_t at, bool value, bool begins);
bool detect_skim_can(void); /* on this processor */
bool detect_skim_wide_can(void);
/* Tells each place from `from` on and before `to`, in their order. Only where it can. */
void detect_skim(const struct detect_skim *what, struct slice text, size_t from, size_t to,
                 detect_place_fn tell, void *arg);
/* detector.c */
/* The set looks at each byte from now on: to hold the one way against the other. */
void detector_set_plain(struct detector_set *s);
/* 64 bytes at once, where the processor can; false: as on one that can no more than 32. */
void detector_set_wide(struct detector_set *s, bool wide);

/* Each looks at one place. detect_token.c: what one of the beginnings says may stand there. */
void detect_token_try(struct detect_scan *s, size_t i, unsigned which);
enum { DETECT_TRIES = 192 };
/* Each beginning, of three bytes or more, that belongs to these detectors, and its number. */
typedef void (*detect_prefix_fn)(void *arg, const char *prefix, unsigned which);
void detect_tokens_prefixes(uint32_t what, detect_prefix_fn add, void *arg);
enum { DETECT_PREFIX_MAX = 32 };
const char *detect_token_prefix(unsigned which);
/* The fewest bytes, without a blank among them, that a token with this beginning is, or the name
 * that one stands behind. 0: no token, but something else with a beginning. */
size_t detect_token_least(unsigned which);
/* detect_number.c: the forms of these detectors by the digits that they begin with, a bit each; the
 * last is for more digits. */
void detect_numbers_forms(uint32_t what, uint64_t by_digits[DETECT_LEADS]);
/* A digit that none stands before. */
void detect_numbers_at(struct detect_scan *s, size_t i);
/* The text may end in the letters before a number. */
void detect_numbers_tail(struct detect_scan *s);
/* detect_check.c: "check digits", of the digits and letters without what stands between them. */
bool detect_card_ok(const char *digits, size_t n);
bool detect_iban_ok(const char *text, size_t n);
size_t detect_iban_length(const char *country); /* 0: no such country */
bool detect_id_ok(enum detector what, const char *text, size_t n);
/* detect_named.c: a "=" or ":". */
void detect_named_at(struct detect_scan *s, size_t i);
enum { DETECT_SIGN_BEFORE = 9 };   /* bytes before a value that a sign stands in, at most */
bool detect_named_between(char c); /* may stand between a name, its sign and the value */
/* Three bytes in small letters, which stand for either case: how begins what makes a name one of a
 * secret, and what may stand before a value. */
void detect_named_beginnings(void (*add)(void *arg, const char *begin, bool name), void *arg);
/* The text may end in a name, or between it and its sign. */
void detect_named_tail(struct detect_scan *s);
/* detect_text.c */
unsigned detect_entropy(struct slice w); /* thousandths of a bit a byte; w is 1 to 256 bytes long */
void detect_emails(struct detect_scan *s);
void detect_entropies(struct detect_scan *s);

#endif
