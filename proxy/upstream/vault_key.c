/* A provider of OpenSSL's with one kind of key, in a library context of its own; its signing
 * function stops the handshake's job until the signature is there. */
#include "vault_key.h"

#include "tls_sign.h"

#include <openssl/async.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

/* IDLE, or a signature is WANTED, was GIVEN or will not come. */
enum key_state { KEY_IDLE = 0, KEY_WANTED, KEY_GIVEN, KEY_FAILED };

struct vault_key {
    SSL *ssl;
    EVP_PKEY *public;
    struct key_data *key_data; /* NULL: OpenSSL has freed it */
    enum key_state state;
    vault_key_fn wanted;
    void *arg;
    uint16_t scheme;
    unsigned char *text; /* OpenSSL's, while it waits */
    size_t text_n;
    unsigned char signature[TLS_SIGNATURE_MAX];
    size_t signature_n;
    bool used;
};

/* ---- keys, as OpenSSL's key management sees them ---- */

/* Belongs to an EVP_PKEY, which an SSL holds. */
struct key_data {
    EVP_PKEY *public;
    struct vault_key *owner; /* NULL: it is gone, nothing can be signed */
};

static const char param_owner[] = "durward-owner"; /* the address of the vault_key, in our hands */

static void *key_new(void *provider UNUSED)
{
    return calloc(1, sizeof(struct key_data));
}

static void key_free(void *data)
{
    struct key_data *k = data;
    if (k && k->owner)
        k->owner->key_data = NULL;
    if (k)
        EVP_PKEY_free(k->public);
    free(k);
}

static int key_has(const void *data, int selection UNUSED)
{
    return ((const struct key_data *)data)->public != NULL;
}

static int key_import(void *data, int selection UNUSED, const OSSL_PARAM params[])
{
    struct key_data *k = data;
    const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, param_owner);
    const void *at;
    size_t n;
    if (p == NULL || !OSSL_PARAM_get_octet_string_ptr(p, &at, &n) || n != sizeof k->owner ||
        k->public)
        return 0;
    memcpy(&k->owner, at, sizeof k->owner);
    k->owner->key_data = k;
    k->public = k->owner->public;
    return EVP_PKEY_up_ref(k->public);
}

/* Only what everybody may see: OpenSSL compares it with the certificate's. */
static int key_export(void *data, int selection UNUSED, OSSL_CALLBACK *fn, void *arg)
{
    const struct key_data *k = data;
    OSSL_PARAM *params = NULL;
    if (EVP_PKEY_todata(k->public, EVP_PKEY_PUBLIC_KEY, &params) != 1)
        return 0;
    int r = fn(params, arg);
    OSSL_PARAM_free(params);
    return r;
}

static const OSSL_PARAM *key_types(int selection UNUSED)
{
    static const OSSL_PARAM none[] = {OSSL_PARAM_END};
    return none;
}

static int key_get_params(void *data, OSSL_PARAM params[])
{
    return EVP_PKEY_get_params(((const struct key_data *)data)->public, params);
}

static const OSSL_PARAM *key_gettable(void *provider UNUSED)
{
    static const OSSL_PARAM shown[] = {OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
                                       OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
                                       OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
                                       OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
                                       OSSL_PARAM_END};
    return shown;
}

static const char sign_name[] = "durward-sign";

static const char *key_operation(int operation UNUSED)
{
    return sign_name;
}

/* ---- signing ---- */

struct sign_state {
    struct key_data *key;
    char digest[32];
    bool pss;
};

static void *sign_new(void *provider UNUSED, const char *propq UNUSED)
{
    return calloc(1, sizeof(struct sign_state));
}

static int sign_set_params(void *state, const OSSL_PARAM params[])
{
    struct sign_state *s = state;
    const OSSL_PARAM *p =
        params ? OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_PAD_MODE) : NULL;
    int mode;
    if (p == NULL)
        return 1;
    if (p->data_type == OSSL_PARAM_UTF8_STRING)
        s->pss = strcmp(p->data, OSSL_PKEY_RSA_PAD_MODE_PSS) == 0;
    else if (OSSL_PARAM_get_int(p, &mode))
        s->pss = mode == RSA_PKCS1_PSS_PADDING;
    else
        return 0;
    return 1;
}

