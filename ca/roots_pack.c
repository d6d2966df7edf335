/* Packs the system's bundle and the user's files into the memfd that roots.c maps, sorted by a hash
 * of the subject. The subject is cut out of the DER: d2i_X509 would parse the key too, and all that
 * OpenSSL does for a name takes ten times as long, at each start of a parent. */
#include "roots.h"

#include "ipc.h"
#include "name_hash.h"
#include "pem.h"
#include "roots_format.h"
#include "system_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack {
    struct roots_entry *entries;
    size_t n, room;
    struct buf der; /* all certificates, one after the other */
};

enum { INTEGER = 0x02, OID = 0x06, SEQUENCE = 0x30, SET = 0x31, CERT_VERSION = 0xa0 };

/* One element of DER with this tag: *body is its content. Moves *at behind it. */
static int element(struct slice *at, unsigned char tag, struct slice *body)
{
    const unsigned char *p = (const unsigned char *)at->p, *end = p + at->n;
    if (at->n < 2 || *p++ != tag)
        return -1;
    size_t n = *p++;
    if (n >= 0x80) {
        size_t bytes = n & 0x7f; /* no certificate has more than 2 to the 24th */
        if (bytes < 1 || bytes > 3 || (size_t)(end - p) < bytes)
            return -1;
        for (n = 0; bytes > 0; bytes--)
            n = n << 8 | *p++;
    }
    if (n > (size_t)(end - p))
        return -1;
    *body = (struct slice){(const char *)p, n};
    *at = (struct slice){(const char *)p + n, (size_t)(end - p) - n};
    return 0;
}

static int hash_attribute(struct slice *at, struct name_hash *h)
{
    struct slice both, type, value;
    if (element(at, SEQUENCE, &both) < 0 || element(&both, OID, &type) < 0 || both.n == 0)
        return -1;
    unsigned char tag = (unsigned char)both.p[0];
    if (element(&both, tag, &value) < 0 || both.n != 0)
        return -1;
    name_hash_attribute(h, type, tag, value);
    return 0;
}

static int hash_name(struct slice rdns, uint32_t *ret)
{
    struct slice rdn;
    struct name_hash h;
    name_hash_begin(&h);
    while (rdns.n > 0) {
        if (element(&rdns, SET, &rdn) < 0 || rdn.n == 0)
            return -1;
        while (rdn.n > 0)
            if (hash_attribute(&rdn, &h) < 0)
                return -1;
        name_hash_rdn(&h);
    }
    *ret = name_hash_end(&h);
    return 0;
}

/* The hash of the subject of a DER certificate. */
static int subject_hash(struct slice der, uint32_t *ret)
{
    struct slice cert, tbs, skip;
    if (element(&der, SEQUENCE, &cert) < 0 || der.n != 0 || element(&cert, SEQUENCE, &tbs) < 0)
        return -1;
    if (tbs.n && (unsigned char)tbs.p[0] == CERT_VERSION && element(&tbs, CERT_VERSION, &skip) < 0)
        return -1;
    if (element(&tbs, INTEGER, &skip) < 0)
        return -1;
    for (int i = 0; i < 3; i++) /* signature algorithm, issuer, validity */
        if (element(&tbs, SEQUENCE, &skip) < 0)
            return -1;
    return element(&tbs, SEQUENCE, &skip) < 0 ? -1 : hash_name(skip, ret);
}

