/* SMTP as a client says it (RFC 5321): a line at a time, each read in its one meaning. */
#ifndef DURWARD_SMTP_COMMAND_H
#define DURWARD_SMTP_COMMAND_H

#include "smtp_rule.h"

enum {
    SMTP_LINE_MAX = 1024,       /* with its end; RFC 5321 and the extensions want fewer */
    SMTP_AUTH_LINE_MAX = 12288, /* RFC 4954, 4 */
};

enum smtp_verb {
    SMTP_UNKNOWN = 0,
    SMTP_HELO,
    SMTP_EHLO,
    SMTP_MAIL,
    SMTP_RCPT,
    SMTP_DATA,
    SMTP_RSET,
    SMTP_NOOP,
    SMTP_QUIT,
    SMTP_STARTTLS,
    SMTP_AUTH,
    SMTP_NEVER, /* VRFY, EXPN, ETRN, TURN, BDAT, ... */
};

/* A line's length with its end, and the line without. 0: it is not whole; -1: no line of SMTP (too
 * long, an end that is not CR LF, a NUL). */
ssize_t smtp_line(struct slice in, size_t max, struct slice *line);
enum smtp_verb smtp_verb(struct slice line, struct slice *rest);

struct smtp_path {
    struct slice address; /* lies in the line; n 0: "<>" */
    uint64_t size;
    bool eight, utf8; /* BODY=8BITMIME, SMTPUTF8 */
    const char *why;  /* with -1: what of it cannot be, */
    unsigned code;    /* and its reply */
};

/* What stands behind MAIL; behind RCPT, where utf8 says what MAIL said. */
int smtp_mail_read(struct slice rest, struct smtp_path *ret);
int smtp_rcpt_read(struct slice rest, bool utf8, struct smtp_path *ret);

#endif
