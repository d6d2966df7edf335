/* A certificate that nobody signs: who trusts it was given it, over a channel of its own. The key
 * never leaves the process. */
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "kube_review.h"

enum { DAYS = 90, NAME_MAX_BYTES = 253 };

static int put_extension(X509 *x, int nid, const char *text)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, text);
    int ok = e && X509_add_ext(x, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static int put_serial(X509 *x)
{
    unsigned char bytes[16];
    BIGNUM *n = RAND_bytes(bytes, sizeof bytes) == 1 ? BN_bin2bn(bytes, sizeof bytes, NULL) : NULL;
    int ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
    BN_free(n);
    return ok;
}

/* The common name has 64 bytes at most, and clients look at the other one. */
static int fill(X509 *x, EVP_PKEY *key, const char *name)
{
    char san[NAME_MAX_BYTES + 8];
    X509_NAME *subject = X509_get_subject_name(x);
    snprintf(san, sizeof san, "DNS:%s", name);
    return X509_set_version(x, 2) && put_serial(x) &&
           X509_gmtime_adj(X509_getm_notBefore(x), -300) &&
           X509_gmtime_adj(X509_getm_notAfter(x), (long)DAYS * 86400) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                      (const unsigned char *)"durward-kubernetes", -1, -1, 0) &&
           X509_set_issuer_name(x, subject) && X509_set_pubkey(x, key) &&
           put_extension(x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           put_extension(x, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
           put_extension(x, NID_ext_key_usage, "serverAuth") &&
           put_extension(x, NID_subject_alt_name, san) && X509_sign(x, key, EVP_sha256()) > 0;
}

static char *as_pem(X509 *x)
{
    char *p = NULL, *text = NULL;
    BIO *b = BIO_new(BIO_s_mem());
    long n = b && PEM_write_bio_X509(b, x) == 1 ? BIO_get_mem_data(b, &p) : 0;
    if (n > 0)
        text = slice_dup((struct slice){p, (size_t)n});
    BIO_free(b);
    return text;
}

/* It goes into the text of an extension, so it is a name of DNS and nothing else. */
static bool name_ok(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= NAME_MAX_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n;
}

char *kube_cert(SSL_CTX *tls, const char *name, struct err *err)
{
    if (!name_ok(name)) {
        err_set(err, ERR_PARSE, "'%.80s' is not a name of DNS", name);
        return NULL;
    }
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    char *text = NULL;
    if (key && x && fill(x, key, name) && SSL_CTX_use_certificate(tls, x) == 1 &&
        SSL_CTX_use_PrivateKey(tls, key) == 1)
        text = as_pem(x);
    if (text == NULL)
        err_set(err, ERR_INTERNAL, "cannot make a certificate");
    X509_free(x);
    EVP_PKEY_free(key);
    return text;
}
