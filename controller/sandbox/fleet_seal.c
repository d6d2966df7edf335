/* Signs with the one key and verifies with that of the list which a text names. */
#include "fleet_seal.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "note.h"

enum { SIGNATURE = 64, SIGNED_MAX = NOTE_BODY_MAX + 256 };

struct known {
    char host[FLEET_NAME_MAX + 1];
    char key[FLEET_SEAL_KEY];
    EVP_PKEY *verifies;
};

struct fleet_seal {
    EVP_PKEY *own;
    struct known list[FLEET_HOSTS_MAX + 1]; /* the first is this host */
    size_t n;
};

static int name_key(const unsigned char raw[FLEET_KEY], char key[FLEET_SEAL_KEY])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    if (SHA256(raw, FLEET_KEY, hash) == NULL)
        return -1;
    for (size_t i = 0; i < (FLEET_SEAL_KEY - 1) / 2; i++)
        snprintf(key + 2 * i, 3, "%02x", hash[i]);
    return 0;
}

static int add(struct fleet_seal *s, const char *host, const unsigned char raw[FLEET_KEY])
{
    struct known *k = &s->list[s->n];
    k->verifies = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, FLEET_KEY);
    if (k->verifies == NULL || name_key(raw, k->key) < 0)
        return -1;
    snprintf(k->host, sizeof k->host, "%s", host);
    s->n++;
    return 0;
}

struct fleet_seal *fleet_seal_new(EVP_PKEY *own, const struct config_fleet *f, struct err *err)
{
    unsigned char raw[FLEET_KEY];
    size_t n = sizeof raw;
    struct fleet_seal *s = calloc(1, sizeof *s);
    int bad = s == NULL || EVP_PKEY_get_raw_public_key(own, raw, &n) != 1 || n != FLEET_KEY ||
              add(s, "", raw) < 0;
    for (size_t i = 0; !bad && i < f->n_hosts; i++)
        if (memcmp(f->hosts[i].key, raw, FLEET_KEY) != 0) /* one list may serve all of them */
            bad = add(s, f->hosts[i].name, f->hosts[i].key) < 0;
    if (!bad) {
        s->own = own;
        return s;
    }
    err_set(err, ERR_INTERNAL, "a key of the fleet cannot be used");
    fleet_seal_free(s);
    return NULL;
}

void fleet_seal_free(struct fleet_seal *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i <= FLEET_HOSTS_MAX; i++)
        EVP_PKEY_free(s->list[i].verifies);
    free(s);
}

const char *fleet_seal_key(const struct fleet_seal *s)
{
    return s->list[0].key;
}

/* What is signed; text: KEY "." base64url(JSON). */
static int put_signed(struct buf *out, const char *kind, const char *id, struct slice text)
{
    return buf_append_str(out, "durward-fleet-1\n") < 0 || buf_append_str(out, kind) < 0 ||
                   buf_append_str(out, "\n") < 0 || buf_append_str(out, id) < 0 ||
                   buf_append_str(out, "\n") < 0 || buf_append_slice(out, text) < 0 ||
                   buf_append_str(out, "\n") < 0
               ? -1
               : 0;
}

static int sign(EVP_PKEY *key, struct slice text, unsigned char to[SIGNATURE])
{
    size_t n = SIGNATURE;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
             EVP_DigestSign(ctx, to, &n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(ctx);
    return ok && n == SIGNATURE ? 0 : -1;
}

static bool verifies(EVP_PKEY *key, struct slice text, const unsigned char from[SIGNATURE])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
             EVP_DigestVerify(ctx, from, SIGNATURE, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}

int fleet_seal_put(const struct fleet_seal *s, const char *kind, const char *id, const json_t *v,
                   struct buf *out)
{
    unsigned char signature[SIGNATURE];
    struct buf text, said;
    char *json = json_dumps(v, JSON_COMPACT);
    buf_init(&text, NOTE_BODY_MAX);
    buf_init(&said, SIGNED_MAX);
    int bad = json == NULL || buf_append_str(&text, s->list[0].key) < 0 ||
              buf_append_str(&text, ".") < 0 || base64url_append(&text, slice_str(json)) < 0 ||
              put_signed(&said, kind, id, buf_slice(&text)) < 0 ||
              sign(s->own, buf_slice(&said), signature) < 0 || buf_append_str(&text, ".") < 0 ||
              base64url_append(&text, (struct slice){(const char *)signature, SIGNATURE}) < 0 ||
              buf_append_slice(out, buf_slice(&text)) < 0;
    free(json);
    buf_free(&text);
    buf_free(&said);
    return bad ? -1 : 0;
}

static const struct known *whose(const struct fleet_seal *s, struct slice key)
{
    for (size_t i = 0; i < s->n; i++)
        if (slice_eq_str(key, s->list[i].key))
            return &s->list[i];
    return NULL;
}

static bool is_signed(const struct known *k, const char *kind, const char *id, struct slice text,
                      struct slice signature)
{
    struct buf raw, said;
    buf_init(&raw, 2 * SIGNATURE);
    buf_init(&said, SIGNED_MAX);
    bool good = base64url_decode(&raw, signature) == 0 && buf_len(&raw) == SIGNATURE &&
                put_signed(&said, kind, id, text) == 0 &&
                verifies(k->verifies, buf_slice(&said), buf_data(&raw));
    buf_free(&raw);
    buf_free(&said);
    return good;
}

json_t *fleet_seal_get(const struct fleet_seal *s, const char *kind, const char *id,
                       struct slice body, const char **host)
{
    struct buf json;
    json_t *v = NULL;
    ssize_t first = slice_find(body, '.');
    if (first < 0)
        return NULL;
    struct slice rest = {body.p + first + 1, body.n - (size_t)first - 1};
    ssize_t second = slice_find(rest, '.');
    const struct known *k = whose(s, (struct slice){body.p, (size_t)first});
    if (second < 0 || k == NULL)
        return NULL;
    struct slice text = {body.p, (size_t)first + 1 + (size_t)second};
    struct slice signature = {rest.p + second + 1, rest.n - (size_t)second - 1};
    if (!is_signed(k, kind, id, text, signature))
        return NULL;
    buf_init(&json, NOTE_BODY_MAX);
    if (base64url_decode(&json, (struct slice){rest.p, (size_t)second}) == 0)
        v = json_loadb((const char *)buf_data(&json), buf_len(&json), JSON_REJECT_DUPLICATES, NULL);
    buf_free(&json);
    *host = k->host;
    return v;
}
