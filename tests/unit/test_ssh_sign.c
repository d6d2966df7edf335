/* Keys that sign SSH logins: each kind and form of key, verified by libssh's own reading of it, and
 * what they do not sign. */
#include "host_key.h"
#include "ssh_sign.h"
#include "ssh_wire.h"
#include "sshsig.h"

#include <libssh/libssh.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "tap_main.h"

static void login(struct buf *b, struct slice public, const char *algorithm, const char *method)
{
    static const char session[32] = "session identifier of 32 bytes!";
    buf_clear(b);
    CU_ASSERT(ssh_wire_put_string(b, (struct slice){session, sizeof session}) == 0 &&
              ssh_wire_put_u8(b, 50) == 0 && ssh_wire_put_string(b, SLICE("git")) == 0 &&
              ssh_wire_put_string(b, SLICE("ssh-connection")) == 0 &&
              ssh_wire_put_string(b, slice_str(method)) == 0 && ssh_wire_put_u8(b, 1) == 0 &&
              ssh_wire_put_string(b, slice_str(algorithm)) == 0 &&
              ssh_wire_put_string(b, public) == 0);
}

/* By OpenSSL, with the key that the test made. */
static void verify(EVP_PKEY *key, const char *digest, struct slice text, struct slice signature)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    CU_ASSERT(EVP_DigestVerifyInit_ex(md, NULL, digest, NULL, NULL, key, NULL) == 1 &&
              EVP_DigestVerify(md, (const unsigned char *)signature.p, signature.n,
                               (const unsigned char *)text.p, text.n) == 1);
    EVP_MD_CTX_free(md);
}

static struct buf pem_of(EVP_PKEY *key)
{
    struct buf b;
    char *text;
    BIO *bio = BIO_new(BIO_s_mem());
    CU_ASSERT_FATAL(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    long n = BIO_get_mem_data(bio, &text);
    buf_init(&b, 16384);
    CU_ASSERT_FATAL(buf_append(&b, text, (size_t)n) == 0);
    BIO_free(bio);
    return b;
}

/* What libssh takes for this key's public half. */
static void same_public(struct slice private, struct slice public)
{
    ssh_key key = NULL, half = NULL;
    char *theirs = NULL, *text = slice_dup(private);
    struct buf ours;
    buf_init(&ours, 4096);
    CU_ASSERT_EQUAL_FATAL(ssh_pki_import_privkey_base64(text, NULL, NULL, NULL, &key), SSH_OK);
    CU_ASSERT_EQUAL_FATAL(ssh_pki_export_privkey_to_pubkey(key, &half), SSH_OK);
    CU_ASSERT_EQUAL_FATAL(ssh_pki_export_pubkey_base64(half, &theirs), SSH_OK);
    CU_ASSERT_EQUAL(base64_append(&ours, public), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&ours), theirs));
    ssh_string_free_char(theirs);
    ssh_key_free(half);
    ssh_key_free(key);
    buf_free(&ours);
    free(text);
}

