/* Certificates of SSH: what OpenSSH reads in them, with a CA of each kind; whose they are, how long
 * they are good, and what their keys sign. */
#include "ssh_certificates.h"
#include "ssh_sign.h"
#include "ssh_wire.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base64.h"
#include "tap_main.h"

enum { NOW = 1893456000, MINUTE = 60 }; /* 2030-01-01 */

static struct buf pem_of(EVP_PKEY *key)
{
    struct buf b;
    char *text;
    BIO *bio = BIO_new(BIO_s_mem());
    CU_ASSERT_FATAL(key && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    long n = BIO_get_mem_data(bio, &text);
    buf_init(&b, 16384);
    CU_ASSERT_FATAL(buf_append(&b, text, (size_t)n) == 0);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return b;
}

static struct buf ed25519(void)
{
    return pem_of(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
}

/* ---- as OpenSSH reads it ---- */

/* What `ssh-keygen -L` prints, which checks the CA's signature as well; NULL: it is not here, ""
 * where it does not take the certificate. */
static const char *shown(struct slice certificate)
{
    static char text[8192];
    char path[] = "/tmp/durward-certificate-XXXXXX";
    int fd = mkstemp(path), out[2], status = 0;
    struct buf line;
    buf_init(&line, 16384);
    CU_ASSERT_FATAL(fd >= 0 && pipe2(out, O_CLOEXEC) == 0);
    CU_ASSERT_FATAL(buf_printf(&line, "%s ", SSH_CERTIFICATE_TYPE) == 0 &&
                    base64_append(&line, certificate) == 0 && buf_append(&line, "\n", 1) == 0);
    CU_ASSERT_FATAL(write(fd, buf_data(&line), buf_len(&line)) == (ssize_t)buf_len(&line));
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        char tz[] = "TZ=UTC", *env[] = {tz, NULL};
        char name[] = "ssh-keygen", list[] = "-L", file[] = "-f",
             *argv[] = {name, list, file, path, NULL};
        dup2(out[1], 1);
        dup2(out[1], 2);
        execve("/usr/bin/ssh-keygen", argv, env);
        _exit(99);
    }
    close(out[1]);
    size_t n = 0;
    for (ssize_t r; n + 1 < sizeof text && (r = read(out[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)r;
    text[n] = 0;
    close(out[0]);
    waitpid(pid, &status, 0);
    unlink(path);
    buf_free(&line);
    if (WEXITSTATUS(status) == 99)
        return NULL;
    return status == 0 ? text : "";
}

static void says(const char *text, const char *line)
{
    bool there = strstr(text, line) != NULL;
    if (!there)
        printf("# wanted \"%s\" in:\n# %s\n", line, text);
    CU_ASSERT(there);
}

static struct ssh_certificate whole(void)
{
    static const char public[] = "thirty-two bytes of a public key";
    return (struct ssh_certificate){.public = {public, 32},
                                    .key_id = "durward:coder:box",
                                    .principals = "ops deploy",
                                    .source_address = "192.0.2.0/24 2001:db8::/32",
                                    .force_command = "uptime -p",
                                    .extensions = "permit-user-rc login@github.com=alice "
                                                  "permit-pty",
                                    .from = NOW - MINUTE,
                                    .until = NOW + 5 * MINUTE};
}

static void one(EVP_PKEY *ca, const char *by)
{
    struct err err = {0};
    struct buf pem = pem_of(ca), out;
    struct ssh_certificate c = whole();
    buf_init(&out, SSH_CERTIFICATE_MAX);
    CU_ASSERT_EQUAL_FATAL(ssh_certificate_make(&c, buf_slice(&pem), &out, &err), 0);
    const char *text = shown(buf_slice(&out));
    if (text == NULL) {
        tap_skip("ssh-keygen is not installed");
        buf_free(&pem);
        buf_free(&out);
        return;
    }
    says(text, "Type: ssh-ed25519-cert-v01@openssh.com user certificate\n");
    says(text, "Key ID: \"durward:coder:box\"\n");
    says(text, by);
    says(text, "Valid: from 2029-12-31T23:59:00 to 2030-01-01T00:05:00\n");
    says(text, "Principals: \n                ops\n                deploy\n");
    says(text, "Critical Options: \n                force-command uptime -p\n                "
               "source-address 192.0.2.0/24,2001:db8::/32\n");
    says(text, "login@github.com"); /* whose value it shows in hexadecimal */
    says(text, "permit-pty\n                permit-user-rc\n");
    CU_ASSERT(strstr(text, "login@github.com") < strstr(text, "permit-pty"));
    /* a bit of it that is another, and OpenSSH takes it for no certificate of this CA's */
    buf_data(&out)[100] ^= 1;
    CU_ASSERT_STRING_EQUAL(shown(buf_slice(&out)), "");
    buf_free(&pem);
    buf_free(&out);
}

static void test_kinds(void)
{
    one(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "(using ssh-ed25519)\n");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)3072), "(using rsa-sha2-512)\n");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"), "(using ecdsa-sha2-nistp256)\n");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384"), "(using ecdsa-sha2-nistp384)\n");
    one(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-521"), "(using ecdsa-sha2-nistp521)\n");
}

