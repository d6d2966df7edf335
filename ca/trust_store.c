/* Encodes trusted certificates as PKCS#12 with OpenSSL, unencrypted and under distinct names, as a
 * whole store with its checksum or as a part without one. */
#include "trust_store.h"

#include "pem.h"

#include <openssl/err.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <stdio.h>

#define JDK_TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"
enum { MAC_ROUNDS = 1000 }; /* the password is public; the sum only guards against damage */

/* Java wants distinct names; the subject's common name helps a reader of `keytool -list`. */
static void alias(X509 *x, size_t i, char *to, size_t size)
{
    char cn[128];
    if (X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof cn) <= 0)
        cn[0] = 0;
    for (char *p = cn; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
            *p = '?';
    snprintf(to, size, "%04zu %s", i, cn);
}

static int add(STACK_OF(PKCS12_SAFEBAG) * *bags, struct slice der, size_t i)
{
    const unsigned char *at = (const unsigned char *)der.p;
    X509 *x = d2i_X509(NULL, &at, (long)der.n);
    if (x == NULL) {
        ERR_clear_error();
        return 0;
    }
    char name[160];
    alias(x, i, name, sizeof name);
    PKCS12_SAFEBAG *bag = PKCS12_add_cert(bags, x);
    X509_free(x);
    const ASN1_OBJECT *any = OBJ_nid2obj(NID_anyExtendedKeyUsage);
    return bag && PKCS12_add_friendlyname_asc(bag, name, -1) == 1 &&
                   PKCS12_add1_attr_by_txt(bag, JDK_TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
                                           (const unsigned char *)any, -1) == 1
               ? 0
               : -1;
}

static int encode(STACK_OF(PKCS12_SAFEBAG) * bags, struct buf *to)
{
    STACK_OF(PKCS7) *safes = NULL;
    PKCS12 *p12 = NULL;
    unsigned char *der = NULL;
    int n = -1;
    /* not encrypted: certificates are public, and Java 8 to 21 read it without a common cipher */
    if (PKCS12_add_safe(&safes, bags, -1, 0, NULL) == 1)
        p12 = PKCS12_add_safes(safes, 0);
    if (p12 && PKCS12_set_mac(p12, "changeit", -1, NULL, 0, MAC_ROUNDS, EVP_sha1()) == 1)
        n = i2d_PKCS12(p12, &der);
    int r = n > 0 ? buf_append(to, der, (size_t)n) : -1;
    OPENSSL_free(der);
    PKCS12_free(p12);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    return r;
}

static int add_all(STACK_OF(PKCS12_SAFEBAG) * *bags, struct slice pem, size_t first)
{
    struct buf der;
    int found, r = 0;
    buf_init(&der, PEM_TEXT_MAX);
    for (size_t i = first; r == 0 && (found = pem_next(&pem, &der)) != 0; i++)
        if (found > 0)
            r = add(bags, buf_slice(&der), i);
    buf_free(&der);
    return r;
}

static int encode_safe(STACK_OF(PKCS12_SAFEBAG) * bags, struct buf *to)
{
    STACK_OF(PKCS7) *safes = NULL;
    unsigned char *der = NULL;
    int n = -1;
    if (PKCS12_add_safe(&safes, bags, -1, 0, NULL) == 1)
        n = i2d_PKCS7(sk_PKCS7_value(safes, 0), &der);
    int r = n > 0 ? buf_append(to, der, (size_t)n) : -1;
    OPENSSL_free(der);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    return r;
}

int trust_store_safe(struct slice pem, size_t first, struct buf *to, struct err *err)
{
    STACK_OF(PKCS12_SAFEBAG) *bags = NULL;
    int r = add_all(&bags, pem, first);
    if (r == 0 && bags)
        r = encode_safe(bags, to);
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    ERR_clear_error();
    return r < 0 ? err_set(err, ERR_INTERNAL, "a part of the Java trust store cannot be made") : 0;
}

int trust_store_java(struct slice pem, struct buf *to, struct err *err)
{
    STACK_OF(PKCS12_SAFEBAG) *bags = NULL;
    int r = add_all(&bags, pem, 1);
    if (r == 0)
        r = bags ? encode(bags, to) : -1;
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    ERR_clear_error();
    return r < 0 ? err_set(err, ERR_INTERNAL, "the Java trust store cannot be made") : 0;
}
