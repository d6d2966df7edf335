/* A login at a server: its greeting, TLS, a proof of the vault's. */
#ifndef DURWARD_MYSQL_LOGIN_H
#define DURWARD_MYSQL_LOGIN_H

#include "back.h"
#include "back_link.h"
#include "mysql_handshake.h"

enum { MYSQL_LOGIN_SECONDS = 30 }; /* from the connection to the first command */

enum mysql_login_state {
    MYSQL_GREETING = 0,
    MYSQL_ENCRYPTING,
    MYSQL_SWITCH, /* the server is to name the method */
    MYSQL_PROVING,
    MYSQL_VERDICT,
    MYSQL_SENDING, /* the password, which the server has asked for in TLS */
    MYSQL_LOGGED_IN,
};

struct mysql_login {
    struct back *back;
    const char *sandbox, *secret, *user; /* its owner's, as long as it lasts */
    const char *certificate;             /* the same: of TLS, or NULL */
    struct mysql_facts facts;
    struct back_link link;
    struct mysql_reader reader;
    enum mysql_login_state state;
    struct sign_wait *proof;
    unsigned char number; /* of the next packet */
    bool is_sha2, was_fast, was_sent;
    bool answered; /* a proof of the vault's is with the server */
    uint32_t id;   /* the server's, of this connection */
    /* Once: code NULL when it is in, and link.io the owner's to use. It may free the login. */
    void (*done)(void *arg, const char *code, const char *detail);
    void *arg;
};

/* What is above `link` is set. */
void mysql_login_begin(struct mysql_login *l, const struct authority *at, const char *id);
void mysql_login_end(struct mysql_login *l);

#endif