/* Nothing that was not asked for, and a number of its own. */
static void test_bare(void)
{
    struct err err = {0};
    struct buf pem = ed25519(), out, other;
    struct ssh_certificate c = whole();
    c.source_address = c.force_command = c.extensions = "";
    buf_init(&out, SSH_CERTIFICATE_MAX);
    buf_init(&other, SSH_CERTIFICATE_MAX);
    CU_ASSERT_EQUAL_FATAL(ssh_certificate_make(&c, buf_slice(&pem), &out, &err), 0);
    CU_ASSERT_EQUAL_FATAL(ssh_certificate_make(&c, buf_slice(&pem), &other, &err), 0);
    const char *text = shown(buf_slice(&out));
    if (text) {
        says(text, "Critical Options: (none)\n");
        says(text, "Extensions: (none)\n");
        char first[8192];
        snprintf(first, sizeof first, "%s", text);
        const char *serial = strstr(first, "Serial: "), *another = shown(buf_slice(&other));
        CU_ASSERT(serial && strlen(serial) > 20 &&
                  strncmp(serial, strstr(another, "Serial: "), 20) != 0);
    }
    /* none is made of what says too little */
    c.principals = "";
    buf_clear(&out);
    CU_ASSERT(ssh_certificate_make(&c, buf_slice(&pem), &out, &err) < 0);
    c = whole();
    c.until = c.from;
    CU_ASSERT(ssh_certificate_make(&c, buf_slice(&pem), &out, &err) < 0);
    c = whole();
    c.public.n = 31;
    CU_ASSERT(ssh_certificate_make(&c, buf_slice(&pem), &out, &err) < 0);
    c = whole();
    CU_ASSERT(ssh_certificate_make(&c, SLICE("no key"), &out, &err) < 0);
    c.extensions = "a@b c@b d@b e@b f@b g@b h@b i@b j@b k@b l@b m@b n@b o@b p@b q@b r@b";
    CU_ASSERT(ssh_certificate_make(&c, buf_slice(&pem), &out, &err) < 0);
    CU_ASSERT_EQUAL(buf_len(&out), 0);
    buf_free(&pem);
    buf_free(&out);
    buf_free(&other);
}

/* ---- whose it is, and how long ---- */

static const struct ssh_certificates_terms terms = {.principals = "ops",
                                                    .source_address = "",
                                                    .force_command = "",
                                                    .extensions = "",
                                                    .minutes = 10};

static struct buf got(struct ssh_certificates *s, const char *policy, const char *sandbox,
                      struct slice ca, int64_t now)
{
    struct err err = {0};
    struct buf out;
    const struct ssh_certificates_owner of = {policy, sandbox};
    buf_init(&out, SSH_CERTIFICATE_MAX);
    CU_ASSERT_EQUAL_FATAL(ssh_certificates_get(s, &terms, &of, ca, now, &out, &err), 0);
    return out;
}

static void login(struct buf *b, struct slice public, const char *algorithm)
{
    static const char session[32] = "session identifier of 32 bytes!";
    buf_clear(b);
    CU_ASSERT(ssh_wire_put_string(b, (struct slice){session, sizeof session}) == 0 &&
              ssh_wire_put_u8(b, 50) == 0 && ssh_wire_put_string(b, SLICE("ops")) == 0 &&
              ssh_wire_put_string(b, SLICE("ssh-connection")) == 0 &&
              ssh_wire_put_string(b, SLICE("publickey")) == 0 && ssh_wire_put_u8(b, 1) == 0 &&
              ssh_wire_put_string(b, slice_str(algorithm)) == 0 &&
              ssh_wire_put_string(b, public) == 0);
}

