/* Reads a JSON text as it comes, holding no more of it than where it stands: for replies of any
 * length that are looked at and never altered. It tells each value that is neither object nor array
 * with the names that lead to it. What is no JSON (RFC 8259) ends it; encodings of letters and
 * names that stand twice are the caller's matter. */
#ifndef DURWARD_JSON_SCAN_H
#define DURWARD_JSON_SCAN_H

#include "slice.h"

enum {
    JSON_SCAN_DEPTH = 64,
    JSON_SCAN_NAMES = 5, /* names of a path that is told */
    JSON_SCAN_NAME =
        40, /* of a name that is compared; a longer one, or one with an escape, is "?" */
    JSON_SCAN_TEXT = 32 /* of a value that is told */
};

enum json_scan_kind { JSON_SCAN_STRING = 1, JSON_SCAN_NUMBER, JSON_SCAN_WORD };

struct json_scan {
    unsigned char state, number, expect, hex; /* json_scan.c */
    bool whole, is_key, wide;                 /* wide: longer than what is kept, or escaped */
    bool counting;                            /* the text that is read counts as said */
    const char *const *counted; /* NULL, or outermost names, NULL at their end, whose texts count;
                                 * the caller's, set after json_scan_begin */
    uint64_t said;              /* bytes of texts that count, as they stand there */
    unsigned depth;
    uint64_t arrays; /* a bit a level */
    const char *word;
    size_t n_text;
    char text[JSON_SCAN_NAME];
    unsigned char n_name[JSON_SCAN_NAMES];
    char name[JSON_SCAN_NAMES][JSON_SCAN_NAME];
};

/* path: names joined by dots, "" for each array; only of values at most JSON_SCAN_NAMES deep and
 * JSON_SCAN_TEXT long, text as it stands there. */
typedef void (*json_scan_fn)(void *arg, const char *path, enum json_scan_kind kind,
                             struct slice text);

void json_scan_begin(struct json_scan *s);
/* -1: it is no JSON; nothing more is to be fed. */
int json_scan_feed(struct json_scan *s, struct slice in, json_scan_fn told, void *arg) WUNUSED;
/* There is no more of it. -1: it is not whole. */
int json_scan_end(struct json_scan *s, json_scan_fn told, void *arg) WUNUSED;

#endif
