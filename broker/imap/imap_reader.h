/* Where a client's command ends: lines, and the literals that are announced at their ends. What a
 * command means is imap_command.h; here only what every reader takes for its end. */
#ifndef DURWARD_IMAP_READER_H
#define DURWARD_IMAP_READER_H

#include "slice.h"

enum { IMAP_COMMAND_MAX = 32 * 1024 };

enum imap_seen {
    IMAP_MORE = 0, /* none yet */
    IMAP_LITERAL,  /* one is announced: imap_reader_take, or the command is given up */
    IMAP_WHOLE,
    IMAP_VIOLATION,
};

struct imap_reader {
    size_t at, line; /* so far; where its line began */
    uint64_t skip;   /* of a literal */
    bool quoted, escaped, cr;
};

struct imap_found {
    size_t n;        /* IMAP_WHOLE: with its end; IMAP_LITERAL: so far, with the line's end */
    uint64_t size;   /* of the literal */
    bool waits;      /* its client wants to be told to go on */
    const char *why; /* IMAP_VIOLATION */
};

/* in: from the command's first byte on, with what has come since. */
enum imap_seen imap_reader_next(struct imap_reader *r, struct slice in, struct imap_found *ret);
/* The literal that was announced is part of the command. False: it would be too long. */
bool imap_reader_take(struct imap_reader *r, const struct imap_found *f);

#endif