static int signs(struct ssh_certificates *s, const char *policy, const char *sandbox,
                 const struct buf *certificate, const char *algorithm, int64_t now, struct buf *out)
{
    struct err err = {0};
    struct buf text;
    const struct ssh_certificates_owner of = {policy, sandbox};
    buf_init(&text, 2 * SSH_CERTIFICATE_MAX);
    buf_clear(out);
    login(&text, buf_slice(certificate), algorithm);
    int r = ssh_certificates_sign(s, &of, buf_slice(&text), now, out, &err);
    if (r == 0) { /* by the key that is in the certificate */
        struct slice rest = buf_slice(certificate), type, nonce, public, made = buf_slice(out),
                     name, bytes;
        CU_ASSERT(ssh_wire_string(&rest, &type) == 0 && ssh_wire_string(&rest, &nonce) == 0 &&
                  ssh_wire_string(&rest, &public) == 0 && ssh_wire_string(&made, &name) == 0 &&
                  slice_eq_str(name, "ssh-ed25519") && ssh_wire_string(&made, &bytes) == 0 &&
                  made.n == 0);
        EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                    (const unsigned char *)public.p, public.n);
        EVP_MD_CTX *md = EVP_MD_CTX_new();
        CU_ASSERT(key && EVP_DigestVerifyInit_ex(md, NULL, NULL, NULL, NULL, key, NULL) == 1 &&
                  EVP_DigestVerify(md, (const unsigned char *)bytes.p, bytes.n, buf_data(&text),
                                   buf_len(&text)) == 1);
        EVP_MD_CTX_free(md);
        EVP_PKEY_free(key);
    }
    buf_free(&text);
    return r;
}

#define TYPE SSH_CERTIFICATE_TYPE

static void test_logins(void)
{
    struct err err = {0};
    struct buf ca = ed25519(), out, text;
    struct ssh_certificates *s = ssh_certificates_new();
    struct buf mine = got(s, "coder", "one", buf_slice(&ca), NOW);
    struct buf theirs = got(s, "coder", "two", buf_slice(&ca), NOW);
    struct buf beside = got(s, "other", "one", buf_slice(&ca), NOW);
    const struct ssh_certificates_owner of = {"coder", "one"};
    buf_init(&out, SSH_SIGNATURE_MAX);
    buf_init(&text, 2 * SSH_CERTIFICATE_MAX);
    CU_ASSERT_EQUAL(signs(s, "coder", "one", &mine, TYPE, NOW, &out), 0);
    CU_ASSERT_EQUAL(signs(s, "coder", "two", &theirs, TYPE, NOW, &out), 0);
    /* another sandbox's, another policy's, by another algorithm, one that is none of ours */
    CU_ASSERT(signs(s, "coder", "one", &theirs, TYPE, NOW, &out) < 0);
    CU_ASSERT(signs(s, "coder", "two", &mine, TYPE, NOW, &out) < 0);
    CU_ASSERT(signs(s, "coder", "one", &beside, TYPE, NOW, &out) < 0);
    CU_ASSERT(signs(s, "other", "one", &mine, TYPE, NOW, &out) < 0);
    CU_ASSERT(signs(s, "coder", "one", &mine, "ssh-ed25519", NOW, &out) < 0);
    CU_ASSERT(signs(s, "coder", "one", &mine, "rsa-sha2-512", NOW, &out) < 0);
    buf_data(&mine)[60] ^= 1;
    CU_ASSERT(signs(s, "coder", "one", &mine, TYPE, NOW, &out) < 0);
    buf_data(&mine)[60] ^= 1;
    /* the certified key without its certificate */
    struct slice rest = buf_slice(&mine), type, nonce, public;
    CU_ASSERT(ssh_wire_string(&rest, &type) == 0 && ssh_wire_string(&rest, &nonce) == 0 &&
              ssh_wire_string(&rest, &public) == 0);
    struct buf bare;
    buf_init(&bare, 100);
    CU_ASSERT(ssh_wire_put_string(&bare, SLICE("ssh-ed25519")) == 0 &&
              ssh_wire_put_string(&bare, public) == 0);
    CU_ASSERT(signs(s, "coder", "one", &bare, "ssh-ed25519", NOW, &out) < 0);
    /* a text that is cut, or has more behind it */
    login(&text, buf_slice(&mine), TYPE);
    for (size_t n = 0; n < buf_len(&text); n++)
        CU_ASSERT(ssh_certificates_sign(s, &of, (struct slice){(char *)buf_data(&text), n}, NOW,
                                        &out, &err) < 0);
    CU_ASSERT(buf_append(&text, "x", 1) == 0);
    CU_ASSERT(ssh_certificates_sign(s, &of, buf_slice(&text), NOW, &out, &err) < 0);
    /* after another CA's key has come */
    ssh_certificates_forget(s);
    CU_ASSERT(signs(s, "coder", "one", &mine, TYPE, NOW, &out) < 0);
    CU_ASSERT_EQUAL(buf_len(&out), 0);
    struct buf *all[] = {&ca, &out, &text, &mine, &theirs, &beside, &bare};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_free(all[i]);
    ssh_certificates_free(s);
}

static bool same(const struct buf *a, const struct buf *b)
{
    return slice_eq(buf_slice(a), buf_slice(b));
}

