/* Computes proofs with OpenSSL, and wipes what lies between. */
#include "scram_proof.h"

#include "base64.h"
#include "scram_text.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>

enum { MD5_BYTES = 16, MD5_DIGITS = 32, MD5_SALT = 4, MD5_INPUT_MAX = 8192 };

static bool hmac(const unsigned char *key, struct slice text, unsigned char *to)
{
    unsigned n = 0;
    return HMAC(EVP_sha256(), key, SCRAM_HASH, (const unsigned char *)text.p, text.n, to, &n) &&
           n == SCRAM_HASH;
}

/* The client's proof and the server's signature of the text (RFC 5802 3). */
static int sign(const struct scram_pair *k, struct slice text, struct buf *out)
{
    unsigned char stored[SCRAM_HASH], signature[SCRAM_HASH], made[SCRAM_SIGNED];
    int r = -1;
    if (SHA256(k->client, SCRAM_HASH, stored) != NULL && hmac(stored, text, signature) &&
        hmac(k->server, text, made + SCRAM_HASH)) {
        for (size_t i = 0; i < SCRAM_HASH; i++)
            made[i] = k->client[i] ^ signature[i];
        r = buf_append(out, made, sizeof made);
    }
    OPENSSL_cleanse(stored, sizeof stored);
    OPENSSL_cleanse(signature, sizeof signature);
    ERR_clear_error();
    return r;
}

int scram_compute(struct slice password, struct slice salt, uint32_t iterations, struct slice text,
                  struct buf *out)
{
    struct scram_pair k;
    int r = scram_keys_make(password, salt, iterations, &k) < 0 ? -1 : sign(&k, text, out);
    OPENSSL_cleanse(&k, sizeof k);
    return r;
}

int scram_proof(struct scram_keys *keys, struct slice password, struct slice text, int64_t now,
                struct buf *out, struct err *err)
{
    struct scram_parts parts;
    struct scram_pair k;
    unsigned char salt[SCRAM_SALT_MAX];
    bool made;
    if (scram_text_read(text, &parts, err) < 0)
        return -1;
    ssize_t n = base64_read(parts.salt, salt, sizeof salt);
    if (n <= 0)
        return err_set(err, ERR_INTERNAL, "the proof could not be made");
    int r = scram_keys_get(keys, password, (struct slice){(const char *)salt, (size_t)n},
                           parts.iterations, now, &k, &made, err);
    if (r == 0 && sign(&k, text, out) < 0)
        r = err_set(err, ERR_INTERNAL, "the proof could not be made");
    OPENSSL_cleanse(&k, sizeof k);
    return r;
}

/* ---- md5 ---- */

static bool md5_hex(const unsigned char *p, size_t n, char *to)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned got = 0;
    bool ok = EVP_Digest(p, n, hash, &got, EVP_md5(), NULL) == 1 && got == MD5_BYTES;
    for (size_t i = 0; ok && i < MD5_BYTES; i++) {
        to[2 * i] = digits[hash[i] >> 4];
        to[2 * i + 1] = digits[hash[i] & 15];
    }
    OPENSSL_cleanse(hash, sizeof hash);
    return ok;
}

int scram_md5(struct slice password, struct slice user, struct slice salt, struct buf *out,
              struct err *err)
{
    struct buf in;
    char hex[MD5_DIGITS + MD5_SALT];
    buf_init_wiped(&in, MD5_INPUT_MAX);
    int r = -1;
    if (salt.n != MD5_SALT) {
        buf_free(&in);
        return err_set(err, ERR_DENIED, "that is not the salt of an md5 login");
    }
    if (buf_append_slice(&in, password) == 0 && buf_append_slice(&in, user) == 0 &&
        md5_hex(buf_data(&in), buf_len(&in), hex)) {
        memcpy(hex + MD5_DIGITS, salt.p, MD5_SALT);
        if (md5_hex((const unsigned char *)hex, sizeof hex, hex))
            r = buf_append_str(out, "md5") < 0 ? -1 : buf_append(out, hex, MD5_DIGITS);
    }
    buf_free(&in);
    OPENSSL_cleanse(hex, sizeof hex);
    ERR_clear_error();
    return r < 0 ? err_set(err, ERR_INTERNAL, "the proof could not be made (md5)") : 0;
}
