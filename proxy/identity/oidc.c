/* Reads the provider's keys (RSA, from 2048 bits), and verifies a token: its head names the key,
 * then come the signature and the claims. Head and claims can also be judged alone. */
#include "oidc.h"

#include "base64.h"
#include "buf.h"

#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdlib.h>
#include <string.h>

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, KEY_ID_MAX = 128 };

struct signer_key {
    char id[KEY_ID_MAX + 1];
    EVP_PKEY *key;
};

struct oidc {
    json_t *settings; /* owned; the four texts are its */
    const char *url, *issuer, *team, *project;
    struct signer_key keys[OIDC_KEYS_MAX];
    size_t n;
};

static json_t *parse(struct slice text)
{
    json_t *v = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    if (v && !json_is_object(v)) {
        json_decref(v);
        return NULL;
    }
    return v;
}

/* A member that is a text without NUL, at most max bytes; NULL: absent or anything else. */
static const char *text_of(const json_t *object, const char *name, size_t max)
{
    const json_t *v = json_object_get(object, name);
    const char *s = json_string_value(v);
    return s && json_string_length(v) == strlen(s) && s[0] && strlen(s) <= max ? s : NULL;
}

/* ---- keys ---- */

static BIGNUM *number(const json_t *jwk, const char *name)
{
    const char *text = text_of(jwk, name, 4096);
    struct buf raw;
    BIGNUM *n = NULL;
    buf_init(&raw, 4096);
    if (text && base64url_decode(&raw, slice_str(text)) == 0 && buf_len(&raw) > 0)
        n = BN_bin2bn((const unsigned char *)buf_data(&raw), (int)buf_len(&raw), NULL);
    buf_free(&raw);
    return n;
}

static EVP_PKEY *key_of(BIGNUM *n, BIGNUM *e)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *from = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    OSSL_PARAM *params = NULL;
    if (build && from && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        params = OSSL_PARAM_BLD_to_param(build);
    if (params == NULL || EVP_PKEY_fromdata_init(from) != 1 ||
        EVP_PKEY_fromdata(from, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    EVP_PKEY_CTX_free(from);
    return key;
}

static bool sound(const BIGNUM *n, const BIGNUM *e)
{
    return n && e && BN_num_bits(n) >= RSA_BITS_MIN && BN_num_bits(n) <= RSA_BITS_MAX &&
           BN_is_odd(n) && BN_is_odd(e) && BN_num_bits(e) >= 2 && BN_num_bits(e) <= 64;
}

/* 1 taken, 0 of another kind, -1. */
static int add_key(struct oidc *o, const json_t *jwk, struct err *err)
{
    const char *kind = text_of(jwk, "kty", 16), *use = text_of(jwk, "use", 16);
    const char *algorithm = text_of(jwk, "alg", 16), *id = text_of(jwk, "kid", KEY_ID_MAX);
    if (kind == NULL || strcmp(kind, "RSA") != 0 || (use && strcmp(use, "sig") != 0) ||
        (algorithm && strcmp(algorithm, "RS256") != 0))
        return 0;
    if (id == NULL)
        return err_set(err, ERR_PARSE, "an RSA key has no kid");
    if (o->n >= OIDC_KEYS_MAX)
        return err_set(err, ERR_PARSE, "more than %d RSA keys", OIDC_KEYS_MAX);
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->keys[i].id, id) == 0)
            return err_set(err, ERR_PARSE, "two keys have the kid %s", id);
    BIGNUM *n = number(jwk, "n"), *e = number(jwk, "e");
    EVP_PKEY *key = sound(n, e) ? key_of(n, e) : NULL;
    BN_free(n);
    BN_free(e);
    if (key == NULL)
        return err_set(err, ERR_PARSE, "the key %s is not an RSA key of %d to %d bits", id,
                       RSA_BITS_MIN, RSA_BITS_MAX);
    memcpy(o->keys[o->n].id, id, strlen(id) + 1);
    o->keys[o->n++].key = key;
    return 1;
}

static int read_keys(struct oidc *o, struct err *err)
{
    const json_t *keys = json_object_get(json_object_get(o->settings, "keys"), "keys");
    size_t i;
    const json_t *jwk;
    if (!json_is_array(keys))
        return err_set(err, ERR_PARSE, "it is not a key set: { \"keys\": [...] } (RFC 7517)");
    json_array_foreach(keys, i, jwk)
    {
        if (!json_is_object(jwk))
            return err_set(err, ERR_PARSE, "a key of the set is not an object");
        if (add_key(o, jwk, err) < 0)
            return -1;
    }
    return o->n ? 0 : err_set(err, ERR_PARSE, "it has no RSA key for RS256");
}

struct oidc *oidc_new(struct slice json, struct err *err)
{
    struct oidc *o = json.n <= OIDC_SETTINGS_MAX ? calloc(1, sizeof *o) : NULL;
    if (o == NULL) {
        err_set(err, ERR_PARSE, "it is longer than %d bytes", OIDC_SETTINGS_MAX);
        return NULL;
    }
    o->settings = parse(json);
    o->url = text_of(o->settings, "url", 2048);
    o->issuer = text_of(o->settings, "issuer", 2048);
    o->team = text_of(o->settings, "team", 128);
    o->project = text_of(o->settings, "project", 128);
    if (!o->url || !o->issuer || !o->team)
        err_set(err, ERR_PARSE, "its JSON does not read");
    else if (read_keys(o, err) == 0)
        return o;
    oidc_free(o);
    return NULL;
}