static void test_time(void)
{
    struct buf ca = ed25519(), out;
    struct ssh_certificates *s = ssh_certificates_new();
    struct slice key = buf_slice(&ca);
    buf_init(&out, SSH_SIGNATURE_MAX);
    struct buf first = got(s, "coder", "one", key, NOW);
    struct buf again = got(s, "coder", "one", key, NOW + 5 * MINUTE - 1);
    CU_ASSERT(same(&first, &again)); /* for half of its time */
    struct buf second = got(s, "coder", "one", key, NOW + 5 * MINUTE);
    CU_ASSERT(!same(&first, &second));
    /* with the first somebody may be logging in, until it is over */
    CU_ASSERT_EQUAL(signs(s, "coder", "one", &first, TYPE, NOW + 10 * MINUTE - 1, &out), 0);
    CU_ASSERT(signs(s, "coder", "one", &first, TYPE, NOW + 10 * MINUTE, &out) < 0);
    CU_ASSERT_EQUAL(signs(s, "coder", "one", &second, TYPE, NOW + 10 * MINUTE, &out), 0);
    struct buf third = got(s, "coder", "one", key, NOW + 10 * MINUTE);
    CU_ASSERT(signs(s, "coder", "one", &first, TYPE, NOW + 5 * MINUTE, &out) < 0); /* it is gone */
    CU_ASSERT_EQUAL(signs(s, "coder", "one", &second, TYPE, NOW + 10 * MINUTE, &out), 0);
    /* a clock that was set back: what it gave is of no time that it knows */
    struct buf back = got(s, "coder", "one", key, NOW);
    CU_ASSERT(!same(&third, &back));
    CU_ASSERT_EQUAL(signs(s, "coder", "one", &back, TYPE, NOW, &out), 0);
    struct buf *all[] = {&ca, &out, &first, &again, &second, &third, &back};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_free(all[i]);
    ssh_certificates_free(s);
}

/* A policy's oldest goes for its newest, and no other policy's. */
static void test_many(void)
{
    struct buf ca = ed25519(), out;
    struct ssh_certificates *s = ssh_certificates_new();
    buf_init(&out, SSH_SIGNATURE_MAX);
    struct buf beside = got(s, "other", "one", buf_slice(&ca), NOW);
    struct buf first = got(s, "coder", "first", buf_slice(&ca), NOW), second = {0}, last = {0};
    for (int i = 1; i <= SSH_CERTIFICATES_OF_POLICY; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        struct buf b = got(s, "coder", name, buf_slice(&ca), NOW);
        if (i == 1)
            second = b;
        else if (i == SSH_CERTIFICATES_OF_POLICY)
            last = b;
        else
            buf_free(&b);
        if (i == SSH_CERTIFICATES_OF_POLICY - 1)
            CU_ASSERT_EQUAL(signs(s, "coder", "first", &first, TYPE, NOW, &out), 0);
    }
    CU_ASSERT(signs(s, "coder", "first", &first, TYPE, NOW, &out) < 0);
    CU_ASSERT_EQUAL(signs(s, "coder", "1", &second, TYPE, NOW, &out), 0);
    CU_ASSERT_EQUAL(signs(s, "coder", "512", &last, TYPE, NOW, &out), 0);
    CU_ASSERT_EQUAL(signs(s, "other", "one", &beside, TYPE, NOW, &out), 0);
    struct buf *all[] = {&ca, &out, &beside, &first, &second, &last};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_free(all[i]);
    ssh_certificates_free(s);
}

static void test_names(void)
{
    static const char *const bad[] = {
        "",
        "a b",
        "a\nb",
        "a\x7f",
        "\xc3\xa9",
        "more than the sixty-four bytes that the name of a sandbox can "
        "have"};
    struct err err = {0};
    struct buf ca = ed25519(), out;
    struct ssh_certificates *s = ssh_certificates_new();
    buf_init(&out, SSH_CERTIFICATE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct ssh_certificates_owner of = {"coder", bad[i]};
        CU_ASSERT(ssh_certificates_get(s, &terms, &of, buf_slice(&ca), NOW, &out, &err) < 0);
    }
    CU_ASSERT_EQUAL(buf_len(&out), 0);
    buf_free(&ca);
    buf_free(&out);
    ssh_certificates_free(s);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("ssh certificates", NULL, NULL);
    CU_add_test(s, "as OpenSSH reads it, by a CA of each kind", test_kinds);
    CU_add_test(s, "one that says little, and none that says too little", test_bare);
    CU_add_test(s, "whose it is, and what its key signs", test_logins);
    CU_add_test(s, "how long it is good", test_time);
    CU_add_test(s, "as many as a policy may have", test_many);
    CU_add_test(s, "for whom there is none", test_names);
}