static const OSSL_PARAM *sign_settable(void *state UNUSED, void *provider UNUSED)
{
    static const OSSL_PARAM taken[] = {
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PSS_SALTLEN, NULL, 0), OSSL_PARAM_END};
    return taken;
}

static int sign_init(void *state, const char *digest, void *key, const OSSL_PARAM params[])
{
    struct sign_state *s = state;
    if (key)
        s->key = key;
    snprintf(s->digest, sizeof s->digest, "%s", digest ? digest : "");
    return s->key && sign_set_params(s, params);
}

/* On a stack of OpenSSL's own: the job stops here until vault_key_signed. */
static int wait_for(struct vault_key *k, const unsigned char *text, size_t n)
{
    k->text = malloc(n);
    if (k->text == NULL)
        return -1;
    memcpy(k->text, text, n);
    k->text_n = n;
    k->state = KEY_WANTED;
    k->wanted(k->arg);
    while (k->state == KEY_WANTED && ASYNC_pause_job() == 1)
        ;
    free(k->text);
    k->text = NULL;
    return k->state == KEY_GIVEN ? 0 : -1;
}

static int sign_text(void *state, unsigned char *to, size_t *n, size_t size,
                     const unsigned char *text, size_t text_n)
{
    struct sign_state *s = state;
    struct vault_key *k = s->key->owner;
    if (to == NULL) {
        *n = (size_t)EVP_PKEY_get_size(s->key->public);
        return 1;
    }
    if (k == NULL || k->state != KEY_IDLE || ASYNC_get_current_job() == NULL ||
        text_n > TLS_SIGNED_MAX)
        return 0;
    k->scheme = tls_scheme(s->key->public, s->digest, s->pss);
    if (k->scheme == 0 || wait_for(k, text, text_n) < 0 || k->signature_n > size)
        return 0;
    memcpy(to, k->signature, k->signature_n);
    *n = k->signature_n;
    k->used = true;
    return 1;
}

/* ---- the provider ---- */

typedef void (*function)(void);

static const OSSL_DISPATCH key_functions[] = {
    {OSSL_FUNC_KEYMGMT_NEW, (function)key_new},
    {OSSL_FUNC_KEYMGMT_FREE, (function)key_free},
    {OSSL_FUNC_KEYMGMT_HAS, (function)key_has},
    {OSSL_FUNC_KEYMGMT_IMPORT, (function)key_import},
    {OSSL_FUNC_KEYMGMT_IMPORT_TYPES, (function)key_types},
    {OSSL_FUNC_KEYMGMT_EXPORT, (function)key_export},
    {OSSL_FUNC_KEYMGMT_EXPORT_TYPES, (function)key_types},
    {OSSL_FUNC_KEYMGMT_GET_PARAMS, (function)key_get_params},
    {OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, (function)key_gettable},
    {OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, (function)key_operation},
    {0, NULL}};

static const OSSL_DISPATCH sign_functions[] = {
    {OSSL_FUNC_SIGNATURE_NEWCTX, (function)sign_new},
    {OSSL_FUNC_SIGNATURE_FREECTX, (function)free},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, (function)sign_init},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN, (function)sign_text},
    {OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, (function)sign_set_params},
    {OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, (function)sign_settable},
    {0, NULL}};

static const OSSL_ALGORITHM *query(void *provider UNUSED, int operation, int *no_cache)
{
    static const OSSL_ALGORITHM keys[] = {{"RSA", "provider=durward", key_functions, NULL},
                                          {"EC", "provider=durward", key_functions, NULL},
                                          {"ED25519", "provider=durward", key_functions, NULL},
                                          {NULL, NULL, NULL, NULL}},
                                signatures[] = {
                                    {sign_name, "provider=durward", sign_functions, NULL},
                                    {NULL, NULL, NULL, NULL}};
    *no_cache = 0;
    return operation == OSSL_OP_KEYMGMT ? keys : operation == OSSL_OP_SIGNATURE ? signatures : NULL;
}

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in UNUSED,
                         const OSSL_DISPATCH **out, void **provider)
{
    static const OSSL_DISPATCH functions[] = {{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (function)query},
                                              {0, NULL}};
    *out = functions;
    *provider = (void *)(uintptr_t)handle;
    return 1;
}

