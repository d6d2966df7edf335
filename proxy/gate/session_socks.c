/* SOCKS5 on an explicit port (RFC 1928, RFC 1929): greeting, login where a token is needed,
 * request. It ends in the same tunnel as CONNECT. Whoever sends a message before the answer to the
 * one before is refused: our answer decides what the next bytes mean. */
#include "session_internal.h"

#include "gate_names.h"
#include "socks5.h"

#include <string.h>

enum { LOGIN_OK = 0, LOGIN_FAILED = 1 };

static void socks_step(struct session *s, enum socks_step step)
{
    s->socks = step;
}

static int answer(struct session *s, const unsigned char *p, size_t n)
{
    if (io_write(s->io, p, n) == 0)
        return 0;
    session_note_denied(s, "memory", NULL);
    session_close(s, "out of memory");
    return -1;
}

static int answer_two(struct session *s, unsigned char version, unsigned char what)
{
    unsigned char two[2] = {version, what};
    return answer(s, two, sizeof two);
}

/* Our end of the connection beyond us is nobody's business: 0.0.0.0:0. */
static int answer_request(struct session *s, enum socks5_reply reply)
{
    unsigned char ten[10] = {SOCKS5_VERSION, (unsigned char)reply, 0, 1};
    return answer(s, ten, sizeof ten);
}

/* The one way to refuse: a record, the answer that this step has for it, the end. */
static void refuse(struct session *s, enum socks5_reply reply, const char *code)
{
    int r = 0;
    if (code)
        session_note_denied(s, code, NULL);
    switch (s->socks) {
    case SOCKS_GREETING:
        r = answer_two(s, SOCKS5_VERSION, SOCKS5_UNACCEPTABLE);
        break;
    case SOCKS_LOGIN:
        r = answer_two(s, SOCKS5_LOGIN_VERSION, LOGIN_FAILED);
        break;
    case SOCKS_REQUEST:
        r = answer_request(s, reply);
        break;
    }
    if (r == 0)
        session_close(s, "refused in SOCKS");
}

/* Bytes of one message: off the input, or the session is refused for what it is or what follows. */
static bool take(struct session *s, ssize_t used)
{
    if (used == SOCKS5_MORE)
        return false;
    if (used == SOCKS5_BAD) {
        refuse(s, SOCKS5_FAILED, "bad_socks");
        return false;
    }
    if (buf_len(io_in(s->io)) > (size_t)used) {
        refuse(s, SOCKS5_FAILED, "early_data");
        return false;
    }
    return true;
}

static void on_greeting(struct session *s)
{
    struct socks5_greeting g;
    bool token = s->gate->mode == GATE_TOKEN;
    ssize_t used = socks5_greeting(buf_slice(io_in(s->io)), &g);
    if (!take(s, used))
        return;
    if (token ? !g.password : !g.none) {
        refuse(s, SOCKS5_FAILED, token ? "token_missing" : "socks_method");
        return;
    }
    buf_drain(io_in(s->io), (size_t)used);
    if (answer_two(s, SOCKS5_VERSION, token ? SOCKS5_PASSWORD : SOCKS5_NONE) == 0)
        socks_step(s, token ? SOCKS_LOGIN : SOCKS_REQUEST);
}

/* Which bytes of a login are the token, by their form alone: the password; or, where a provider has
 * one field only, the user with an empty password or a filler of one byte; or both, the user its
 * beginning, for clients that cannot send as many bytes in one. */
static struct slice login_token(const struct socks5_login *l, char *room, size_t size)
{
    if (l->password.n <= 1)
        return l->user;
    if (!slice_starts(l->user, SLICE("dwt1.")) || slice_starts(l->password, SLICE("dwt1.")) ||
        l->user.n + l->password.n > size)
        return l->password;
    memcpy(room, l->user.p, l->user.n);
    memcpy(room + l->user.n, l->password.p, l->password.n);
    return (struct slice){room, l->user.n + l->password.n};
}

static void on_login(struct session *s)
{
    struct socks5_login l;
    char room[SOCKS5_MESSAGE_MAX];
    ssize_t used = socks5_login(buf_slice(io_in(s->io)), &l);
    if (!take(s, used))
        return;
    const char *code = session_identify(s, login_token(&l, room, sizeof room));
    if (code) {
        refuse(s, SOCKS5_FAILED, code);
        return;
    }
    buf_drain(io_in(s->io), (size_t)used);
    if (answer_two(s, SOCKS5_LOGIN_VERSION, LOGIN_OK) == 0)
        socks_step(s, SOCKS_REQUEST);
}

/* What is asked for, as the outer authority. A text is what CONNECT would say; an address is what a
 * transparent listener would see, and is treated so. false: refused. */
static bool settle_target(struct session *s, const struct socks5_request *r)
{
    struct authority plain = r->target;
    if (!r->named) {
        memcpy(&s->destination, &r->address.in6, sizeof r->address.in6);
        if (session_destination(s) < 0) { /* it is recorded */
            refuse(s, SOCKS5_NOT_ALLOWED, NULL);
            return false;
        }
        if (strcmp(s->outer.host, NAMES_SELF_HOST) == 0) { /* not through ourselves again */
            refuse(s, SOCKS5_NOT_ALLOWED, "no_rule");
            return false;
        }
        return true;
    }
    s->outer = r->target;
    s->outer_binds_name = true;
    plain.scheme = SCHEME_HTTP;
    if (session_host_allowed(s, &s->outer) || session_host_allowed(s, &plain))
        return true;
    refuse(s, SOCKS5_NOT_ALLOWED, "no_rule");
    return false;
}

static void on_socks_request(struct session *s)
{
    struct socks5_request r;
    ssize_t used = socks5_request(buf_slice(io_in(s->io)), &r);
    if (!take(s, used))
        return;
    if (r.reply != SOCKS5_GRANTED) {
        s->outer = r.target;
        refuse(s, r.reply, r.code);
        return;
    }
    if (!settle_target(s, &r))
        return;
    buf_drain(io_in(s->io), (size_t)used);
    if (answer_request(s, SOCKS5_GRANTED) == 0)
        session_enter_tunnel(s);
}

static void on_bytes(struct session *s)
{
    switch (s->socks) {
    case SOCKS_GREETING:
        on_greeting(s);
        return;
    case SOCKS_LOGIN:
        on_login(s);
        return;
    case SOCKS_REQUEST:
        on_socks_request(s);
        return;
    }
}

static void on_socks(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct session *s = arg;
    switch (ev) {
    case IO_READABLE:
        on_bytes(s);
        return;
    case IO_TIMEOUT:
        session_note_denied(s, "timeout", "SOCKS");
        session_close(s, "time-out");
        return;
    case IO_EOF:
    case IO_ERROR:
        session_close(s, "closed in SOCKS");
        return;
    case IO_CONNECTED:
    case IO_DRAINED:
        return;
    }
}

void session_start_socks(struct session *s)
{
    s->entry_name = "socks5";
    socks_step(s, SOCKS_GREETING);
    io_callback(s->io, on_socks, s);
    io_deadline(s->io, s->gate->limits.head_seconds); /* for all of it */
    on_bytes(s);
}
