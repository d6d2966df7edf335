/* Writes, signs, reads and verifies tokens, with a base64url of its own that takes one spelling
 * only. */
#include "token.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum field { FIELD_SANDBOX = 1, FIELD_POLICY, FIELD_EXPIRY, FIELD_SEED, FIELD_SOURCE };
enum { PAYLOAD_MAX = 256, SIGNATURE = 64, SIGNATURE_TEXT = 86 };

static const char prefix[] = "dwt1.";
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t encode64(char *to, const unsigned char *p, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i < 3 ? n - i : 3;
        uint32_t v = (uint32_t)p[i] << 16;
        v |= left > 1 ? (uint32_t)p[i + 1] << 8 : 0;
        v |= left > 2 ? p[i + 2] : 0;
        for (size_t j = 0; j <= left; j++)
            to[at++] = alphabet[v >> (18 - 6 * j) & 63];
    }
    return at;
}

/* Strict: no padding, no stray bits, one spelling a value. -1 or the size. */
static ssize_t decode64(unsigned char *to, size_t size, struct slice s)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t at = 0;
    if (s.n % 4 == 1)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        const char *c = s.p[i] ? strchr(alphabet, s.p[i]) : NULL;
        if (c == NULL)
            return -1;
        bits = bits << 6 | (uint32_t)(c - alphabet);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        if (at >= size)
            return -1;
        to[at++] = (unsigned char)(bits >> have);
        bits &= (1u << have) - 1;
    }
    return bits == 0 ? (ssize_t)at : -1;
}

static bool sandbox_ok(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(ascii_is_alnum(s.p[i]) && ascii_lower(s.p[i]) == s.p[i]) && s.p[i] != '-')
            return false;
    return s.n >= 1 && s.n <= TOKEN_NAME_MAX;
}

static bool policy_ok(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return s.n >= 1 && s.n <= TOKEN_NAME_MAX;
}

static bool source_ok(const unsigned char *ip, size_t n, unsigned bits)
{
    if (bits > n * 8)
        return false;
    for (size_t i = bits; i < n * 8; i++)
        if (ip[i / 8] >> (7 - i % 8) & 1)
            return false;
    return true;
}

EVP_PKEY *token_public_key(const unsigned char raw[TOKEN_KEY], struct err *err)
{
    static const unsigned char none[TOKEN_KEY];
    /* A key that was never filled in is a point of order four, under which anybody can sign. */
    if (memcmp(raw, none, sizeof none) == 0) {
        err_set(err, ERR_PARSE, "the token key is missing");
        return NULL;
    }
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, TOKEN_KEY);
    if (k == NULL)
        err_set(err, ERR_INTERNAL, "not an Ed25519 public key");
    return k;
}

static void put_field(unsigned char *to, size_t *at, enum field f, const void *p, size_t n)
{
    to[(*at)++] = (unsigned char)f;
    to[(*at)++] = (unsigned char)n;
    memcpy(to + *at, p, n);
    *at += n;
}

static int payload_make(const struct token *t, unsigned char *to, size_t *n, struct err *err)
{
    struct slice sandbox = {t->sandbox, strnlen(t->sandbox, sizeof t->sandbox)};
    struct slice policy = {t->policy, strnlen(t->policy, sizeof t->policy)};
    size_t ip_n = t->source_family == AF_INET ? 4 : 16;
    if (!sandbox_ok(sandbox) || !policy_ok(policy))
        return err_set(err, ERR_PARSE, "a token's sandbox or policy has a bad name");
    if (t->source_family != 0 && t->source_family != AF_INET && t->source_family != AF_INET6)
        return err_set(err, ERR_PARSE, "a token's source is not an IP prefix");
    if (t->source_family && !source_ok(t->source, ip_n, t->source_bits))
        return err_set(err, ERR_PARSE, "a token's source has bits beyond its prefix");
    unsigned char expiry[8], source[17] = {(unsigned char)t->source_bits};
    for (int i = 0; i < 8; i++)
        expiry[i] = (unsigned char)(t->expiry >> (56 - 8 * i));
    *n = 0;
    put_field(to, n, FIELD_SANDBOX, sandbox.p, sandbox.n);
    put_field(to, n, FIELD_POLICY, policy.p, policy.n);
    put_field(to, n, FIELD_EXPIRY, expiry, sizeof expiry);
    put_field(to, n, FIELD_SEED, t->seed, sizeof t->seed);
    if (t->source_family) {
        memcpy(source + 1, t->source, ip_n);
        put_field(to, n, FIELD_SOURCE, source, ip_n + 1);
    }
    return 0;
}

int token_sign(EVP_PKEY *key, const struct token *t, char *out, size_t size, struct err *err)
{
    unsigned char payload[PAYLOAD_MAX], signature[SIGNATURE];
    size_t n = 0, at = sizeof prefix - 1, signature_n = sizeof signature;
    if (size < TOKEN_TEXT_MAX)
        return err_set(err, ERR_INTERNAL, "no room for a token");
    if (payload_make(t, payload, &n, err) < 0)
        return -1;
    memcpy(out, prefix, at);
    at += encode64(out + at, payload, n);
    explicit_bzero(payload, sizeof payload);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int ok = md && EVP_DigestSignInit(md, NULL, NULL, NULL, key) == 1 &&
             EVP_DigestSign(md, signature, &signature_n, (unsigned char *)out, at) == 1 &&
             signature_n == sizeof signature;
    EVP_MD_CTX_free(md);
    if (!ok) {
        out[0] = 0;
        return err_set(err, ERR_INTERNAL, "signing a token failed");
    }
    out[at++] = '.';
    at += encode64(out + at, signature, sizeof signature);
    out[at] = 0;
    return 0;
}

