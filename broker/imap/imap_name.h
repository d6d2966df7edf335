/* Names of mailboxes as they are said (modified UTF-7, RFC 3501, 5.1.3), each in its one form. */
#ifndef DURWARD_IMAP_NAME_H
#define DURWARD_IMAP_NAME_H

#include "buf.h"

enum { IMAP_NAME_MAX = 1000 };

/* Appends it in UTF-8; "INBOX" becomes capitals. -1: it is in another form than its one, or one
 * that servers may take for another place (a path, a home, a wildcard). */
int imap_name_read(struct slice said, struct buf *name) WUNUSED;
/* The same of a pattern of LIST, which has wildcards: only whether it is in its one form. */
bool imap_name_pattern_ok(struct slice said);
/* For a record: all but letters, digits and a few signs in percent form. */
int imap_name_show(struct slice name, struct buf *out) WUNUSED;

#endif
