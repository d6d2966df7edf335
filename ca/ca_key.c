/* Parses and writes the PEM of the CA's key and certificate with OpenSSL. It never asks for a
 * passphrase: an encrypted key is an error. */
#include "ca_key.h"

#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

/* Never ask a terminal for a passphrase: an encrypted key is an error. */
static int no_passphrase(char *to UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
    return -1;
}

static int read_whole(int fd, const char *what, struct buf *to, struct err *err)
{
    buf_init_wiped(to, CA_FILE_MAX);
    for (off_t at = 0;;) {
        unsigned char *p = buf_reserve(to, 4096);
        if (p == NULL)
            return err_set(err, ERR_LIMIT, "the %s file is larger than %d bytes", what,
                           CA_FILE_MAX);
        ssize_t n = pread(fd, p, 4096, at);
        if (n < 0)
            return err_sys(err, "reading the %s file", what);
        if (n == 0)
            return 0;
        buf_commit(to, (size_t)n);
        at += n;
    }
}

static EVP_PKEY *parse_key(const struct buf *b, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(buf_data(b), (int)buf_len(b));
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (key == NULL)
        err_set(err, ERR_PARSE, "the CA key file holds no PEM private key without a passphrase%s",
                buf_len(b) ? "" : " (it is empty)");
    return key;
}

static X509 *parse_cert(const struct buf *b, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(buf_data(b), (int)buf_len(b));
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (cert == NULL)
        err_set(err, ERR_PARSE, "the CA certificate file holds no PEM certificate%s",
                buf_len(b) ? "" : " (it is empty)");
    return cert;
}

int ca_key_load(int key_fd, int cert_fd, time_t now, struct mint_issuer *ret, struct err *err)
{
    struct mint_issuer got = {0};
    struct buf key = {0}, cert = {0};
    int r = -1;
    if (read_whole(key_fd, "CA key", &key, err) < 0 ||
        read_whole(cert_fd, "CA certificate", &cert, err) < 0)
        goto out;
    got.key = parse_key(&key, err);
    if (got.key == NULL)
        goto out;
    got.cert = parse_cert(&cert, err);
    if (got.cert == NULL || mint_issuer_check(&got, now, err) < 0)
        goto out;
    *ret = got;
    got = (struct mint_issuer){0};
    r = 0;
out:
    mint_issuer_clear(&got);
    buf_free(&key);
    buf_free(&cert);
    return r;
}

static int write_whole(int fd, const char *p, size_t n, const char *what, struct err *err)
{
    if (ftruncate(fd, 0) < 0)
        return err_sys(err, "emptying the %s file", what);
    for (size_t at = 0; at < n;) {
        ssize_t w = pwrite(fd, p + at, n - at, (off_t)at);
        if (w <= 0)
            return err_sys(err, "writing the %s file", what);
        at += (size_t)w;
    }
    if (fsync(fd) < 0)
        return err_sys(err, "writing the %s file", what);
    return 0;
}

static int store_key(EVP_PKEY *key, int fd, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    int r = -1;
    if (bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
        long n = BIO_get_mem_data(bio, &p);
        r = write_whole(fd, p, (size_t)n, "CA key", err);
        OPENSSL_cleanse(p, (size_t)n);
    } else {
        err_set(err, ERR_INTERNAL, "the CA key cannot be encoded");
    }
    BIO_free(bio);
    return r;
}

int ca_key_cert_pem(X509 *cert, struct buf *to, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    int r = -1;
    if (bio && PEM_write_bio_X509(bio, cert) == 1) {
        long n = BIO_get_mem_data(bio, &p);
        r = buf_append(to, p, (size_t)n);
    }
    BIO_free(bio);
    return r < 0 ? err_set(err, ERR_INTERNAL, "the CA certificate cannot be encoded") : 0;
}

int ca_key_store(const struct mint_issuer *issuer, int key_fd, int cert_fd, struct err *err)
{
    struct buf pem;
    buf_init(&pem, CA_FILE_MAX);
    int r = store_key(issuer->key, key_fd, err);
    if (r == 0)
        r = ca_key_cert_pem(issuer->cert, &pem, err);
    if (r == 0)
        r = write_whole(cert_fd, (const char *)buf_data(&pem), buf_len(&pem), "CA certificate",
                        err);
    buf_free(&pem);
    return r;
}
