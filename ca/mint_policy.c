/* Checks the host and the public key that a channel sends before the signer uses them. A key
 * reaches OpenSSL's parser in one encoding only, whose fixed bytes are compared first. */
#include "mint_policy.h"

#include <string.h>

#include <openssl/x509.h>

/* SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING of 65 bytes, point uncompressed }.
 * The one spelling of RFC 5480 that is accepted; anything else never reaches a parser. */
static const unsigned char p256_head[27] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                            0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                            0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};

int mint_policy_host(struct slice host, struct authority *ret, struct err *err)
{
    char text[HOST_TEXT_MAX + 2];
    struct slice asked = host;
    if (host.n == 0 || host.n > HOST_MAX)
        return err_set(err, ERR_DENIED, "a host of %zu bytes cannot be certified", host.n);
    if (slice_find(host, ':') >= 0) { /* IPv6 comes without brackets, authority_host wants them */
        text[0] = '[';
        memcpy(text + 1, host.p, host.n);
        text[host.n + 1] = ']';
        asked = (struct slice){text, host.n + 2};
    }
    struct authority a = {.scheme = SCHEME_HTTPS, .port = 443};
    if (authority_host(&a, asked) < 0 || !slice_eq_str(host, a.host))
        return err_set(err, ERR_DENIED, "the host is not in canonical form");
    *ret = a;
    return 0;
}

EVP_PKEY *mint_policy_key(struct slice spki, struct err *err)
{
    if (spki.n != MINT_SPKI_LEN || memcmp(spki.p, p256_head, sizeof p256_head) != 0) {
        err_set(err, ERR_DENIED, "the public key is not EC P-256");
        return NULL;
    }
    const unsigned char *at = (const unsigned char *)spki.p;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)spki.n);
    if (key == NULL || at != (const unsigned char *)spki.p + spki.n) {
        EVP_PKEY_free(key);
        err_set(err, ERR_DENIED, "the public key is not a point of the curve");
        return NULL;
    }
    return key;
}

int mint_policy_check(struct slice host, struct slice spki, struct authority *ret_host,
                      EVP_PKEY **ret_key, struct err *err)
{
    struct authority a;
    if (mint_policy_host(host, &a, err) < 0)
        return -1;
    EVP_PKEY *key = mint_policy_key(spki, err);
    if (key == NULL)
        return -1;
    *ret_host = a;
    *ret_key = key;
    return 0;
}
