/* token_verify. The input is a whole text and, because no fuzzer signs, also a payload: it is
 * signed here with a known key, and what is then accepted must sign again to the same text. */
#include "token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char secret_half[TOKEN_KEY] = {1, 2, 3};
enum { NOW = 1700000000, PAYLOAD_MAX = 256 };

static size_t text_of(char *to, const unsigned char *p, size_t n)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t at = 0;
    for (size_t bit = 0; bit < n * 8; bit += 6) {
        unsigned v = (unsigned)p[bit / 8] << 8;
        v |= bit / 8 + 1 < n ? p[bit / 8 + 1] : 0;
        to[at++] = alphabet[v >> (10 - bit % 8) & 63];
    }
    return at;
}

static size_t sign(EVP_PKEY *key, const unsigned char *p, size_t n, char *text)
{
    unsigned char signature[64];
    size_t signature_n = sizeof signature, at = 5;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    memcpy(text, "dwt1.", 5);
    at += text_of(text + at, p, n);
    if (!md || EVP_DigestSignInit(md, NULL, NULL, NULL, key) != 1 ||
        EVP_DigestSign(md, signature, &signature_n, (unsigned char *)text, at) != 1)
        abort();
    EVP_MD_CTX_free(md);
    text[at++] = '.';
    return at + text_of(text + at, signature, sizeof signature);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static EVP_PKEY *private_key, *public_key;
    struct token t;
    char text[TOKEN_TEXT_MAX], again[TOKEN_TEXT_MAX];
    if (private_key == NULL) {
        unsigned char raw[TOKEN_KEY];
        size_t n = sizeof raw;
        private_key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret_half, TOKEN_KEY);
        if (!private_key || EVP_PKEY_get_raw_public_key(private_key, raw, &n) != 1)
            abort();
        public_key = token_public_key(raw, NULL);
    }
    (void)token_verify(public_key, (struct slice){(const char *)data, size}, NOW, &t, NULL);
    if (size > PAYLOAD_MAX)
        return 0;
    size_t n = sign(private_key, data, size, text);
    if (token_verify(public_key, (struct slice){text, n}, NOW, &t, NULL) < 0)
        return 0;
    if (token_sign(private_key, &t, again, sizeof again, NULL) < 0 || strlen(again) != n ||
        memcmp(again, text, n) != 0)
        abort();
    return 0;
}
