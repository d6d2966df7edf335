/* The CA's files as whoever starts the signer opens them: which are refused, what a change of the
 * CA adds, what a lock is worth; and what the signer makes of their content. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ca_files.h"
#include "ca_key.h"
#include "rotation.h"
#include "tap_main.h"
#include <openssl/pem.h>

void suite_ca_files(void);

static char where[64];

static char *at(const char *name)
{
    static char path[2][160];
    static unsigned turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", where, name);
    return path[turn];
}

static void put(const char *name, const char *text, size_t n, mode_t mode)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, n), (ssize_t)n);
    CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
    close(fd);
}

#define PUT(name, text, mode) put(name, text, strlen(text), mode)

static int setup(void)
{
    snprintf(where, sizeof where, "/tmp/durward-ca-XXXXXX");
    return mkdtemp(where) ? 0 : -1;
}

static void empty(void)
{
    static const char *const every[] = {"key.pem",       "cert.pem", "next-key.pem",
                                        "next-cert.pem", "rotation", ".rotation.new",
                                        "old-key.pem",   "other"};
    for (size_t i = 0; i < ARRAY_LEN(every); i++)
        if (unlink(at(every[i])) < 0)
            rmdir(at(every[i]));
}

static int teardown(void)
{
    empty();
    return rmdir(where);
}

static void refuses(const char *cert, const char *key, enum err_code code, const char *says)
{
    struct err err = {0};
    struct ca_files f;
    int r = ca_files_open(where, cert, key, &f, &err);
    if (r == 0 || err.code != code || strstr(err.text, says) == NULL) {
        printf("# %d %s, not %s\n", err.code, r == 0 ? "opened" : err.text, says);
        CU_FAIL("a refusal");
    }
    if (r == 0)
        ca_files_close(&f);
    else
        CU_ASSERT(f.key_fd == -1 && f.cert_fd == -1 && f.lock_fd == -1 && f.next_fd == -1 &&
                  f.key_path == NULL);
    ca_files_close(&f); /* of a failed one, or once more */
}

