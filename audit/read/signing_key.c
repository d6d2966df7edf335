/* Makes, loads and uses the key with OpenSSL. Both files appear whole and take only a name that is
 * free (link), so that of two processes that make a key at once one wins for both. */
#include "signing_key.h"

#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PEM_MAX = 4096, KEY_SIZE = 32 };

struct signing_key {
    EVP_PKEY *pkey;
};

static struct signing_key *wrap(EVP_PKEY *pkey, struct err *err)
{
    struct signing_key *k = pkey ? malloc(sizeof *k) : NULL;
    if (k == NULL) {
        EVP_PKEY_free(pkey);
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    k->pkey = pkey;
    return k;
}

void signing_key_free(struct signing_key *k)
{
    if (k == NULL)
        return;
    EVP_PKEY_free(k->pkey);
    free(k);
}

/* A small file whole into a NUL-terminated buffer; its length, or -1 (errno). */
static ssize_t read_small(int fd, char *buf, size_t size)
{
    size_t n = 0;
    for (;;) {
        ssize_t r = read(fd, buf + n, size - 1 - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        if (r == 0 || (n += (size_t)r) == size - 1)
            break;
    }
    buf[n] = 0;
    return (ssize_t)n;
}

/* The first block of that name, as DER; the caller clears and frees it. NULL: there is none. */
static unsigned char *pem_block(const char *text, size_t n, const char *want, long *size)
{
    BIO *b = BIO_new_mem_buf(text, (int)n);
    unsigned char *der = NULL;
    char *name, *header;
    while (b && der == NULL && PEM_read_bio(b, &name, &header, &der, size) == 1) {
        if (strcmp(name, want) != 0 || header[0]) {
            OPENSSL_clear_free(der, (size_t)*size);
            der = NULL;
        }
        OPENSSL_free(name);
        OPENSSL_free(header);
    }
    BIO_free(b);
    ERR_clear_error();
    return der;
}

/* PKCS #8 around a seed in an OCTET STRING (RFC 8410 7). */
static EVP_PKEY *private_half(const unsigned char *der, long size)
{
    enum { OCTETS = 4 };
    const unsigned char *at = der, *seed;
    const ASN1_OBJECT *kind;
    int n;
    EVP_PKEY *k = NULL;
    PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &at, size);
    if (info && at == der + size && PKCS8_pkey_get0(&kind, &seed, &n, NULL, info) == 1 &&
        OBJ_obj2nid(kind) == NID_ED25519 && n == 2 + KEY_SIZE && seed[0] == OCTETS &&
        seed[1] == KEY_SIZE)
        k = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed + 2, KEY_SIZE);
    PKCS8_PRIV_KEY_INFO_free(info); /* which wipes it */
    return k;
}

/* The one DER of such a key has no parameters (RFC 8410 3). */
static EVP_PKEY *public_half(const unsigned char *der, long size)
{
    static const unsigned char before[] = {0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0};
    return size == sizeof before + KEY_SIZE && memcmp(der, before, sizeof before) == 0
               ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, der + sizeof before, KEY_SIZE)
               : NULL;
}

/* Without PEM_read_bio_PrivateKey and its like: they set up all decoders that OpenSSL has. */
static EVP_PKEY *pem_parse(const char *text, size_t n, bool private_part)
{
    long size = 0;
    unsigned char *der =
        pem_block(text, n, private_part ? PEM_STRING_PKCS8INF : PEM_STRING_PUBLIC, &size);
    EVP_PKEY *k = der == NULL    ? NULL
                  : private_part ? private_half(der, size)
                                 : public_half(der, size);
    if (der)
        OPENSSL_clear_free(der, (size_t)size);
    ERR_clear_error();
    return k;
}

struct signing_key *signing_key_public(int dirfd, const char *path, struct err *err)
{
    char text[PEM_MAX];
    int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(err, "cannot open the public key %s", path);
        return NULL;
    }
    ssize_t n = read_small(fd, text, sizeof text);
    close(fd);
    EVP_PKEY *k = n > 0 ? pem_parse(text, (size_t)n, false) : NULL;
    if (k == NULL) {
        err_set(err, ERR_PARSE, "%s is not an Ed25519 public key in PEM form", path);
        return NULL;
    }
    return wrap(k, err);
}

