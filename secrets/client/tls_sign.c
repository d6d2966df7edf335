/* Packs certificates and key into one value and signs with it. A text is checked first, so that the
 * key signs nothing but what a handshake does. */
#include "tls_sign.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <string.h>

enum { CHAIN_MAX = 16, RSA_BITS_MIN = 2048 };

static const struct {
    uint16_t scheme;
    const char *type, *digest;
    bool pss;
} schemes[] = {
    {0x0403, "EC", "SHA2-256", false},  {0x0503, "EC", "SHA2-384", false},
    {0x0603, "EC", "SHA2-512", false},  {0x0804, "RSA", "SHA2-256", true},
    {0x0805, "RSA", "SHA2-384", true},  {0x0806, "RSA", "SHA2-512", true},
    {0x0401, "RSA", "SHA2-256", false}, {0x0501, "RSA", "SHA2-384", false},
    {0x0601, "RSA", "SHA2-512", false}, {0x0807, "ED25519", "", false},
};

uint16_t tls_scheme(const EVP_PKEY *key, const char *digest, bool pss)
{
    EVP_MD *md = digest && *digest ? EVP_MD_fetch(NULL, digest, NULL) : NULL;
    uint16_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(schemes) && found == 0; i++)
        if (EVP_PKEY_is_a(key, schemes[i].type) && schemes[i].pss == pss &&
            (*schemes[i].digest ? md && EVP_MD_is_a(md, schemes[i].digest) : md == NULL))
            found = schemes[i].scheme;
    EVP_MD_free(md);
    return found;
}

/* Nobody is there to ask. */
static int no_passphrase(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
    return -1;
}

static BIO *bio_of(struct slice s)
{
    return s.n <= INT_MAX ? BIO_new_mem_buf(s.p, (int)s.n) : NULL;
}

static EVP_PKEY *read_key(struct slice pem)
{
    BIO *bio = bio_of(pem);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    return key;
}

/* ---- the value: certificates, a NUL, the key ---- */

/* Each is read and written again, so that a private key among them stays behind. */
static int copy_certificates(struct slice from, BIO *to, X509 **first, struct err *err)
{
    BIO *bio = bio_of(from);
    int n = 0, bad = 0;
    X509 *x;
    while (bio && !bad && (x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL) {
        bad = ++n > CHAIN_MAX || PEM_write_bio_X509(to, x) != 1;
        if (n == 1)
            *first = x;
        else
            X509_free(x);
    }
    BIO_free(bio);
    ERR_clear_error();
    if (n == 0)
        return err_set(err, ERR_PARSE, "its certificate is not one in PEM");
    return bad ? err_set(err, ERR_PARSE, "it has more than %d certificates", CHAIN_MAX) : 0;
}

static int check_pair(X509 *x, EVP_PKEY *key, struct err *err)
{
    if (key == NULL)
        return err_set(err, ERR_PARSE, "its key is not a private key in PEM without a passphrase");
    if (X509_check_private_key(x, key) != 1) {
        ERR_clear_error();
        return err_set(err, ERR_PARSE, "its key is not that of its first certificate");
    }
    bool known = EVP_PKEY_is_a(key, "EC") || EVP_PKEY_is_a(key, "ED25519") ||
                 (EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) >= RSA_BITS_MIN);
    return known ? 0
                 : err_set(err, ERR_PARSE,
                           "its key is neither RSA of 2048 bits or more, nor EC, nor Ed25519");
}

