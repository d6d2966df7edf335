/* The URLs of a login: https, and nothing that two readers could read differently. */
#ifndef DURWARD_LOGIN_URL_H
#define DURWARD_LOGIN_URL_H

#include "authority.h"
#include "buf.h"
#include "err.h"

enum { LOGIN_URL_MAX = 1000, LOGIN_PLAIN_MAX = 300 };

struct login_url {
    struct authority at;
    char text[LOGIN_URL_MAX + 1];
    size_t path; /* where in it its path begins, with its query */
};

/* https://HOST[:PORT][/PATH][?QUERY], no user, no fragment. what: whose URL it is, for err. */
int login_url_read(struct login_url *u, const char *text, const char *what, struct err *err);
const char *login_url_path(const struct login_url *u); /* "" where there is none */
/* What a rule and a login file take as it is: no query, no escape, no dot segment, and short. */
bool login_url_plain(const struct login_url *u);
bool login_url_same_origin(const struct login_url *a, const struct login_url *b);
/* The same, and a's path is b's, or leads to it at a slash. */
bool login_url_covers(const struct login_url *a, const struct login_url *b);
/* The same text, but for a slash that is all of the path. */
bool login_url_same(const char *a, const char *b);
/* Where a document about `u` lies (RFC 9728, 3.1; RFC 8414, 3.1): /.well-known/NAME in front of its
 * path or, `behind`, after it. */
int login_url_known(struct login_url *ret, const struct login_url *u, const char *name, bool behind,
                    struct err *err);

/* NAME=VALUE of a form or query, with & in front of all but the first. */
int login_form(struct buf *to, const char *name, struct slice value) WUNUSED;
/* The value of NAME in a query, decoded into to; 0: there is none; -1: twice, or it is none. */
int login_query(struct slice query, const char *name, char *to, size_t size);

#endif
