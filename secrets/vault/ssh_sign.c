/* Reads private keys in OpenSSH's form and in PEM, writes their public halves, and signs logins
 * or texts of SSHSIG. */
#include "ssh_sign.h"
#include "ssh_sign_internal.h"

#include "base64.h"
#include "host_agent.h"
#include "ssh_wire.h"
#include "sshsig.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <string.h>

enum { KEY_MAX = 16384, RSA_BITS_MIN = 2048, PART_MAX = 1100, USERAUTH_REQUEST = 50 };

static const struct curve {
    const char *type, *name, *group, *digest;
    size_t half;
} curves[] = {
    {"ecdsa-sha2-nistp256", "nistp256", "prime256v1", "SHA2-256", 32},
    {"ecdsa-sha2-nistp384", "nistp384", "secp384r1", "SHA2-384", 48},
    {"ecdsa-sha2-nistp521", "nistp521", "secp521r1", "SHA2-512", 66},
};

/* ---- OpenSSH's form (PROTOCOL.key) ---- */

static BIGNUM *number(struct slice s)
{
    return s.n <= PART_MAX ? BN_bin2bn((const unsigned char *)s.p, (int)s.n, NULL) : NULL;
}

static EVP_PKEY *from_params(const char *type, OSSL_PARAM_BLD *b)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(b);
    if (ctx == NULL || params == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

static EVP_PKEY *read_rsa(struct slice *s)
{
    struct slice n, e, d, rest;
    if (ssh_wire_string(s, &n) < 0 || ssh_wire_string(s, &e) < 0 || ssh_wire_string(s, &d) < 0 ||
        ssh_wire_string(s, &rest) < 0 || ssh_wire_string(s, &rest) < 0 ||
        ssh_wire_string(s, &rest) < 0)
        return NULL;
    BIGNUM *bn = number(n), *be = number(e), *bd = number(d);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (b && bn && be && bd && OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, bn) == 1 &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, be) == 1 &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_D, bd) == 1)
        key = from_params("RSA", b);
    OSSL_PARAM_BLD_free(b);
    BN_free(bn);
    BN_free(be);
    BN_clear_free(bd);
    return key;
}

static EVP_PKEY *read_ec(struct slice *s, const struct curve *c)
{
    struct slice name, point, scalar;
    if (ssh_wire_string(s, &name) < 0 || !slice_eq_str(name, c->name) ||
        ssh_wire_string(s, &point) < 0 || ssh_wire_string(s, &scalar) < 0)
        return NULL;
    BIGNUM *d = number(scalar);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (b && d &&
        OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, c->group, 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, point.p, point.n) == 1 &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_PRIV_KEY, d) == 1)
        key = from_params("EC", b);
    OSSL_PARAM_BLD_free(b);
    BN_clear_free(d);
    return key;
}

static EVP_PKEY *read_ed25519(struct slice *s)
{
    struct slice public, both;
    if (ssh_wire_string(s, &public) < 0 || ssh_wire_string(s, &both) < 0 || public.n != 32 ||
        both.n != 64 || memcmp(both.p + 32, public.p, 32) != 0)
        return NULL;
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)both.p, 32);
}

static EVP_PKEY *read_private(struct slice s)
{
    uint32_t check, again;
    struct slice type;
    if (ssh_wire_u32(&s, &check) < 0 || ssh_wire_u32(&s, &again) < 0 || check != again ||
        ssh_wire_string(&s, &type) < 0)
        return NULL;
    if (slice_eq_str(type, "ssh-ed25519"))
        return read_ed25519(&s);
    if (slice_eq_str(type, "ssh-rsa"))
        return read_rsa(&s);
    for (size_t i = 0; i < ARRAY_LEN(curves); i++)
        if (slice_eq_str(type, curves[i].type))
            return read_ec(&s, &curves[i]);
    return NULL;
}

static EVP_PKEY *read_blob(struct slice s, struct err *err)
{
    static const char magic[] = "openssh-key-v1"; /* its NUL is part of it */
    struct slice cipher, kdf, options, public, private;
    uint32_t keys;
    if (!slice_starts(s, (struct slice){magic, sizeof magic}))
        return NULL;
    s = (struct slice){s.p + sizeof magic, s.n - sizeof magic};
    if (ssh_wire_string(&s, &cipher) < 0 || ssh_wire_string(&s, &kdf) < 0 ||
        ssh_wire_string(&s, &options) < 0 || ssh_wire_u32(&s, &keys) < 0 || keys != 1 ||
        ssh_wire_string(&s, &public) < 0 || ssh_wire_string(&s, &private) < 0)
        return NULL;
    if (!slice_eq_str(cipher, "none")) {
        err_set(err, ERR_PARSE, "its key has a passphrase, and nobody is there to type it");
        return NULL;
    }
    return read_private(private);
}

