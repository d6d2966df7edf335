/* The reasons of OpenSSL's errors are there when they are asked for, and not before. */
#include "crypto_text.h"
#include "tap_main.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <string.h>

static unsigned long no_certificate(void)
{
    BIO *b = BIO_new_mem_buf("x", 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    ERR_clear_error();
    CU_ASSERT_PTR_NULL(PEM_read_bio_X509(b, NULL, NULL, NULL));
    BIO_free(b);
    unsigned long e = ERR_peek_last_error();
    ERR_clear_error();
    CU_ASSERT_NOT_EQUAL_FATAL(e, 0);
    return e;
}

static void test_reasons(void)
{
    crypto_text_later();
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method()); /* as a role has one */
    CU_ASSERT_PTR_NOT_NULL_FATAL(tls);
    SSL_CTX_free(tls);
    unsigned long e = no_certificate();
    CU_ASSERT_PTR_NULL(ERR_reason_error_string(e)); /* nothing was loaded for it */
    const char *text = crypto_text(e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_STRING_EQUAL(text, "no start line");
    CU_ASSERT_PTR_EQUAL(crypto_text(e), text);
}

static void test_tls(void)
{
    const char *text = crypto_text(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_CERTIFICATE_VERIFY_FAILED));
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_STRING_EQUAL(text, "certificate verify failed");
}

static void test_none(void)
{
    CU_ASSERT_PTR_NULL(crypto_text(0));
    CU_ASSERT_PTR_NULL(crypto_text(ERR_PACK(ERR_LIB_PEM, 0, 4000)));
    CU_ASSERT_PTR_NULL(crypto_text(ERR_PACK(200, 0, 50)));
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("crypto_text", NULL, NULL);
    CU_add_test(s, "a reason is loaded when it is asked for", test_reasons);
    CU_add_test(s, "those of TLS are there", test_tls);
    CU_add_test(s, "what has no reason has none", test_none);
}
