/* What the authorization server is asked: to know us (RFC 7591), to ask the user (a URL), and for
 * tokens (RFC 6749 with PKCE, RFC 7636, and resource indicators, RFC 8707). */
#ifndef DURWARD_LOGIN_FLOW_H
#define DURWARD_LOGIN_FLOW_H

#include "login_discover.h"

enum { LOGIN_CLIENT_MAX = 1000, LOGIN_CODE_MAX = 4096, LOGIN_RANDOM = 44 };

/* Who we are there. */
struct login_client {
    char id[LOGIN_CLIENT_MAX + 1];
    char secret[LOGIN_CLIENT_MAX + 1]; /* "": there is none */
    enum login_auth auth;
};

/* One attempt. */
struct login_attempt {
    char redirect[64];           /* http://127.0.0.1:PORT/callback */
    char state[LOGIN_RANDOM];    /* of 32 random bytes, as is: */
    char verifier[LOGIN_RANDOM]; /* PKCE's */
};

int login_attempt_begin(struct login_attempt *a, unsigned port, struct err *err);
/* The client's id and secret are those that are given, or come by registration. */
int login_register(struct login_net *n, const struct login_server *s, const struct login_attempt *a,
                   struct login_client *c, struct err *err);
/* A client that the user registered: which way of proving itself serves. */
int login_client_known(const struct login_server *s, struct login_client *c, struct err *err);
/* The URL that asks the user. */
int login_ask_url(const struct login_server *s, const struct login_client *c,
                  const struct login_attempt *a, struct buf *to, struct err *err);
/* What the browser brought back: 1: a code; 0: nothing of this attempt; -1: it is over. */
int login_take_answer(const struct login_server *s, const struct login_attempt *a,
                      struct slice query, char code[LOGIN_CODE_MAX + 1], struct err *err);
/* The answer of the token endpoint, an object whose access_token can be used; the caller's. */
int login_exchange(struct login_net *n, const struct login_server *s, const struct login_client *c,
                   const struct login_attempt *a, const char *code, json_t **ret, struct err *err);

/* ---- what needs no network ---- */

int login_take_client(const struct login_server *s, const struct login_attempt *a, const json_t *v,
                      struct login_client *c, struct err *err);
int login_take_tokens(const json_t *v, struct err *err);
/* expires_in, a number or its text: seconds; 0: it is not said; -1: it is none. */
int64_t login_life(const json_t *tokens);

#endif
