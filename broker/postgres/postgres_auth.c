/* Reads what a server asks for at a login, and writes what can be said without the password. */
#include "postgres_auth.h"

#include "base64.h"
#include "postgres_message.h"

#include <openssl/objects.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <string.h>

/* Of AuthenticationXXX. */
enum {
    AUTHENTICATION_OK = 0,
    AUTHENTICATION_CLEARTEXT = 3,
    AUTHENTICATION_MD5 = 5,
    AUTHENTICATION_SASL = 10,
    AUTHENTICATION_SASL_CONTINUE = 11,
    AUTHENTICATION_SASL_FINAL = 12,
};

/* As secrets/vault/scram_proof.h numbers them. */
enum { PROOF_SCRAM = 1, PROOF_MD5, PROOF_CLEARTEXT };

void postgres_auth_free(struct postgres_auth *a)
{
    if (a->in_scram)
        scram_free(&a->scram);
    memset(a, 0, sizeof *a);
}

static enum postgres_auth_end fail(struct postgres_auth *a, const char *code, const char *why)
{
    a->code = code;
    a->why = why;
    return POSTGRES_AUTH_FAILED;
}

/* The hash of the server's certificate (RFC 5929 4.1); n 0: none is defined for its signature. */
static size_t binding_of(SSL *ssl, unsigned char to[SCRAM_BINDING_MAX])
{
    X509 *leaf = SSL_get1_peer_certificate(ssl);
    int digest = NID_undef;
    unsigned n = 0;
    if (leaf == NULL || X509_get_signature_info(leaf, &digest, NULL, NULL, NULL) != 1)
        digest = NID_undef;
    if (digest == NID_md5 || digest == NID_sha1)
        digest = NID_sha256;
    const EVP_MD *md = digest == NID_undef ? NULL : EVP_get_digestbynid(digest);
    if (md == NULL || EVP_MD_get_size(md) > SCRAM_BINDING_MAX || X509_digest(leaf, md, to, &n) != 1)
        n = 0;
    X509_free(leaf);
    return n;
}

static int put_first(struct postgres_auth *a, enum scram_channel channel, struct slice binding,
                     struct buf *out)
{
    unsigned char random[SCRAM_NONCE / 4 * 3];
    struct buf nonce, first;
    buf_init(&nonce, SCRAM_NONCE + 1);
    buf_init(&first, 200);
    int r = RAND_bytes(random, sizeof random) != 1 ||
                    base64_append(&nonce, (struct slice){(char *)random, sizeof random}) < 0 ||
                    buf_append(&nonce, "", 1) < 0
                ? -1
                : 0;
    if (r == 0) {
        scram_init(&a->scram, (const char *)buf_data(&nonce), channel, binding);
        a->in_scram = true;
        r = scram_first(&a->scram, &first) < 0 ||
                    postgres_put_text(out, channel == SCRAM_BOUND ? SLICE("SCRAM-SHA-256-PLUS")
                                                                  : SLICE("SCRAM-SHA-256")) < 0 ||
                    postgres_put_u32(out, (uint32_t)buf_len(&first)) < 0 ||
                    buf_append_slice(out, buf_slice(&first)) < 0
                ? -1
                : 0;
    }
    buf_free(&nonce);
    buf_free(&first);
    return r;
}

/* SCRAM's first message, by the strongest that both have. */
static enum postgres_auth_end begin_scram(struct postgres_auth *a, struct slice names, SSL *ssl,
                                          struct buf *out)
{
    unsigned char bound[SCRAM_BINDING_MAX];
    struct slice name;
    bool plus = false, plain = false;
    while (postgres_take_text(&names, &name) == 0 && name.n > 0) {
        plus = plus || slice_eq_str(name, "SCRAM-SHA-256-PLUS");
        plain = plain || slice_eq_str(name, "SCRAM-SHA-256");
    }
    size_t n = binding_of(ssl, bound);
    plus = plus && n > 0;
    if (a->proving)
        return fail(a, "upstream_protocol", "the server asks twice for a proof");
    if ((!plus && !plain) || a->in_scram)
        return fail(a, "upstream_protocol", "the server offers no login that is known here");
    enum scram_channel channel = plus ? SCRAM_BOUND : n ? SCRAM_UNOFFERED : SCRAM_UNBOUND;
    if (put_first(a, channel, (struct slice){(char *)bound, plus ? n : 0}, out) < 0)
        return fail(a, "memory", "");
    return POSTGRES_AUTH_SAY;
}

static enum postgres_auth_end ask(struct postgres_auth *a, uint32_t scheme, struct slice text)
{
    if (a->proving)
        return fail(a, "upstream_protocol", "the server asks twice for a proof");
    a->proving = true;
    a->scheme = scheme;
    a->text = text;
    return POSTGRES_AUTH_PROVE;
}

enum postgres_auth_end postgres_auth_read(struct postgres_auth *a, struct slice body, SSL *ssl,
                                          struct buf *out)
{
    uint32_t code;
    if (postgres_take_u32(&body, &code) < 0)
        return fail(a, "upstream_protocol", "the server's question cannot be read");
    switch (code) {
    case AUTHENTICATION_OK:
        if ((a->in_scram && !a->proven) || a->proving)
            return fail(a, "upstream_protocol", "the server ends the login before its own proof");
        return POSTGRES_AUTH_DONE;
    case AUTHENTICATION_CLEARTEXT:
        return ask(a, PROOF_CLEARTEXT, SLICE(""));
    case AUTHENTICATION_MD5:
        return body.n == 4 ? ask(a, PROOF_MD5, body)
                           : fail(a, "upstream_protocol", "the server's salt cannot be read");
    case AUTHENTICATION_SASL:
        return begin_scram(a, body, ssl, out);
    case AUTHENTICATION_SASL_CONTINUE:
        if (!a->in_scram || scram_text(&a->scram).n > 0)
            return fail(a, "upstream_protocol",
                        "the server goes on with a login that was not begun");
        if (scram_server_first(&a->scram, body, &a->err) < 0)
            return fail(a, "upstream_login", a->err.text);
        return ask(a, PROOF_SCRAM, scram_text(&a->scram));
    case AUTHENTICATION_SASL_FINAL:
        if (!a->in_scram || scram_text(&a->scram).n == 0 || a->proving)
            return fail(a, "upstream_protocol",
                        "the server goes on with a login that was not begun");
        if (scram_server_final(body, a->signature, &a->err) < 0)
            return fail(a, "upstream_login", a->err.text);
        a->proven = true;
        return POSTGRES_AUTH_MORE;
    default:
        return fail(a, "upstream_login", "the server wants a login that is not known here");
    }
}

int postgres_auth_prove(struct postgres_auth *a, struct slice proof, struct buf *out)
{
    a->proving = false;
    if (proof.n == 0 || (a->in_scram && proof.n != SCRAM_SIGNED))
        return -1;
    a->answered = true;
    if (!a->in_scram)
        return postgres_put_text(out, proof);
    memcpy(a->signature, proof.p + SCRAM_HASH, SCRAM_HASH);
    return scram_final(&a->scram, (const unsigned char *)proof.p, out);
}
