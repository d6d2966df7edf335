/* Who lets us into an MCP server: its own word (401 and RFC 9728), then the authorization server's
 * metadata (RFC 8414, or OpenID Connect's place for it). */
#ifndef DURWARD_LOGIN_DISCOVER_H
#define DURWARD_LOGIN_DISCOVER_H

#include "login_http.h"

enum { LOGIN_SCOPE_MAX = 1000 };

/* How a client proves itself at the token endpoint. */
enum login_auth { LOGIN_AUTH_NONE = 1, LOGIN_AUTH_POST, LOGIN_AUTH_BASIC };
const char *login_auth_name(enum login_auth a); /* "none", "client_secret_post", ... */
/* 0: none that is known. */
enum login_auth login_auth_read(const char *name);

struct login_server {
    struct login_url at;       /* the MCP server */
    struct login_url resource; /* its identifier: what tokens are for */
    char issuer[LOGIN_URL_MAX + 1];
    struct login_url authorize, token, registration;
    bool registers;                  /* there is such an endpoint */
    bool says_issuer;                /* answers have `iss` (RFC 9207) */
    bool one_origin;                 /* who is asked to agree is who is sent the code */
    bool chosen;                     /* the user said which issuer */
    bool offline;                    /* it gives refresh tokens to whoever asks for that scope */
    unsigned auths;                  /* bits 1 << enum login_auth that the token endpoint takes */
    char scope[LOGIN_SCOPE_MAX + 1]; /* "": none is asked for */
};

/* at is set. issuer: the one to take of several, or where the server names none; NULL: the first.
 * scope: what to ask for; NULL: what the server says. */
int login_discover(struct login_net *n, struct login_server *s, const char *issuer,
                   const char *scope, struct err *err);

/* ---- what needs no network ---- */

/* The value of `name` of the Bearer challenge: 1, 0: there is none, -1: it is ambiguous. */
int login_challenge(const char *text, const char *name, char *to, size_t size);
/* What a protected resource says of itself: its identifier, which has to cover `at`, and who its
 * authorization server is. */
int login_take_resource(struct login_server *s, const json_t *v, const char *issuer,
                        struct err *err);
/* What an authorization server says of itself. */
int login_take_issuer(struct login_server *s, const json_t *v, struct err *err);
/* Scopes: words of printable ASCII with blanks between. */
bool login_scope_ok(const char *scope);

#endif