static void one(EVP_PKEY *key, const char *algorithm, const char *digest)
{
    struct err err = {0};
    struct slice name, bytes, rest;
    struct buf pem = pem_of(key), public, text, out;
    buf_init(&public, SSH_PUBLIC_MAX);
    buf_init(&text, 8192);
    buf_init(&out, SSH_SIGNATURE_MAX);
    CU_ASSERT_EQUAL_FATAL(ssh_key_public(buf_slice(&pem), &public, &err), 0);
    login(&text, buf_slice(&public), algorithm, "publickey");
    CU_ASSERT_EQUAL_FATAL(ssh_key_sign(buf_slice(&pem), buf_slice(&text), &out, &err), 0);
    rest = buf_slice(&out);
    CU_ASSERT(ssh_wire_string(&rest, &name) == 0 && slice_eq_str(name, algorithm) &&
              ssh_wire_string(&rest, &bytes) == 0 && rest.n == 0);
    if (!EVP_PKEY_is_a(key, "EC"))
        verify(key, digest, buf_slice(&text), bytes);
    /* another's public key, another method, more behind it, less of it: not signed */
    buf_clear(&out);
    public.base[public.off + public.len - 1] ^= 1;
    login(&text, buf_slice(&public), algorithm, "publickey");
    CU_ASSERT(ssh_key_sign(buf_slice(&pem), buf_slice(&text), &out, &err) < 0);
    public.base[public.off + public.len - 1] ^= 1;
    login(&text, buf_slice(&public), algorithm, "hostbased");
    CU_ASSERT(ssh_key_sign(buf_slice(&pem), buf_slice(&text), &out, &err) < 0);
    login(&text, buf_slice(&public), algorithm, "publickey");
    CU_ASSERT(buf_append(&text, "x", 1) == 0);
    CU_ASSERT(ssh_key_sign(buf_slice(&pem), buf_slice(&text), &out, &err) < 0);
    login(&text, buf_slice(&public), "ssh-rsa", "publickey"); /* SHA-1 */
    CU_ASSERT(ssh_key_sign(buf_slice(&pem), buf_slice(&text), &out, &err) < 0);
    login(&text, buf_slice(&public), algorithm, "publickey");
    for (size_t n = 0; n < buf_len(&text); n++)
        CU_ASSERT(ssh_key_sign(buf_slice(&pem), (struct slice){(char *)buf_data(&text), n}, &out,
                               &err) < 0);
    CU_ASSERT_EQUAL(buf_len(&out), 0);
    buf_free(&pem);
    buf_free(&public);
    buf_free(&text);
    buf_free(&out);
    EVP_PKEY_free(key);
}

static void one_text(EVP_PKEY *key, uint32_t flags, const char *algorithm, const char *digest)
{
    static const char zeros[64];
    const struct sshsig what = {SLICE("git"), SLICE("sha512"), {zeros, sizeof zeros}};
    struct err err = {0};
    struct slice name, bytes, rest;
    struct buf pem = pem_of(key), public, text, out;
    buf_init(&public, SSH_PUBLIC_MAX);
    buf_init(&text, 8192);
    buf_init(&out, SSH_SIGNATURE_MAX);
    CU_ASSERT_FATAL(sshsig_put(&what, &text) == 0);
    CU_ASSERT_EQUAL_FATAL(
        ssh_key_sign_text(buf_slice(&pem), "file git", flags, buf_slice(&text), &out, &err), 0);
    rest = buf_slice(&out);
    CU_ASSERT(ssh_wire_string(&rest, &name) == 0 && slice_eq_str(name, algorithm) &&
              ssh_wire_string(&rest, &bytes) == 0 && rest.n == 0);
    if (!EVP_PKEY_is_a(key, "EC"))
        verify(key, digest, buf_slice(&text), bytes);
    buf_clear(&out);
    /* another namespace, a part of its name, more behind the text, less of it: not signed */
    static const char *const others[] = {"", "file", "gi", "git2", "file,git", "GIT"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CU_ASSERT(
            ssh_key_sign_text(buf_slice(&pem), others[i], flags, buf_slice(&text), &out, &err) < 0);
    for (size_t n = 0; n < buf_len(&text); n++)
        CU_ASSERT(ssh_key_sign_text(buf_slice(&pem), "git", flags,
                                    (struct slice){(char *)buf_data(&text), n}, &out, &err) < 0);
    if (EVP_PKEY_is_a(key, "RSA")) /* SHA-1 */
        CU_ASSERT(ssh_key_sign_text(buf_slice(&pem), "git", 0, buf_slice(&text), &out, &err) < 0);
    CU_ASSERT(ssh_key_sign(buf_slice(&pem), buf_slice(&text), &out, &err) < 0);
    /* nor a login, and a key of logins signs no such text */
    CU_ASSERT_EQUAL_FATAL(ssh_key_public(buf_slice(&pem), &public, &err), 0);
    login(&text, buf_slice(&public), algorithm, "publickey");
    CU_ASSERT(ssh_key_sign_text(buf_slice(&pem), "git", flags, buf_slice(&text), &out, &err) < 0);
    CU_ASSERT_EQUAL(buf_len(&out), 0);
    buf_free(&pem);
    buf_free(&public);
    buf_free(&text);
    buf_free(&out);
    EVP_PKEY_free(key);
}

static void test_texts(void)
{
    one_text(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), 0, "ssh-ed25519", NULL);
    one_text(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"), 0, "ecdsa-sha2-nistp256", "SHA2-256");
    one_text(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-521"), 0, "ecdsa-sha2-nistp521", "SHA2-512");
    one_text(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048), SSH_SIGN_SHA512, "rsa-sha2-512",
             "SHA2-512");
    one_text(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048), SSH_SIGN_SHA256, "rsa-sha2-256",
             "SHA2-256");
}

