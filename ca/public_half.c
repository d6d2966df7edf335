/* Takes the point out of a key and puts it into a new one of the former kind. */
#define OPENSSL_SUPPRESS_DEPRECATED /* only such a key encodes itself without a search */
#include "public_half.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <string.h>

enum { POINT = 65, GROUP_NAME = 32 };

static int is_p256(const EVP_PKEY *key)
{
    char group[GROUP_NAME];
    size_t n;
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_group_name(key, group, sizeof group, &n) == 1 &&
           strcmp(group, SN_X9_62_prime256v1) == 0;
}

EVP_PKEY *public_half(const EVP_PKEY *key)
{
    unsigned char point[POINT];
    size_t n = 0;
    if (!is_p256(key))
        return NULL;
    EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    EVP_PKEY *made = EVP_PKEY_new();
    int ok = ec && made &&
             EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, POINT, &n) == 1 &&
             EC_KEY_oct2key(ec, point, n, NULL) == 1 && EVP_PKEY_set1_EC_KEY(made, ec) == 1;
    EC_KEY_free(ec);
    if (ok)
        return made;
    EVP_PKEY_free(made);
    return NULL;
}
