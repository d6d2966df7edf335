/* One whole response of a server's: what it is, and what a rule leaves of it, written anew. */
#ifndef DURWARD_IMAP_ANSWER_H
#define DURWARD_IMAP_ANSWER_H

#include "buf.h"
#include "imap_command.h"
#include "imap_response.h"

enum {
    IMAP_SAID_MAX = IMAP_RESPONSE_MAX, /* of a response's text: COPYUID names each message */
    IMAP_ALERT_MAX = 500,
};

enum imap_answer_kind {
    IMAP_ANSWER_OTHER = 0, /* nobody's: dropped */
    IMAP_ANSWER_GO_ON,
    IMAP_ANSWER_TAGGED,
    IMAP_ANSWER_STATUS, /* * OK, NO, BAD */
    IMAP_ANSWER_BYE,
    IMAP_ANSWER_PREAUTH,
    IMAP_ANSWER_CAPABILITY,
    IMAP_ANSWER_DATA, /* FLAGS, LIST, EXISTS, ... */
};

struct imap_answer {
    enum imap_answer_kind kind;
    struct slice tag;
    const char *status; /* "OK", "NO", "BAD", of tagged ones and STATUS */
    struct slice text;  /* what stands behind it, without the line's end */
};

/* line: with its end. -1: it is none. */
int imap_answer_read(struct slice line, struct imap_answer *ret);
/* The response code of a text, "[UIDNEXT 4]"; nothing where it has none of those that are carried.
 */
int imap_answer_code(struct slice text, struct buf *out) WUNUSED;
/* What a sandbox gets of the server's text (tagged, STATUS, BYE): its code, and words of ours, but
 * for ALERT. Once there is a session; of a login's refusal the code alone. */
int imap_answer_text(const struct imap_answer *a, struct buf *out) WUNUSED;
/* DATA and STATUS as the sandbox gets it, with its end; nothing where the rule has not what it
 * names. -1: it cannot be read, or memory. */
int imap_answer_put(const struct imap_answer *a, const struct imap_terms *t, struct buf *out);

struct imap_server {
    unsigned has; /* enum imap_extension */
    bool starttls, plain, xoauth2, no_login;
};

void imap_server_read(struct slice capability, struct imap_server *ret);

#endif
