/* The logger's side of one journal: DIR/journal/<channel>.j. A header of the logger's own (who
 * writes, from where in the chain), then the records that the writer appends. The writer has the
 * file write-only and in append mode; what it says there is untrusted.
 *
 * Header: 8 bytes magic, u32 length of the rest, u8 role, u64 birth, u16 + sandbox, u16 + policy.
 */
#ifndef DURWARD_JOURNAL_FILE_H
#define DURWARD_JOURNAL_FILE_H

#include "err.h"
#include "render.h"

struct journal_file {
    int dirfd;        /* the journal directory; borrowed */
    int fd;           /* read-only (a writable one would hide whether the writer's is gone) */
    uint32_t channel; /* number of the ids in it */
    unsigned role;    /* enum role */
    char sandbox[RENDER_NAME_MAX + 1], policy[RENDER_NAME_MAX + 1];
    uint64_t birth;   /* the chain's seq when it was made */
    uint64_t start;   /* offset of the first record */
    uint64_t pos;     /* offset of the first record not read yet */
    uint64_t punched; /* given back to the file system up to here */
};

/* Make the file; fill in channel, role, sandbox, policy, birth before. *writer is the descriptor to
 * hand out. 0, or -1 with nothing left behind. */
int journal_file_make(struct journal_file *f, int dirfd, int *writer, struct err *err);
/* Open a leftover by its name. 0; 1 when its header was never finished (nobody can have written);
 * -1 with err. */
int journal_file_load(struct journal_file *f, int dirfd, const char *name, struct err *err);
void journal_file_done(struct journal_file *f); /* close; the file stays */
int journal_file_remove(struct journal_file *f, struct err *err);
/* Bytes at pos: count, 0 at the end, -1. Does not move pos. */
ssize_t journal_file_read(const struct journal_file *f, unsigned char *buf, size_t size);
struct journal_look {
    uint64_t size; /* bytes; what was read so far if that cannot be told */
    bool removed;  /* it has no name any more: what is written to it is in no file */
};
/* What it is now, by one system call. */
struct journal_look journal_file_look(const struct journal_file *f);
/* 1: somebody can still write to it, 0: nobody, -1: this file system cannot tell. */
int journal_file_held(const struct journal_file *f);
/* Cut off everything behind pos. */
int journal_file_cut(struct journal_file *f, struct err *err);
/* Give the space of what was read back to the file system, where it can do that. */
void journal_file_punch(struct journal_file *f);
char *journal_file_name(uint32_t channel, char *buf, size_t size);

#endif
