/* Builds certificates extension by extension. The host becomes a GENERAL_NAME object, since in
 * OpenSSL's text form a comma could add a second name. */
#include "mint.h"

#include "crypto_text.h"
#include "public_half.h"

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum { SERIAL_BYTES = 16, HOUR = 3600, DAY = 24 * HOUR, CA_SKEW = DAY };

/* The OpenSSL error queue belongs to the thread; leaving entries there would confuse a later
 * SSL_get_error. */
static int crypto_err(struct err *err, const char *what)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = crypto_text(e);
    err_set(err, ERR_INTERNAL, "%s: %s", what, reason ? reason : "unknown reason");
    ERR_clear_error();
    return -1;
}

/* 127 random bits, positive, never zero (RFC 5280 4.1.2.2 allows 20 octets). */
static int set_serial(X509 *x)
{
    unsigned char raw[SERIAL_BYTES];
    if (RAND_bytes(raw, sizeof raw) != 1)
        return -1;
    raw[0] &= 0x7f;
    raw[SERIAL_BYTES - 1] |= 1;
    BIGNUM *bn = BN_bin2bn(raw, sizeof raw, NULL);
    int ok = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x)) != NULL;
    BN_free(bn);
    return ok ? 0 : -1;
}

static int add_basic(X509 *x, bool ca)
{
    BASIC_CONSTRAINTS *bc = BASIC_CONSTRAINTS_new();
    int ok = bc != NULL;
    if (ok && ca) {
        bc->ca = 0xff;
        bc->pathlen = ASN1_INTEGER_new();
        ok = bc->pathlen && ASN1_INTEGER_set(bc->pathlen, 0);
    }
    ok = ok && X509_add1_ext_i2d(x, NID_basic_constraints, bc, 1, X509V3_ADD_DEFAULT) == 1;
    BASIC_CONSTRAINTS_free(bc);
    return ok ? 0 : -1;
}

static int add_usage(X509 *x, const int *bits, size_t n)
{
    ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();
    int ok = usage != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = ASN1_BIT_STRING_set_bit(usage, bits[i], 1);
    ok = ok && X509_add1_ext_i2d(x, NID_key_usage, usage, 1, X509V3_ADD_DEFAULT) == 1;
    ASN1_BIT_STRING_free(usage);
    return ok ? 0 : -1;
}

static int add_server_auth(X509 *x)
{
    EXTENDED_KEY_USAGE *eku = EXTENDED_KEY_USAGE_new();
    ASN1_OBJECT *what = OBJ_nid2obj(NID_server_auth); /* static, not freed */
    int ok = eku && what && sk_ASN1_OBJECT_push(eku, what) > 0 &&
             X509_add1_ext_i2d(x, NID_ext_key_usage, eku, 0, X509V3_ADD_DEFAULT) == 1;
    EXTENDED_KEY_USAGE_free(eku);
    return ok ? 0 : -1;
}

/* SKI of this certificate and AKI of the issuer; both are fixed texts, never a request's. */
static int add_key_ids(X509 *x, X509 *issuer)
{
    static const int nids[] = {NID_subject_key_identifier, NID_authority_key_identifier};
    static const char *const values[] = {"hash", "keyid:always"};
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(nids); i++) {
        X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nids[i], values[i]);
        int ok = ext && X509_add_ext(x, ext, -1);
        X509_EXTENSION_free(ext);
        if (!ok)
            return -1;
    }
    return 0;
}

/* The host as a GENERAL_NAME object. Built from text it would let a comma add other names. */
static GENERAL_NAME *host_general_name(const struct authority *host)
{
    bool name = host->kind == HOST_NAME;
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_STRING *value = name ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();
    int len = name ? (int)strlen(host->host) : host->kind == HOST_IPV4 ? 4 : 16;
    const void *bytes = name ? (const void *)host->host : host->ip;
    if (g == NULL || value == NULL || !ASN1_STRING_set(value, bytes, len)) {
        ASN1_STRING_free(value);
        GENERAL_NAME_free(g);
        return NULL;
    }
    GENERAL_NAME_set0_value(g, name ? GEN_DNS : GEN_IPADD, value);
    return g;
}