static EVP_PKEY *read_openssh(struct slice text, struct err *err)
{
    static const char begin[] = "-----BEGIN OPENSSH PRIVATE KEY-----",
                      end[] = "-----END OPENSSH PRIVATE KEY-----";
    ssize_t from = slice_find_slice(text, SLICE("-----BEGIN OPENSSH PRIVATE KEY-----"));
    ssize_t to = slice_find_slice(text, slice_str(end));
    EVP_PKEY *key = NULL;
    struct buf lines, blob;
    if (from < 0 || to < from + (ssize_t)sizeof begin)
        return NULL;
    buf_init_wiped(&lines, KEY_MAX);
    buf_init_wiped(&blob, KEY_MAX);
    bool ok = true;
    for (ssize_t i = from + (ssize_t)sizeof begin - 1; ok && i < to; i++)
        if (text.p[i] != '\n' && text.p[i] != '\r' && text.p[i] != ' ')
            ok = buf_append(&lines, text.p + i, 1) == 0;
    if (ok && base64_decode(&blob, buf_slice(&lines)) == 0)
        key = read_blob(buf_slice(&blob), err);
    buf_free(&lines);
    buf_free(&blob);
    return key;
}

/* Nobody is there to ask. */
static int no_passphrase(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
    return -1;
}

EVP_PKEY *ssh_sign_key(struct slice text, struct err *err)
{
    err->text[0] = 0;
    EVP_PKEY *key = read_openssh(text, err);
    if (key == NULL && err->text[0] == 0 && text.n <= INT_MAX) {
        BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);
        key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
        BIO_free(bio);
    }
    ERR_clear_error();
    if (key && EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) < RSA_BITS_MIN) {
        EVP_PKEY_free(key);
        key = NULL;
        err_set(err, ERR_PARSE, "its key is RSA of less than %d bits", RSA_BITS_MIN);
    }
    if (key == NULL && err->text[0] == 0)
        err_set(err, ERR_PARSE,
                "its key is not a private key of OpenSSH's or in PEM that can be read");
    return key;
}

/* ---- the public half ---- */

static const struct curve *curve_of(const EVP_PKEY *key)
{
    char group[32] = "";
    size_t n;
    if (!EVP_PKEY_is_a(key, "EC") || EVP_PKEY_get_group_name(key, group, sizeof group, &n) != 1)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(curves); i++)
        if (strcmp(curves[i].group, group) == 0)
            return &curves[i];
    return NULL;
}

static int put_number(struct buf *out, const EVP_PKEY *key, const char *param)
{
    BIGNUM *bn = NULL;
    unsigned char raw[PART_MAX];
    int r = -1;
    if (EVP_PKEY_get_bn_param(key, param, &bn) == 1 && BN_num_bytes(bn) <= PART_MAX)
        r = ssh_wire_put_mpint(out, (struct slice){(char *)raw, (size_t)BN_bn2bin(bn, raw)});
    BN_free(bn);
    return r;
}

int ssh_sign_public(struct buf *out, const EVP_PKEY *key)
{
    unsigned char raw[200];
    size_t n = sizeof raw;
    const struct curve *c = curve_of(key);
    if (EVP_PKEY_is_a(key, "ED25519"))
        return EVP_PKEY_get_raw_public_key(key, raw, &n) != 1 ||
                       ssh_wire_put_string(out, SLICE("ssh-ed25519")) < 0
                   ? -1
                   : ssh_wire_put_string(out, (struct slice){(char *)raw, n});
    if (EVP_PKEY_is_a(key, "RSA"))
        return ssh_wire_put_string(out, SLICE("ssh-rsa")) < 0 ||
                       put_number(out, key, OSSL_PKEY_PARAM_RSA_E) < 0
                   ? -1
                   : put_number(out, key, OSSL_PKEY_PARAM_RSA_N);
    if (c == NULL || EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, raw,
                                                     sizeof raw, &n) != 1)
        return -1;
    return ssh_wire_put_string(out, slice_str(c->type)) < 0 ||
                   ssh_wire_put_string(out, slice_str(c->name)) < 0
               ? -1
               : ssh_wire_put_string(out, (struct slice){(char *)raw, n});
}

