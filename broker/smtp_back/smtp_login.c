/* AUTH, and what a server says of it back. */
#include "smtp_back.h"

#include <stdio.h>
#include <string.h>

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
    struct slice said = secret_slice(s->login.said);
    (void)smtp_tell(s, "AUTH %s %.*s", s->login.auth == BACK_LOGIN_PLAIN ? "PLAIN" : "XOAUTH2",
                    SL(said));
}

void smtp_login_proof(struct smtp_session *s)
{
    struct slice said = secret_slice(s->login.said);
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
