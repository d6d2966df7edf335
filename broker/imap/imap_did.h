/* What a session did, as the record of its end has it: "noop:1 append/Sent:2". Each command is in
 * it, however many names there were; a star stands for names that have no room. */
#ifndef DURWARD_IMAP_DID_H
#define DURWARD_IMAP_DID_H

#include "buf.h"
#include "imap_command.h"

enum {
    IMAP_DID_MAX = 64,   /* commands by mailbox; those beyond are counted by verb */
    IMAP_DID_NAME = 200, /* of a mailbox, with its NUL */
};

struct imap_did_one {
    enum imap_verb verb;
    char name[IMAP_DID_NAME];
    uint64_t n;
};

struct imap_did {
    struct imap_did_one one[IMAP_DID_MAX];
    size_t n_ones;
    uint64_t bare[IMAP_VERBS]; /* said of no mailbox, */
    uint64_t rest[IMAP_VERBS]; /* or of one that has no place in `one` */
};

/* A mailbox as it is shown. What is too long is cut, and ends in '~' and a hash of all of it: two
 * names are two. */
void imap_did_name(struct slice name, char text[IMAP_DID_NAME]);
/* name: as imap_did_name shows it, "": none. */
void imap_did_count(struct imap_did *d, enum imap_verb verb, const char *name);
/* Each verb is there; names as many as out has room for, those that changed something first. -1: no
 * room even for the verbs. */
int imap_did_put(const struct imap_did *d, struct buf *out) WUNUSED;

#endif
