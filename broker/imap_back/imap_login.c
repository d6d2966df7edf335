/* From the greeting to a session: TLS, the login, and what the server has. Each step waits for the
 * server's answer to the one before. */
#include "imap_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

static void ask(struct imap_session *s, enum session_state state)
{
    s->state = state;
    memset(&s->server, 0, sizeof s->server);
    (void)imap_say_line(s, "CAPABILITY");
}

static void on_clock(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    imap_carry_stop(arg, "imap_seconds", "the session's time is over");
}

static void open_session(struct imap_session *s)
{
    unsigned seconds = s->request.rule->imap->seconds;
    const char has[2] = {(char)(s->server.has >> 8), (char)s->server.has};
    s->state = SESSION_RUNNING;
    back_login_forget(&s->login);
    io_deadline(s->link.io, IMAP_QUIET_SECONDS);
    if (seconds) {
        const struct timeval t = {.tv_sec = (time_t)seconds};
        s->clock = event_new(s->of->back->base, -1, 0, on_clock, s);
        if (s->clock == NULL || event_add(s->clock, &t) < 0) {
            imap_session_refuse(s, "memory", "");
            return;
        }
    }
    (void)broker_stream_send(s->stream, BROKER_OPENED, (struct slice){has, sizeof has});
}

/* ---- the login ---- */

/* In quotes, as LOGIN has it. */
static int put_quoted(struct buf *out, struct slice s)
{
    if (buf_append(out, "\"", 1) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c >= 0x7f || ((c == '"' || c == '\\') && buf_append(out, "\\", 1) < 0) ||
            buf_append(out, &c, 1) < 0)
            return -1;
    }
    return buf_append(out, "\"", 1);
}

static void say_login(struct imap_session *s, struct slice password)
{
    struct buf words;
    buf_init_wiped(&words, 2 * (BACK_LOGIN_PASSWORD_MAX + BACK_LOGIN_USER_MAX) + 16);
    bool ok = put_quoted(&words, slice_str(s->login.user)) == 0 &&
              buf_append(&words, " ", 1) == 0 && put_quoted(&words, password) == 0;
    s->state = SESSION_PROOF;
    if (ok)
        (void)imap_say_line(s, "LOGIN %.*s", SL(buf_slice(&words)));
    else
        imap_session_refuse(s, "secret_unavailable",
                            "LOGIN cannot say such a name or password; use 'auth: plain'");
    buf_free(&words);
}

static void on_password(void *arg, struct slice password, const struct err *err)
{
    struct imap_session *s = arg;
    s->proof = NULL;
    if (!back_login_password_ok(password) || slice_find(password, '\r') >= 0 ||
        slice_find(password, '\n') >= 0) {
        imap_session_refuse(s, "secret_unavailable",
                            err ? err->text : "the vault gave no password");
        return;
    }
    if (back_login_keep(&s->login, password) < 0) {
        imap_session_refuse(s, "memory", "");
        return;
    }
    if (s->login.auth == BACK_LOGIN_LOGIN) {
        say_login(s, password);
        return;
    }
    s->state = SESSION_AUTH;
    (void)imap_say_line(s, "AUTHENTICATE %s",
                        s->login.auth == BACK_LOGIN_PLAIN ? "PLAIN" : "XOAUTH2");
}

static void log_in(struct imap_session *s)
{
    const bool has[BACK_LOGIN_AUTHS] = {s->server.plain, !s->server.no_login, s->server.xoauth2};
    if (!has[s->login.auth]) {
        imap_session_refuse(s, "upstream_login", "the server does not offer this login here");
        return;
    }
    s->state = SESSION_PASSWORD;
    struct sign_wait *w = secret_client_sign_text(s->of->back->secrets, s->request.sandbox,
                                                  s->request.rule->credential->secret,
                                                  BACK_LOGIN_CLEARTEXT, SLICE(""), on_password, s);
    if (w)
        s->proof = w; /* else on_password ran, and may have ended the session */
}

static void on_go_on(struct imap_session *s)
{
    struct slice said = s->login.said ? secret_slice(s->login.said) : SLICE("");
    if (s->state == SESSION_AUTH) {
        s->state = SESSION_PROOF;
        if (io_write(s->link.io, said.p, said.n) < 0 || io_write(s->link.io, "\r\n", 2) < 0)
            imap_session_refuse(s, "memory", "");
        return;
    }
    /* XOAUTH2 says so why it refuses, and waits for an empty line. */
    if (s->state != SESSION_PROOF || s->login.auth != BACK_LOGIN_XOAUTH2)
        imap_session_refuse(s, "upstream_protocol", "the server waits for what nobody says");
    else if (io_write(s->link.io, "\r\n", 2) < 0)
        imap_session_refuse(s, "memory", "");
}

