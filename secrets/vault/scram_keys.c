/* Keeps the keys of a password's last salts in memory for secrets, by the password's hash: another
 * password wipes them all. */
#include "scram_keys.h"

#include "secret.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    uint64_t used; /* when it last was, in calls; 0: it is empty */
    uint32_t iterations, n;
    unsigned char salt[SCRAM_SALT_MAX];
    struct scram_pair pair;
};

/* All of it in memory for secrets. */
struct held {
    unsigned char password[SHA256_DIGEST_LENGTH];
    struct slot slots[SCRAM_KEYS_MAX];
};

struct scram_keys {
    struct secret *memory; /* a struct held; NULL until the first */
    uint64_t calls;
    unsigned left; /* that may be made now, */
    int64_t since; /* counted up to then */
};

struct scram_keys *scram_keys_new(void)
{
    struct scram_keys *k = calloc(1, sizeof *k);
    if (k)
        k->left = SCRAM_KEYS_BURST;
    return k;
}

void scram_keys_forget(struct scram_keys *k)
{
    secret_unref(k->memory); /* wipes */
    k->memory = NULL;
}

void scram_keys_free(struct scram_keys *k)
{
    if (k == NULL)
        return;
    scram_keys_forget(k);
    free(k);
}

/* ---- making them ---- */

static bool hmac(const unsigned char *key, struct slice text, unsigned char *to)
{
    unsigned n = 0;
    return HMAC(EVP_sha256(), key, SCRAM_HASH, (const unsigned char *)text.p, text.n, to, &n) &&
           n == SCRAM_HASH;
}

int scram_keys_make(struct slice password, struct slice salt, uint32_t iterations,
                    struct scram_pair *ret)
{
    unsigned char salted[SCRAM_HASH];
    bool ok =
        password.n > 0 && password.n <= INT_MAX && salt.n <= INT_MAX &&
        iterations <= SCRAM_ITERATIONS_MOST &&
        PKCS5_PBKDF2_HMAC(password.p, (int)password.n, (const unsigned char *)salt.p, (int)salt.n,
                          (int)iterations, EVP_sha256(), SCRAM_HASH, salted) == 1 &&
        hmac(salted, SLICE("Client Key"), ret->client) &&
        hmac(salted, SLICE("Server Key"), ret->server);
    OPENSSL_cleanse(salted, sizeof salted);
    ERR_clear_error();
    return ok ? 0 : -1;
}

/* ---- keeping them ---- */

/* What is kept is of this password. NULL: memory is out. */
static struct held *hold(struct scram_keys *k, struct slice password)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)password.p, password.n, hash);
    struct held *h = k->memory ? (struct held *)(void *)secret_bytes(k->memory) : NULL;
    if (h && CRYPTO_memcmp(h->password, hash, sizeof hash) != 0)
        scram_keys_forget(k);
    if (k->memory == NULL && (k->memory = secret_alloc(sizeof *h)) != NULL) {
        h = (struct held *)(void *)secret_bytes(k->memory);
        memset(h, 0, sizeof *h);
        memcpy(h->password, hash, sizeof hash);
    }
    OPENSSL_cleanse(hash, sizeof hash);
    return k->memory ? h : NULL;
}

/* The salt's, or where it goes: an empty one, else the one that was used longest ago. */
static struct slot *slot_of(struct held *h, struct slice salt, uint32_t iterations, bool *found)
{
    struct slot *oldest = &h->slots[0];
    *found = true;
    for (size_t i = 0; i < SCRAM_KEYS_MAX; i++) {
        struct slot *s = &h->slots[i];
        if (s->used && s->iterations == iterations && s->n == salt.n &&
            memcmp(s->salt, salt.p, salt.n) == 0)
            return s;
        if (s->used < oldest->used)
            oldest = s;
    }
    *found = false;
    return oldest;
}

static bool may_make(struct scram_keys *k, int64_t now)
{
    int64_t more = now > k->since ? (now - k->since) * SCRAM_KEYS_RATE : 0;
    k->since = now;
    k->left = more < SCRAM_KEYS_BURST - (int64_t)k->left ? k->left + (unsigned)more
                                                         : (unsigned)SCRAM_KEYS_BURST;
    if (k->left == 0)
        return false;
    k->left--;
    return true;
}

int scram_keys_get(struct scram_keys *k, struct slice password, struct slice salt,
                   uint32_t iterations, int64_t now, struct scram_pair *ret, bool *made,
                   struct err *err)
{
    struct held *h = hold(k, password);
    *made = false;
    if (h == NULL || salt.n > SCRAM_SALT_MAX)
        return err_set(err, ERR_INTERNAL, "the proof could not be made");
    struct slot *s = slot_of(h, salt, iterations, made);
    *made = !*made;
    if (*made) {
        if (!may_make(k, now))
            return err_set(err, ERR_LIMIT,
                           "this login is asked for by too many servers at once; try again later");
        OPENSSL_cleanse(s, sizeof *s);
        if (scram_keys_make(password, salt, iterations, &s->pair) < 0) {
            OPENSSL_cleanse(s, sizeof *s);
            return err_set(err, ERR_INTERNAL, "the proof could not be made");
        }
        memcpy(s->salt, salt.p, salt.n);
        s->n = (uint32_t)salt.n;
        s->iterations = iterations;
    }
    s->used = ++k->calls;
    *ret = s->pair;
    return 0;
}