static int add_host(X509 *x, const struct authority *host)
{
    bool in_subject = strlen(host->host) <= MINT_CN_MAX;
    X509_NAME *subject = X509_get_subject_name(x);
    if (in_subject && !X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                                                  (const unsigned char *)host->host, -1, -1, 0))
        return -1;
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *g = host_general_name(host);
    if (names == NULL || g == NULL || sk_GENERAL_NAME_push(names, g) <= 0) {
        GENERAL_NAME_free(g);
        GENERAL_NAMES_free(names);
        return -1;
    }
    /* with an empty subject the extension is critical (RFC 5280 4.2.1.6) */
    int ok = X509_add1_ext_i2d(x, NID_subject_alt_name, names, !in_subject, X509V3_ADD_DEFAULT);
    GENERAL_NAMES_free(names);
    return ok == 1 ? 0 : -1;
}

static int set_life(X509 *x, time_t from, time_t to)
{
    return ASN1_TIME_set(X509_getm_notBefore(x), from) && ASN1_TIME_set(X509_getm_notAfter(x), to)
               ? 0
               : -1;
}

/* Seconds from `now` to the end of the certificate's life; negative when it is over. */
static int64_t life_left(const X509 *x, time_t now)
{
    int days = 0, seconds = 0;
    ASN1_TIME *t = ASN1_TIME_set(NULL, now);
    int ok = t && ASN1_TIME_diff(&days, &seconds, t, X509_get0_notAfter(x));
    ASN1_TIME_free(t);
    return ok ? (int64_t)days * DAY + seconds : -1;
}

/* A key of P-256 in the form that is encoded fast; another one as it is. */
static int put_key(X509 *x, EVP_PKEY *key)
{
    EVP_PKEY *public = public_half(key);
    int ok = X509_set_pubkey(x, public ? public : key) == 1;
    EVP_PKEY_free(public);
    return ok ? 0 : -1;
}

static int name_ca(X509 *x, const char *cn)
{
    X509_NAME *subject = X509_get_subject_name(x);
    return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                                      (const unsigned char *)cn, -1, -1, 0) &&
                   X509_set_issuer_name(x, subject)
               ? 0
               : -1;
}

int mint_issuer_make(struct mint_issuer *ret, time_t now, struct err *err)
{
    unsigned char raw[4];
    char cn[MINT_CN_MAX];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (key == NULL || RAND_bytes(raw, sizeof raw) != 1) {
        EVP_PKEY_free(key);
        return crypto_err(err, "cannot make the key of a CA");
    }
    snprintf(cn, sizeof cn, "Durward CA %02x%02x%02x%02x", raw[0], raw[1], raw[2], raw[3]);
    return mint_issuer_of(ret, key, cn, now, err);
}

int mint_issuer_of(struct mint_issuer *ret, EVP_PKEY *key, const char *cn, time_t now,
                   struct err *err)
{
    static const int usage[] = {5}; /* keyCertSign (RFC 5280 4.2.1.3) */
    struct mint_issuer made = {.key = key, .cert = X509_new()};
    X509 *x = made.cert;
    if (x == NULL)
        goto fail;
    if (!X509_set_version(x, X509_VERSION_3) || set_serial(x) < 0 || name_ca(x, cn) < 0 ||
        set_life(x, now - CA_SKEW, now + (time_t)MINT_CA_DAYS * DAY) < 0 ||
        put_key(x, made.key) < 0)
        goto fail;
    if (add_basic(x, true) < 0 || add_usage(x, usage, ARRAY_LEN(usage)) < 0 ||
        add_key_ids(x, x) < 0 || X509_sign(x, made.key, EVP_sha256()) <= 0)
        goto fail;
    *ret = made;
    return 0;
fail:
    mint_issuer_clear(&made);
    return crypto_err(err, "cannot make a CA");
}

