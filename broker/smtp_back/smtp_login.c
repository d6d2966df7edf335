/* AUTH, and what a server says of it back. */
#include "smtp_back.h"

#include <stdio.h>
#include <string.h>

enum { SCRUB_LEAST = 8 };

static void on_password(void *arg, struct slice password, const struct err *err)
{
    struct smtp_session *s = arg;
    s->proof = NULL;
    if (!back_login_password_ok(password)) {
        smtp_session_refuse(s, "secret_unavailable",
                            err ? err->text : "the vault gave no password");
        return;
    }
    if (back_login_keep(&s->login, password) < 0) {
        smtp_session_refuse(s, "memory", "");
        return;
    }
    if (s->login.auth == BACK_LOGIN_LOGIN) {
        s->state = SESSION_USER;
        (void)smtp_tell(s, "AUTH LOGIN");
        return;
    }
    s->state = SESSION_AUTH;
    struct slice said = secret_slice(s->login.words[0]);
    (void)smtp_tell(s, "AUTH %s %.*s", s->login.auth == BACK_LOGIN_PLAIN ? "PLAIN" : "XOAUTH2",
                    SL(said));
}

void smtp_login_proof(struct smtp_session *s)
{
    struct slice said = secret_slice(s->login.words[0]);
    (void)smtp_tell(s, "%.*s", SL(said));
}

void smtp_login_ask(struct smtp_session *s)
{
    static const char *const names[BACK_LOGIN_AUTHS] = {"PLAIN", "LOGIN", "XOAUTH2"};
    const bool has[BACK_LOGIN_AUTHS] = {s->server.plain, s->server.login, s->server.xoauth2};
    char text[80];
    if (!has[s->login.auth]) {
        snprintf(text, sizeof text, "the server does not offer AUTH %s here", names[s->login.auth]);
        smtp_session_refuse(s, "upstream_login", text);
        return;
    }
    s->state = SESSION_PASSWORD;
    struct sign_wait *w = secret_client_sign_text(s->of->back->secrets, s->request.sandbox,
                                                  s->request.rule->credential->secret,
                                                  BACK_LOGIN_CLEARTEXT, SLICE(""), on_password, s);
    if (w)
        s->proof = w; /* else on_password ran, and may have ended the session */
}

/* Up to three digits. */
static size_t digits(struct slice s)
{
    size_t n = 0;
    while (n < s.n && n < 3 && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

void smtp_login_code(const struct smtp_reply *r, char *text, size_t size)
{
    struct slice rest = r->lines, line;
    size_t n = 0;
    text[0] = 0;
    if (!smtp_reply_line(&rest, &line))
        return;
    for (int i = 0; i < 3; i++) {
        size_t more = digits((struct slice){line.p + n, line.n - n});
        if (more == 0)
            return;
        n += more;
        if (i < 2 && (n == line.n || line.p[n++] != '.'))
            return;
    }
    if (n == line.n || line.p[n] == ' ')
        snprintf(text, size, "%.*s", (int)n, line.p);
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
        for (size_t i = 0; i < BACK_LOGIN_WORDS; i++)
            if (s->login.words[i])
                mask(&b, secret_slice(s->login.words[i]));
        struct slice all = buf_slice(&b);
        snprintf(text, size, "%.*s", all.n < size ? (int)all.n : (int)size - 1, all.p ? all.p : "");
    }
    buf_free(&b);
}
