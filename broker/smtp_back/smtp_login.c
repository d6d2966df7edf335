/* AUTH, and what a server says of it back. */
#include "smtp_back.h"

#include "base64.h"

#include <stdio.h>
#include <string.h>

/* As secrets/vault/scram_proof.h numbers it. */
enum { PROOF_CLEARTEXT = 3, SCRUB_LEAST = 8 };

void smtp_login_forget(struct smtp_session *s)
{
    for (size_t i = 0; i < SMTP_WORDS; i++) {
        secret_unref(s->words[i]);
        s->words[i] = NULL;
    }
}

/* What a server may echo: the password, its base64, and what AUTH said. */
static int keep(struct smtp_session *s, struct slice password)
{
    struct buf said, coded[2];
    const char *user = s->user;
    int e = 0;
    buf_init_wiped(&said, SMTP_PASSWORD_MAX + SMTP_USER_MAX + 64);
    for (size_t i = 0; i < 2; i++)
        buf_init_wiped(&coded[i], 2 * (SMTP_PASSWORD_MAX + SMTP_USER_MAX + 64));
    if (s->auth == SMTP_AUTH_XOAUTH2)
        e = buf_printf(&said, "user=%s\001auth=Bearer ", user);
    else if (s->auth == SMTP_AUTH_PLAIN &&
             (buf_append(&said, "", 1) < 0 || buf_append(&said, user, strlen(user) + 1) < 0))
        e = -1;
    if (e < 0 || buf_append_slice(&said, password) < 0 ||
        (s->auth == SMTP_AUTH_XOAUTH2 && buf_append(&said, "\001\001", 2) < 0) ||
        base64_append(&coded[0], buf_slice(&said)) < 0 || base64_append(&coded[1], password) < 0)
        e = -1;
    if (e == 0) {
        s->words[0] = secret_new(buf_data(&coded[0]), buf_len(&coded[0]));
        s->words[1] = secret_new(buf_data(&coded[1]), buf_len(&coded[1]));
        s->words[2] = secret_new(password.p, password.n);
        e = s->words[0] && s->words[1] && s->words[2] ? 0 : -1;
    }
    buf_free(&said);
    buf_free(&coded[0]);
    buf_free(&coded[1]);
    return e;
}

static void on_password(void *arg, struct slice password, const struct err *err)
{
    struct smtp_session *s = arg;
    s->proof = NULL;
    if (password.n == 0 || password.n > SMTP_PASSWORD_MAX || slice_find(password, 0) >= 0) {
        smtp_session_refuse(s, "secret_unavailable",
                            err ? err->text : "the vault gave no password");
        return;
    }
    if (keep(s, password) < 0) {
        smtp_session_refuse(s, "memory", "");
        return;
    }
    if (s->auth == SMTP_AUTH_LOGIN) {
        s->state = SESSION_USER;
        (void)smtp_tell(s, "AUTH LOGIN");
        return;
    }
    s->state = SESSION_AUTH;
    struct slice said = secret_slice(s->words[0]);
    (void)smtp_tell(s, "AUTH %s %.*s", s->auth == SMTP_AUTH_PLAIN ? "PLAIN" : "XOAUTH2", SL(said));
}

void smtp_login_proof(struct smtp_session *s)
{
    struct slice said = secret_slice(s->words[0]);
    (void)smtp_tell(s, "%.*s", SL(said));
}

void smtp_login_ask(struct smtp_session *s)
{
    static const char *const names[SMTP_AUTHS] = {"PLAIN", "LOGIN", "XOAUTH2"};
    const bool has[SMTP_AUTHS] = {s->server.plain, s->server.login, s->server.xoauth2};
    char text[80];
    if (!has[s->auth]) {
        snprintf(text, sizeof text, "the server does not offer AUTH %s here", names[s->auth]);
        smtp_session_refuse(s, "upstream_login", text);
        return;
    }
    s->state = SESSION_PASSWORD;
    struct sign_wait *w = secret_client_sign_text(s->of->back->secrets, s->request.sandbox,
                                                  s->request.rule->credential->secret,
                                                  PROOF_CLEARTEXT, SLICE(""), on_password, s);
    if (w)
        s->proof = w; /* else on_password ran, and may have ended the session */
}

static void mask(struct buf *b, struct slice word)
{
    struct slice rest = buf_slice(b);
    ssize_t at;
    while (word.n >= SCRUB_LEAST && (at = slice_find_slice(rest, word)) >= 0) {
        memset(buf_data(b) + (rest.p - (const char *)buf_data(b)) + at, '*', word.n);
        rest = (struct slice){rest.p + at + word.n, rest.n - (size_t)at - word.n};
    }
}

void smtp_login_scrub(const struct smtp_session *s, const struct smtp_reply *r, char *text,
                      size_t size)
{
    struct buf b;
    buf_init_wiped(&b, SMTP_REPLY_MAX);
    text[0] = 0;
    if (smtp_reply_text(r, &b) == 0) {
        for (size_t i = 0; i < SMTP_WORDS; i++)
            if (s->words[i])
                mask(&b, secret_slice(s->words[i]));
        struct slice all = buf_slice(&b);
        snprintf(text, size, "%.*s", all.n < size ? (int)all.n : (int)size - 1, all.p ? all.p : "");
    }
    buf_free(&b);
}
