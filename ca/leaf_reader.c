/* Spares the decoding of a public key that is known: OpenSSL 3 looks for a decoder among all it
 * has, for each certificate anew, which takes longer than signing one. A library context without
 * algorithms has none to look at; the key that is known is put in afterwards, and what comes of it
 * must be the very bytes that were sent. */
#include "leaf_reader.h"

#include "compiler.h"
#include "public_half.h"

#include <openssl/err.h>
#include <openssl/provider.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

struct leaf_reader {
    EVP_PKEY *key, *known; /* the gate's; its public half, to be put in */
    unsigned char *spki;   /* as the signer was given it */
    int spki_len;
    OSSL_LIB_CTX *none;
    OSSL_PROVIDER *null; /* keeps the context from loading the default one */
};

struct leaf_reader *leaf_reader_new(EVP_PKEY *key)
{
    struct leaf_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    EVP_PKEY_up_ref(key);
    r->key = key;
    r->known = public_half(key);
    r->spki_len = r->known ? i2d_PUBKEY(r->known, &r->spki) : -1;
    r->none = OSSL_LIB_CTX_new();
    r->null = r->none ? OSSL_PROVIDER_load(r->none, "null") : NULL;
    if (r->known && r->spki_len > 0 && r->null)
        return r;
    leaf_reader_free(r);
    ERR_clear_error();
    return NULL;
}

void leaf_reader_free(struct leaf_reader *r)
{
    if (r == NULL)
        return;
    EVP_PKEY_free(r->key);
    EVP_PKEY_free(r->known);
    OPENSSL_free(r->spki);
    if (r->null)
        OSSL_PROVIDER_unload(r->null);
    OSSL_LIB_CTX_free(r->none);
    free(r);
}

/* Takes what i2d_… made over. */
static bool is(unsigned char *made, int n, const void *p, size_t len)
{
    bool same = n >= 0 && (size_t)n == len && memcmp(made, p, len) == 0;
    OPENSSL_free(made);
    return same;
}

/* The key in it is the reader's, written as it was given to the signer. */
static bool is_for(const struct leaf_reader *r, const X509 *x)
{
    unsigned char *made = NULL;
    int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &made);
    return is(made, n, r->spki, (size_t)r->spki_len);
}

static bool encodes_to(X509 *x, struct slice der)
{
    unsigned char *made = NULL;
    int n = i2d_X509(x, &made);
    return is(made, n, der.p, der.n);
}

/* x: empty, and taken. What follows the certificate encodes_to() notices. */
static X509 *parse(X509 *x, struct slice der)
{
    const unsigned char *at = (const unsigned char *)der.p;
    if (x && d2i_X509(&x, &at, (long)der.n))
        return x;
    X509_free(x);
    return NULL;
}

X509 *leaf_reader_read(struct leaf_reader *r, struct slice der)
{
    X509 *x = parse(X509_new_ex(r->none, NULL), der);
    bool good = x != NULL;
    if (x && is_for(r, x)) {
        good = X509_set_pubkey(x, r->known) == 1;
    } else if (x) { /* another key, or this one in a form of its own: by the long way */
        X509_free(x);
        x = parse(X509_new(), der);
        good = x && X509_check_private_key(x, r->key) == 1;
    }
    if (!good || !encodes_to(x, der)) {
        X509_free(x);
        x = NULL;
    }
    if (x) /* reads the extensions now, as a context without algorithms leaves an error of its own
            */
        X509_check_purpose(x, -1, 0);
    ERR_clear_error();
    return x;
}