static void test_own_files(void)
{
    struct ca_files f;
    struct err err = {0};
    char cert[160], key[160];
    empty();
    snprintf(cert, sizeof cert, "%s", at("cert.pem"));
    snprintf(key, sizeof key, "%s", at("key.pem"));
    refuses(cert, NULL, ERR_PARSE, "ca.key is missing");
    refuses(NULL, key, ERR_PARSE, "ca.cert is missing");
    refuses(cert, key, ERR_SYS, "cannot open"); /* theirs are never made */
    CU_ASSERT_EQUAL(access(key, F_OK), -1);
    PUT("key.pem", "k", 0600);
    refuses(cert, key, ERR_SYS, "cert.pem");
    CU_ASSERT_EQUAL(mkdir(cert, 0700), 0);
    refuses(cert, key, ERR_DENIED, "not a regular file");
    CU_ASSERT_EQUAL(rmdir(cert), 0);
    PUT("cert.pem", "c", 0644);
    PUT("key.pem", "k", 0640); /* a key that others can read */
    refuses(cert, key, ERR_DENIED, "key.pem");
    PUT("key.pem", "k", 0604);
    refuses(cert, key, ERR_DENIED, "key.pem");
    PUT("key.pem", "k", 0600);
    CU_ASSERT_EQUAL_FATAL(ca_files_open(NULL, cert, key, &f, &err), 0);
    CU_ASSERT(!f.create && f.lock_fd == -1 && f.next_fd == -1);
    CU_ASSERT_EQUAL(fcntl(f.key_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    CU_ASSERT(fcntl(f.key_fd, F_GETFD) & FD_CLOEXEC);
    CU_ASSERT_STRING_EQUAL(f.key_path, key);
    ca_files_close(&f);
    ca_files_close(&f);
    struct ca_files zero = {0};
    ca_files_close(&zero);
    CU_ASSERT(fcntl(0, F_GETFD) >= 0); /* descriptor 0 was not its own */
}

static void test_in_dir(void)
{
    struct ca_files f, other;
    struct err err = {0};
    empty();
    PUT("cert.pem", "c", 0644);
    refuses(NULL, NULL, ERR_DENIED, "its key"); /* a certificate whose key is gone */
    PUT("key.pem", "", 0600);
    refuses(NULL, NULL, ERR_DENIED, "its key");
    unlink(at("cert.pem"));
    unlink(at("key.pem"));
    CU_ASSERT_EQUAL(mkdir(at("key.pem"), 0700), 0);
    refuses(NULL, NULL, ERR_DENIED, "not a regular file");
    CU_ASSERT_EQUAL(rmdir(at("key.pem")), 0);
    CU_ASSERT_EQUAL(symlink("other", at("key.pem")), 0); /* none is made through a link */
    refuses(NULL, NULL, ERR_SYS, "key.pem");
    CU_ASSERT_EQUAL(access(at("other"), F_OK), -1);
    CU_ASSERT_EQUAL(symlink("loop", at("loop")), 0);
    CU_ASSERT_EQUAL(unlink(at("key.pem")), 0);
    CU_ASSERT_EQUAL(rename(at("loop"), at("cert.pem")), 0);
    refuses(NULL, NULL, ERR_SYS, "cert.pem");
    CU_ASSERT_EQUAL(unlink(at("cert.pem")), 0);
    /* what a crash between key and certificate left is made anew */
    PUT("key.pem", "half a key", 0600);
    CU_ASSERT_EQUAL_FATAL(ca_files_open(where, NULL, NULL, &f, &err), 0);
    CU_ASSERT(f.create && f.lock_fd >= 0);
    int dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(flock(dir, LOCK_SH | LOCK_NB), -1); /* nobody else meanwhile */
    ca_files_close(&f);
    CU_ASSERT_EQUAL(flock(dir, LOCK_SH | LOCK_NB), 0);
    close(dir);
    PUT("key.pem", "k", 0600);
    PUT("cert.pem", "c", 0644);
    CU_ASSERT_EQUAL_FATAL(ca_files_open(where, NULL, NULL, &f, &err), 0);
    CU_ASSERT(!f.create && f.lock_fd == -1);
    CU_ASSERT_EQUAL_FATAL(ca_files_open(where, NULL, NULL, &other, &err), 0); /* many may */
    ca_files_close(&other);
    ca_files_close(&f);
    CU_ASSERT_EQUAL(chmod(where, 0777), 0);
    refuses(NULL, NULL, ERR_DENIED, where);
    CU_ASSERT_EQUAL(chmod(where, 0700), 0);
}

static void plan(int64_t since, int64_t until)
{
    struct rotation r = {since, until};
    int dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(rotation_commit(dir, &r, NULL), 0);
    close(dir);
}

static void test_changing(void)
{
    struct ca_files f;
    struct err err = {0};
    int64_t now = time(NULL);
    char big[CA_FILE_MAX + 1];
    empty();
    PUT("key.pem", "old key", 0600);
    PUT("cert.pem", "old cert\n", 0644);
    CU_ASSERT_EQUAL_FATAL(ca_files_open(where, NULL, NULL, &f, &err), 0);
    char *text = ca_files_trusted(&f, &err);
    CU_ASSERT_STRING_EQUAL(text, "old cert\n");
    free(text);
    ca_files_close(&f);
    PUT("next-key.pem", "new key", 0600);
    PUT("next-cert.pem", "new cert\n", 0644);
    plan(now - 10, now + 1000);
    CU_ASSERT_EQUAL_FATAL(ca_files_open(where, NULL, NULL, &f, &err), 0);
    CU_ASSERT(f.since == now - 10 && f.until == now + 1000 && f.next_fd >= 0);
    CU_ASSERT_STRING_EQUAL(f.next_path, at("next-cert.pem"));
    text = ca_files_trusted(&f, &err);
    CU_ASSERT_STRING_EQUAL(text, "old cert\nnew cert\n");
    free(text);
    PUT("next-cert.pem", "", 0644); /* cut short under our eyes: none of them is told */
    CU_ASSERT_PTR_NULL(ca_files_trusted(&f, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "next-cert.pem holds no certificate"));
    PUT("next-cert.pem", "a\0b", 0644);
    put("next-cert.pem", "a\0b", 3, 0644);
    CU_ASSERT_PTR_NULL(ca_files_trusted(&f, &err));
    memset(big, 'x', sizeof big);
    put("cert.pem", big, sizeof big, 0644);
    text = ca_files_trusted(&f, &err);
    CU_ASSERT(text == NULL || strlen(text) <= 2 * CA_FILE_MAX);
    free(text);
    ca_files_close(&f);
    PUT("cert.pem", "old cert\n", 0644);
    PUT("next-cert.pem", "new cert\n", 0644);
    PUT("rotation", "since 1\nuntil x\n", 0600);
    refuses(NULL, NULL, ERR_PARSE, "damaged");
    CU_ASSERT_EQUAL(ca_files_lock(where, &err), -1);
    plan(now - 10, now - 1); /* over: who opens it next has the new one */
    CU_ASSERT_EQUAL_FATAL(ca_files_open(where, NULL, NULL, &f, &err), 0);
    text = ca_files_trusted(&f, &err);
    CU_ASSERT_STRING_EQUAL(text, "new cert\n");
    CU_ASSERT(f.next_fd == -1 && f.next_path == NULL);
    free(text);
    ca_files_close(&f);
}

static void test_lock(void)
{
    struct err err = {0};
    empty();
    PUT("key.pem", "k", 0600);
    PUT("cert.pem", "c", 0644);
    int fd = ca_files_lock(where, &err), other = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0 && other >= 0);
    CU_ASSERT_EQUAL(flock(other, LOCK_SH | LOCK_NB), -1);
    close(fd);
    CU_ASSERT_EQUAL(flock(other, LOCK_SH | LOCK_NB), 0);
    close(other);
    CU_ASSERT_EQUAL(ca_files_lock(at("key.pem"), &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot open"));
    CU_ASSERT_EQUAL(ca_files_lock(at("nowhere"), &err), -1);
}

/* ---- what is in them ---- */

static int load(const char *key, size_t n, const char *cert, struct err *err)
{
    struct mint_issuer got = {0};
    put("key.pem", key, n, 0600);
    PUT("cert.pem", cert, 0644);
    int k = open(at("key.pem"), O_RDONLY | O_CLOEXEC), c = open(at("cert.pem"), O_RDONLY);
    int r = ca_key_load(k, c, time(NULL), &got, err);
    CU_ASSERT_EQUAL(r == 0, got.key != NULL);
    mint_issuer_clear(&got);
    close(k);
    close(c);
    return r;
}

static void pem(const char *name, char to[4096])
{
    int fd = open(at(name), O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, to, 4095);
    CU_ASSERT_FATAL(n > 0);
    to[n] = 0;
    close(fd);
}

static void not_loaded(const char *key, const char *cert, const char *says)
{
    struct err err = {0};
    CU_ASSERT_EQUAL(load(key, strlen(key), cert, &err), -1);
    if (strstr(err.text, says) == NULL) {
        printf("# %s, not %s\n", err.text, says);
        CU_FAIL("an error");
    }
    CU_ASSERT_PTR_NULL(strstr(err.text, "MIG")); /* nothing of the key */
}

static void test_content(void)
{
    struct mint_issuer a = {0}, b = {0};
    struct err err = {0};
    char key[4096], cert[4096], others[4096], *big = calloc(1, CA_FILE_MAX + 2);
    empty();
    CU_ASSERT_EQUAL_FATAL(mint_issuer_make(&a, time(NULL), &err), 0);
    CU_ASSERT_EQUAL_FATAL(mint_issuer_make(&b, time(NULL), &err), 0);
    PUT("key.pem", "something longer than it was, which has to go", 0600);
    int k = open(at("key.pem"), O_RDWR | O_CLOEXEC),
        c = open(at("cert.pem"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CU_ASSERT_EQUAL(ca_key_store(&b, k, c, &err), 0);
    pem("cert.pem", others);
    CU_ASSERT_EQUAL(ca_key_store(&a, k, c, &err), 0);
    pem("key.pem", key);
    pem("cert.pem", cert);
    CU_ASSERT_PTR_NULL(strstr(key, "something"));
    CU_ASSERT_EQUAL(load(key, strlen(key), cert, &err), 0);
    not_loaded(key, others, "do not belong");
    not_loaded("", cert, "(it is empty)");
    not_loaded(key, "", "(it is empty)");
    not_loaded(cert, cert, "no PEM private key");
    not_loaded(key, key, "no PEM certificate");
    char *end = strstr(key, "-----END");
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    *end = 0;
    not_loaded(key, cert, "no PEM private key");
    *end = '-';
    memset(big, '\n', CA_FILE_MAX + 1);
    not_loaded(big, cert, "larger than");
    /* with a passphrase: refused, and nobody is asked */
    put("key.pem", "", 0, 0600);
    FILE *f = fopen(at("key.pem"), "w");
    CU_ASSERT_EQUAL(PEM_write_PKCS8PrivateKey(f, a.key, EVP_aes_128_cbc(), "word", 4, NULL, NULL),
                    1);
    fclose(f);
    pem("key.pem", key);
    CU_ASSERT_PTR_NOT_NULL(strstr(key, "ENCRYPTED"));
    not_loaded(key, cert, "without a passphrase");
    /* descriptors that cannot be read or written */
    int none = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(ca_key_load(none, c, time(NULL), &b, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reading the CA key file"));
    CU_ASSERT_EQUAL(ca_key_store(&a, none, c, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "emptying the CA key file"));
    close(none);
    int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    CU_ASSERT_EQUAL(ca_key_store(&a, full, c, &err), -1);
    close(full);
    close(k);
    close(c);
    free(big);
    mint_issuer_clear(&a);
    mint_issuer_clear(&b);
}

void suite_ca_files(void)
{
    CU_pSuite s = CU_add_suite("ca_files", setup, teardown);
    CU_add_test(s, "the user's own files", test_own_files);
    CU_add_test(s, "files in a directory", test_in_dir);
    CU_add_test(s, "while the CA is being changed", test_changing);
    CU_add_test(s, "held against everybody else", test_lock);
    CU_add_test(s, "keys and certificates that are none", test_content);
}

void tap_suites(void)
{
    suite_ca_files();
}
