/* The proofs that MySQL's and MariaDB's servers know of a password. */
#include "mysql_proof.h"

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

enum { HALF = 32, HASH_MAX = 64 };

/* The hash of up to three texts after one another. */
static int hash(const EVP_MD *md, struct slice a, struct slice b, struct slice c,
                unsigned char to[HASH_MAX])
{
    EVP_MD_CTX *x = EVP_MD_CTX_new();
    int r = x && EVP_DigestInit_ex(x, md, NULL) == 1 && EVP_DigestUpdate(x, a.p, a.n) == 1 &&
                    EVP_DigestUpdate(x, b.p, b.n) == 1 && EVP_DigestUpdate(x, c.p, c.n) == 1 &&
                    EVP_DigestFinal_ex(x, to, NULL) == 1
                ? 0
                : -1;
    EVP_MD_CTX_free(x);
    return r;
}

/* H(password) XOR H of nonce and H(H(password)), which stand in an order of the method's own. */
static int xored(const EVP_MD *md, bool nonce_first, struct slice password, struct slice nonce,
                 struct buf *out)
{
    unsigned char once[HASH_MAX], twice[HASH_MAX], all[HASH_MAX];
    size_t n = (size_t)EVP_MD_get_size(md);
    const struct slice none = SLICE(""), second = {(const char *)twice, n};
    int r =
        hash(md, password, none, none, once) < 0 ||
                hash(md, (struct slice){(const char *)once, n}, none, none, twice) < 0 ||
                hash(md, nonce_first ? nonce : second, nonce_first ? second : nonce, none, all) < 0
            ? -1
            : 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        all[i] ^= once[i];
    r = r == 0 ? buf_append(out, all, n) : -1;
    OPENSSL_cleanse(once, sizeof once);
    OPENSSL_cleanse(twice, sizeof twice);
    return r;
}

/* ---- Ed25519 with a key that OpenSSL takes no seed for ----
 *
 * A multiple of the base point comes from X25519, whose base point is the same in another form:
 * u = (1 + y) / (1 - y). It leaves open which of two points with that y it is. There is one pair of
 * answers, for the key and for the nonce, with which the signature verifies. */

struct scalars {
    unsigned char key[HALF], nonce[HALF]; /* clamped, little-endian */
    unsigned char key_y[HALF], nonce_y[HALF];
};

static void clamp(unsigned char s[HALF])
{
    s[0] &= 248;
    s[31] &= 63;
    s[31] |= 64;
}

/* (u - 1) / (u + 1) */
static int to_y(BN_CTX *x, const unsigned char u[HALF], unsigned char y[HALF])
{
    BIGNUM *p = BN_CTX_get(x), *a = BN_CTX_get(x), *b = BN_CTX_get(x);
    return b && BN_set_word(p, 1) == 1 && BN_lshift(p, p, 255) == 1 && BN_sub_word(p, 19) == 1 &&
                   BN_lebin2bn(u, HALF, a) && BN_copy(b, a) && BN_add_word(b, 1) == 1 &&
                   BN_sub_word(a, 1) == 1 && BN_mod_inverse(b, b, p, x) &&
                   BN_mod_mul(a, a, b, p, x) == 1 && BN_bn2lebinpad(a, y, HALF) == HALF
               ? 0
               : -1;
}

static int multiply(BN_CTX *x, const unsigned char scalar[HALF], unsigned char y[HALF])
{
    unsigned char u[HALF];
    size_t n = HALF;
    EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, scalar, HALF);
    int r = k && EVP_PKEY_get_raw_public_key(k, u, &n) == 1 && n == HALF ? to_y(x, u, y) : -1;
    EVP_PKEY_free(k);
    return r;
}

static bool verifies(const unsigned char point[HALF], const unsigned char signature[2 * HALF],
                     struct slice text)
{
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, point, HALF);
    EVP_MD_CTX *x = EVP_MD_CTX_new();
    bool is = k && x && EVP_DigestVerifyInit(x, NULL, NULL, NULL, k) == 1 &&
              EVP_DigestVerify(x, signature, (size_t)2 * HALF, (const unsigned char *)text.p,
                               text.n) == 1;
    EVP_MD_CTX_free(x);
    EVP_PKEY_free(k);
    return is;
}

