/* What is known here of the lines that the hosts of a fleet signed (fleet_head.h), and what is
 * wrong with them: a host that signed two lines of one number, or one that its next does not
 * continue; whose log went back; lines that are missing. Of each host the latest are kept, and of
 * older ones the fewer the older they are. */
#ifndef DURWARD_WITNESS_H
#define DURWARD_WITNESS_H

#include "fleet_head.h"

enum { WITNESS_KEEP_MIN = 16, WITNESS_DOUBTS = 4, WITNESS_KNOWN_FACTOR = 16 };

struct witness;

enum witness_taken {
    WITNESS_NEW,
    WITNESS_KNOWN,
    WITNESS_FORKED, /* it is signed, and so is another of that number */
    WITNESS_STRANGER,
    WITNESS_UNSIGNED,
    WITNESS_MALFORMED,
    WITNESS_FULL, /* or out of memory */
};

enum witness_fault_kind {
    FAULT_NONE = 1, /* no line of it is known */
    FAULT_MISSING,  /* these numbers */
    FAULT_UNSEEN,   /* `by` has seen a line that is not known here */
    FAULT_FORKED,
    FAULT_BACK, /* its log was shorter, or another one, than what the line before said */
    FAULT_ANEW, /* it says itself that its log is another one */
};

struct witness_fault {
    enum witness_fault_kind kind;
    uint64_t number, last; /* last: of FAULT_MISSING */
    const char *by;
};

/* A line of a host's, as far as a log is held against it. */
struct witness_known {
    uint64_t number, ns; /* ns: when, by its own clock */
    bool anew;
    struct chain log;
    unsigned char hash[CHAIN_HASH], before[CHAIN_HASH]; /* before: its host's own line before */
};

typedef void (*witness_fault_fn)(void *arg, size_t host, const struct witness_fault *f);

struct witness *witness_new(void); /* NULL: out of memory */
void witness_free(struct witness *w);
/* All hosts, before any line is taken; raw: the public key. -1: too many, or one twice. */
int witness_add(struct witness *w, const char *name, const unsigned char raw[CHAIN_HASH],
                struct err *err);
size_t witness_hosts(const struct witness *w);
const char *witness_name(const struct witness *w, size_t host);
const struct signing_key *witness_key(const struct witness *w, size_t host);
size_t witness_find(const struct witness *w, const char *name); /* SIZE_MAX: there is none */
/* A line. head is what it says, unless it is malformed. check: its signature, too. */
enum witness_taken witness_take(struct witness *w, struct slice line, bool check,
                                struct fleet_head *head);
/* The latest line; NULL: none. */
const struct fleet_head *witness_latest(const struct witness *w, size_t host);
/* All that are known, by number; two of one number stand side by side. */
const struct witness_known *witness_known(const struct witness *w, size_t host, size_t *n);
/* How many of the latest must all be there; of all there are at most WITNESS_KNOWN_FACTOR as many.
 */
uint64_t witness_keep(const struct witness *w);
/* Whether a line is kept when its host's latest has that number. */
bool witness_keeps(uint64_t keep, uint64_t number, uint64_t latest);
/* When it was last heard of, ns: by its own clock, but no later than by the clock of the host that
 * first saw its latest line. 0: never. */
uint64_t witness_heard(const struct witness *w, size_t host);
/* Another host goes on saying heads, and for so long has not seen what this one said meanwhile: its
 * last number that the other one has seen. */
bool witness_misses(const struct witness *w, size_t host, size_t by, uint64_t ns, uint64_t *number);
void witness_faults(const struct witness *w, size_t host, witness_fault_fn fn, void *arg);

/* What the database says of a line, or has in its place; so many of each host. */
void witness_doubt(struct witness *w, size_t host, uint64_t number, enum fleet_doubt_kind kind);
void witness_undoubt(struct witness *w, size_t host, uint64_t number);
/* All that the database has of it was looked at: what was not doubted again since the last time is
 * not doubted any more. */
void witness_settle(struct witness *w, size_t host);
/* What a line of `self` says of all hosts: seen and doubts. */
void witness_say(const struct witness *w, struct fleet_head *to);

#endif
