/* Keeps certificates in the order of their making. Their private keys are made, whenever one signs,
 * of a random root in memory for secrets: a page of such memory for each would soon be too many. */
#include "ssh_certificates.h"

#include "secret.h"
#include "ssh_sign.h"
#include "ssh_sign_internal.h"
#include "ssh_wire.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { ROOT = 32 };

struct held {
    char policy[65], sandbox[65];
    unsigned char id[16]; /* of which its key is made */
    struct buf blob;      /* the certificate */
    int64_t made, until;
    TAILQ_ENTRY(held) link;
};

struct ssh_certificates {
    struct secret *root; /* NULL until the first */
    size_t n;
    TAILQ_HEAD(held_list, held) list; /* the newest first */
};

struct ssh_certificates *ssh_certificates_new(void)
{
    struct ssh_certificates *s = calloc(1, sizeof *s);
    if (s)
        TAILQ_INIT(&s->list);
    return s;
}

static void held_free(struct held *h)
{
    buf_free(&h->blob);
    free(h);
}

static void drop(struct ssh_certificates *s, struct held *h)
{
    TAILQ_REMOVE(&s->list, h, link);
    s->n--;
    held_free(h);
}

void ssh_certificates_forget(struct ssh_certificates *s)
{
    while (!TAILQ_EMPTY(&s->list))
        drop(s, TAILQ_FIRST(&s->list));
    secret_unref(s->root); /* wipes */
    s->root = NULL;
}

void ssh_certificates_free(struct ssh_certificates *s)
{
    if (s == NULL)
        return;
    ssh_certificates_forget(s);
    free(s);
}

static bool is_of(const struct held *h, const struct ssh_certificates_owner *of)
{
    return strcmp(h->policy, of->policy) == 0 && strcmp(h->sandbox, of->sandbox) == 0;
}

/* A clock that was set back makes what was given before look as if it came later. */
static bool is_good(const struct held *h, int64_t now)
{
    return now >= h->made && now < h->until;
}

static bool has_half(const struct held *h, int64_t now)
{
    return is_good(h, now) && h->until - now > now - h->made;
}

/* Room for one more: what is over goes, then of the policy that has its part its oldest, and of
 * this owner all but the newest, with which somebody may be logging in. */
static void make_room(struct ssh_certificates *s, const struct ssh_certificates_owner *of,
                      int64_t now)
{
    struct held *h, *next, *oldest = NULL;
    size_t n = 0;
    for (h = TAILQ_FIRST(&s->list); h; h = next) {
        next = TAILQ_NEXT(h, link);
        if (!is_good(h, now)) {
            drop(s, h);
            continue;
        }
        if (strcmp(h->policy, of->policy) == 0) {
            n++;
            oldest = h;
        }
    }
    if (n >= SSH_CERTIFICATES_OF_POLICY)
        drop(s, oldest);
    else if (s->n >= SSH_CERTIFICATES_MAX)
        drop(s, TAILQ_LAST(&s->list, held_list));
}

/* ---- making one ---- */

/* NULL: memory is out. */
static EVP_PKEY *key_of(const struct ssh_certificates *s, const struct held *h)
{
    unsigned char seed[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct slice root = secret_slice(s->root);
    EVP_PKEY *key = NULL;
    if (HMAC(EVP_sha256(), root.p, (int)root.n, h->id, sizeof h->id, seed, &n) &&
        n == SSH_CERTIFICATE_KEY)
        key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, n);
    OPENSSL_cleanse(seed, sizeof seed);
    return key;
}

/* Its key, and the public half. -1: there are no random bytes, or no memory. */
static int new_key(struct ssh_certificates *s, struct held *h,
                   unsigned char public[SSH_CERTIFICATE_KEY])
{
    size_t n = SSH_CERTIFICATE_KEY;
    if (s->root == NULL && (s->root = secret_alloc(ROOT)) != NULL &&
        RAND_priv_bytes(secret_bytes(s->root), ROOT) != 1) {
        secret_unref(s->root);
        s->root = NULL;
    }
    EVP_PKEY *key = s->root && RAND_bytes(h->id, sizeof h->id) == 1 ? key_of(s, h) : NULL;
    int r = key && EVP_PKEY_get_raw_public_key(key, public, &n) == 1 && n == SSH_CERTIFICATE_KEY
                ? 0
                : -1;
    EVP_PKEY_free(key);
    return r;
}

