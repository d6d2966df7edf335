/* Rules of imap:// and imaps://: what a session at a server of mailboxes may be, and the decisions
 * about it. Front and back of the broker both decide, by these functions. */
#ifndef DURWARD_IMAP_RULE_H
#define DURWARD_IMAP_RULE_H

#include "policy.h"

enum {
    IMAP_PATTERNS_MAX = 64,
    IMAP_PATTERN_MAX = 256,
    IMAP_MEGABYTES = 25, /* of a message, where its rule says nothing */
};

/* Bits, in the order of the words of a rule's `actions`. */
enum imap_action {
    IMAP_READ = 1,
    IMAP_FLAG = 2,
    IMAP_APPEND = 4,
    IMAP_COPY = 8,
    IMAP_DELETE = 16,
    IMAP_MANAGE = 32,
};

struct imap_terms {
    bool implicit;              /* imaps://: TLS from the first byte; else STARTTLS, */
    bool plain;                 /* or neither */
    const char *const *folders; /* patterns of names; n 0: any */
    size_t n_folders;
    unsigned actions;    /* enum imap_action */
    uint64_t most_bytes; /* of a message that is appended */
    unsigned megabytes;  /* of answers, in a session; 0: any number */
    unsigned seconds;    /* a session; 0: as long as it likes */
    unsigned commands;   /* of a session; 0: any number */
};

/* Text in UTF-8; '*' is any bytes, one at least behind '/', '\\' or '.'. */
bool imap_pattern_ok(struct slice pattern);
/* name: in UTF-8, "INBOX" in capitals (imap_name.h). */
bool imap_folder_allowed(const struct imap_terms *t, struct slice name);
/* And every folder that may lie below it. */
bool imap_folder_whole(const struct imap_terms *t, struct slice name);
void policy_imap_decide(const struct policy *p, const struct authority *a, struct decision *ret);

#endif
