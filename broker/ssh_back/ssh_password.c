/* A login by a password: the server's own method for it, or where that is not offered the one that
 * asks questions (RFC 4256), of which one that does not echo is answered with it, once. It is got
 * from the vault when the server, whose key is known by then, is about to be sent it, and forgotten
 * as soon as it has been. */
#include "ssh_back.h"

#include <string.h>

enum {
    CLEARTEXT = 3, /* as secrets/vault/scram_proof.h numbers it */
    PASSWORD_MAX = 512,
    ROUNDS_MAX = 8, /* of questions that ask nothing: words for whoever logs in */
};

static const char *const refused_text = "the server does not let this user in with this password";

static int refuse(const char **text, const char *why)
{
    *text = why;
    return -1;
}

static void forget(struct ssh_password_of *p)
{
    secret_unref(p->value); /* wipes */
    p->value = NULL;
}

/* With a zero byte behind it, as libssh wants it. */
static struct secret *text_of(struct slice password)
{
    struct secret *s = password.n <= PASSWORD_MAX && slice_find(password, 0) < 0
                           ? secret_alloc(password.n + 1)
                           : NULL;
    if (s) {
        memcpy(secret_bytes(s), password.p, password.n);
        secret_bytes(s)[password.n] = 0;
    }
    return s;
}

static void on_password(void *arg, struct slice password, const struct err *err)
{
    struct ssh_request *q = arg;
    struct ssh_password_of *p = &q->password;
    p->wait = NULL;
    if (password.n == 0) {
        ssh_request_refuse(q, "secret_unavailable", err ? err->text : "out of memory");
        return;
    }
    p->value = text_of(password);
    if (p->value == NULL)
        ssh_request_refuse(q, "secret_unavailable",
                           "a password for SSH is 1 to 512 bytes without a zero byte");
    else
        ssh_pump_soon(q->pump);
}

/* 0: the vault was asked; 2: it could not be, and the request is gone. */
static int ask_vault(struct ssh_request *q)
{
    struct sign_wait *w = secret_client_sign_text(q->of->back->secrets, q->request.sandbox,
                                                  q->request.rule->credential->secret, CLEARTEXT,
                                                  SLICE(""), on_password, q);
    if (w == NULL)
        return 2; /* on_password ran, and refused */
    q->password.wait = w;
    return 0;
}

/* What a method came to: 1: let in; 0: later; -1. */
static int outcome(int r, const char **text)
{
    if (r == SSH_AUTH_SUCCESS || r == SSH_AUTH_AGAIN)
        return r == SSH_AUTH_SUCCESS;
    return refuse(text,
                  r == SSH_AUTH_PARTIAL ? "the server wants more than a password" : refused_text);
}

/* Which methods there are is the answer to a login with none. */
static int choose(struct ssh_request *q, const char **text)
{
    struct ssh_password_of *p = &q->password;
    int r = ssh_userauth_none(q->session, NULL);
    if (r != SSH_AUTH_DENIED)
        return outcome(r, text);
    int methods = ssh_userauth_list(q->session, NULL);
    if ((methods & (SSH_AUTH_METHOD_PASSWORD | SSH_AUTH_METHOD_INTERACTIVE)) == 0)
        return refuse(text, "the server takes no password");
    p->step = methods & SSH_AUTH_METHOD_PASSWORD ? PASSWORD_SEND : PASSWORD_ASKED;
    return 3;
}

/* libssh writes it in the first call, and only waits in the next. */
static int send_it(struct ssh_request *q, const char **text)
{
    struct ssh_password_of *p = &q->password;
    if (!p->given && p->value == NULL)
        return ask_vault(q);
    const char *value = p->given ? "" : (const char *)secret_bytes(p->value);
    p->given = true;
    int r = ssh_userauth_password(q->session, NULL, value);
    forget(p);
    return outcome(r, text);
}

/* What the server asks is shown to nobody: its words may be anything. */
static int read_questions(struct ssh_request *q, const char **text)
{
    struct ssh_password_of *p = &q->password;
    char echoes = 0;
    int n = ssh_userauth_kbdint_getnprompts(q->session);
    if (n < 0 || ++p->rounds > ROUNDS_MAX)
        return refuse(text, refused_text);
    if (n == 0)
        return 3;
    if (n > 1)
        return refuse(text, "the server asks several questions, and only a password is here");
    if (ssh_userauth_kbdint_getprompt(q->session, 0, &echoes) == NULL)
        return refuse(text, refused_text);
    if (echoes)
        return refuse(text, "the server asks for what it would show, which is no password");
    if (p->given)
        return refuse(text, "the server asks for more than a password, or for it again");
    p->step = PASSWORD_ANSWER;
    return 3;
}

static int be_asked(struct ssh_request *q, const char **text)
{
    int r = ssh_userauth_kbdint(q->session, NULL, NULL);
    return r == SSH_AUTH_INFO ? read_questions(q, text) : outcome(r, text);
}

static int answer(struct ssh_request *q, const char **text)
{
    struct ssh_password_of *p = &q->password;
    if (p->value == NULL)
        return ask_vault(q);
    p->given = true;
    int r = ssh_userauth_kbdint_setanswer(q->session, 0, (const char *)secret_bytes(p->value));
    forget(p);
    p->step = PASSWORD_ASKED; /* which sends it, and libssh wipes its copy */
    return r < 0 ? refuse(text, "out of memory") : 3;
}

int ssh_password_log_in(struct ssh_request *q, const char **code, const char **text)
{
    struct ssh_password_of *p = &q->password;
    int r = p->wait ? 0 : 3;
    *code = "ssh_login";
    while (r == 3)
        switch (p->step) {
        case PASSWORD_CHOOSE:
            r = choose(q, text);
            break;
        case PASSWORD_SEND:
            r = send_it(q, text);
            break;
        case PASSWORD_ASKED:
            r = be_asked(q, text);
            break;
        case PASSWORD_ANSWER:
            r = answer(q, text);
            break;
        }
    return r;
}

void ssh_password_done(struct ssh_request *q)
{
    secret_client_sign_cancel(q->password.wait);
    q->password.wait = NULL;
    forget(&q->password);
}
