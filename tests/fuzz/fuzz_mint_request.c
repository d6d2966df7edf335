/* What a gate in foreign hands may ask the signer for: "host NUL public key". Whatever passes the
 * policy is a canonical host, no wildcard, and mints a leaf that names this host and nothing else.
 */
#include "mint.h"
#include "mint_policy.h"

#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mint_issuer issuer;
static unsigned char *good_spki;

static void prepare(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (key == NULL || i2d_PUBKEY(key, &good_spki) != MINT_SPKI_LEN ||
        mint_issuer_make(&issuer, time(NULL), NULL) < 0)
        abort();
    EVP_PKEY_free(key);
}

static void check_names(X509 *leaf, const struct authority *a)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    if (names == NULL || sk_GENERAL_NAME_num(names) != 1)
        abort();
    const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, 0);
    bool name = a->kind == HOST_NAME;
    const ASN1_STRING *text = g->d.ia5;
    size_t n = name ? strlen(a->host) : a->kind == HOST_IPV4 ? 4 : 16;
    if (g->type != (name ? GEN_DNS : GEN_IPADD) || (size_t)ASN1_STRING_length(text) != n ||
        memcmp(ASN1_STRING_get0_data(text), name ? (const void *)a->host : a->ip, n) != 0)
        abort();
    GENERAL_NAMES_free(names);
}

static void check_leaf(const struct authority *a, EVP_PKEY *key)
{
    X509 *leaf = mint_leaf(&issuer, a, key, MINT_HOURS_MAX, time(NULL), NULL);
    if (leaf == NULL || X509_verify(leaf, X509_get0_pubkey(issuer.cert)) != 1 ||
        X509_check_ca(leaf) != 0)
        abort();
    check_names(leaf, a);
    X509_free(leaf);
}

static void try(struct slice host, struct slice spki)
{
    struct authority a;
    EVP_PKEY *key = NULL;
    struct err err = {0};
    if (mint_policy_check(host, spki, &a, &key, &err) < 0) {
        if (key || err.code != ERR_DENIED)
            abort();
        return;
    }
    if (!slice_eq_str(host, a.host) || memchr(host.p, '*', host.n) || memchr(host.p, 0, host.n) ||
        spki.n != MINT_SPKI_LEN)
        abort();
    check_leaf(&a, key);
    EVP_PKEY_free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (issuer.cert == NULL)
        prepare();
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    struct slice host = {(const char *)data, nul ? (size_t)(nul - data) : size}, spki = {"", 0};
    if (nul)
        spki = (struct slice){(const char *)nul + 1, size - host.n - 1};
    try(host, spki);
    /* with a key that is good, so that every host is judged as such; with and without NUL bytes */
    struct slice good = {(const char *)good_spki, MINT_SPKI_LEN};
    try(host, good);
    try((struct slice){(const char *)data, size}, good);
    return 0;
}
