/* A login: TLS before anything of ours, then whatever method the server names for this user, as far
 * as the vault proves by it. */
#include "mysql_login.h"

#include "secret_client.h"

#include <stdio.h>
#include <string.h>

/* As secrets/vault/mysql_proof.h numbers them. */
enum { PROOF_NATIVE = 1, PROOF_SHA2, PROOF_ED25519, PROOF_CLEARTEXT };
enum { ACCESS_DENIED = 1045 };
enum { LONG_NONCE = 32, SHA2_FAST = 3, SHA2_FULL = 4, PASSWORD_MAX = 1024, ANSWERS = 8192 };

/* -1, for whoever goes on no more: the login may be gone. */
static int finish(struct mysql_login *l, const char *code, const char *detail)
{
    l->done(l->arg, code, detail);
    return -1;
}

static int put_answer(struct mysql_login *l, bool asks_tls)
{
    struct mysql_answer a = {
        .capabilities = MYSQL_ALWAYS | MYSQL_SSL | l->facts.capabilities |
                        (l->facts.database.n ? MYSQL_CONNECT_WITH_DB : 0),
        .charset = l->facts.charset,
        .asks_tls = asks_tls,
        .user = slice_str(l->user),
        .proof = SLICE(""),
        .database = l->facts.database,
        /* of no server's: it names the one that this user has, with a nonce */
        .plugin = SLICE("durward_login"),
    };
    if (mysql_answer_put(io_out(l->link.io), l->number++, &a) < 0)
        return finish(l, "memory", "");
    l->state = asks_tls ? MYSQL_ENCRYPTING : MYSQL_SWITCH;
    if (asks_tls)
        back_link_upgrade(&l->link);
    else
        io_flush_soon(l->link.io);
    return asks_tls ? -1 : 0;
}

/* ---- what the server says ---- */

static int on_greeting(struct mysql_login *l, struct slice body)
{
    struct mysql_greeting g;
    const uint32_t needed = MYSQL_PROTOCOL_41 | MYSQL_SECURE_CONNECTION | MYSQL_PLUGIN_AUTH;
    if (mysql_greeting_read(body, &g) < 0 || (g.capabilities & needed) != needed)
        return finish(l, "upstream_protocol",
                      "the server's greeting cannot be read, or is an old one");
    if (!(g.capabilities & MYSQL_SSL))
        return finish(l, "upstream_tls", "the server does not speak TLS");
    if (buf_len(io_in(l->link.io)) > 0)
        return finish(l, "upstream_tls", "the server said more before TLS than it may");
    l->id = g.id;
    return put_answer(l, true);
}

static void on_proof(void *arg, struct slice proof, const struct err *err)
{
    struct mysql_login *l = arg;
    struct buf body;
    bool sends = l->state == MYSQL_SENDING;
    l->proof = NULL;
    if (proof.n == 0 || proof.n > PASSWORD_MAX) {
        (void)finish(l, "secret_unavailable", err ? err->text : "the vault gave no proof");
        return;
    }
    buf_init_wiped(&body, PASSWORD_MAX + 1);
    int r = buf_append_slice(&body, proof) < 0 || (sends && buf_append(&body, "", 1) < 0) ||
                    mysql_put(io_out(l->link.io), l->number++, buf_slice(&body)) < 0
                ? -1
                : 0;
    buf_free(&body);
    l->state = MYSQL_VERDICT;
    l->answered = true;
    if (r < 0)
        (void)finish(l, "memory", "");
    else
        io_flush_soon(l->link.io);
}

static int ask_proof(struct mysql_login *l, uint32_t scheme, struct slice text)
{
    l->state = scheme == PROOF_CLEARTEXT ? MYSQL_SENDING : MYSQL_PROVING;
    struct sign_wait *w =
        secret_client_sign_text(l->back->secrets, l->sandbox, l->secret, scheme, text, on_proof, l);
    if (w == NULL)
        return -1; /* on_proof ran, and may have ended the login */
    l->proof = w;
    return 0;
}

static int on_switch(struct mysql_login *l, struct slice body)
{
    struct slice plugin, nonce;
    if (mysql_switch_read(body, &plugin, &nonce) < 0)
        return finish(l, "upstream_login",
                      "the server asks for no password, or in a way of before 4.1");
    l->is_sha2 = slice_eq_str(plugin, MYSQL_PLUGIN_SHA2);
    if (slice_eq_str(plugin, MYSQL_PLUGIN_ED25519) && nonce.n == LONG_NONCE)
        return ask_proof(l, PROOF_ED25519, nonce);
    if (l->is_sha2 && nonce.n == MYSQL_NONCE_MAX)
        return ask_proof(l, PROOF_SHA2, nonce);
    if (slice_eq_str(plugin, MYSQL_PLUGIN_NATIVE) && nonce.n == MYSQL_NONCE_MAX)
        return ask_proof(l, PROOF_NATIVE, nonce);
    return finish(l, "upstream_login", "the server wants a login that is not known here");
}

