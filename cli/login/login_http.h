/* One request of a login to a server that its user named, or that a document named which such a
 * server gave: HTTP/1.1 over verified TLS, read as strictly as an origin's reply, and bounded in
 * time and size. Blocking. */
#ifndef DURWARD_LOGIN_HTTP_H
#define DURWARD_LOGIN_HTTP_H

#include <jansson.h>
#include <openssl/ssl.h>

#include "config.h"
#include "login_url.h"

enum { LOGIN_ANSWER_MAX = 256 * 1024, LOGIN_CHALLENGE_MAX = 4096 };

struct login_net {
    const struct config *config; /* upstream.ca, upstream.resolve; NULL: the system's roots alone */
    SSL_CTX *tls;
    bool asked, near; /* the first server was asked: it is at an address of this network */
};

int login_net_open(struct login_net *n, const struct config *c, struct err *err);
void login_net_close(struct login_net *n);

struct login_ask {
    const char *method;
    const struct login_url *at;
    const char *type;          /* of the body; NULL: there is none */
    struct slice body;         /* wiped by the caller */
    const char *authorization; /* NULL: none */
    bool head_only;            /* the answer's body may never end, and nobody reads it */
};

struct login_answer {
    unsigned status;
    json_t *json;                            /* owned; NULL: the body is none */
    char challenge[LOGIN_CHALLENGE_MAX + 1]; /* its WWW-Authenticate fields, with commas between */
    char location[LOGIN_URL_MAX + 1];        /* "": it leads nowhere */
};

/* Whatever the status is; -1 with err where no answer can be read. */
int login_http(struct login_net *n, const struct login_ask *q, struct login_answer *ret,
               struct err *err);
void login_answer_done(struct login_answer *a);
/* A document, by GET, with at most three redirects within its origin: 1 and its object, 0 where
 * there is none (404 and the like), -1 with err. */
int login_document(struct login_net *n, const struct login_url *at, json_t **ret, struct err *err);

#endif
