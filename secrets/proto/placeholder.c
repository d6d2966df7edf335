/* Makes placeholders with HMAC in the shapes of known keys, and finds them in text, where one
 * counts only if its tag fits the installation's key. */
#include "placeholder.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

enum {
    BITS = 16, /* bytes of the 128 random bits */
    TAG = 4,
    CORE = BITS + TAG,
    DIGITS = 27, /* 62^27 > 2^160 */
    HASH = 32,
    CHECKSUM = 6, /* digits at the end of a github-pat */
};

static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* What follows the prefix is `body` base62 digits long, the first DIGITS of them the core. */
struct shape {
    const char *kind;
    struct slice prefix;
    size_t body;
};

static const struct shape shapes[] = {
    {"github-pat", {"ghp_", 4}, 36},
    {"openai", {"sk-proj-", 8}, 48},
    {"anthropic", {"sk-ant-api03-", 13}, 95},
    {"anthropic-oauth", {"sk-ant-oat01-", 13}, 95},
    {"", {"dwd_", 4}, 32},
};

struct placeholder_key {
    EVP_MAC_CTX *mac; /* keyed; started again for each tag */
};

static EVP_MAC_CTX *keyed(const void *key, size_t n)
{
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *mac = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC_free(hmac);
    if (mac && EVP_MAC_init(mac, key, n, params) != 1) {
        EVP_MAC_CTX_free(mac);
        mac = NULL;
    }
    return mac;
}

/* HMAC of a counter byte (when >= 0) and the message. */
static int hash(EVP_MAC_CTX *mac, int counter, const void *p, size_t n, unsigned char to[HASH])
{
    unsigned char c = (unsigned char)counter;
    size_t got;
    return EVP_MAC_init(mac, NULL, 0, NULL) == 1 &&
                   (counter < 0 || EVP_MAC_update(mac, &c, 1) == 1) &&
                   EVP_MAC_update(mac, p, n) == 1 && EVP_MAC_final(mac, to, &got, HASH) == 1 &&
                   got == HASH
               ? 0
               : -1;
}

struct placeholder_key *placeholder_key_new(const unsigned char key[PLACEHOLDER_TAG_KEY])
{
    struct placeholder_key *k = calloc(1, sizeof *k);
    if (k)
        k->mac = keyed(key, PLACEHOLDER_TAG_KEY);
    if (k && k->mac == NULL) {
        free(k);
        k = NULL;
    }
    return k;
}

void placeholder_key_free(struct placeholder_key *k)
{
    if (k == NULL)
        return;
    EVP_MAC_CTX_free(k->mac);
    free(k);
}

/* ---- base62 ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 36;
    return -1;
}

/* A big-endian number as exactly n digits; what does not fit is cut off at the front. */
static void encode(const unsigned char *number, size_t bytes, char *to, size_t n)
{
    unsigned char q[CORE];
    memcpy(q, number, bytes);
    while (n-- > 0) {
        unsigned rest = 0;
        for (size_t i = 0; i < bytes; i++) {
            rest = rest << 8 | q[i];
            q[i] = (unsigned char)(rest / 62);
            rest %= 62;
        }
        to[n] = alphabet[rest];
    }
}

/* The core of DIGITS digits. -1 when one is no digit or the number is over 160 bits. */
static int decode(const char *p, unsigned char core[CORE])
{
    memset(core, 0, CORE);
    for (size_t i = 0; i < DIGITS; i++) {
        int d = digit(p[i]);
        if (d < 0)
            return -1;
        unsigned carry = (unsigned)d;
        for (size_t j = CORE; j-- > 0;) {
            carry += core[j] * 62u;
            core[j] = (unsigned char)carry;
            carry >>= 8;
        }
        if (carry)
            return -1;
    }
    return 0;
}

/* ---- making ---- */

