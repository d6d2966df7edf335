/* The client's side of the handshake: the server's key is one that the rule names, and the login is
 * signed by the vault.
 *
 * libssh logs in with an agent that it asks over a socket, and waits for the answer. So that it
 * never waits, the answers are in the socket before it asks: the first time the agent says that it
 * cannot sign, which tells us what is to be signed; the vault signs that, and the second time the
 * same question finds the signature. */
#include "ssh_back.h"

#include "ssh_wire.h"

#include <event2/util.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    AGENT_FAILURE = 5,
    AGENT_IDENTITIES = 12,
    AGENT_SIGN = 13,
    AGENT_SIGNED = 14,
    AGENT_MAX = 16 * 1024,
    CERTIFY = 1, /* as secrets/vault/derived.h numbers it */
};

/* ---- the connection ---- */

/* RSA keys sign with SHA-2. */
static void host_key_types(const struct ssh_terms *t, char *to, size_t size)
{
    size_t n = 0;
    to[0] = 0;
    for (size_t i = 0; i < t->n_keys && n < size; i++) {
        const char *type =
            strcmp(t->keys[i].type, "ssh-rsa") == 0 ? "rsa-sha2-512,rsa-sha2-256" : t->keys[i].type;
        if (strstr(to, type) == NULL)
            n += (size_t)snprintf(to + n, size - n, "%s%s", n ? "," : "", type);
    }
}

static int set(ssh_session s, enum ssh_options_e option, const void *value)
{
    return ssh_options_set(s, option, value) == SSH_OK ? 0 : -1;
}

static int set_options(struct ssh_request *q, int fd)
{
    const bool no = false;
    const int nodelay = 1, rsa_bits = 2048;
    char types[512];
    host_key_types(q->request.rule->ssh, types, sizeof types);
    ssh_session s = q->session;
    return set(s, SSH_OPTIONS_PROCESS_CONFIG, &no) < 0 || set(s, SSH_OPTIONS_SSH_DIR, "/") < 0 ||
                   set(s, SSH_OPTIONS_HOST, q->request.at.host) < 0 ||
                   set(s, SSH_OPTIONS_USER, q->facts.user) < 0 ||
                   set(s, SSH_OPTIONS_NODELAY, &nodelay) < 0 ||
                   set(s, SSH_OPTIONS_KEY_EXCHANGE, ssh_pump_kex) < 0 ||
                   set(s, SSH_OPTIONS_CIPHERS_C_S, ssh_pump_ciphers) < 0 ||
                   set(s, SSH_OPTIONS_CIPHERS_S_C, ssh_pump_ciphers) < 0 ||
                   set(s, SSH_OPTIONS_HMAC_C_S, ssh_pump_macs) < 0 ||
                   set(s, SSH_OPTIONS_HMAC_S_C, ssh_pump_macs) < 0 ||
                   set(s, SSH_OPTIONS_HOSTKEYS, types) < 0 ||
                   set(s, SSH_OPTIONS_RSA_MIN_SIZE, &rsa_bits) < 0 ||
                   set(s, SSH_OPTIONS_FD, &fd) < 0
               ? -1
               : 0;
}

/* Takes fd. */
int ssh_login_begin(struct ssh_request *q, int fd)
{
    q->session = ssh_new();
    if (q->session == NULL || set_options(q, fd) < 0) {
        close(fd);
        return -1;
    }
    ssh_set_blocking(q->session, 0);
    int r = ssh_connect(q->session); /* fd is the session's now */
    if (r != SSH_OK && r != SSH_AGAIN)
        return -1;
    q->pump = ssh_pump_new(q->of->back->base, q->session, fd, ssh_request_turn, q);
    return q->pump ? 0 : -1;
}