/* Its name goes into the server's log, among other words. */
static bool is_name(const char *s)
{
    for (size_t i = 0; s[i]; i++)
        if (s[i] <= ' ' || s[i] >= 0x7f)
            return false;
    return *s && strlen(s) <= 64;
}

static struct held *make(struct ssh_certificates *s, const struct ssh_certificates_terms *t,
                         const struct ssh_certificates_owner *of, struct slice ca, int64_t now,
                         struct err *err)
{
    unsigned char public[SSH_CERTIFICATE_KEY];
    char key_id[160];
    struct held *h = calloc(1, sizeof *h);
    if (h == NULL || new_key(s, h, public) < 0) {
        free(h);
        err_set(err, ERR_INTERNAL, "no key could be made");
        return NULL;
    }
    buf_init(&h->blob, SSH_CERTIFICATE_MAX);
    snprintf(h->policy, sizeof h->policy, "%s", of->policy);
    snprintf(h->sandbox, sizeof h->sandbox, "%s", of->sandbox);
    snprintf(key_id, sizeof key_id, "durward:%s:%s", of->policy, of->sandbox);
    h->made = now;
    h->until = now + (int64_t)t->minutes * 60;
    const struct ssh_certificate c = {.public = {(char *)public, sizeof public},
                                      .key_id = key_id,
                                      .principals = t->principals,
                                      .source_address = t->source_address,
                                      .force_command = t->force_command,
                                      .extensions = t->extensions,
                                      .from = now - SSH_CERTIFICATES_AHEAD,
                                      .until = h->until};
    if (ssh_certificate_make(&c, ca, &h->blob, err) == 0)
        return h;
    held_free(h);
    return NULL;
}

int ssh_certificates_get(struct ssh_certificates *s, const struct ssh_certificates_terms *t,
                         const struct ssh_certificates_owner *of, struct slice ca, int64_t now,
                         struct buf *out, struct err *err)
{
    struct held *h;
    if (!is_name(of->policy) || !is_name(of->sandbox))
        return err_set(err, ERR_DENIED, "a certificate is for a sandbox, by its name");
    TAILQ_FOREACH(h, &s->list, link)
    if (is_of(h, of))
        break;
    if (h == NULL || !has_half(h, now)) {
        if ((h = make(s, t, of, ca, now, err)) == NULL)
            return -1;
        make_room(s, of, now);
        TAILQ_INSERT_HEAD(&s->list, h, link);
        s->n++;
    }
    return buf_append_slice(out, buf_slice(&h->blob)) < 0
               ? err_set(err, ERR_LIMIT, "the certificate is too long")
               : 0;
}

/* ---- logging in with it ---- */

int ssh_certificates_sign(struct ssh_certificates *s, const struct ssh_certificates_owner *of,
                          struct slice login, int64_t now, struct buf *out, struct err *err)
{
    struct slice algorithm, public;
    struct held *h;
    if (ssh_sign_login(login, &algorithm, &public) < 0)
        return err_set(err, ERR_DENIED, "that is nothing which a login signs");
    TAILQ_FOREACH(h, &s->list, link)
    if (slice_eq(buf_slice(&h->blob), public))
        break;
    if (h == NULL || !is_of(h, of) || !slice_eq_str(algorithm, SSH_CERTIFICATE_TYPE))
        return err_set(err, ERR_DENIED, "that is a login with another certificate");
    if (!is_good(h, now))
        return err_set(err, ERR_DENIED, "its certificate is over");
    EVP_PKEY *key = key_of(s, h);
    int r = key == NULL || ssh_sign_as(key, login, out) < 0
                ? err_set(err, ERR_INTERNAL, "signing failed")
                : 0;
    EVP_PKEY_free(key);
    ERR_clear_error();
    return r;
}