static void test_kinds(void)
{
    one(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "ssh-ed25519", NULL);
    one(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"), "ecdsa-sha2-nistp256", "SHA2-256");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384"), "ecdsa-sha2-nistp384", "SHA2-384");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-521"), "ecdsa-sha2-nistp521", "SHA2-512");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048), "rsa-sha2-512", "SHA2-512");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048), "rsa-sha2-256", "SHA2-256");
}

static void test_weak(void)
{
    struct err err = {0};
    struct buf out;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    struct buf pem = pem_of(key);
    buf_init(&out, SSH_PUBLIC_MAX);
    CU_ASSERT(ssh_key_public(buf_slice(&pem), &out, &err) < 0 && strstr(err.text, "2048"));
    err.text[0] = 0;
    CU_ASSERT(ssh_key_public(SLICE("no key"), &out, &err) < 0 && err.text[0]);
    buf_free(&pem);
    buf_free(&out);
    EVP_PKEY_free(key);
}

/* OpenSSH's form, as the host key of a sandbox is written: the same public half to all. */
static void test_host_key(void)
{
    struct err err = {0};
    unsigned char key[HOST_KEY_SEED], other[HOST_KEY_SEED];
    static const char *const types[HOST_KEY_KINDS] = {"ssh-ed25519 ", "ecdsa-sha2-nistp256 "};
    struct buf line, private, public, blob;
    buf_init(&line, 200);
    buf_init_wiped(&private, 2048);
    buf_init(&public, SSH_PUBLIC_MAX);
    buf_init(&blob, 512);
    CU_ASSERT(host_key_make(SLICE("seed of 16 bytes"), key) == 0 &&
              host_key_make(SLICE("seed of 16 byteS"), other) == 0);
    CU_ASSERT(memcmp(key, other, sizeof key) != 0);
    for (int k = 0; k < HOST_KEY_KINDS; k++) {
        CU_ASSERT_EQUAL_FATAL(host_key_public(key, (enum host_key_kind)k, &line), 0);
        CU_ASSERT_EQUAL_FATAL(host_key_private(key, (enum host_key_kind)k, &private), 0);
        CU_ASSERT_EQUAL_FATAL(ssh_key_public(buf_slice(&private), &public, &err), 0);
        same_public(buf_slice(&private), buf_slice(&public));
        CU_ASSERT(buf_append_str(&blob, types[k]) == 0 &&
                  base64_append(&blob, buf_slice(&public)) == 0);
        CU_ASSERT(slice_eq(buf_slice(&blob), buf_slice(&line)));
        buf_clear(&line);
        buf_clear(&private);
        buf_clear(&public);
        buf_clear(&blob);
    }
    buf_free(&line);
    buf_free(&private);
    buf_free(&public);
    buf_free(&blob);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("ssh keys", NULL, NULL);
    CU_add_test(s, "each kind signs a login, and nothing else", test_kinds);
    CU_add_test(s, "each signs texts of SSHSIG in its namespaces, and nothing else", test_texts);
    CU_add_test(s, "weak keys, and none", test_weak);
    CU_add_test(s, "the host key of a sandbox", test_host_key);
}