/* PEM text of one half, into buf (PEM_MAX); its length or 0. */
static size_t pem_text(EVP_PKEY *k, bool private_part, char *buf)
{
    BIO *b = BIO_new(BIO_s_secmem());
    if (b == NULL)
        return 0;
    int ok = private_part ? PEM_write_bio_PrivateKey(b, k, NULL, NULL, 0, NULL, NULL)
                          : PEM_write_bio_PUBKEY(b, k);
    int n = ok == 1 ? BIO_read(b, buf, PEM_MAX - 1) : 0;
    BIO_free(b);
    buf[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

/* A whole new file `name`, never in part and never over another: EEXIST is not an error. */
static int put_file(int dirfd, const char *name, mode_t mode, const char *text, size_t n,
                    struct err *err)
{
    char tmp[64];
    snprintf(tmp, sizeof tmp, ".%s.%ld", name, (long)getpid());
    unlinkat(dirfd, tmp, 0);
    int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(err, "cannot make %s in the audit directory", name);
    int r = 0;
    if (write(fd, text, n) != (ssize_t)n || fchmod(fd, mode) < 0 || fsync(fd) < 0)
        r = err_sys(err, "cannot write %s in the audit directory", name);
    close(fd);
    if (r == 0 && linkat(dirfd, tmp, dirfd, name, 0) < 0 && errno != EEXIST)
        r = err_sys(err, "cannot make %s in the audit directory", name);
    unlinkat(dirfd, tmp, 0);
    return r;
}

static int make(int dirfd, struct err *err)
{
    struct stat st;
    char text[PEM_MAX];
    if (fstatat(dirfd, "key.pub", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(
            err, ERR_UNREADY,
            "the audit directory has a key.pub but its key is gone; put the key back, or "
            "move the old log away and start a new one");
    EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    size_t n = k ? pem_text(k, true, text) : 0;
    EVP_PKEY_free(k);
    if (n == 0)
        return err_set(err, ERR_INTERNAL, "cannot make a signing key");
    int r = put_file(dirfd, "key", 0600, text, n, err);
    explicit_bzero(text, sizeof text);
    return r;
}

static EVP_PKEY *load(int dirfd, struct err *err)
{
    char text[PEM_MAX];
    int fd = openat(dirfd, "key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        err_sys(err, "cannot open the audit log's signing key");
        return NULL;
    }
    EVP_PKEY *k = NULL;
    ssize_t n = -1;
    if (paths_check_private_fd(fd, "the audit log's signing key", err) == 0) {
        n = read_small(fd, text, sizeof text);
        k = n > 0 ? pem_parse(text, (size_t)n, true) : NULL;
        explicit_bzero(text, sizeof text);
        if (k == NULL)
            err_set(err, ERR_PARSE,
                    "the audit log's signing key is not an Ed25519 key in PEM form");
    }
    close(fd);
    return k;
}

static int put_public(int dirfd, EVP_PKEY *k, struct err *err)
{
    char text[PEM_MAX];
    size_t n = pem_text(k, false, text);
    return n == 0 ? err_set(err, ERR_INTERNAL, "cannot write the public key")
                  : put_file(dirfd, "key.pub", 0644, text, n, err);
}

/* key.pub is this key's, made if absent. */
static int match_public(int dirfd, EVP_PKEY *k, struct err *err)
{
    struct stat st;
    if (fstatat(dirfd, "key.pub", &st, AT_SYMLINK_NOFOLLOW) < 0 && put_public(dirfd, k, err) < 0)
        return -1;
    struct signing_key *pub = signing_key_public(dirfd, "key.pub", err);
    if (pub == NULL)
        return -1;
    int same = EVP_PKEY_eq(pub->pkey, k);
    signing_key_free(pub);
    return same == 1 ? 0
                     : err_set(err, ERR_UNREADY,
                               "key and key.pub in the audit directory do not belong together");
}

struct signing_key *signing_key_open(int dirfd, struct err *err)
{
    struct stat st;
    if (fstatat(dirfd, "key", &st, AT_SYMLINK_NOFOLLOW) < 0 &&
        (errno != ENOENT || make(dirfd, err) < 0)) {
        if (errno != ENOENT)
            err_sys(err, "the audit log's signing key");
        return NULL;
    }
    EVP_PKEY *k = load(dirfd, err);
    if (k && match_public(dirfd, k, err) < 0) {
        EVP_PKEY_free(k);
        return NULL;
    }
    return k ? wrap(k, err) : NULL;
}

struct signing_key *signing_key_from_raw(const unsigned char raw[32], struct err *err)
{
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, 32);
    if (k == NULL) {
        err_set(err, ERR_PARSE, "this is not an Ed25519 public key");
        return NULL;
    }
    return wrap(k, err);
}

int signing_key_raw(const struct signing_key *k, unsigned char raw[32])
{
    size_t n = 32;
    return EVP_PKEY_get_raw_public_key(k->pkey, raw, &n) == 1 && n == 32 ? 0 : -1;
}

int signing_key_sign(const struct signing_key *k, struct slice text,
                     unsigned char sig[SIGNATURE_SIZE])
{
    size_t n = SIGNATURE_SIZE;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    int ok = c && EVP_DigestSignInit(c, NULL, NULL, NULL, k->pkey) == 1 &&
             EVP_DigestSign(c, sig, &n, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(c);
    return ok && n == SIGNATURE_SIZE ? 0 : -1;
}

bool signing_key_verify(const struct signing_key *k, struct slice text,
                        const unsigned char sig[SIGNATURE_SIZE])
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    int ok = c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k->pkey) == 1 &&
             EVP_DigestVerify(c, sig, SIGNATURE_SIZE, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(c);
    return ok == 1;
}