static bool key_is_named(const struct ssh_request *q)
{
    ssh_key key = NULL;
    char *blob = NULL;
    bool named = false;
    const struct ssh_terms *t = q->request.rule->ssh;
    if (ssh_get_server_publickey(q->session, &key) == SSH_OK &&
        ssh_pki_export_pubkey_base64(key, &blob) == SSH_OK)
        for (size_t i = 0; i < t->n_keys; i++)
            named = named || strcmp(t->keys[i].blob, blob) == 0;
    ssh_string_free_char(blob);
    ssh_key_free(key);
    return named;
}

int ssh_login_exchange(struct ssh_request *q, const char **code, const char **text)
{
    int r = ssh_connect(q->session);
    if (r == SSH_AGAIN)
        return 0;
    *code = "upstream_ssh";
    *text = ssh_get_error(q->session);
    if (r != SSH_OK)
        return -1;
    evutil_make_socket_nonblocking(ssh_get_fd(q->session)); /* see confine.c */
    *code = "ssh_host_key";
    *text = "the server's key is none that the rule names";
    return key_is_named(q) ? 1 : -1;
}

/* ---- the agent ---- */

static int say(struct ssh_agent_of *a, struct slice body)
{
    struct buf b;
    buf_init(&b, AGENT_MAX);
    int r = ssh_wire_put_string(&b, body) < 0 ||
                    send(a->fd, buf_data(&b), buf_len(&b), MSG_NOSIGNAL | MSG_DONTWAIT) !=
                        (ssize_t)buf_len(&b)
                ? -1
                : 0;
    buf_free(&b);
    return r;
}

static int say_identities(struct ssh_agent_of *a)
{
    struct buf b;
    buf_init(&b, AGENT_MAX);
    int r = ssh_wire_put_u8(&b, AGENT_IDENTITIES) < 0 || ssh_wire_put_u32(&b, 1) < 0 ||
                    ssh_wire_put_string(&b, buf_slice(&a->public)) < 0 ||
                    ssh_wire_put_string(&b, SLICE("vault")) < 0
                ? -1
                : say(a, buf_slice(&b));
    buf_free(&b);
    return r;
}

