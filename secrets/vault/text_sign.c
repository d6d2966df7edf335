/* Computes HMACs and the signatures of RFC 9421 with OpenSSL. For the latter it checks that the
 * text is a signature base. */
#include "text_sign.h"

#include "base64.h"

#include <limits.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

enum { KEY_MAX = 8192, SIGNATURE_MAX = 1024, HALF_MAX = 48 };

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int decode(struct buf *out, struct slice key, const char *encoding)
{
    if (strcmp(encoding, "base64") == 0)
        return base64_decode(out, key);
    if (strcmp(encoding, "hex") != 0)
        return buf_append_slice(out, key);
    for (size_t i = 0; i + 1 < key.n; i += 2) {
        int high = hex_digit(key.p[i]), low = hex_digit(key.p[i + 1]);
        unsigned char byte = (unsigned char)(high * 16 + low);
        if (high < 0 || low < 0 || buf_append(out, &byte, 1) < 0)
            return -1;
    }
    return key.n % 2 ? -1 : 0;
}

int text_sign_hmac(struct slice key, const char *encoding, const char *algorithm, struct slice text,
                   struct buf *out, struct err *err)
{
    const EVP_MD *md = strcmp(algorithm, "sha1") == 0     ? EVP_sha1()
                       : strcmp(algorithm, "sha512") == 0 ? EVP_sha512()
                                                          : EVP_sha256();
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct buf raw;
    buf_init_wiped(&raw, KEY_MAX);
    int r = decode(&raw, key, encoding) < 0 || buf_len(&raw) == 0
                ? err_set(err, ERR_PARSE, "its key is not %s", encoding)
                : 0;
    if (r == 0 && (HMAC(md, buf_data(&raw), (int)buf_len(&raw), (const unsigned char *)text.p,
                        text.n, mac, &n) == NULL ||
                   buf_append(out, mac, n) < 0))
        r = err_set(err, ERR_INTERNAL, "signing failed");
    buf_free(&raw);
    return r;
}

/* ---- RFC 9421 ---- */

/* 2.5: the last line, and the one without a line's end. */
static bool is_base(struct slice text)
{
    static const char last[] = "\"@signature-params\": (";
    size_t at = text.n;
    while (at > 0 && text.p[at - 1] != '\n')
        at--;
    return slice_starts((struct slice){text.p + at, text.n - at}, slice_str(last));
}

static const struct {
    const char *name, *type, *group;
    const EVP_MD *(*digest)(void);
    size_t half; /* of an ECDSA signature */
    bool pss;
} ways[] = {{"ed25519", "ED25519", NULL, NULL, 0, false},
            {"ecdsa-p256-sha256", "EC", "prime256v1", EVP_sha256, 32, false},
            {"ecdsa-p384-sha384", "EC", "secp384r1", EVP_sha384, 48, false},
            {"rsa-v1_5-sha256", "RSA", NULL, EVP_sha256, 0, false},
            {"rsa-pss-sha512", "RSA", NULL, EVP_sha512, 0, true}};

/* Nobody is there to ask. */
static int no_passphrase(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
    return -1;
}

static bool key_fits(const EVP_PKEY *key, size_t way)
{
    char group[32] = "";
    size_t n;
    if (key == NULL || !EVP_PKEY_is_a(key, ways[way].type))
        return false;
    if (strcmp(ways[way].type, "RSA") == 0)
        return EVP_PKEY_get_bits(key) >= 2048;
    return ways[way].group == NULL || (EVP_PKEY_get_group_name(key, group, sizeof group, &n) == 1 &&
                                       strcmp(group, ways[way].group) == 0);
}

/* 3.3.4: both halves, each as long as the curve. */
static int put_halves(struct buf *out, const unsigned char *der, size_t n, size_t half)
{
    unsigned char raw[2 * HALF_MAX];
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
    bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, (int)half) == (int)half &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + half, (int)half) == (int)half;
    ECDSA_SIG_free(sig);
    return ok ? buf_append(out, raw, 2 * half) : -1;
}

static int sign(EVP_PKEY *key, size_t way, struct slice text, struct buf *out)
{
    unsigned char sig[SIGNATURE_MAX];
    size_t n = sizeof sig;
    EVP_PKEY_CTX *p = NULL;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    const EVP_MD *digest = ways[way].digest ? ways[way].digest() : NULL;
    bool ok = md && EVP_DigestSignInit(md, &p, digest, NULL, key) == 1;
    if (ok && ways[way].pss)
        ok = EVP_PKEY_CTX_set_rsa_padding(p, RSA_PKCS1_PSS_PADDING) > 0 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(p, RSA_PSS_SALTLEN_DIGEST) > 0;
    ok = ok && EVP_DigestSign(md, sig, &n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    if (!ok)
        return -1;
    return ways[way].half ? put_halves(out, sig, n, ways[way].half) : buf_append(out, sig, n);
}

int text_sign_http(struct slice pem, const char *algorithm, struct slice text, struct buf *out,
                   struct err *err)
{
    size_t way = 0;
    if (!is_base(text))
        return err_set(err, ERR_DENIED, "that is not the base of a message signature");
    if (strcmp(algorithm, "hmac-sha256") == 0)
        return text_sign_hmac(pem, "base64", "sha256", text, out, err);
    while (way < ARRAY_LEN(ways) && strcmp(ways[way].name, algorithm) != 0)
        way++;
    BIO *bio =
        way < ARRAY_LEN(ways) && pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    int r;
    BIO_free(bio);
    if (way == ARRAY_LEN(ways) || !key_fits(key, way))
        r = err_set(err, ERR_PARSE, "its key is not a private key in PEM for %s", algorithm);
    else
        r = sign(key, way, text, out) < 0 ? err_set(err, ERR_INTERNAL, "signing failed") : 0;
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r;
}
