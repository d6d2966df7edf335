/* Text as its reader will see it, made of the bytes that it is written in: escapes of JSON and of
 * forms are resolved, and where each byte of text stands among the written ones can be told. */
#ifndef DURWARD_DETECT_WRITTEN_H
#define DURWARD_DETECT_WRITTEN_H

#include "detect_stream.h"

enum {
    DETECT_WRITTEN_MAX = 64 * 1024 + 512, /* bytes of text */
    DETECT_WRITTEN_AT_ONCE = 64           /* bytes behind these may be written to */
};

struct detect_written {
    enum detect_form form;
    bool wide;            /* 64 bytes at once, where the processor can: detect_written_wide_can */
    bool escapes;         /* else each byte stands for itself */
    bool codes;           /* some of them are "\u0041" */
    size_t most;          /* bytes of text that were ever written to */
    size_t n, in;         /* bytes of text, and of what they are written in */
    size_t seen, seen_in; /* as many of both as were counted last */
    /* A bit for each byte of text that was an escape, and for each that was a "\u0041". */
    uint64_t escape[DETECT_WRITTEN_MAX / 64 + 2], code[DETECT_WRITTEN_MAX / 64 + 2];
    char text[DETECT_WRITTEN_MAX + DETECT_WRITTEN_AT_ONCE];
};

bool detect_written_wide_can(void);
/* Whether each byte stands for itself. */
bool detect_is_plain(enum detect_form form, struct slice in);
/* Makes text of `before`, which is text already, and of `in`; both together are at most
 * DETECT_WRITTEN_MAX. Returns how long it is. An escape that is not all there is left out, unless
 * nothing comes after it (whole). */
size_t detect_written_read(struct detect_written *w, struct slice before, struct slice in,
                           bool whole);
/* In how many bytes the text from `at` to `end` is written. */
size_t detect_written_length(struct detect_written *w, size_t at, size_t end);

#endif
