/* A login by a password or an OAuth token that the vault gives, as mail's servers take it: which
 * way, as whom, and what is said (RFC 4616, XOAUTH2). It is forgotten when the server has taken it:
 * what a server says is compared with no secret, since whoever chooses what it says back would see
 * which of his guesses is right. */
#ifndef DURWARD_BACK_LOGIN_H
#define DURWARD_BACK_LOGIN_H

#include "secret.h"
#include "slice.h"

enum {
    BACK_LOGIN_USER_MAX = 255,
    BACK_LOGIN_PASSWORD_MAX = 2048,
    BACK_LOGIN_CLEARTEXT = 3, /* as secrets/vault/scram_proof.h numbers it */
};

enum back_login_auth {
    BACK_LOGIN_PLAIN = 0,
    BACK_LOGIN_LOGIN,
    BACK_LOGIN_XOAUTH2,
    BACK_LOGIN_AUTHS
};

struct back_login {
    enum back_login_auth auth;
    char user[BACK_LOGIN_USER_MAX + 1];
    struct secret *said; /* what is said of it, in base64; NULL: not there */
};

/* "imap xoauth2 NAME", of scheme "imap": the vault says how and as whom, and no more. 0 or -1. */
int back_login_read(struct back_login *l, const char *scheme, struct slice told);
bool back_login_password_ok(struct slice password);
int back_login_keep(struct back_login *l, struct slice password);
void back_login_forget(struct back_login *l);

#endif