/* caching_sha2: the server has the password's hash at hand, or wants the password, in TLS. */
static int on_more(struct mysql_login *l, struct slice body)
{
    bool fast = body.n == 2 && body.p[1] == SHA2_FAST, full = body.n == 2 && body.p[1] == SHA2_FULL;
    if (!l->is_sha2 || l->was_fast || l->was_sent || !(fast || full))
        return finish(l, "upstream_protocol", "a message that has no place in a login");
    l->was_fast = fast;
    l->was_sent = full;
    if (full && io_ssl(l->link.io) == NULL)
        return finish(l, "upstream_tls", "the server wants the password, and there is no TLS");
    return full ? ask_proof(l, PROOF_CLEARTEXT, SLICE("")) : 0;
}

/* Of what it says to a proof its number alone: the words may be the proof, or the password. */
static int on_error(struct mysql_login *l, struct slice body)
{
    char text[400];
    uint16_t code = 0;
    struct slice said = mysql_error_text(body, &code);
    if (l->answered)
        snprintf(text, sizeof text, "the server says %u to the login%s", code,
                 code == ACCESS_DENIED ? ", it denies access" : "");
    else
        snprintf(text, sizeof text, "the server says %u: %.*s", code,
                 said.n < 300 ? (int)said.n : 300, said.p);
    return finish(l, "upstream_login", text);
}

static int on_packet(struct mysql_login *l, struct slice body)
{
    unsigned char first = (unsigned char)body.p[0];
    if (first == 0xff)
        return on_error(l, body);
    if (l->state == MYSQL_GREETING)
        return on_greeting(l, body);
    if (l->state == MYSQL_SWITCH)
        return on_switch(l, body);
    if (l->state == MYSQL_VERDICT && first == 1)
        return on_more(l, body);
    if (l->state != MYSQL_VERDICT || first != 0)
        return finish(l, "upstream_protocol", "a message that has no place in a login");
    l->state = MYSQL_LOGGED_IN;
    return finish(l, NULL, "");
}

static void on_readable(struct mysql_login *l)
{
    struct buf *in = io_in(l->link.io);
    while (buf_len(in) > 0) {
        struct slice rest = buf_slice(in);
        struct mysql_part m;
        size_t had = rest.n;
        enum mysql_event e = mysql_read(&l->reader, &rest, &m);
        buf_drain(in, had - rest.n);
        io_consumed(l->link.io);
        if (e == MYSQL_VIOLATION) {
            (void)finish(l, "upstream_protocol", l->reader.why);
            return;
        }
        if (e == MYSQL_PART) {
            l->number = (unsigned char)(mysql_number(&m) + 1);
            if (on_packet(l, m.body) < 0)
                return;
        }
    }
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct mysql_login *l = arg;
    switch (ev) {
    case IO_READABLE:
        on_readable(l);
        break;
    case IO_CONNECTED:
    case IO_DRAINED:
        break;
    case IO_TIMEOUT:
        (void)finish(l, "timeout", "the server took too long");
        break;
    default:
        (void)finish(l, "upstream_closed",
                     ev == IO_ERROR ? io_why(io) : "the server closed the connection");
        break;
    }
}

/* In clear, then in TLS. */
static void on_linked(void *arg, const char *code, const char *detail)
{
    struct mysql_login *l = arg;
    if (code) {
        (void)finish(l, code, detail);
        return;
    }
    io_callback(l->link.io, on_io, l);
    io_deadline(l->link.io, MYSQL_LOGIN_SECONDS);
    if (l->state == MYSQL_ENCRYPTING)
        (void)put_answer(l, false);
}

void mysql_login_begin(struct mysql_login *l, const struct authority *at, const char *id)
{
    mysql_reader_init(&l->reader, MYSQL_LOGIN);
    back_link_begin(&l->link, l->back, at, l->sandbox, id, l->certificate, false, SLICE(""),
                    MYSQL_WHOLE_MAX + ANSWERS, on_linked, l);
}

void mysql_login_end(struct mysql_login *l)
{
    secret_client_sign_cancel(l->proof);
    l->proof = NULL;
    mysql_reader_free(&l->reader);
    back_link_end(&l->link);
}