int ssh_key_public(struct slice text, struct buf *out, struct err *err)
{
    if (host_agent_is(text))
        return host_agent_public(text, out) < 0
                   ? err_set(err, ERR_PARSE, "its agent's key cannot be read")
                   : 0;
    EVP_PKEY *key = ssh_sign_key(text, err);
    int r = key ? ssh_sign_public(out, key) : -1;
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r < 0 && err->text[0] == 0
               ? err_set(err, ERR_PARSE, "its key is neither Ed25519, ECDSA nor RSA")
               : r;
}

/* ---- signing ---- */

/* RFC 4252 7: what is signed, whole. */
int ssh_sign_login(struct slice s, struct slice *algorithm, struct slice *public)
{
    struct slice session, user, service, method;
    uint8_t type, has;
    if (ssh_wire_string(&s, &session) < 0 || session.n < 20 || session.n > 64 ||
        ssh_wire_u8(&s, &type) < 0 || type != USERAUTH_REQUEST || ssh_wire_string(&s, &user) < 0 ||
        user.n == 0 || ssh_wire_string(&s, &service) < 0 ||
        !slice_eq_str(service, "ssh-connection") || ssh_wire_string(&s, &method) < 0 ||
        !slice_eq_str(method, "publickey") || ssh_wire_u8(&s, &has) < 0 || has != 1 ||
        ssh_wire_string(&s, algorithm) < 0 || ssh_wire_string(&s, public) < 0 || s.n != 0)
        return -1;
    return 0;
}

/* RSA signs with SHA-2 only (RFC 8332). */
static const char *digest_of(const EVP_PKEY *key, struct slice algorithm, bool *ok)
{
    const struct curve *c = curve_of(key);
    *ok = true;
    if (EVP_PKEY_is_a(key, "ED25519") && slice_eq_str(algorithm, "ssh-ed25519"))
        return NULL;
    if (EVP_PKEY_is_a(key, "RSA") && slice_eq_str(algorithm, "rsa-sha2-512"))
        return "SHA2-512";
    if (EVP_PKEY_is_a(key, "RSA") && slice_eq_str(algorithm, "rsa-sha2-256"))
        return "SHA2-256";
    if (c && slice_eq_str(algorithm, c->type))
        return c->digest;
    *ok = false;
    return NULL;
}

/* RFC 5656 3.1.2: r and s. */
static int put_halves(struct buf *out, const unsigned char *der, size_t n, size_t half)
{
    unsigned char r[66], s[66];
    struct buf both;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
    buf_init(&both, SSH_SIGNATURE_MAX);
    bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), r, (int)half) == (int)half &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), s, (int)half) == (int)half &&
              ssh_wire_put_mpint(&both, (struct slice){(char *)r, half}) == 0 &&
              ssh_wire_put_mpint(&both, (struct slice){(char *)s, half}) == 0 &&
              ssh_wire_put_string(out, buf_slice(&both)) == 0;
    ECDSA_SIG_free(sig);
    buf_free(&both);
    return ok ? 0 : -1;
}

static int sign(EVP_PKEY *key, struct slice algorithm, const char *digest, struct slice text,
                struct buf *out)
{
    unsigned char raw[SSH_SIGNATURE_MAX];
    size_t n = sizeof raw;
    const struct curve *c = curve_of(key);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = md && EVP_DigestSignInit_ex(md, NULL, digest, NULL, NULL, key, NULL) == 1 &&
              EVP_DigestSign(md, raw, &n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    if (!ok || ssh_wire_put_string(out, algorithm) < 0)
        return -1;
    return c ? put_halves(out, raw, n, c->half)
             : ssh_wire_put_string(out, (struct slice){(char *)raw, n});
}

int ssh_key_sign(struct slice text, struct slice login, struct buf *out, struct err *err)
{
    struct slice algorithm, public;
    struct buf own;
    bool fits = false;
    if (ssh_sign_login(login, &algorithm, &public) < 0)
        return err_set(err, ERR_DENIED, "that is nothing which a login signs");
    EVP_PKEY *key = ssh_sign_key(text, err);
    if (key == NULL)
        return -1;
    buf_init(&own, SSH_PUBLIC_MAX);
    const char *digest = digest_of(key, algorithm, &fits);
    int r = 0;
    if (ssh_sign_public(&own, key) < 0 || !slice_eq(buf_slice(&own), public) || !fits)
        r = err_set(err, ERR_DENIED, "that is a login with another key");
    else if (sign(key, algorithm, digest, login, out) < 0)
        r = err_set(err, ERR_INTERNAL, "signing failed");
    buf_free(&own);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r;
}

/* ---- signing what is no login ---- */

static bool is_one_of(const char *names, struct slice name)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        if (slice_eq((struct slice){names, n}, name))
            return true;
        names += n + (names[n] == ' ');
    }
    return false;
}

