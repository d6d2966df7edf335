/* Builds directories of trust bundles beside their final name and renames them when they are whole,
 * and adds the next CA's certificate to those that clients use already. */
#define OPENSSL_SUPPRESS_DEPRECATED  /* SHA-256 alone, where EVP would set up all that OpenSSL has \
                                      */
#include "trust.h"

#include "paths.h"
#include "pem.h"
#include "system_roots.h"
#include "trust_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LAYOUT = 1, /* counted up when the content of the directory changes */
    HEX = 32,
    CERTS_MAX = 2, /* the CA and, during a change, the next */
};

static const char bundle_name[] = "ca-certificates.crt";

/* Hash of all that the content depends on, without reading the bundle. */
static int key_of(const char *system_path, struct slice ca_pem, char hex[HEX + 1], struct err *err)
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    SHA256_CTX c;
    struct stat st = {0};
    struct buf b;
    if (system_path && stat(system_path, &st) < 0)
        return err_sys(err, "%s", system_path);
    buf_init(&b, 256 * 1024);
    int r = buf_printf(&b, "%d\n%s\n%lld %llu %lld.%09ld\n", LAYOUT, system_path ? system_path : "",
                       (long long)st.st_size, (unsigned long long)st.st_ino,
                       (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    if (r == 0)
        r = buf_append_slice(&b, ca_pem);
    if (r == 0 && (SHA256_Init(&c) != 1 || SHA256_Update(&c, buf_data(&b), buf_len(&b)) != 1 ||
                   SHA256_Final(sum, &c) != 1))
        r = -1;
    buf_free(&b);
    if (r < 0)
        return err_set(err, ERR_INTERNAL, "the trust bundle's name cannot be computed");
    for (size_t i = 0; i < HEX / 2; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return 0;
}

/* 1: there, and ours; 0: not there. */
static int present(const char *dir, struct err *err)
{
    struct stat st;
    if (lstat(dir, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(err, ERR_DENIED, "%s is not a directory that only you can write; remove it",
                       dir);
    return 1;
}

static int write_file(int dir, const char *name, struct slice s, struct err *err)
{
    int r = 0, fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(err, "cannot make %s", name);
    for (size_t at = 0; r == 0 && at < s.n;) {
        ssize_t w = write(fd, s.p + at, s.n - at);
        if (w <= 0)
            r = err_sys(err, "writing %s", name);
        else
            at += (size_t)w;
    }
    if (r == 0 && fchmod(fd, 0644) < 0) /* whatever the umask says */
        r = err_sys(err, "%s", name);
    /* the rename must not reach the disk before the content: nobody looks at it again */
    if (r == 0 && fdatasync(fd) < 0)
        r = err_sys(err, "writing %s", name);
    close(fd);
    return r;
}

static int read_bundle(const char *path, struct buf *to, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "cannot open %s", path);
    ssize_t n;
    int r = 0;
    do {
        unsigned char *p = buf_reserve(to, 32 * 1024);
        n = p ? read(fd, p, 32 * 1024) : -1;
        if (p == NULL)
            r = err_set(err, ERR_LIMIT, "%s is larger than %d bytes", path, ROOTS_FILE_MAX);
        else if (n < 0)
            r = err_sys(err, "reading %s", path);
        else
            buf_commit(to, (size_t)n);
    } while (n > 0);
    close(fd);
    return r;
}

int trust_hashed_next(struct slice *rest, struct slice *pem, char *to, size_t size, struct err *err)
{
    struct buf der;
    const char *from = rest->p;
    X509 *x = NULL;
    buf_init(&der, PEM_TEXT_MAX);
    int found = pem_next(rest, &der);
    if (found > 0) {
        const unsigned char *at = buf_data(&der);
        x = d2i_X509(NULL, &at, (long)buf_len(&der));
    }
    buf_free(&der);
    if (found != 0 && x == NULL)
        return err_set(err, ERR_PARSE, "the CA certificate is not one");
    if (x == NULL)
        return 0;
    *pem = (struct slice){from, (size_t)(rest->p - from)};
    snprintf(to, size, "%08lx.0", X509_subject_name_hash(x));
    X509_free(x);
    return 1;
}

/* Each certificate by itself, under the name by which OpenSSL looks for it in a directory. */
static int write_hashed(int certs, struct slice ca_pem, struct err *err)
{
    struct slice rest = ca_pem, pem;
    char name[32];
    int found, n = 0;
    while ((found = trust_hashed_next(&rest, &pem, name, sizeof name, err)) > 0) {
        if (n++ == CERTS_MAX)
            return err_set(err, ERR_PARSE, "too many CA certificates");
        /* our CAs have random names; two that share a hash would fail here, and loudly */
        if (write_file(certs, name, pem, err) < 0)
            return -1;
    }
    return found == 0 && n == 0 ? err_set(err, ERR_PARSE, "the CA certificate is not one") : found;
}

static int fill_certs(int dir, struct slice ca_pem, struct err *err)
{
    if (mkdirat(dir, "certs", 0755) < 0)
        return err_sys(err, "cannot make certs");
    int certs = openat(dir, "certs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (certs < 0)
        return err_sys(err, "certs");
    int r = fchmod(certs, 0755) < 0 ? err_sys(err, "certs") : 0;
    if (r == 0)
        r = write_hashed(certs, ca_pem, err);
    /* a second name of the same file, because certs/ may be mounted alone */
    if (r == 0 && linkat(dir, "ca-certificates.crt", certs, "ca-certificates.crt", 0) < 0)
        r = err_sys(err, "cannot link the bundle");
    close(certs);
    return r;
}

/* Without a CA: the system's roots alone, for trust_sandbox.c. */
static int fill_roots(int dir, const char *system_path, struct err *err)
{
    struct buf bundle, java;
    buf_init(&bundle, ROOTS_FILE_MAX);
    buf_init(&java, ROOTS_FILE_MAX);
    int r = system_path ? read_bundle(system_path, &bundle, err) : 0;
    if (r == 0 && buf_append_str(&bundle, "\n") < 0)
        r = err_set(err, ERR_LIMIT, "the bundle is larger than %d bytes", ROOTS_FILE_MAX);
    if (r == 0)
        r = write_file(dir, bundle_name, buf_slice(&bundle), err);
    if (r == 0)
        r = trust_store_safe(buf_slice(&bundle), 1, &java, err);
    if (r == 0)
        r = write_file(dir, "java", buf_slice(&java), err);
    buf_free(&bundle);
    buf_free(&java);
    return r;
}

static int fill(int dir, const char *system_path, struct slice ca_pem, struct err *err)
{
    struct buf bundle, java;
    buf_init(&bundle, ROOTS_FILE_MAX);
    buf_init(&java, ROOTS_FILE_MAX);
    int r = system_path ? read_bundle(system_path, &bundle, err) : 0;
    if (r == 0 && (buf_append_str(&bundle, "\n") < 0 || buf_append_slice(&bundle, ca_pem) < 0))
        r = err_set(err, ERR_LIMIT, "the bundle is larger than %d bytes", ROOTS_FILE_MAX);
    if (r == 0)
        r = write_file(dir, "ca-certificates.crt", buf_slice(&bundle), err);
    if (r == 0)
        r = write_file(dir, "durward-ca.pem", ca_pem, err);
    if (r == 0)
        r = trust_store_java(buf_slice(&bundle), &java, err);
    if (r == 0)
        r = write_file(dir, "cacerts.p12", buf_slice(&java), err);
    if (r == 0)
        r = fill_certs(dir, ca_pem, err);
    buf_free(&bundle);
    buf_free(&java);
    return r;
}

/* What a build that failed, or lost a race, left: two levels, all ours. */
static void remove_dir(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) < 0 && (errno == EISDIR || errno == EPERM)) {
            char *below = paths_join(path, e->d_name);
            remove_dir(below);
            free(below);
        }
    }
    if (d)
        closedir(d);
    rmdir(path);
}

/* A directory with everything in it, beside its final name; the caller frees. */
static char *build_beside(const char *cache_dir, const char *system_path, struct slice ca_pem,
                          struct err *err)
{
    char *tmp = paths_join(cache_dir, ".trust-XXXXXX");
    if (mkdtemp(tmp) == NULL) {
        err_sys(err, "cannot make a directory in %s", cache_dir);
        free(tmp);
        return NULL;
    }
    int fd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fchmod(fd, 0755) < 0 ? err_sys(err, "%s", tmp)
            : ca_pem.n                     ? fill(fd, system_path, ca_pem, err)
                                           : fill_roots(fd, system_path, err);
    if (fd >= 0)
        close(fd);
    if (r == 0)
        return tmp;
    remove_dir(tmp);
    free(tmp);
    return NULL;
}

/* Renamed when it is whole: nobody ever sees half of it. */
static int build(const char *cache_dir, const char *final, const char *system_path,
                 struct slice ca_pem, struct err *err)
{
    int r = 0;
    char *tmp = build_beside(cache_dir, system_path, ca_pem, err);
    if (tmp == NULL)
        return -1;
    if (rename(tmp, final) < 0)
        r = errno == EEXIST || errno == ENOTEMPTY ? 1 : err_sys(err, "cannot make %s", final);
    if (r != 0)
        remove_dir(tmp);
    free(tmp);
    return r < 0 ? -1 : 0; /* 1: somebody else was faster; theirs is as good */
}

/* Every file of one directory in the place of its namesake in the other, but the bundle: that may
 * be mounted by itself, and stays the file that it is. */
static int move_files(const char *from, const char *to, struct err *err)
{
    DIR *d = opendir(from);
    struct dirent *e;
    int r = d ? 0 : err_sys(err, "%s", from);
    while (r == 0 && (e = readdir(d)) != NULL) {
        struct stat st;
        if (strcmp(e->d_name, bundle_name) == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        char *place = paths_join(to, e->d_name);
        if (renameat(dirfd(d), e->d_name, AT_FDCWD, place) < 0)
            r = err_sys(err, "cannot replace %s", place);
        free(place);
    }
    if (d)
        closedir(d);
    return r;
}

/* All of it, or nothing. size: what the file has. */
static int append(const char *path, size_t size, struct slice more, struct err *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "%s", path);
    ssize_t n = write(fd, more.p, more.n);
    int r = n == (ssize_t)more.n ? 0
            : n < 0              ? err_sys(err, "%s", path)
                                 : err_set(err, ERR_SYS, "%s: no room for another CA", path);
    if (r < 0 && n > 0 && ftruncate(fd, (off_t)size) < 0)
        err_wrap(err, "and half of one stays in it");
    close(fd);
    return r;
}

/* What the bundle lacks of ca_pem, at its end, by one write: who reads it meanwhile sees the old
 * content or the new. */
static int append_missing(const char *path, struct slice ca_pem, struct err *err)
{
    struct slice rest = ca_pem, pem;
    struct buf has, more;
    char name[32];
    int found, r = 0;
    buf_init(&has, ROOTS_FILE_MAX);
    buf_init(&more, ROOTS_FILE_MAX);
    if (read_bundle(path, &has, err) < 0)
        r = -1;
    if (r == 0 && (buf_len(&has) == 0 || buf_data(&has)[buf_len(&has) - 1] != '\n'))
        r = buf_append_str(&more, "\n");
    while (r == 0 && (found = trust_hashed_next(&rest, &pem, name, sizeof name, err)) != 0)
        if (found < 0 || (slice_find_slice(buf_slice(&has), pem) < 0 &&
                          (buf_append_slice(&more, pem) < 0 || buf_append_str(&more, "\n") < 0)))
            r = err->text[0] ? -1 : err_set(err, ERR_LIMIT, "the bundle is too large");
    if (r == 0 && buf_len(&more) > 1)
        r = append(path, buf_len(&has), buf_slice(&more), err);
    buf_free(&has);
    buf_free(&more);
    return r;
}

static int extend_one(const char *cache_dir, const char *dir, struct slice ca_pem, struct err *err)
{
    char *tmp = build_beside(cache_dir, system_roots_path(), ca_pem, err);
    if (tmp == NULL)
        return -1;
    char *from = paths_join(tmp, "certs"), *to = paths_join(dir, "certs");
    char *bundle = paths_join(dir, bundle_name);
    int r = append_missing(bundle, ca_pem, err);
    free(bundle);
    if (r == 0)
        r = move_files(from, to, err);
    if (r == 0)
        r = move_files(tmp, dir, err);
    free(from);
    free(to);
    remove_dir(tmp);
    free(tmp);
    return r;
}

/* Is this a directory of ours that trusts `now`? */
static bool trusts(const char *dir, const char *now)
{
    struct buf b;
    struct err none = {0};
    bool yes = false;
    char *path = paths_join(dir, "durward-ca.pem");
    buf_init(&b, 64 * 1024);
    if (present(dir, &none) == 1 && read_bundle(path, &b, &none) == 0)
        yes = slice_find_slice(buf_slice(&b), slice_str(now)) >= 0;
    buf_free(&b);
    free(path);
    return yes;
}

int trust_extend(const char *cache_dir, const char *now, const char *ca_pem, size_t n,
                 struct err *err)
{
    struct slice pem = {ca_pem, n};
    DIR *d = opendir(cache_dir);
    struct dirent *e;
    int r = d ? 0 : err_sys(err, "%s", cache_dir);
    while (r == 0 && (e = readdir(d)) != NULL) {
        char *dir = paths_join(cache_dir, e->d_name);
        if (strncmp(e->d_name, "trust-", 6) == 0 && trusts(dir, now))
            r = extend_one(cache_dir, dir, pem, err);
        free(dir);
    }
    if (d)
        closedir(d);
    return r < 0 ? err_wrap(err, "trust bundle") : 0;
}

static int prepare(const char *system_path, const char *cache_dir, const char *prefix,
                   struct slice ca, struct trust *ret, struct err *err)
{
    char name[sizeof "trust-" + HEX], hex[HEX + 1];
    if (key_of(system_path, ca, hex, err) < 0)
        return err_wrap(err, "trust bundle");
    snprintf(name, sizeof name, "%s-%s", prefix, hex);
    struct trust t = {.dir = paths_join(cache_dir, name)};
    int r = present(t.dir, err);
    if (r == 0) {
        t.built = true;
        r = paths_make_private(cache_dir, err);
        if (r == 0)
            r = build(cache_dir, t.dir, system_path, ca, err);
    }
    if (r < 0) {
        trust_clear(&t);
        return err_wrap(err, "trust bundle");
    }
    *ret = t;
    return 0;
}

int trust_prepare_with(const char *system_path, const char *cache_dir, const char *ca_pem, size_t n,
                       struct trust *ret, struct err *err)
{
    if (n == 0)
        return err_set(err, ERR_PARSE, "trust bundle: the CA certificate is not one");
    return prepare(system_path, cache_dir, "trust", (struct slice){ca_pem, n}, ret, err);
}

int trust_roots_with(const char *system_path, const char *cache_dir, struct trust *ret,
                     struct err *err)
{
    return prepare(system_path, cache_dir, "roots", (struct slice){NULL, 0}, ret, err);
}

int trust_roots(const char *cache_dir, struct trust *ret, struct err *err)
{
    return trust_roots_with(system_roots_path(), cache_dir, ret, err);
}

int trust_prepare(const char *cache_dir, const char *ca_pem, size_t n, struct trust *ret,
                  struct err *err)
{
    return trust_prepare_with(system_roots_path(), cache_dir, ca_pem, n, ret, err);
}

void trust_clear(struct trust *t)
{
    free(t->dir);
    *t = (struct trust){0};
}
