/* Carries what a handshake is to sign from the certificate's key to the vault, and the signature
 * back; asked from the event loop, since OpenSSL is on the stack when it wants one. */
#include "client_cert.h"

#include "vault_key.h"

#include <event2/event.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

struct client_cert {
    struct event_base *base;
    struct secret_client *vault;
    char *payer, *secret;
    STACK_OF(X509) * chain;
};

struct client_proof {
    struct client_cert *cert;
    struct io *io;
    struct vault_key *key;
    struct event *wanted;
    struct sign_wait *wait;
};

struct client_cert *client_cert_new(struct event_base *base, struct secret_client *vault,
                                    const char *payer, const char *secret,
                                    struct slice certificates)
{
    struct client_cert *c = calloc(1, sizeof *c);
    BIO *bio =
        certificates.n <= INT_MAX ? BIO_new_mem_buf(certificates.p, (int)certificates.n) : NULL;
    X509 *x;
    if (c) {
        c->base = base;
        c->vault = vault;
        c->payer = strdup(payer);
        c->secret = strdup(secret);
        c->chain = sk_X509_new_null();
    }
    while (c && c->chain && bio && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
        if (!sk_X509_push(c->chain, x))
            X509_free(x);
    BIO_free(bio);
    ERR_clear_error();
    if (c && c->payer && c->secret && c->chain && sk_X509_num(c->chain) > 0)
        return c;
    client_cert_free(c);
    return NULL;
}

void client_cert_free(struct client_cert *c)
{
    if (c == NULL)
        return;
    sk_X509_pop_free(c->chain, X509_free);
    free(c->secret);
    free(c->payer);
    free(c);
}

/* ---- one handshake ---- */

static void on_signed(void *arg, struct slice signature, const struct err *err UNUSED)
{
    struct client_proof *p = arg;
    p->wait = NULL;
    vault_key_signed(p->key, signature);
    io_tls_continue(p->io);
}

/* The handshake waits. */
static void on_wanted(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct client_proof *p = arg;
    uint16_t scheme;
    struct slice text = vault_key_text(p->key, &scheme);
    struct sign_wait *w = secret_client_sign_text(p->cert->vault, p->cert->payer, p->cert->secret,
                                                  scheme, text, on_signed, p);
    if (w)
        p->wait = w;
}

static void tell_wanted(void *arg)
{
    event_active(((struct client_proof *)arg)->wanted, EV_TIMEOUT, 0);
}

struct client_proof *client_proof_new(struct client_cert *c, struct io *io, SSL *ssl)
{
    struct client_proof *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->cert = c;
    p->io = io;
    p->wanted = event_new(c->base, -1, 0, on_wanted, p);
    p->key = p->wanted ? vault_key_new(ssl, c->chain, tell_wanted, p) : NULL;
    if (p->key)
        return p;
    client_proof_free(p);
    return NULL;
}

bool client_proof_given(const struct client_proof *p)
{
    return vault_key_used(p->key);
}

void client_proof_free(struct client_proof *p)
{
    if (p == NULL)
        return;
    secret_client_sign_cancel(p->wait);
    vault_key_free(p->key);
    if (p->wanted)
        event_free(p->wanted);
    free(p);
}
