/* Puts a sandbox's bundles together from parts: the cached roots are copied with sendfile, and the
 * frame of the Java store is written by hand around parts that are encoded already. */
#define _GNU_SOURCE 1
#include "trust_sandbox.h"

#include "ipc_msg.h"
#include "slice.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MAX_HASHED = 32,
    JAVA_HEAD = 44, /* five heads of at most six bytes, and fourteen between them */
};

static const char bundle[] = "ca-certificates.crt", alone[] = "durward-ca.pem",
                  java[] = "cacerts.p12", certs[] = "certs";

struct root {
    struct slice pem, java;
    char name[NAME_MAX_HASHED];
    int how; /* files are opened: O_TRUNC, or O_EXCL, in the place of whatever has their names */
};

static int read_root(struct slice s, struct root *ret, struct err *err)
{
    struct msg m;
    msg_view(&m, 0, s);
    bool good = msg_get_slice(&m, TRUST_ROOT_MAX, &ret->pem) == 0 &&
                msg_get_str(&m, ret->name, sizeof ret->name) == 0 &&
                msg_get_slice(&m, TRUST_ROOT_MAX, &ret->java) == 0 && msg_end(&m) == 0 &&
                ret->name[0] && strchr(ret->name, '/') == NULL;
    return good ? 0 : err_set(err, ERR_PARSE, "the root of the sandbox's CA is malformed");
}

/* ---- files ---- */