struct secret *tls_pack(struct slice certificates, struct slice key, struct err *err)
{
    BIO *out = BIO_new(BIO_s_mem());
    X509 *first = NULL;
    EVP_PKEY *pkey = NULL;
    struct secret *s = NULL;
    char *text;
    if (out && copy_certificates(certificates, out, &first, err) == 0) {
        pkey = read_key(key);
        long n = BIO_get_mem_data(out, &text);
        if (check_pair(first, pkey, err) == 0 && n > 0 && (size_t)n + 1 + key.n <= SECRET_MAX &&
            (s = secret_alloc((size_t)n + 1 + key.n)) != NULL) {
            unsigned char *at = secret_bytes(s);
            memcpy(at, text, (size_t)n);
            at[n] = 0;
            memcpy(at + n + 1, key.p, key.n);
        } else if (err->text[0] == 0) {
            err_set(err, ERR_LIMIT, "its certificates are too long");
        }
    }
    EVP_PKEY_free(pkey);
    X509_free(first);
    BIO_free(out);
    return s;
}

struct slice tls_certificates(struct slice value)
{
    ssize_t nul = slice_find(value, 0);
    return (struct slice){value.p, nul < 0 ? 0 : (size_t)nul};
}

/* ---- what is signed ---- */

/* 64 spaces, this context, a NUL, and the hash of the handshake. */
static bool is_tls13(struct slice text)
{
    static const char context[] = "TLS 1.3, client CertificateVerify";
    enum { PAD = 64 };
    size_t head = PAD + sizeof context; /* its NUL is part of it */
    for (size_t i = 0; i < PAD && i < text.n; i++)
        if (text.p[i] != ' ')
            return false;
    return (text.n == head + 32 || text.n == head + 48) &&
           memcmp(text.p + PAD, context, sizeof context) == 0;
}

/* All messages from ClientHello to ClientKeyExchange, each whole: type, length of three bytes. */
static bool is_tls12(struct slice text)
{
    enum { CLIENT_HELLO = 1, SERVER_HELLO = 2, CLIENT_KEY_EXCHANGE = 16 };
    unsigned count = 0, type = 0;
    while (text.n >= 4) {
        const unsigned char *p = (const unsigned char *)text.p;
        size_t n = ((size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]) + 4;
        type = p[0];
        if (n > text.n || (count == 0 && type != CLIENT_HELLO) ||
            (count == 1 && type != SERVER_HELLO))
            return false;
        text = (struct slice){text.p + n, text.n - n};
        count++;
    }
    return text.n == 0 && count >= 4 && type == CLIENT_KEY_EXCHANGE;
}

bool tls_is_signed_text(struct slice text)
{
    return is_tls13(text) || is_tls12(text);
}

int tls_sign(struct slice value, uint16_t scheme, struct slice text, struct buf *out,
             struct err *err)
{
    size_t n = TLS_SIGNATURE_MAX, i = 0, skip = tls_certificates(value).n + 1;
    while (i < ARRAY_LEN(schemes) && schemes[i].scheme != scheme)
        i++;
    if (i == ARRAY_LEN(schemes) || !tls_is_signed_text(text) || skip >= value.n)
        return err_set(err, ERR_DENIED, "that is nothing which a handshake signs");
    EVP_PKEY *key = read_key((struct slice){value.p + skip, value.n - skip});
    EVP_MD_CTX *md = key && EVP_PKEY_is_a(key, schemes[i].type) ? EVP_MD_CTX_new() : NULL;
    const char *digest = *schemes[i].digest ? schemes[i].digest : NULL;
    EVP_PKEY_CTX *p = NULL;
    unsigned char *to = buf_reserve(out, n);
    bool ok = md && to && EVP_DigestSignInit_ex(md, &p, digest, NULL, NULL, key, NULL) == 1;
    if (ok && schemes[i].pss)
        ok = EVP_PKEY_CTX_set_rsa_padding(p, RSA_PKCS1_PSS_PADDING) > 0 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(p, RSA_PSS_SALTLEN_DIGEST) > 0;
    ok = ok && EVP_DigestSign(md, to, &n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    EVP_PKEY_free(key);
    ERR_clear_error();
    if (!ok)
        return err_set(err, ERR_INTERNAL, "signing failed");
    buf_commit(out, n);
    return 0;
}
