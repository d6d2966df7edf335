/* Offline check of an audit directory with nothing but its public key: the chain over all its
 * files, every checkpoint's signature and Merkle root, and that the log reaches the signed head.
 * Lines after the head are accepted and counted (a daemon that was killed signs nothing more). A
 * log whose oldest files retention removed begins later; then a later line must say so. Where it
 * took out records of one sandbox a signed gap says whose and how many. With an
 * anchor, copies of checkpoints that were kept elsewhere, each of them must stand in a log:
 * whoever can write the directory could put back an older log together with its older head, and
 * only the anchor shows that. */
#ifndef DURWARD_VERIFY_H
#define DURWARD_VERIFY_H

#include "chain.h"
#include "err.h"
#include "log_dir.h"
#include "signing_key.h"
#include "verify_anchor.h"

enum { VERIFY_GAPS = 64, VERIFY_NAME_MAX = 257 };

struct verify_gap {
    char sandbox[VERIFY_NAME_MAX]; /* "…": those beyond VERIFY_GAPS */
    uint64_t records, places;
};

struct verify_result {
    bool ok;
    uint64_t files;            /* that were read, the broken one too */
    uint64_t records;          /* good lines up to the first break, or all */
    uint64_t signed_seq;       /* the head's; 0: none */
    uint64_t unsigned_records; /* good lines after the head */
    uint64_t checkpoints;      /* good ones */
    uint64_t bytes;            /* of the plain log */
    uint64_t first_seq;        /* of its first line; 1 unless retention removed some */
    uint64_t anchored;         /* anchor's checkpoints that were found */
    uint64_t removed;          /* records that retention took out of what is there, by sandbox: */
    struct verify_gap gap[VERIFY_GAPS];
    size_t n_gaps;
    bool torn;               /* the last line is not finished (accepted after the head) */
    char file[LOG_NAME_MAX]; /* where it breaks; "" when the whole directory is meant */
    uint64_t line;           /* 1-based; 0: the whole file */
    char why[256];           /* when !ok */
};

/* One directory (its run-* directories are directories of their own). Always fills *ret; problems
 * of reading are failures like any other. */
void verify_dir(int dirfd, const struct signing_key *key, struct verify_anchor *anchor,
                struct verify_result *ret);

/* Once each log beside it has been walked, too: what the anchor has of this one ("": the daemon's,
 * else the run's name) stands in one of them. */
void verify_settle(struct verify_anchor *a, const char *log, struct verify_result *ret);
/* A log of which the anchor has checkpoint `seq`, and which is not there. */
void verify_absent(const char *log, uint64_t seq, struct verify_result *ret);

/* What of the log somebody else wants to see: each good line, and each gap, in order. */
struct verify_watch {
    void (*line)(void *arg, const struct chain *at);
    void (*gap)(void *arg, uint64_t first, uint64_t last);
    void *arg;
};
void verify_dir_watched(int dirfd, const struct signing_key *key, struct verify_anchor *anchor,
                        const struct verify_watch *watch, struct verify_result *ret);

/* Whether there is a log, or was one: a head, an audit file, or a journal's number given out. */
bool verify_has_log(int dirfd);

#endif
