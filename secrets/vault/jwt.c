/* Signs header and claims with RS256 or ES256. OpenSSL's ECDSA signature is taken apart into the
 * two halves that a JWT has (RFC 7518 3.4). */
#include "jwt.h"

#include "base64.h"

#include <jansson.h>
#include <limits.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

enum { ES256_HALF = 32, SIGNATURE_MAX = 1024 };

/* Nobody is there to ask. */
static int no_passphrase(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
    return -1;
}

static EVP_PKEY *read_key(struct slice pem, bool rsa, struct err *err)
{
    BIO *bio = pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (key == NULL) {
        err_set(err, ERR_PARSE, "its key is not a private key in PEM without a passphrase");
        return NULL;
    }
    bool fits = rsa ? EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) >= 2048
                    : EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_bits(key) == 256;
    if (!fits) {
        err_set(err, ERR_PARSE, "its key is not %s",
                rsa ? "an RSA key of 2048 bits or more" : "a key on P-256");
        EVP_PKEY_free(key);
        return NULL;
    }
    return key;
}

/* RFC 7518 3.4: both halves, each as long as the curve. */
static int put_ecdsa(struct buf *out, const unsigned char *der, size_t n)
{
    unsigned char raw[2 * ES256_HALF];
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
    bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, ES256_HALF) == ES256_HALF &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + ES256_HALF, ES256_HALF) == ES256_HALF;
    ECDSA_SIG_free(sig);
    return ok ? base64url_append(out, (struct slice){(char *)raw, sizeof raw}) : -1;
}

static int put_signature(struct buf *out, struct slice text, EVP_PKEY *key, bool rsa)
{
    unsigned char sig[SIGNATURE_MAX];
    size_t n = sizeof sig;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(md, sig, &n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    if (!ok || buf_append(out, ".", 1) < 0)
        return -1;
    return rsa ? base64url_append(out, (struct slice){(char *)sig, n}) : put_ecdsa(out, sig, n);
}

int jwt_sign(struct buf *out, const char *algorithm, const char *key_id, struct slice claims,
             struct slice pem, struct err *err)
{
    bool rsa = strcmp(algorithm, "RS256") == 0;
    struct buf text;
    json_t *head = json_pack("{s:s, s:s}", "alg", rsa ? "RS256" : "ES256", "typ", "JWT");
    if (head && key_id[0])
        json_object_set_new(head, "kid", json_string(key_id));
    char *json = head ? json_dumps(head, JSON_COMPACT) : NULL;
    EVP_PKEY *key = read_key(pem, rsa, err);
    int r = -1;
    buf_init(&text, 16384);
    if (json && key && base64url_append(&text, slice_str(json)) == 0 &&
        buf_append(&text, ".", 1) == 0 && base64url_append(&text, claims) == 0 &&
        buf_append_slice(out, buf_slice(&text)) == 0)
        r = put_signature(out, buf_slice(&text), key, rsa);
    if (r < 0 && key)
        err_set(err, ERR_INTERNAL, "signing failed");
    buf_free(&text);
    EVP_PKEY_free(key);
    free(json);
    json_decref(head);
    return r;
}
