/* Where a server's replies begin and end, and what is counted of them. Both ends follow each reply:
 * a command goes on once the reply to the one before is over, so that nothing is read as what it is
 * not. Capabilities are those that mysql_handshake.h leaves: no compression, and EOF packets. */
#ifndef DURWARD_MYSQL_REPLY_H
#define DURWARD_MYSQL_REPLY_H

#include "mysql_packet.h"

enum mysql_reply_kind {
    MYSQL_REPLY_NONE = 0, /* the command has none */
    MYSQL_REPLY_ONE,      /* one packet, whatever is in it */
    MYSQL_REPLY_RESULT,   /* results, one after another; or it asks for a file */
    MYSQL_REPLY_PREPARED,
    MYSQL_REPLY_ROWS, /* more of a cursor's */
};

struct mysql_reply {
    unsigned char state; /* enum reply_state of mysql_reply.c */
    bool may_ask;        /* for a file of the client's */
    uint64_t left;       /* definitions to come */
    uint64_t behind;     /* and of columns behind those of parameters */
    bool row;            /* the part that was taken is of a row, and its first */
    bool file;           /* the server has asked for a file, and waits for it */
};

void mysql_reply_begin(struct mysql_reply *r, enum mysql_reply_kind kind, bool may_ask);
bool mysql_reply_over(const struct mysql_reply *r);
/* What the server says next. -1: it has no place there. */
int mysql_reply_take(struct mysql_reply *r, const struct mysql_part *m) WUNUSED;
/* The client has sent the last of the file. */
void mysql_reply_sent(struct mysql_reply *r);

#endif
