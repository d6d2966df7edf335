/* Request paths as bytes: what is refused as ambiguous (path_check, see policy.h), the normal form
 * in which rules match them, and the readings in which whatever restricts sees them. */
#ifndef DURWARD_PATH_H
#define DURWARD_PATH_H

#include "policy.h"

/* The two readings of %2F that a restriction must hold in. */
enum path_reading {
    PATH_SLASH_BYTE = 1,  /* %2F is a byte of its segment (kept as "%2f") */
    PATH_SLASH_SPLIT = 2, /* %2F separates segments; slashes that meet are one */
};

/* Fold a path for comparison with a pattern folded the same way: percent escapes decoded until
 * none is left, over-long UTF-8 of an ASCII byte made that byte, ASCII letters lower, %2F by the
 * reading. Writes at most path.n bytes to `to`; returns how many. Never fails. */
size_t path_fold(struct slice path, enum path_reading reading, char *to);

/* Take out of a folded path, in place, what many origins ignore: dots, blanks and control bytes at
 * the end of a segment, slashes at the end of the path, and where `parameters` says so ";" to the
 * end of its segment and "?" or "#" to the end of the path. Slashes that meet are one; the first
 * one stays. Returns the new length. */
size_t path_trim(char *path, size_t n, bool parameters);

/* The normal form of a path (RFC 3986, 6.2.2): escapes of unreserved bytes decoded, other escapes
 * in capitals. Every origin takes the two for the same path, so rules do. Writes at most path.n
 * bytes to `to`; returns how many. */
size_t path_normal(struct slice path, char *to);

/* Every way in which an origin may read a path. The first is its normal form, in which allows
 * match; the others are folded: both readings of %2F, each as it is and trimmed with and without
 * parameters. Equal ones stand once. */
enum { PATH_READINGS_MAX = 7, PATH_READINGS_SMALL = 320 };
struct path_readings {
    size_t n; /* at least 1 */
    struct slice text[PATH_READINGS_MAX];
    char small[PATH_READINGS_MAX * PATH_READINGS_SMALL];
    char *large; /* what does not fit there; path_readings_free */
};
/* all: the folded ones too. -1: memory is out. The path is borrowed until path_readings_free. */
int path_readings(struct slice path, bool all, struct path_readings *ret);
void path_readings_free(struct path_readings *r);

#endif