static uint32_t crc32_of(const char *p, size_t n)
{
    uint32_t crc = ~0u;
    while (n-- > 0) {
        crc ^= (unsigned char)*p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* GitHub ends a token with the CRC-32 of what is before: put another number there, whether the
 * prefix is counted or not. */
static void wrong_checksum(char *token, size_t prefix, size_t body)
{
    size_t n = prefix + body - CHECKSUM;
    uint32_t with = crc32_of(token, n), without = crc32_of(token + prefix, body - CHECKSUM);
    uint32_t sum = ~without;
    while (sum == with || sum == without)
        sum++;
    unsigned char b[4] = {(unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
                          (unsigned char)(sum >> 8), (unsigned char)sum};
    encode(b, sizeof b, token + n, CHECKSUM);
}

static const struct shape *shape_of(const char *kind)
{
    size_t i = 0;
    while (i < ARRAY_LEN(shapes) - 1 && (kind == NULL || strcmp(kind, shapes[i].kind) != 0))
        i++;
    return &shapes[i];
}

static int fill(EVP_MAC_CTX *mac, const char *secret, char *to, size_t n)
{
    unsigned char sum[HASH];
    for (size_t i = 0; i < n; i++) {
        if (i % HASH == 0 && hash(mac, 1 + (int)(i / HASH), secret, strlen(secret), sum) < 0)
            return -1;
        to[i] = alphabet[sum[i % HASH] % 62];
    }
    return 0;
}

int placeholder_make(struct placeholder_key *k, const unsigned char seed[PLACEHOLDER_SEED],
                     const char *secret, const char *kind, char to[PLACEHOLDER_MAX])
{
    const struct shape *s = shape_of(kind);
    unsigned char core[CORE], bits[HASH], tag[HASH];
    char *body = to + s->prefix.n;
    EVP_MAC_CTX *mac = keyed(seed, PLACEHOLDER_SEED);
    int r = -1;
    if (mac && hash(mac, -1, secret, strlen(secret), bits) == 0 &&
        hash(k->mac, -1, bits, BITS, tag) == 0 &&
        fill(mac, secret, body + DIGITS, s->body - DIGITS) == 0) {
        memcpy(core, bits, BITS);
        memcpy(core + BITS, tag, TAG);
        memcpy(to, s->prefix.p, s->prefix.n);
        encode(core, CORE, body, DIGITS);
        body[s->body] = 0;
        if (strcmp(s->kind, "github-pat") == 0)
            wrong_checksum(to, s->prefix.n, s->body);
        r = 0;
    }
    EVP_MAC_CTX_free(mac);
    return r;
}

/* ---- finding ---- */

static bool tag_fits(struct placeholder_key *k, const unsigned char core[CORE])
{
    unsigned char tag[HASH];
    if (hash(k->mac, -1, core, BITS, tag) < 0)
        return true; /* cannot be told: counts as one, and is refused */
    return CRYPTO_memcmp(tag, core + BITS, TAG) == 0;
}

/* Length of the placeholder that begins right here, or 0. The core decides; filler counts as far as
 * it is there. */
static size_t placeholder_at(struct placeholder_key *k, struct slice at, const struct shape **ret)
{
    unsigned char core[CORE];
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        if (at.n < s->prefix.n + DIGITS || !slice_starts(at, s->prefix) ||
            decode(at.p + s->prefix.n, core) < 0 || !tag_fits(k, core))
            continue;
        size_t n = s->prefix.n + DIGITS, most = s->prefix.n + s->body;
        while (n < most && n < at.n && digit(at.p[n]) >= 0)
            n++;
        *ret = s;
        return n;
    }
    return 0;
}

bool placeholder_is(struct placeholder_key *k, struct slice text)
{
    const struct shape *s;
    size_t n = placeholder_at(k, text, &s);
    return n > 0 && n == text.n && n == s->prefix.n + s->body;
}

size_t placeholder_scan(struct placeholder_key *k, struct slice text, placeholder_fn fn, void *arg)
{
    const struct shape *s;
    size_t found = 0;
    for (size_t i = 0; i < text.n;) {
        char c = text.p[i];
        struct slice at = {text.p + i, text.n - i};
        size_t n = c == 'd' || c == 'g' || c == 's' ? placeholder_at(k, at, &s) : 0;
        if (n == 0) {
            i++;
            continue;
        }
        found++;
        if (fn)
            fn(arg, (struct slice){at.p, n});
        i += n;
    }
    return found;
}

/* The whole of `at` is the beginning of one, and there may be more of it. */
static bool begins(struct slice at)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        if (at.n >= s->prefix.n + s->body)
            continue;
        if (at.n <= s->prefix.n) {
            if (memcmp(at.p, s->prefix.p, at.n) == 0)
                return true;
            continue;
        }
        size_t n = s->prefix.n;
        bool fits = slice_starts(at, s->prefix);
        while (fits && n < at.n && digit(at.p[n]) >= 0)
            n++;
        if (fits && n == at.n)
            return true;
    }
    return false;
}

/* How much of `at` has a shape, as far as it is there; 0: none, or not its whole core. */
static size_t shaped(struct slice at)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        size_t n = s->prefix.n, most = s->prefix.n + s->body;
        if (!slice_starts(at, s->prefix))
            continue;
        while (n < most && n < at.n && digit(at.p[n]) >= 0)
            n++;
        if (n >= s->prefix.n + DIGITS)
            return n;
    }
    return 0;
}

size_t placeholder_beyond(struct slice text, size_t cut)
{
    size_t i = cut < PLACEHOLDER_MAX ? 0 : cut - PLACEHOLDER_MAX;
    for (; i < cut; i++) {
        char c = text.p[i];
        size_t n = 0;
        if (c == 'd' || c == 'g' || c == 's')
            n = shaped((struct slice){text.p + i, text.n - i});
        if (i + n > cut)
            return i + n - cut;
    }
    return 0;
}

size_t placeholder_partial(struct slice text)
{
    size_t n = text.n < PLACEHOLDER_MAX - 1 ? text.n : PLACEHOLDER_MAX - 1;
    for (; n > 0; n--) {
        char c = text.p[text.n - n];
        if ((c == 'd' || c == 'g' || c == 's') && begins((struct slice){text.p + text.n - n, n}))
            break;
    }
    return n;
}
