/* Asks the vault for a certificate, and gives it to one handshake. */
#include "back_certificate.h"

#include "client_cert.h"
#include "vault_key.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

int back_certificate_setup(struct err *err)
{
    return vault_key_setup() < 0 ? err_set(err, ERR_INTERNAL, "OpenSSL cannot sign elsewhere") : 0;
}

static void on_told(void *arg, struct secret *value, const struct err *err)
{
    struct back_certificate *c = arg;
    c->wait = NULL;
    if (value)
        c->cert = client_cert_new(c->back->base, c->back->secrets, c->sandbox, c->secret,
                                  secret_slice(value));
    c->done(c->arg, c->cert ? NULL
                    : value ? "its certificate cannot be parsed"
                    : err   ? err->text
                            : "there is no certificate");
}

void back_certificate_get(struct back_certificate *c, struct back *b, const char *sandbox,
                          const char *secret, void (*done)(void *arg, const char *why), void *arg)
{
    *c = (struct back_certificate){
        .back = b, .sandbox = sandbox, .secret = secret, .done = done, .arg = arg};
    struct secret_wait *w = secret_client_get(b->secrets, secret, on_told, c);
    if (w)
        c->wait = w; /* else on_told ran, and c may be gone */
}

int back_certificate_begin(struct back_certificate *c, struct io *io, SSL *ssl)
{
    if (c->secret == NULL)
        return 0;
    c->proof = c->cert ? client_proof_new(c->cert, io, ssl) : NULL;
    return c->proof ? 0 : -1;
}

bool back_certificate_end(struct back_certificate *c)
{
    bool shown = c->secret == NULL || (c->proof && client_proof_given(c->proof));
    client_proof_free(c->proof);
    c->proof = NULL;
    return shown;
}

void back_certificate_free(struct back_certificate *c)
{
    secret_client_cancel(c->wait);
    client_proof_free(c->proof);
    client_cert_free(c->cert);
    memset(c, 0, sizeof *c);
}

/* ---- whom it names ---- */

static int copy_name(const X509 *x, char *to, size_t size)
{
    const X509_NAME *subject = X509_get_subject_name(x);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return -1;
    unsigned char *text = NULL;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    bool ok = n > 0 && (size_t)n < size;
    for (int i = 0; ok && i < n; i++)
        ok = text[i] >= 0x20 && text[i] != 0x7f;
    if (ok) {
        memcpy(to, text, (size_t)n);
        to[n] = 0;
    }
    OPENSSL_free(text);
    return ok ? 0 : -1;
}

int back_certificate_user(struct slice told, char *to, size_t size)
{
    BIO *bio = told.n <= INT_MAX ? BIO_new_mem_buf(told.p, (int)told.n) : NULL;
    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    int r = x ? copy_name(x, to, size) : -1;
    X509_free(x);
    BIO_free(bio);
    ERR_clear_error();
    return r;
}
