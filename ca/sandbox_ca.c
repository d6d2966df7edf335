/* Derives a sandbox's P-256 key from the secret and the sandbox's id with HKDF (RFC 5869) and
 * reduces it as FIPS 186-5 A.2.1 says; makes and seals the secret's memfd. */
#define _GNU_SOURCE 1
#include "sandbox_ca.h"

#include "compiler.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SCALAR = 48, /* bytes that a private key is made of: 128 bits more than the order has, so that
                    their remainder is as good as evenly spread (FIPS 186-5 A.2.1) */
    NAME = 8,
    POINT = 65,
    SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL,
};

int sandbox_ca_memfd(struct err *err)
{
    int fd = memfd_create("durward-sandbox-ca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? err_sys(err, "memfd_create") : fd;
}

int sandbox_ca_secret(int memfd, unsigned char secret[SANDBOX_CA_SECRET], struct err *err)
{
    ssize_t n = pread(memfd, secret, SANDBOX_CA_SECRET, 0);
    if (n == SANDBOX_CA_SECRET && fcntl(memfd, F_GET_SEALS) == SEALS)
        return 0;
    if (n != 0)
        return err_set(err, ERR_DENIED, "the secret of the sandboxes' CAs is damaged");
    if (RAND_bytes(secret, SANDBOX_CA_SECRET) != 1)
        return err_set(err, ERR_INTERNAL, "no secret can be made for the sandboxes' CAs");
    if (pwrite(memfd, secret, SANDBOX_CA_SECRET, 0) != SANDBOX_CA_SECRET ||
        fcntl(memfd, F_ADD_SEALS, SEALS) < 0)
        return err_sys(err, "the secret of the sandboxes' CAs cannot be kept");
    return 0;
}

/* HKDF (RFC 5869); the purpose is a part of what it is made for. */
static int derive(const unsigned char *secret, const char *sandbox, unsigned char *out, size_t n)
{
    static char digest[] = "SHA256", purpose[] = "durward: CA of a local sandbox";
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *with = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret,
                                          SANDBOX_CA_SECRET),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, purpose, sizeof purpose - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)sandbox,
                                          strlen(sandbox)),
        OSSL_PARAM_construct_end()};
    int ok = with && EVP_KDF_derive(with, out, n, params) == 1;
    EVP_KDF_CTX_free(with);
    EVP_KDF_free(kdf);
    return ok ? 0 : -1;
}

/* 1 + what remains of the bytes by the order less one. */
static BIGNUM *scalar(const EC_GROUP *group, const unsigned char *bytes)
{
    BN_CTX *work = BN_CTX_secure_new();
    BIGNUM *d = BN_secure_new(), *wide = BN_secure_new(),
           *most = BN_dup(EC_GROUP_get0_order(group));
    int ok = work && d && wide && most && BN_bin2bn(bytes, SCALAR, wide) &&
             BN_sub_word(most, 1) == 1 && BN_mod(d, wide, most, work) == 1 &&
             BN_add_word(d, 1) == 1;
    BN_clear_free(wide);
    BN_free(most);
    BN_CTX_free(work);
    if (ok)
        return d;
    BN_clear_free(d);
    return NULL;
}

static int public_point(const EC_GROUP *group, const BIGNUM *d, unsigned char to[POINT])
{
    EC_POINT *at = EC_POINT_new(group);
    int ok = at && EC_POINT_mul(group, at, d, NULL, NULL, NULL) == 1 &&
             EC_POINT_point2oct(group, at, POINT_CONVERSION_UNCOMPRESSED, to, POINT, NULL) == POINT;
    EC_POINT_free(at);
    return ok ? 0 : -1;
}

static EVP_PKEY *key_of(const BIGNUM *d, const unsigned char point[POINT])
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *list = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *with = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (list && with &&
        OSSL_PARAM_BLD_push_utf8_string(list, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
        OSSL_PARAM_BLD_push_octet_string(list, OSSL_PKEY_PARAM_PUB_KEY, point, POINT) &&
        OSSL_PARAM_BLD_push_BN(list, OSSL_PKEY_PARAM_PRIV_KEY, d) &&
        (params = OSSL_PARAM_BLD_to_param(list)) != NULL && EVP_PKEY_fromdata_init(with) == 1 &&
        EVP_PKEY_fromdata(with, &key, EVP_PKEY_KEYPAIR, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(list);
    EVP_PKEY_CTX_free(with);
    return key;
}

static EVP_PKEY *make_key(const unsigned char *bytes)
{
    unsigned char point[POINT];
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BIGNUM *d = group ? scalar(group, bytes) : NULL;
    EVP_PKEY *key = d && public_point(group, d, point) == 0 ? key_of(d, point) : NULL;
    BN_clear_free(d);
    EC_GROUP_free(group);
    return key;
}

int sandbox_ca_make(const unsigned char secret[SANDBOX_CA_SECRET], const char *sandbox, time_t now,
                    struct mint_issuer *ret, struct err *err)
{
    unsigned char made[SCALAR + NAME];
    char cn[MINT_CN_MAX] = "Durward sandbox CA ";
    EVP_PKEY *key = derive(secret, sandbox, made, sizeof made) < 0 ? NULL : make_key(made);
    size_t at = strlen(cn);
    for (size_t i = 0; key && i < NAME; i++)
        at += (size_t)snprintf(cn + at, sizeof cn - at, "%02x", made[SCALAR + i]);
    OPENSSL_cleanse(made, sizeof made);
    if (key)
        return mint_issuer_of(ret, key, cn, now, err);
    ERR_clear_error();
    return err_set(err, ERR_INTERNAL, "the CA of a sandbox cannot be made");
}