/* Beside OpenSSL's own: keys of every other kind never meet ours. */
static OSSL_LIB_CTX *library;

int vault_key_setup(void)
{
    if (library)
        return 0;
    library = OSSL_LIB_CTX_new();
    return library && OSSL_PROVIDER_add_builtin(library, "durward", provider_init) == 1 &&
                   OSSL_PROVIDER_load(library, "durward") && ASYNC_is_capable()
               ? 0
               : -1;
}

/* ---- for a handshake ---- */

static EVP_PKEY *make_key(struct vault_key *k)
{
    EVP_PKEY *made = NULL;
    OSSL_PARAM params[] = {OSSL_PARAM_octet_string(param_owner, &k, sizeof k), OSSL_PARAM_END};
    EVP_PKEY_CTX *p = EVP_PKEY_CTX_new_from_name(library, EVP_PKEY_get0_type_name(k->public), NULL);
    if (p == NULL || EVP_PKEY_fromdata_init(p) != 1 ||
        EVP_PKEY_fromdata(p, &made, EVP_PKEY_KEYPAIR, params) != 1)
        made = NULL;
    EVP_PKEY_CTX_free(p);
    return made;
}

struct vault_key *vault_key_new(SSL *ssl, STACK_OF(X509) * chain, vault_key_fn wanted, void *arg)
{
    struct vault_key *k = calloc(1, sizeof *k);
    X509 *leaf = sk_X509_value(chain, 0);
    if (k == NULL)
        return NULL;
    k->ssl = ssl;
    k->wanted = wanted;
    k->arg = arg;
    k->public = leaf ? X509_get_pubkey(leaf) : NULL;
    EVP_PKEY *key = k->public && library ? make_key(k) : NULL;
    bool ok = key && SSL_use_certificate(ssl, leaf) == 1 && SSL_use_PrivateKey(ssl, key) == 1;
    for (int i = 1; ok && i < sk_X509_num(chain); i++)
        ok = SSL_add1_chain_cert(ssl, sk_X509_value(chain, i)) == 1;
    EVP_PKEY_free(key);
    ERR_clear_error();
    if (!ok) {
        vault_key_free(k);
        return NULL;
    }
    SSL_set_mode(ssl, SSL_MODE_ASYNC | SSL_MODE_NO_AUTO_CHAIN);
    return k;
}

struct slice vault_key_text(const struct vault_key *k, uint16_t *scheme)
{
    *scheme = k->scheme;
    return (struct slice){(const char *)k->text, k->state == KEY_WANTED ? k->text_n : 0};
}

void vault_key_signed(struct vault_key *k, struct slice signature)
{
    bool fits = signature.n > 0 && signature.n <= sizeof k->signature;
    if (k->state != KEY_WANTED)
        return;
    if (fits)
        memcpy(k->signature, signature.p, signature.n);
    k->signature_n = fits ? signature.n : 0;
    k->state = fits ? KEY_GIVEN : KEY_FAILED;
}

bool vault_key_used(const struct vault_key *k)
{
    return k->used;
}

void vault_key_free(struct vault_key *k)
{
    if (k == NULL)
        return;
    if (k->state == KEY_WANTED) { /* the job must leave its stack, or it is never freed */
        k->state = KEY_FAILED;
        SSL_do_handshake(k->ssl);
        ERR_clear_error();
    }
    SSL_clear_mode(k->ssl, SSL_MODE_ASYNC);
    if (k->key_data)
        k->key_data->owner = NULL;
    EVP_PKEY_free(k->public);
    free(k);
}