void mint_issuer_clear(struct mint_issuer *issuer)
{
    X509_free(issuer->cert);
    EVP_PKEY_free(issuer->key);
    issuer->cert = NULL;
    issuer->key = NULL;
}

int mint_issuer_check(const struct mint_issuer *issuer, time_t now, struct err *err)
{
    int type = EVP_PKEY_get_base_id(issuer->key), bits = EVP_PKEY_get_bits(issuer->key);
    if (!(type == EVP_PKEY_EC && bits >= 256) && !(type == EVP_PKEY_RSA && bits >= 2048))
        return err_set(err, ERR_DENIED,
                       "the CA key is neither EC of 256 bits nor RSA of 2048 bits and more");
    if (X509_check_private_key(issuer->cert, issuer->key) != 1) {
        ERR_clear_error();
        return err_set(err, ERR_DENIED, "the CA certificate and the CA key do not belong together");
    }
    if (X509_check_ca(issuer->cert) != 1)
        return err_set(err, ERR_DENIED, "the CA certificate is not one of a CA (CA:TRUE)");
    uint32_t usage = X509_get_key_usage(issuer->cert);
    if (usage != UINT32_MAX && !(usage & KU_KEY_CERT_SIGN))
        return err_set(err, ERR_DENIED, "the CA certificate does not allow keyCertSign");
    if (X509_cmp_time(X509_get0_notBefore(issuer->cert), &now) > 0)
        return err_set(err, ERR_DENIED, "the CA certificate is not valid yet; check the clock");
    if (life_left(issuer->cert, now) <= 0)
        return err_set(err, ERR_DENIED, "the CA certificate has expired");
    return 0;
}

X509 *mint_form(EVP_PKEY *key, struct err *err)
{
    X509 *x = X509_new();
    if (x && X509_set_version(x, X509_VERSION_3) && put_key(x, key) == 0)
        return x;
    X509_free(x);
    crypto_err(err, "cannot make the form of a leaf");
    return NULL;
}

/* What a leaf before this one left in the form. */
static int clear_form(X509 *x)
{
    X509_EXTENSION *ext;
    while ((ext = X509_delete_ext(x, 0)) != NULL)
        X509_EXTENSION_free(ext);
    X509_NAME *nobody = X509_NAME_new();
    int ok = nobody && X509_set_subject_name(x, nobody);
    X509_NAME_free(nobody);
    return ok ? 0 : -1;
}

int mint_into(X509 *x, const struct mint_issuer *issuer, const struct authority *host,
              unsigned hours, time_t now, struct err *err)
{
    static const int usage[] = {0}; /* digitalSignature */
    if (hours < 1 || hours > MINT_HOURS_MAX)
        return err_set(err, ERR_INTERNAL, "a leaf of %u hours is out of bounds", hours);
    int64_t left = life_left(issuer->cert, now), life = (int64_t)hours * HOUR;
    if (left <= 0)
        return err_set(err, ERR_DENIED, "the CA certificate has expired");
    if (clear_form(x) < 0 || set_serial(x) < 0 ||
        set_life(x, now - MINT_SKEW_SECONDS, now + (time_t)(life < left ? life : left)) < 0 ||
        !X509_set_issuer_name(x, X509_get_subject_name(issuer->cert)) || add_basic(x, false) < 0 ||
        add_usage(x, usage, ARRAY_LEN(usage)) < 0 || add_server_auth(x) < 0 ||
        add_host(x, host) < 0 || add_key_ids(x, issuer->cert) < 0 ||
        X509_sign(x, issuer->key, EVP_sha256()) <= 0)
        return crypto_err(err, "cannot mint a leaf");
    return 0;
}

X509 *mint_leaf(const struct mint_issuer *issuer, const struct authority *host, EVP_PKEY *key,
                unsigned hours, time_t now, struct err *err)
{
    X509 *x = mint_form(key, err);
    if (x && mint_into(x, issuer, host, hours, now, err) < 0) {
        X509_free(x);
        return NULL;
    }
    return x;
}
