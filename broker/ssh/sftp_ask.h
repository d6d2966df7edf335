/* What a request of SFTP is to the rules: a verb and plain paths. Front and back both ask so. */
#ifndef DURWARD_SFTP_ASK_H
#define DURWARD_SFTP_ASK_H

#include "sftp_packet.h"
#include "ssh_files.h"

enum sftp_kind {
    SFTP_KIND_PATH,   /* it names what it is about: *ret is what it asks for */
    SFTP_KIND_HANDLE, /* that was decided when it was opened */
    SFTP_KIND_NEVER,  /* whatever the rule */
};

enum sftp_kind sftp_ask(const struct sftp_request *q, struct ssh_file_asked *ret);
/* Does the server go where a link at the path's end leads? */
bool sftp_follows(enum sftp_op op);
/* Is it on record by itself? What only looks is not. */
bool sftp_is_recorded(enum sftp_op op);
/* What of attributes goes on: no owner, no set-user-ID, and of what is made its mode alone. False:
 * it asks for more than that. */
bool sftp_attrs_settle(enum sftp_op op, struct sftp_attrs *a);
/* A path from the root without "", "." and trailing slashes, relative ones from home. up: ".." is
 * the part before it. False: it is too long, or has a NUL or such a part. */
bool sftp_path_settle(struct slice home, struct slice path, bool up,
                      char to[SSH_FILE_PATH_MAX + 1]);
const char *sftp_refusal_words(const char *code);

#endif