static bool signature_ok(EVP_PKEY *key, struct slice what, const unsigned char *signature)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok =
        md && EVP_DigestVerifyInit(md, NULL, NULL, NULL, key) == 1 &&
        EVP_DigestVerify(md, signature, SIGNATURE, (const unsigned char *)what.p, what.n) == 1;
    EVP_MD_CTX_free(md);
    return ok;
}

static int read_source(struct token *t, const unsigned char *p, size_t n)
{
    if ((n != 5 && n != 17) || !source_ok(p + 1, n - 1, p[0]))
        return -1;
    t->source_family = n == 5 ? AF_INET : AF_INET6;
    t->source_bits = p[0];
    memcpy(t->source, p + 1, n - 1);
    return 0;
}

static int read_field(struct token *t, unsigned f, const unsigned char *p, size_t n)
{
    struct slice s = {(const char *)p, n};
    switch (f) {
    case FIELD_SANDBOX:
        if (!sandbox_ok(s))
            return -1;
        memcpy(t->sandbox, p, n);
        return 0;
    case FIELD_POLICY:
        if (!policy_ok(s))
            return -1;
        memcpy(t->policy, p, n);
        return 0;
    case FIELD_EXPIRY:
        if (n != 8)
            return -1;
        for (size_t i = 0; i < 8; i++)
            t->expiry = t->expiry << 8 | p[i];
        return 0;
    case FIELD_SEED:
        if (n != TOKEN_SEED)
            return -1;
        memcpy(t->seed, p, n);
        return 0;
    default:
        return read_source(t, p, n);
    }
}

/* Fields 1 to 4 must be there, in order; 5 may follow; nothing else may. */
static int payload_read(struct token *t, const unsigned char *p, size_t n)
{
    unsigned next = FIELD_SANDBOX;
    memset(t, 0, sizeof *t);
    while (n > 0) {
        if (n < 2 || p[0] != next || next > FIELD_SOURCE || n - 2 < p[1])
            return -1;
        if (read_field(t, p[0], p + 2, p[1]) < 0)
            return -1;
        n -= 2 + (size_t)p[1];
        p += 2 + (size_t)p[1];
        next++;
    }
    return next > FIELD_SEED ? 0 : -1;
}

int token_verify(EVP_PKEY *public_key, struct slice text, uint64_t now, struct token *ret,
                 struct err *err)
{
    unsigned char payload[PAYLOAD_MAX], signature[SIGNATURE];
    struct token t;
    if (text.n >= TOKEN_TEXT_MAX || !slice_starts(text, SLICE("dwt1.")))
        return err_set(err, ERR_PARSE, "not a sandbox token");
    struct slice body = {text.p + sizeof prefix - 1, text.n - (sizeof prefix - 1)};
    ssize_t dot = slice_find(body, '.');
    if (dot < 0 || body.n - (size_t)dot - 1 != SIGNATURE_TEXT)
        return err_set(err, ERR_PARSE, "not a sandbox token");
    struct slice tail = {body.p + dot + 1, SIGNATURE_TEXT};
    body.n = (size_t)dot;
    if (decode64(signature, sizeof signature, tail) != SIGNATURE)
        return err_set(err, ERR_PARSE, "not a sandbox token");
    struct slice signed_part = {text.p, sizeof prefix - 1 + body.n};
    if (!signature_ok(public_key, signed_part, signature))
        return err_set(err, ERR_DENIED, "the token's signature is wrong");
    ssize_t n = decode64(payload, sizeof payload, body);
    if (n < 0 || payload_read(&t, payload, (size_t)n) < 0)
        return err_set(err, ERR_PARSE, "not a sandbox token");
    if (now >= t.expiry)
        return err_set(err, ERR_DENIED, "the token has expired");
    if (t.expiry - now > TOKEN_LIFE_SECONDS + TOKEN_SKEW_SECONDS)
        return err_set(err, ERR_DENIED, "the token's life is longer than allowed");
    *ret = t;
    return 0;
}

bool token_from(const struct token *t, const struct sockaddr *peer)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    const unsigned char *ip = NULL;
    int family = peer->sa_family;
    if (t->source_family == 0)
        return true;
    if (family == AF_INET)
        ip = (const unsigned char *)&((const struct sockaddr_in *)peer)->sin_addr;
    else if (family == AF_INET6)
        ip = (const unsigned char *)&((const struct sockaddr_in6 *)peer)->sin6_addr;
    if (family == AF_INET6 && memcmp(ip, mapped, sizeof mapped) == 0) {
        ip += 12;
        family = AF_INET;
    }
    if (ip == NULL || family != t->source_family)
        return false;
    for (unsigned i = 0; i < t->source_bits; i++)
        if ((ip[i / 8] ^ t->source[i / 8]) >> (7 - i % 8) & 1)
            return false;
    return true;
}