/* nonce + H(nonce's point, key's point, text) * key, by the group's order. */
static int answer(BN_CTX *x, const struct scalars *s, const unsigned char points[2 * HALF],
                  struct slice text, unsigned char to[HALF])
{
    unsigned char h[HASH_MAX];
    BIGNUM *order = NULL, *a = BN_CTX_get(x), *r = BN_CTX_get(x), *e = BN_CTX_get(x);
    int good =
        e &&
        BN_hex2bn(&order, "1000000000000000000000000000000014DEF9DEA2F79CD65812631A5CF5D3ED") > 0 &&
        hash(EVP_sha512(), (struct slice){(const char *)points, (size_t)2 * HALF}, text, SLICE(""),
             h) == 0 &&
        BN_lebin2bn(h, sizeof h, e) && BN_lebin2bn(s->key, HALF, a) &&
        BN_lebin2bn(s->nonce, HALF, r) && BN_mod_mul(a, a, e, order, x) == 1 &&
        BN_mod_add(r, r, a, order, x) == 1 && BN_bn2lebinpad(r, to, HALF) == HALF;
    if (e) {
        BN_clear(a);
        BN_clear(r);
    }
    BN_free(order);
    return good ? 0 : -1;
}

static int try_signs(BN_CTX *x, const struct scalars *s, struct slice text, struct buf *out)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned char points[2 * HALF], signature[2 * HALF];
        memcpy(points, s->nonce_y, HALF);
        memcpy(points + HALF, s->key_y, HALF);
        points[HALF - 1] |= (unsigned char)(i & 1 ? 128 : 0);
        points[2 * HALF - 1] |= (unsigned char)(i & 2 ? 128 : 0);
        memcpy(signature, points, HALF);
        BN_CTX_start(x);
        int r = answer(x, s, points, text, signature + HALF);
        BN_CTX_end(x);
        if (r == 0 && verifies(points + HALF, signature, text))
            return buf_append(out, signature, sizeof signature);
    }
    return -1;
}

int mysql_ed25519(struct slice password, struct slice text, struct buf *out)
{
    struct scalars s;
    unsigned char all[HASH_MAX];
    BN_CTX *x = BN_CTX_secure_new();
    int r = -1;
    if (x && hash(EVP_sha512(), password, SLICE(""), SLICE(""), all) == 0 &&
        RAND_priv_bytes(s.nonce, HALF) == 1) {
        memcpy(s.key, all, HALF);
        clamp(s.key);
        clamp(s.nonce);
        BN_CTX_start(x);
        if (multiply(x, s.key, s.key_y) == 0 && multiply(x, s.nonce, s.nonce_y) == 0)
            r = try_signs(x, &s, text, out);
        BN_CTX_end(x);
    }
    BN_CTX_free(x);
    OPENSSL_cleanse(&s, sizeof s);
    OPENSSL_cleanse(all, sizeof all);
    return r;
}

int mysql_proof(struct slice password, const char *auth, uint32_t scheme, struct slice text,
                struct buf *out, struct err *err)
{
    bool native = strcmp(auth, "native") == 0, only = strcmp(auth, "ed25519") == 0;
    int r;
    if (password.n == 0 || password.n > MYSQL_PASSWORD_MAX || memchr(password.p, 0, password.n))
        return err_set(err, ERR_DENIED, "a password has 1 to %d bytes and no NUL",
                       MYSQL_PASSWORD_MAX);
    if ((scheme == MYSQL_NATIVE && !native) || (scheme != MYSQL_ED25519 && only))
        return err_set(err, ERR_DENIED,
                       "the server wants a weaker login than 'auth: %s' of its declaration", auth);
    if (scheme == MYSQL_CLEARTEXT && native)
        return err_set(err, ERR_DENIED,
                       "the server wants the password itself, which leaves the vault with "
                       "'auth: caching_sha2' alone");
    if (scheme == MYSQL_NATIVE && text.n == MYSQL_NONCE)
        r = xored(EVP_sha1(), true, password, text, out);
    else if (scheme == MYSQL_SHA2 && text.n == MYSQL_NONCE)
        r = xored(EVP_sha256(), false, password, text, out);
    else if (scheme == MYSQL_ED25519 && text.n == MYSQL_LONG_NONCE)
        r = mysql_ed25519(password, text, out);
    else if (scheme == MYSQL_CLEARTEXT && text.n == 0)
        r = buf_append_slice(out, password);
    else
        return err_set(err, ERR_DENIED, "it does not sign that");
    return r < 0 ? err_set(err, ERR_INTERNAL, "the proof cannot be made") : 0;
}