/* ---- the server's answers ---- */

/* Of its words none, nor what a code holds but its name: what it says of a login that it refuses
 * may be that login. */
static void on_refusal(struct imap_session *s, const struct imap_answer *a)
{
    char detail[100];
    struct buf code;
    buf_init(&code, IMAP_SAID_MAX + 16);
    if (imap_answer_code(a->text, &code) < 0)
        buf_clear(&code);
    struct slice said = buf_slice(&code);
    ssize_t blank = slice_find(said, ' ');
    if (blank >= 0)
        said.n = (size_t)blank;
    snprintf(detail, sizeof detail, "the server says %s%s%.*s%s", a->status, said.n ? " " : "",
             SL(said), blank >= 0 ? "]" : "");
    buf_free(&code);
    imap_session_refuse(s,
                        s->state == SESSION_STARTTLS ? "upstream_tls"
                        : s->state >= SESSION_AUTH   ? "upstream_login"
                                                     : "upstream_protocol",
                        detail);
}

static void on_tagged(struct imap_session *s, const struct imap_answer *a)
{
    const struct imap_terms *t = s->request.rule->imap;
    if (!imap_say_is_tag(s, a->tag)) {
        imap_session_refuse(s, "upstream_protocol", "the server answers what nobody asked");
        return;
    }
    if (strcmp(a->status, "OK") != 0) {
        on_refusal(s, a);
        return;
    }
    switch (s->state) {
    case SESSION_ASKING:
        if (t->implicit || t->plain) {
            log_in(s);
        } else if (!s->server.starttls) {
            imap_session_refuse(s, "upstream_tls", "the server does not speak TLS (STARTTLS)");
        } else {
            s->state = SESSION_STARTTLS;
            (void)imap_say_line(s, "STARTTLS");
        }
        break;
    case SESSION_STARTTLS:
        if (buf_len(&s->came) > 0 || buf_len(io_in(s->link.io)) > 0)
            imap_session_refuse(s, "upstream_protocol",
                                "the server said more before TLS than it may");
        else
            back_link_upgrade(&s->link); /* it may be gone */
        break;
    case SESSION_SECURE_ASKING:
        log_in(s);
        break;
    case SESSION_PROOF:
        ask(s, SESSION_LAST_ASKING);
        break;
    case SESSION_LAST_ASKING:
        open_session(s);
        break;
    default:
        imap_session_refuse(s, "upstream_protocol", "the server answers what nobody asked");
        break;
    }
}

void imap_login_answer(struct imap_session *s, const struct imap_answer *a)
{
    bool greeting = s->state == SESSION_GREETING;
    switch (a->kind) {
    case IMAP_ANSWER_STATUS:
        if (greeting && strcmp(a->status, "OK") == 0)
            ask(s, SESSION_ASKING);
        else if (greeting)
            imap_session_refuse(s, "upstream_protocol", "the server does not greet");
        break;
    case IMAP_ANSWER_CAPABILITY:
        if (!greeting)
            imap_server_read(a->text, &s->server);
        break;
    case IMAP_ANSWER_TAGGED:
        on_tagged(s, a);
        break;
    case IMAP_ANSWER_GO_ON:
        on_go_on(s);
        break;
    case IMAP_ANSWER_BYE:
        imap_session_refuse(s, "upstream_closed", "the server says BYE");
        break;
    case IMAP_ANSWER_PREAUTH:
        /* As who is between might say, to have the login left out and TLS with it. */
        imap_session_refuse(s, "upstream_protocol", "the server greets as if there was a login");
        break;
    default:
        break;
    }
}

/* At first, and once more when TLS is there: then what the server said before counts for nothing.
 */
void imap_login_begin(struct imap_session *s)
{
    bool secured = s->state == SESSION_STARTTLS;
    imap_carry_begin(s);
    io_high_mark(s->link.io, IMAP_IO);
    io_deadline(s->link.io, IMAP_LOGIN_SECONDS);
    if (secured) {
        ask(s, SESSION_SECURE_ASKING);
        return;
    }
    s->state = SESSION_GREETING;
    if (buf_len(io_in(s->link.io)) > 0)
        imap_carry_more(s);
}
