/* Makes the host keys of a sandbox's brokers, and writes both halves as SSH does. */
#include "host_key.h"

#include "base64.h"
#include "ssh_wire.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/obj_mac.h>
#include <string.h>

enum { BLOB_MAX = 768, PAD = 8, POINT = 65, HALF = 32 };

/* Of either kind, as its private half is written behind the public one. */
struct pair {
    struct slice type;
    unsigned char public[POINT], private[HALF];
    size_t n_public;
};

int host_key_make(struct slice seed, unsigned char key[HOST_KEY_SEED])
{
    static const unsigned char label[] = "durward: host key of brokers";
    unsigned n = 0;
    return HMAC(EVP_sha256(), seed.p, (int)seed.n, label, sizeof label - 1, key, &n) &&
                   n == HOST_KEY_SEED
               ? 0
               : -1;
}

static int make_ed25519(const unsigned char *key, struct pair *ret)
{
    EVP_PKEY *p = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, HOST_KEY_SEED);
    *ret = (struct pair){.type = SLICE_INIT("ssh-ed25519"), .n_public = 32};
    int r =
        p && EVP_PKEY_get_raw_public_key(p, ret->public, &ret->n_public) == 1 && ret->n_public == 32
            ? 0
            : -1;
    memcpy(ret->private, key, HALF);
    EVP_PKEY_free(p);
    return r;
}

/* A number below the order from 64 bytes, so that each is as likely as any. */
static int make_ecdsa(const unsigned char *key, struct pair *ret)
{
    static const unsigned char label[] = "durward: host key of brokers, ECDSA";
    unsigned char wide[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    *ret = (struct pair){.type = SLICE_INIT("ecdsa-sha2-nistp256")};
    EC_GROUP *g = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    EC_POINT *q = g ? EC_POINT_new(g) : NULL;
    BIGNUM *d = BN_new(), *most = BN_new();
    BN_CTX *ctx = BN_CTX_secure_new();
    bool ok = q && d && most && ctx &&
              HMAC(EVP_sha512(), key, HOST_KEY_SEED, label, sizeof label - 1, wide, &n) &&
              BN_bin2bn(wide, (int)n, d) && BN_sub(most, EC_GROUP_get0_order(g), BN_value_one()) &&
              BN_mod(d, d, most, ctx) && BN_add_word(d, 1) &&
              EC_POINT_mul(g, q, d, NULL, NULL, ctx) && BN_bn2binpad(d, ret->private, HALF) == HALF;
    if (ok)
        ret->n_public = EC_POINT_point2oct(g, q, POINT_CONVERSION_UNCOMPRESSED, ret->public,
                                           sizeof ret->public, ctx);
    OPENSSL_cleanse(wide, sizeof wide);
    BN_clear_free(d);
    BN_free(most);
    BN_CTX_free(ctx);
    EC_POINT_free(q);
    EC_GROUP_free(g);
    return ok && ret->n_public == POINT ? 0 : -1;
}

static int make(const unsigned char *key, enum host_key_kind kind, struct pair *ret)
{
    return kind == HOST_KEY_ED25519 ? make_ed25519(key, ret) : make_ecdsa(key, ret);
}

static int put_public(const struct pair *p, struct buf *b)
{
    return ssh_wire_put_string(b, p->type) < 0 ||
                   (p->n_public == POINT && ssh_wire_put_string(b, SLICE("nistp256")) < 0)
               ? -1
               : ssh_wire_put_string(b, (struct slice){(const char *)p->public, p->n_public});
}

int host_key_public(const unsigned char key[HOST_KEY_SEED], enum host_key_kind kind,
                    struct buf *out)
{
    struct pair p;
    struct buf blob;
    buf_init(&blob, BLOB_MAX);
    int r = make(key, kind, &p) < 0 || put_public(&p, &blob) < 0 ||
                    buf_append_slice(out, p.type) < 0 || buf_append_str(out, " ") < 0 ||
                    base64_append(out, buf_slice(&blob)) < 0
                ? -1
                : 0;
    OPENSSL_cleanse(&p, sizeof p);
    buf_free(&blob);
    return r;
}

/* The part that a passphrase would encrypt. */
static int put_private(const struct pair *p, struct buf *b)
{
    unsigned char pad = 0;
    const struct slice half = {(const char *)p->private, HALF};
    int r = ssh_wire_put_u32(b, 1) < 0 || ssh_wire_put_u32(b, 1) < 0 || put_public(p, b) < 0;
    if (p->n_public == POINT)
        r |= ssh_wire_put_mpint(b, half) < 0;
    else
        r |= ssh_wire_put_u32(b, HALF + 32) < 0 || buf_append_slice(b, half) < 0 ||
             buf_append(b, p->public, 32) < 0;
    if (r || ssh_wire_put_string(b, SLICE("")) < 0)
        return -1;
    while (buf_len(b) % PAD != 0)
        if (ssh_wire_put_u8(b, ++pad) < 0)
            return -1;
    return 0;
}

int host_key_private(const unsigned char key[HOST_KEY_SEED], enum host_key_kind kind,
                     struct buf *out)
{
    static const char magic[] = "openssh-key-v1"; /* its NUL is part of it */
    struct pair p;
    struct buf half, private, blob;
    buf_init(&half, BLOB_MAX);
    buf_init_wiped(&private, BLOB_MAX);
    buf_init_wiped(&blob, BLOB_MAX);
    int r = make(key, kind, &p) < 0 || put_public(&p, &half) < 0 || put_private(&p, &private) < 0 ||
                    buf_append(&blob, magic, sizeof magic) < 0 ||
                    ssh_wire_put_string(&blob, SLICE("none")) < 0 ||
                    ssh_wire_put_string(&blob, SLICE("none")) < 0 ||
                    ssh_wire_put_string(&blob, SLICE("")) < 0 || ssh_wire_put_u32(&blob, 1) < 0 ||
                    ssh_wire_put_string(&blob, buf_slice(&half)) < 0 ||
                    ssh_wire_put_string(&blob, buf_slice(&private)) < 0 ||
                    buf_append_str(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n") < 0 ||
                    base64_append(out, buf_slice(&blob)) < 0 ||
                    buf_append_str(out, "\n-----END OPENSSH PRIVATE KEY-----\n") < 0
                ? -1
                : 0;
    OPENSSL_cleanse(&p, sizeof p);
    buf_free(&half);
    buf_free(&private);
    buf_free(&blob);
    return r;
}
