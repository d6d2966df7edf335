/* What a server answers (RFC 5321, 4.2), and what it says of itself. */
#ifndef DURWARD_SMTP_REPLY_H
#define DURWARD_SMTP_REPLY_H

#include "buf.h"

enum { SMTP_REPLY_MAX = 16 * 1024, SMTP_SAID_MAX = 400 };

struct smtp_reply {
    unsigned code;
    struct slice lines; /* as they came, all of them */
};

/* A whole reply's length; 0: more of it follows; -1: it is none. */
ssize_t smtp_reply_read(struct slice in, struct smtp_reply *ret);
/* The text of its next line. False: there is none. rest: of `lines`, at first. */
bool smtp_reply_line(struct slice *rest, struct slice *text);
/* Its text in one line, appended. */
int smtp_reply_text(const struct smtp_reply *r, struct buf *out) WUNUSED;

struct smtp_server {
    bool starttls, eight, utf8, size, plain, login, xoauth2;
};

void smtp_server_read(const struct smtp_reply *ehlo, struct smtp_server *ret);

#endif