void oidc_free(struct oidc *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n; i++)
        EVP_PKEY_free(o->keys[i].key);
    json_decref(o->settings);
    free(o);
}

/* ---- tokens ---- */

int oidc_head(const struct oidc *o, struct slice json, size_t *key)
{
    json_t *head = parse(json);
    const char *algorithm = text_of(head, "alg", 16), *id = text_of(head, "kid", KEY_ID_MAX);
    int r = -1;
    if (algorithm && strcmp(algorithm, "RS256") == 0 && id && !json_object_get(head, "crit"))
        for (size_t i = 0; i < o->n; i++)
            if (strcmp(o->keys[i].id, id) == 0) {
                *key = i;
                r = 0;
            }
    json_decref(head);
    return r;
}

/* The audience is our URL, or a list that has it. */
static bool for_us(const struct oidc *o, const json_t *claims)
{
    const json_t *aud = json_object_get(claims, "aud"), *one;
    size_t i;
    if (json_is_string(aud))
        return text_of(claims, "aud", 2048) && strcmp(json_string_value(aud), o->url) == 0;
    json_array_foreach(aud, i, one)
    {
        if (json_is_string(one) && json_string_length(one) == strlen(o->url) &&
            strcmp(json_string_value(one), o->url) == 0)
            return true;
    }
    return false;
}

/* -1 not yet, 1 no more, 0 good. An end is required; a beginning counts where there is one. */
static int timely(const json_t *claims, int64_t now)
{
    const json_t *until = json_object_get(claims, "exp"), *from = json_object_get(claims, "nbf");
    if (!json_is_integer(until) || (from && !json_is_integer(from)))
        return -1;
    if (json_integer_value(until) <= now - OIDC_SKEW)
        return 1;
    return from && json_integer_value(from) > now + OIDC_SKEW ? -1 : 0;
}

static bool name_ok(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!ascii_is_alnum(*c) && *c != '-' && *c != '_')
            return false;
    return true;
}

static const char *judge(const struct oidc *o, const json_t *claims, int64_t now, char *ret,
                         size_t size)
{
    const char *issuer = text_of(claims, "iss", 2048), *team = text_of(claims, "team_id", 128);
    const char *project = text_of(claims, "project_id", 128);
    const char *sandbox = text_of(claims, "sandbox_id", OIDC_NAME_MAX);
    int when = timely(claims, now);
    if (!issuer || strcmp(issuer, o->issuer) != 0 || !for_us(o, claims) || when < 0)
        return "token_invalid";
    if (when > 0)
        return "token_expired";
    if (!team || strcmp(team, o->team) != 0 || !project ||
        (o->project && strcmp(project, o->project) != 0))
        return "token_source";
    if (!sandbox || !name_ok(sandbox) || strlen(sandbox) >= size)
        return "token_invalid";
    memcpy(ret, sandbox, strlen(sandbox) + 1);
    return NULL;
}

const char *oidc_claims(const struct oidc *o, struct slice json, int64_t now, char *ret,
                        size_t size)
{
    json_t *claims = parse(json);
    const char *code = claims ? judge(o, claims, now, ret, size) : "token_invalid";
    json_decref(claims);
    return code;
}

static bool signed_by(EVP_PKEY *key, struct slice text, struct slice signature)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool good = md && EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestVerify(md, (const unsigned char *)signature.p, signature.n,
                                 (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    return good;
}

/* The part before the next dot, decoded behind what is in out; -1: none, or not base64url. */
static int part(struct slice *rest, struct buf *out, bool last)
{
    ssize_t dot = slice_find(*rest, '.');
    if ((dot < 0) != last)
        return -1;
    struct slice text = {rest->p, last ? rest->n : (size_t)dot};
    if (!last)
        *rest = (struct slice){rest->p + dot + 1, rest->n - (size_t)dot - 1};
    return text.n ? base64url_decode(out, text) : -1;
}

const char *oidc_verify(const struct oidc *o, struct slice token, int64_t now, char *ret,
                        size_t size)
{
    struct buf head, claims, signature;
    struct slice rest = token;
    size_t key;
    const char *code = "token_invalid";
    buf_init(&head, OIDC_TOKEN_MAX);
    buf_init(&claims, OIDC_TOKEN_MAX);
    buf_init(&signature, OIDC_TOKEN_MAX);
    if (token.n <= OIDC_TOKEN_MAX && part(&rest, &head, false) == 0 &&
        part(&rest, &claims, false) == 0) {
        struct slice text = {token.p, (size_t)(rest.p - token.p) - 1};
        if (part(&rest, &signature, true) == 0 && oidc_head(o, buf_slice(&head), &key) == 0 &&
            signed_by(o->keys[key].key, text, buf_slice(&signature)))
            code = oidc_claims(o, buf_slice(&claims), now, ret, size);
    }
    buf_free(&head);
    buf_free(&claims);
    buf_free(&signature);
    return code;
}
