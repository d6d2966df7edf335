/* Loads OpenSSL's texts of errors when the first one is asked for. */
#include "crypto_text.h"

#include <openssl/crypto.h>
#include <openssl/cryptoerr_legacy.h>
#include <openssl/err.h>

#include <stdbool.h>
#include <stddef.h>

/* By library: once a process has said that it wants no texts at its start, OpenSSL loads them in no
 * other way. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int (*const libraries[])(void) = {
    ERR_load_ASN1_strings,   ERR_load_BIO_strings,    ERR_load_BN_strings,  ERR_load_BUF_strings,
    ERR_load_CONF_strings,   ERR_load_CRYPTO_strings, ERR_load_EC_strings,  ERR_load_ERR_strings,
    ERR_load_EVP_strings,    ERR_load_OBJ_strings,    ERR_load_PEM_strings, ERR_load_PKCS12_strings,
    ERR_load_PKCS7_strings,  ERR_load_RAND_strings,   ERR_load_RSA_strings, ERR_load_X509_strings,
    ERR_load_X509V3_strings,
};

void crypto_text_later(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, NULL); /* else they are there */
}

const char *crypto_text(unsigned long e)
{
    static bool loaded;
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    if (reason || e == 0 || loaded)
        return reason;
    loaded = true;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        (void)libraries[i]();
    return ERR_reason_error_string(e);
}