static int say_signature(struct ssh_agent_of *a)
{
    struct buf b;
    const char failure = AGENT_FAILURE;
    if (!a->signed_)
        return say(a, (struct slice){&failure, 1});
    buf_init(&b, AGENT_MAX);
    int r = ssh_wire_put_u8(&b, AGENT_SIGNED) < 0 ||
                    ssh_wire_put_string(&b, buf_slice(&a->signature)) < 0
                ? -1
                : say(a, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* A socket with both answers in it. */
static int agent_ready(struct ssh_request *q)
{
    int fds[2];
    struct ssh_agent_of *a = &q->agent;
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return -1;
    a->fd = fds[0];
    if (say_identities(a) == 0 && say_signature(a) == 0 &&
        ssh_set_agent_socket(q->session, fds[1]) == SSH_OK) {
        if (a->theirs >= 0)
            close(a->theirs);
        a->theirs = fds[1];
        return 0;
    }
    close(fds[1]);
    return -1;
}

/* What libssh asked the agent to sign: the last message that it wrote. */
static int read_question(struct ssh_agent_of *a, unsigned char *bytes, size_t size,
                         struct slice *ret)
{
    ssize_t n = recv(a->fd, bytes, size, MSG_DONTWAIT);
    struct slice rest = {(char *)bytes, n > 0 ? (size_t)n : 0}, message, key;
    uint8_t type = 0;
    while (rest.n > 0) {
        if (ssh_wire_string(&rest, &message) < 0 || ssh_wire_u8(&message, &type) < 0)
            return -1;
        if (type == AGENT_SIGN)
            return ssh_wire_string(&message, &key) < 0 || !slice_eq(key, buf_slice(&a->public))
                       ? -1
                       : ssh_wire_string(&message, ret);
    }
    return -1;
}

static void on_signed(void *arg, struct slice signature, const struct err *err)
{
    struct ssh_request *q = arg;
    struct ssh_agent_of *a = &q->agent;
    a->wait = NULL;
    if (signature.n == 0 || buf_append_slice(&a->signature, signature) < 0) {
        ssh_request_refuse(q, "ssh_signature", err ? err->text : "out of memory");
        return;
    }
    a->signed_ = true;
    if (agent_ready(q) < 0) {
        ssh_request_refuse(q, "memory", "no socket for a signature");
        return;
    }
    ssh_pump_soon(q->pump);
}

/* ---- the certificate ---- */

static bool by_certificate(const struct ssh_request *q)
{
    return q->request.rule->credential->kind == CREDENTIAL_SSH_CERTIFICATE;
}

static void on_certificate(void *arg, struct slice certificate, const struct err *err)
{
    struct ssh_request *q = arg;
    q->agent.wait = NULL;
    if (certificate.n == 0 || buf_append_slice(&q->agent.public, certificate) < 0)
        ssh_request_refuse(q, "ssh_signature", err ? err->text : "out of memory");
    else
        ssh_pump_soon(q->pump);
}

/* Now that it is time to log in, and no earlier: it is good for minutes, and somebody may have been
 * asked about the request. 1: it is there; 0: the vault was asked; 2: the request is gone. */
static int ask_certificate(struct ssh_request *q)
{
    if (!by_certificate(q) || buf_len(&q->agent.public) > 0)
        return 1;
    struct sign_wait *w = secret_client_sign_text(q->of->back->secrets, q->request.sandbox,
                                                  q->request.rule->credential->secret, CERTIFY,
                                                  SLICE(""), on_certificate, q);
    if (w == NULL)
        return 2; /* on_certificate ran, and refused */
    q->agent.wait = w;
    return 0;
}

/* 0: the vault was asked; -1. May have refused and freed the request: then *gone. */
static int ask_vault(struct ssh_request *q)
{
    unsigned char bytes[AGENT_MAX];
    struct slice login;
    struct ssh_agent_of *a = &q->agent;
    if (a->asked || read_question(a, bytes, sizeof bytes, &login) < 0)
        return -1;
    a->asked = true;
    struct sign_wait *w =
        secret_client_sign_text(q->of->back->secrets, q->request.sandbox,
                                q->request.rule->credential->secret, 0, login, on_signed, q);
    if (w == NULL)
        return 1; /* on_signed ran, and refused */
    a->wait = w;
    return 0;
}

static int by_key(struct ssh_request *q, const char **code, const char **text)
{
    struct ssh_agent_of *a = &q->agent;
    if (a->wait)
        return 0;
    int there = ask_certificate(q);
    if (there != 1)
        return there;
    if (a->fd < 0 && agent_ready(q) < 0) {
        *code = "memory";
        *text = "no socket for a signature";
        return -1;
    }
    int r = ssh_userauth_agent(q->session, NULL);
    if (r == SSH_AUTH_SUCCESS)
        return 1;
    if (r == SSH_AUTH_AGAIN)
        return 0;
    if (r == SSH_AUTH_ERROR && !a->asked) {
        int asked = ask_vault(q);
        if (asked >= 0)
            return asked == 0 ? 0 : 2;
    }
    *code = "ssh_login";
    *text = by_certificate(q) ? "the server does not let this user in with this certificate"
                              : "the server does not let this user in with this key";
    return -1;
}

int ssh_login_log_in(struct ssh_request *q, const char **code, const char **text)
{
    return q->request.rule->credential->kind == CREDENTIAL_SSH_PASSWORD
               ? ssh_password_log_in(q, code, text)
               : by_key(q, code, text);
}

void ssh_login_done(struct ssh_request *q)
{
    ssh_password_done(q);
    struct ssh_agent_of *a = &q->agent;
    secret_client_sign_cancel(a->wait);
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    buf_free(&a->public);
    buf_free(&a->signature);
}