static int add(struct pack *p, struct slice der, uint32_t flags, struct err *err)
{
    uint32_t hash;
    if (subject_hash(der, &hash) < 0)
        return err_set(err, ERR_PARSE, "it is not an X.509 certificate");
    if (p->n == ROOTS_MAX)
        return err_set(err, ERR_LIMIT, "there are more than %d roots", ROOTS_MAX);
    if (p->n == p->room) {
        size_t room = p->room ? p->room * 2 : 256;
        struct roots_entry *more = realloc(p->entries, room * sizeof *more);
        if (more == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
        p->entries = more;
        p->room = room;
    }
    p->entries[p->n++] =
        (struct roots_entry){hash, (uint32_t)buf_len(&p->der), (uint32_t)der.n, flags};
    if (buf_append_slice(&p->der, der) < 0)
        return err_set(err, ERR_LIMIT, "the roots are larger than %d bytes", ROOTS_FILE_MAX);
    return 0;
}

static int read_file(const char *path, struct buf *to, struct err *err)
{
    struct stat st;
    int r = -1, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "cannot open %s", path);
    buf_init(to, ROOTS_FILE_MAX);
    if (fstat(fd, &st) < 0) {
        err_sys(err, "%s", path);
    } else if (!S_ISREG(st.st_mode) || st.st_size > ROOTS_FILE_MAX) {
        err_set(err, ERR_DENIED, "%s is not a regular file of at most %d bytes", path,
                ROOTS_FILE_MAX);
    } else {
        size_t want = (size_t)st.st_size, got = 0;
        unsigned char *p = buf_reserve(to, want);
        ssize_t n = 1;
        while (p && got < want && (n = read(fd, p + got, want - got)) > 0)
            got += (size_t)n;
        buf_commit(to, p ? got : 0);
        r = p && n >= 0 ? 0 : err_sys(err, "reading %s", path);
    }
    close(fd);
    if (r < 0)
        buf_free(to);
    return r;
}

static int too_large(struct err *err)
{
    return err_set(err, ERR_LIMIT, "a certificate in it is larger than %d bytes of PEM",
                   PEM_TEXT_MAX);
}

/* All certificates of one file. The user's: a damaged or absent one is an error, and each is an
 * anchor. */
static int add_file(struct pack *p, const char *path, bool named, struct err *err)
{
    struct buf text, der;
    if (read_file(path, &text, err) < 0)
        return -1;
    buf_init(&der, PEM_TEXT_MAX);
    struct slice rest = buf_slice(&text);
    size_t before = p->n;
    int r = 0, found;
    if (rest.n && rest.p[0] == 0x30) {
        r = rest.n > PEM_TEXT_MAX ? too_large(err) : add(p, rest, named ? ROOTS_NAMED : 0, err);
        rest.n = 0;
    }
    while (r == 0 && (found = pem_next(&rest, &der)) != 0) {
        struct err *tell = named ? err : NULL;
        r = found > 0                ? add(p, buf_slice(&der), named ? ROOTS_NAMED : 0, tell)
            : found == PEM_TOO_LARGE ? too_large(tell)
                                     : err_set(tell, ERR_PARSE, "a PEM block is damaged");
        if (r < 0 && !named)
            r = 0;
    }
    if (r == 0 && named && p->n == before)
        r = err_set(err, ERR_PARSE, "there is no certificate in it");
    buf_free(&der);
    buf_free(&text);
    return r < 0 ? err_wrap(err, "%s", path) : 0;
}

/* What the user named is first, and so it is what stays of two that are the same. */
static int by_hash(const void *a, const void *b)
{
    const struct roots_entry *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->flags != y->flags)
        return x->flags > y->flags ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int to_memfd(struct pack *p, struct err *err)
{
    struct roots_header head = {.magic = ROOTS_MAGIC, .count = (uint32_t)p->n};
    size_t index = p->n * sizeof *p->entries, total = sizeof head + index + buf_len(&p->der);
    unsigned char *all = malloc(total);
    if (all == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (p->n)
        qsort(p->entries, p->n, sizeof *p->entries, by_hash);
    memcpy(all, &head, sizeof head);
    if (p->n)
        memcpy(all + sizeof head, p->entries, index);
    memcpy(all + sizeof head + index, buf_data(&p->der), buf_len(&p->der));
    int fd = ipc_memfd("durward-roots", all, total, err);
    free(all);
    return fd;
}

int roots_pack_with(const char *system_path, const char *const *pem_paths, struct err *err)
{
    struct pack p = {0};
    int r = 0;
    buf_init(&p.der, ROOTS_FILE_MAX);
    if (system_path)
        r = add_file(&p, system_path, false, err);
    for (; r == 0 && pem_paths && *pem_paths; pem_paths++)
        r = add_file(&p, *pem_paths, true, err);
    if (r == 0)
        r = to_memfd(&p, err);
    free(p.entries);
    buf_free(&p.der);
    return r < 0 ? err_wrap(err, "trusted roots") : r;
}

int roots_pack(const char *const *pem_paths, struct err *err)
{
    return roots_pack_with(system_roots_path(), pem_paths, err);
}
