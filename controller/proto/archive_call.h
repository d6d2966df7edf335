/* How the program `archive` is called. It alone is linked with libarchive and what that brings, and
 * is started for one piece of work, by a process that has confined itself for it already: who it
 * is, which namespaces it is in and how much memory it may have stay as they were. */
#ifndef DURWARD_ARCHIVE_CALL_H
#define DURWARD_ARCHIVE_CALL_H

#include <stdint.h>

#include "err.h"

#define ARCHIVE_PROGRAM "archive"

/* Its first word. first and second are directories. */
#define ARCHIVE_EXPORT "export" /* a layer (its parts root and usr) into the stream */
#define ARCHIVE_IMPORT "import" /* the reverse; a second word: how many bytes at most */
#define ARCHIVE_UNPACK                                                                     \
    "unpack"                /* the stream as an image below first, by way of second; then: \
                               how many bytes, how many entries at most */
#define ARCHIVE_PACK "pack" /* the directory first into the stream; errors on stderr */

/* Where it has its descriptors. */
enum { ARCHIVE_STREAM = 3, ARCHIVE_FIRST, ARCHIVE_SECOND, ARCHIVE_SAY, ARCHIVE_FDS };

struct unpack_count {
    uint64_t bytes, entries;
    uint64_t special; /* devices and the like that were left out */
    uint64_t set_id;  /* files that lost a set-uid or set-gid bit */
};

/* What it says, once or, while it unpacks, over and over; nothing when it packs. */
struct archive_report {
    struct unpack_count count;
    bool ok;
    bool done; /* of an image: whoever started it has put the files into their place */
    char kind[16];
    struct err err;
};

/* How it ends. */
enum { ARCHIVED_WELL, ARCHIVED_NOT, ARCHIVED_LAYERS /* unpacked: an image of layers */ };

struct archive_call {
    int program; /* as program_open has it */
    const char *work, *words[2];
    int stream, first, second, say; /* -1: none */
};

/* This process becomes it, with these descriptors and 0 to 2; one that cannot says so and ends. */
NORETURN void archive_become(const struct archive_call *call);

#endif