static int open_at(int dir, const char *name, int how, struct err *err)
{
    if (how == O_EXCL && unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return err_sys(err, "cannot make %s anew", name);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | how | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(err, "cannot make %s", name);
    if (fchmod(fd, 0644) == 0) /* whatever the umask says */
        return fd;
    err_sys(err, "%s", name);
    close(fd);
    return -1;
}

static int put(int fd, struct slice s, struct err *err)
{
    for (size_t at = 0; at < s.n;) {
        ssize_t w = write(fd, s.p + at, s.n - at);
        if (w <= 0)
            return err_sys(err, "writing a trust bundle");
        at += (size_t)w;
    }
    return 0;
}

static int write_one(int dir, const char *name, int how, struct slice s, struct err *err)
{
    int fd = open_at(dir, name, how, err);
    int r = fd < 0 ? -1 : put(fd, s, err);
    if (fd >= 0)
        close(fd);
    return r;
}

/* All of the file at `from`, which nobody changes. */
static int copy(int from, off_t size, int to, struct err *err)
{
    for (off_t at = 0; at < size;)
        if (sendfile(to, from, &at, (size_t)(size - at)) <= 0)
            return err_sys(err, "copying the system's roots");
    return 0;
}

static int open_root(int roots, const char *name, off_t *size, struct err *err)
{
    struct stat st;
    int fd = openat(roots, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        *size = st.st_size;
        return fd;
    }
    err_sys(err, "the system's roots: %s", name);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int lay_bundle(int roots, int to, const struct root *r, struct err *err)
{
    off_t size = 0;
    int from = open_root(roots, bundle, &size, err),
        fd = from < 0 ? -1 : open_at(to, bundle, r->how, err);
    int done = fd < 0 ? -1 : copy(from, size, fd, err);
    if (done == 0)
        done = put(fd, r->pem, err);
    if (from >= 0)
        close(from);
    if (fd >= 0)
        close(fd);
    return done;
}

/* ---- the Java store: PFX { 3, data { safes } }, without a MacData (RFC 7292 4) ---- */

enum { SEQUENCE = 0x30, CONTEXT_0 = 0xa0, OCTETS = 4, DER_HEAD = 6 };

/* Tag and length of `size` bytes, as short as DER wants them; how many bytes that is. */
static size_t der_head(unsigned char tag, size_t size, unsigned char to[DER_HEAD])
{
    size_t n = 0, more = 0;
    while (size >= 0x80 && more < 4 && size >> 8 * more)
        more++;
    to[n++] = tag;
    to[n++] = (unsigned char)(more ? 0x80 | more : size);
    while (more-- > 0)
        to[n++] = (unsigned char)(size >> 8 * more);
    return n;
}

/* What comes before the parts, which are `size` bytes long: each level holds the next, so that the
 * last is written first, at the end of `to`. How many bytes; they end with it. */
static size_t java_head(size_t size, unsigned char to[JAVA_HEAD])
{
    static const unsigned char version[] = {2, 1, 3},
                               data[] = {6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1};
    static const struct {
        const unsigned char *after; /* between this head and the next */
        size_t n;
        unsigned char tag;
    } levels[] = {{version, sizeof version, SEQUENCE},
                  {data, sizeof data, SEQUENCE},
                  {NULL, 0, CONTEXT_0},
                  {NULL, 0, OCTETS},
                  {NULL, 0, SEQUENCE}};
    size_t n = 0;
    for (size_t i = ARRAY_LEN(levels); i-- > 0;) {
        unsigned char head[DER_HEAD];
        n += levels[i].n;
        if (levels[i].n)
            memcpy(to + JAVA_HEAD - n, levels[i].after, levels[i].n);
        size_t h = der_head(levels[i].tag, size + n, head);
        n += h;
        memcpy(to + JAVA_HEAD - n, head, h);
    }
    return n;
}

static int lay_java(int roots, int to, const struct root *r, struct err *err)
{
    unsigned char head[JAVA_HEAD];
    off_t size = 0;
    int from = open_root(roots, "java", &size, err),
        fd = from < 0 ? -1 : open_at(to, java, r->how, err);
    int done = fd < 0 ? -1 : 0;
    if (done == 0) {
        size_t n = java_head((size_t)size + r->java.n, head);
        done = put(fd, (struct slice){(char *)head + JAVA_HEAD - n, n}, err);
    }
    if (done == 0)
        done = copy(from, size, fd, err);
    if (done == 0)
        done = put(fd, r->java, err);
    if (from >= 0)
        close(from);
    if (fd >= 0)
        close(fd);
    return done;
}

/* ---- the directory ---- */

static int open_certs(int to, struct err *err)
{
    if (mkdirat(to, certs, 0755) < 0 && errno != EEXIST)
        return err_sys(err, "cannot make certs");
    int fd = openat(to, certs, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, 0755) == 0)
        return fd;
    err_sys(err, "certs");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Our CA by the name that OpenSSL looks for, and a second name of the bundle: certs/ may be mounted
 * alone. */
static int lay_certs(int to, const struct root *r, struct err *err)
{
    int fd = open_certs(to, err);
    int done = fd < 0 ? -1 : r ? write_one(fd, r->name, r->how, r->pem, err) : 0;
    if (done == 0 && linkat(to, bundle, fd, bundle, 0) < 0 && errno != EEXIST)
        done = err_sys(err, "cannot link the bundle");
    if (fd >= 0)
        close(fd);
    return done;
}

static int lay(int roots, int to, struct slice root, int how, struct err *err)
{
    struct root r = {.how = how};
    return read_root(root, &r, err) < 0 || lay_bundle(roots, to, &r, err) < 0 ||
                   write_one(to, alone, how, r.pem, err) < 0 || lay_java(roots, to, &r, err) < 0 ||
                   lay_certs(to, &r, err) < 0
               ? err_wrap(err, "trust bundle")
               : 0;
}

int trust_lay(int roots, int to, struct slice root, struct err *err)
{
    return lay(roots, to, root, O_TRUNC, err);
}

int trust_lay_anew(int roots, int to, struct slice root, struct err *err)
{
    return lay(roots, to, root, O_EXCL, err);
}

int trust_lay_empty(int to, struct err *err)
{
    static const char *const names[] = {bundle, alone, java};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (write_one(to, names[i], O_TRUNC, SLICE(""), err) < 0)
            return -1;
    return lay_certs(to, NULL, err);
}
