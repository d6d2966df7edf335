/* Packs a pair into one value, derives the signing key from date, region and service, and signs.
 * Checks the scope first, so that only such a text is ever signed. */
#include "aws_sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

enum { HASH = 32 };

static bool visible(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
            return false;
    return true;
}

struct secret *aws_pair_pack(struct slice id, struct slice key, struct slice token)
{
    if (id.n == 0 || id.n > 128 || key.n == 0 || key.n > 256 || token.n > AWS_TOKEN_MAX ||
        !visible(id) || !visible(key) || !visible(token))
        return NULL;
    struct secret *s = secret_alloc(id.n + key.n + token.n + 2);
    if (s == NULL)
        return NULL;
    unsigned char *at = secret_bytes(s);
    memcpy(at, id.p, id.n);
    at[id.n] = '\n';
    memcpy(at + id.n + 1, key.p, key.n);
    at[id.n + 1 + key.n] = '\n';
    if (token.n)
        memcpy(at + id.n + key.n + 2, token.p, token.n);
    return s;
}

int aws_pair_open(struct slice value, struct aws_pair *ret)
{
    ssize_t first = slice_find(value, '\n');
    if (first <= 0)
        return -1;
    struct slice rest = {value.p + first + 1, value.n - (size_t)first - 1};
    ssize_t second = slice_find(rest, '\n');
    if (second <= 0)
        return -1;
    ret->id = (struct slice){value.p, (size_t)first};
    ret->key = (struct slice){rest.p, (size_t)second};
    ret->token = (struct slice){rest.p + second + 1, rest.n - (size_t)second - 1};
    return 0;
}

struct secret *aws_pair_told(struct slice value)
{
    struct aws_pair pair;
    if (aws_pair_open(value, &pair) < 0)
        return NULL;
    struct secret *told = secret_alloc(pair.id.n + pair.token.n + (pair.token.n > 0));
    if (told == NULL)
        return NULL;
    unsigned char *to = secret_bytes(told);
    memcpy(to, pair.id.p, pair.id.n);
    if (pair.token.n > 0) {
        to[pair.id.n] = ' ';
        memcpy(to + pair.id.n + 1, pair.token.p, pair.token.n);
    }
    return told;
}

static bool name_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= AWS_SCOPE_MAX &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

static bool hex_ok(const char *s)
{
    return strlen(s) == AWS_HEX && strspn(s, "0123456789abcdef") == AWS_HEX;
}

bool aws_scope_ok(const struct aws_scope *s)
{
    const char *t = s->time;
    if (s->text == AWS_REQUEST ? s->previous[0] != 0
                               : s->text > AWS_TRAILER || !hex_ok(s->previous))
        return false;
    if (strlen(t) != AWS_TIME || t[8] != 'T' || t[15] != 'Z')
        return false;
    for (int i = 0; i < 15; i++)
        if (i != 8 && (t[i] < '0' || t[i] > '9'))
            return false;
    return name_ok(s->region) && name_ok(s->service) && hex_ok(s->hash);
}

static void hex(const unsigned char *from, char to[AWS_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < HASH; i++) {
        to[2 * i] = digits[from[i] >> 4];
        to[2 * i + 1] = digits[from[i] & 15];
    }
    to[AWS_HEX] = 0;
}

int aws_hash(struct slice text, char to[AWS_HEX + 1])
{
    unsigned char md[HASH];
    if (EVP_Digest(text.p, text.n, md, NULL, EVP_sha256(), NULL) != 1)
        return -1;
    hex(md, to);
    return 0;
}

/* The hash of no bytes, and its line's end: what stands for the head of a chunk, which has none. */
static const char nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";

static bool mac(unsigned char key[HASH], const char *text)
{
    unsigned n;
    unsigned char out[HASH];
    bool ok = HMAC(EVP_sha256(), key, HASH, (const unsigned char *)text, strlen(text), out, &n);
    memcpy(key, out, HASH);
    OPENSSL_cleanse(out, sizeof out);
    return ok;
}

int aws_sign(const struct aws_pair *pair, const struct aws_scope *s, char to[AWS_HEX + 1])
{
    unsigned char key[HASH];
    char first[300], day[9], text[600];
    unsigned n;
    if (!aws_scope_ok(s) || pair->key.n > 256)
        return -1;
    snprintf(day, sizeof day, "%.8s", s->time);
    snprintf(text, sizeof text, "AWS4-HMAC-SHA256%s\n%s\n%s/%s/%s/aws4_request\n%s%s%s%s",
             s->text == AWS_CHUNK     ? "-PAYLOAD"
             : s->text == AWS_TRAILER ? "-TRAILER"
                                      : "",
             s->time, day, s->region, s->service, s->previous, *s->previous ? "\n" : "",
             s->text == AWS_CHUNK ? nothing : "", s->hash);
    int len = snprintf(first, sizeof first, "AWS4%.*s", SL(pair->key));
    bool ok = HMAC(EVP_sha256(), first, len, (const unsigned char *)day, 8, key, &n) &&
              mac(key, s->region) && mac(key, s->service) && mac(key, "aws4_request") &&
              mac(key, text);
    if (ok)
        hex(key, to);
    OPENSSL_cleanse(first, sizeof first);
    OPENSSL_cleanse(key, sizeof key);
    return ok ? 0 : -1;
}