/* What an RSA key is asked for without a flag would be SHA-1. NULL: that is not signed. */
static const char *algorithm_of(const EVP_PKEY *key, uint32_t flags)
{
    const struct curve *c = curve_of(key);
    if (EVP_PKEY_is_a(key, "RSA"))
        return flags & SSH_SIGN_SHA256   ? "rsa-sha2-256"
               : flags & SSH_SIGN_SHA512 ? "rsa-sha2-512"
                                         : NULL;
    return c ? c->type : EVP_PKEY_is_a(key, "ED25519") ? "ssh-ed25519" : NULL;
}

bool ssh_key_ok(struct slice text)
{
    struct err err = {0};
    EVP_PKEY *key = ssh_sign_key(text, &err);
    bool ok = key && algorithm_of(key, SSH_SIGN_SHA512);
    EVP_PKEY_free(key);
    return ok;
}

int ssh_sign_as(EVP_PKEY *key, struct slice text, struct buf *out)
{
    bool fits = false;
    const char *algorithm = algorithm_of(key, SSH_SIGN_SHA512);
    const char *digest = algorithm ? digest_of(key, slice_str(algorithm), &fits) : NULL;
    return fits ? sign(key, slice_str(algorithm), digest, text, out) : -1;
}

int ssh_key_sign_text(struct slice text, const char *namespaces, uint32_t flags, struct slice what,
                      struct buf *out, struct err *err)
{
    struct sshsig read;
    bool fits = false;
    if (sshsig_read(what, &read) < 0)
        return err_set(err, ERR_DENIED, "that is not a text of SSHSIG");
    if (!is_one_of(namespaces, read.space))
        return err_set(err, ERR_DENIED, "its key signs in no namespace '%.*s'", SL(read.space));
    EVP_PKEY *key = ssh_sign_key(text, err);
    if (key == NULL)
        return -1;
    const char *algorithm = algorithm_of(key, flags);
    const char *digest = algorithm ? digest_of(key, slice_str(algorithm), &fits) : NULL;
    int r = 0;
    if (!fits)
        r = err_set(err, ERR_DENIED, "an RSA key signs with SHA-2 only");
    else if (sign(key, slice_str(algorithm), digest, what, out) < 0)
        r = err_set(err, ERR_INTERNAL, "signing failed");
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r;
}

/* ---- where an agent has the key ---- */

/* RSA with SHA-2, each other kind by its own algorithm. */
static int way_of(struct slice key, struct slice algorithm, struct ssh_signing *ret)
{
    struct slice rest = key, type;
    if (ssh_wire_string(&rest, &type) < 0 || algorithm.n >= sizeof ret->algorithm)
        return -1;
    memset(ret, 0, sizeof *ret);
    memcpy(ret->algorithm, algorithm.p, algorithm.n);
    if (!slice_eq_str(type, "ssh-rsa"))
        return slice_eq(type, algorithm) ? 0 : -1;
    ret->flags = slice_eq_str(algorithm, "rsa-sha2-256")   ? SSH_SIGN_SHA256
                 : slice_eq_str(algorithm, "rsa-sha2-512") ? SSH_SIGN_SHA512
                                                           : 0;
    return ret->flags ? 0 : -1;
}

int ssh_login_may(struct slice key, struct slice text, struct ssh_signing *ret, struct err *err)
{
    struct slice algorithm, public;
    if (ssh_sign_login(text, &algorithm, &public) < 0)
        return err_set(err, ERR_DENIED, "that is nothing which a login signs");
    return !slice_eq(public, key) || way_of(key, algorithm, ret) < 0
               ? err_set(err, ERR_DENIED, "that is a login with another key")
               : 0;
}

int ssh_text_may(struct slice key, const char *namespaces, uint32_t flags, struct slice text,
                 struct ssh_signing *ret, struct err *err)
{
    struct sshsig read;
    struct slice rest = key, type;
    if (sshsig_read(text, &read) < 0)
        return err_set(err, ERR_DENIED, "that is not a text of SSHSIG");
    if (!is_one_of(namespaces, read.space))
        return err_set(err, ERR_DENIED, "its key signs in no namespace '%.*s'", SL(read.space));
    if (ssh_wire_string(&rest, &type) == 0 && slice_eq_str(type, "ssh-rsa"))
        type = flags & SSH_SIGN_SHA256   ? SLICE("rsa-sha2-256")
               : flags & SSH_SIGN_SHA512 ? SLICE("rsa-sha2-512")
                                         : SLICE("");
    return way_of(key, type, ret) < 0 ? err_set(err, ERR_DENIED, "an RSA key signs with SHA-2 only")
                                      : 0;
}
