/* A client's command (RFC 3501, 6): read into what a rule decides about, and written anew as the
 * rule leaves it. What was written reads the same, so that a back takes apart what a front wrote
 * and gets no more than its own rule has. */
#ifndef DURWARD_IMAP_COMMAND_H
#define DURWARD_IMAP_COMMAND_H

#include "imap_name.h"
#include "imap_reader.h"
#include "imap_rule.h"

enum {
    IMAP_TAG_MAX = 64,
    IMAP_OUT_MAX = 3 * IMAP_COMMAND_MAX,
    /* A session in which nothing goes either way: 30 minutes at least (RFC 3501, 5.4), for clients
     * begin IDLE anew every 29 (RFC 2177). */
    IMAP_QUIET_SECONDS = 1860,
};

enum imap_verb {
    IMAP_VERB_NONE = 0,
    IMAP_VERB_CAPABILITY, /* these a front answers by itself, */
    IMAP_VERB_ID,
    IMAP_VERB_LOGOUT,
    IMAP_VERB_STARTTLS,
    IMAP_VERB_LOGIN,
    IMAP_VERB_AUTHENTICATE,
    IMAP_VERB_NOOP, /* and these go on, once there is a login */
    IMAP_VERB_CHECK,
    IMAP_VERB_NAMESPACE,
    IMAP_VERB_ENABLE,
    IMAP_VERB_LIST,
    IMAP_VERB_LSUB,
    IMAP_VERB_STATUS,
    IMAP_VERB_SELECT,
    IMAP_VERB_EXAMINE,
    IMAP_VERB_CLOSE,
    IMAP_VERB_UNSELECT,
    IMAP_VERB_SEARCH,
    IMAP_VERB_FETCH,
    IMAP_VERB_STORE,
    IMAP_VERB_COPY,
    IMAP_VERB_MOVE,
    IMAP_VERB_EXPUNGE,
    IMAP_VERB_APPEND,
    IMAP_VERB_CREATE,
    IMAP_VERB_DELETE,
    IMAP_VERB_RENAME,
    IMAP_VERB_SUBSCRIBE,
    IMAP_VERB_UNSUBSCRIBE,
    IMAP_VERB_IDLE,
    IMAP_VERBS
};

/* What a server may have, as a back tells its front. */
enum imap_extension {
    IMAP_HAS_IDLE = 1,
    IMAP_HAS_UIDPLUS = 2,
    IMAP_HAS_MOVE = 4,
    IMAP_HAS_SPECIAL_USE = 8,
    IMAP_HAS_NAMESPACE = 16,
    IMAP_HAS_UNSELECT = 32,
    IMAP_HAS_CHILDREN = 64,
    IMAP_HAS_ENABLE = 128,
    IMAP_HAS_CONDSTORE = 256,
    IMAP_HAS_QRESYNC = 512,
    IMAP_HAS_LIST_STATUS = 1024,
    IMAP_HAS_ALL = 2047,
};

struct imap_command {
    enum imap_verb verb;
    bool uid, initial;    /* UID FETCH; AUTHENTICATE has its first answer with it */
    struct slice word;    /* as it was said; AUTHENTICATE: the mechanism */
    size_t n_folders;     /* that it names */
    struct buf folder[2]; /* in UTF-8 */
    struct buf out;       /* as it goes on, without its tag and its end */
    struct buf text;      /* of the string that is read */
    unsigned wants;       /* enum imap_extension: for words of it */
    uint64_t size;        /* APPEND: of the message, whose literal ends it */
    const char *code;     /* with -1: of the refusal, constant, */
    const char *why;      /* and what of it */
};

void imap_command_init(struct imap_command *c);
void imap_command_free(struct imap_command *c);

/* A client's tag, and the blank behind it. False: there is none. */
bool imap_command_tag(struct slice *text, struct slice *tag);
/* text: behind the tag, without the line's end; of APPEND with the announcement of its message,
 * where has_message. 0 or -1. */
int imap_command_read(struct imap_command *c, struct slice text, const struct imap_terms *t);
/* A literal ends these words: is it a message's (1), a string's (0), or is the command to be
 * refused at once (-1)? */
int imap_command_literal(struct imap_command *c, struct slice text, const struct imap_terms *t);
const char *imap_verb_name(enum imap_verb verb); /* "FETCH" */
/* "fetch/INBOX", as the record has it; name: as imap_name_show shows it, n 0: none. */
int imap_command_show(const struct imap_command *c, struct slice name, struct buf *out) WUNUSED;
/* That must be there for it; 0: nothing. */
unsigned imap_verb_wants(const struct imap_command *c);

#endif
