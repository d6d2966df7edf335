/* Signs the head and writes it to a temporary file, which is on disk before it is renamed; reads
 * the head back and verifies it. */
#include "head.h"

#include "buf.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_MAX = 1024 };

static int signed_text(const struct head *h, char *out, size_t size, struct slice *ret)
{
    char hex[CHAIN_HEX];
    int n = snprintf(out, size, "durward audit head 1\n%s\n%llu\n%s\n%s\n", h->file,
                     (unsigned long long)h->tip.seq, chain_hex(h->tip.hash, hex), h->time);
    *ret = (struct slice){out, (size_t)n};
    return n > 0 && (size_t)n < size ? 0 : -1;
}

static int replace(int dirfd, const char *text, size_t n, struct err *err)
{
    static const char tmp[] = ".head.new";
    int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(err, "cannot write the audit log's head");
    int r = 0;
    if (write(fd, text, n) != (ssize_t)n || fdatasync(fd) < 0)
        r = err_sys(err, "cannot write the audit log's head");
    close(fd);
    if (r == 0 && renameat(dirfd, tmp, dirfd, "head") < 0)
        r = err_sys(err, "cannot replace the audit log's head");
    if (r < 0)
        unlinkat(dirfd, tmp, 0);
    return r;
}

int head_write(int dirfd, const struct head *h, const struct signing_key *key, struct err *err)
{
    char text[HEAD_MAX], hex[CHAIN_HEX], sig_hex[2 * SIGNATURE_SIZE + 1];
    unsigned char sig[SIGNATURE_SIZE];
    struct slice s;
    if (signed_text(h, text, sizeof text, &s) < 0 || signing_key_sign(key, s, sig) < 0)
        return err_set(err, ERR_INTERNAL, "cannot sign the audit log's head");
    chain_hex(sig, sig_hex); /* two halves of a hash's size each */
    chain_hex(sig + CHAIN_HASH, sig_hex + 2 * CHAIN_HASH);
    int n = snprintf(text, sizeof text,
                     "{\"file\":\"%s\",\"seq\":%llu,\"hash\":\"%s\",\"time\":\"%s\","
                     "\"signature\":\"%s\"}\n",
                     h->file, (unsigned long long)h->tip.seq, chain_hex(h->tip.hash, hex), h->time,
                     sig_hex);
    if (n < 0 || (size_t)n >= sizeof text)
        return err_set(err, ERR_INTERNAL, "the audit log's head is too long");
    return replace(dirfd, text, (size_t)n, err);
}

static int parse(const char *text, size_t n, struct head *h, unsigned char sig[SIGNATURE_SIZE])
{
    const char *file, *hash, *time, *signature;
    json_int_t seq;
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    int r = json_unpack_ex(j, NULL, JSON_STRICT, "{s:s,s:I,s:s,s:s,s:s}", "file", &file, "seq",
                           &seq, "hash", &hash, "time", &time, "signature", &signature);
    if (r == 0) {
        struct slice s = slice_str(signature);
        size_t half = CHAIN_HEX - 1;
        if (seq < 1 || strlen(file) >= sizeof h->file || strlen(time) >= sizeof h->time ||
            chain_unhex(slice_str(hash), h->tip.hash) < 0 || s.n != 2 * half ||
            chain_unhex((struct slice){s.p, half}, sig) < 0 ||
            chain_unhex((struct slice){s.p + half, half}, sig + CHAIN_HASH) < 0) {
            r = -1;
        } else {
            h->tip.seq = (uint64_t)seq;
            snprintf(h->file, sizeof h->file, "%s", file);
            snprintf(h->time, sizeof h->time, "%s", time);
        }
    }
    json_decref(j);
    return r;
}

int head_read(int dirfd, struct head *ret, const struct signing_key *key, struct err *err)
{
    char text[HEAD_MAX], line[HEAD_MAX];
    unsigned char sig[SIGNATURE_SIZE];
    struct slice s;
    int fd = openat(dirfd, "head", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, "cannot open head");
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n < 0)
        return err_sys(err, "cannot read head");
    if ((size_t)n == sizeof text || parse(text, (size_t)n, ret, sig) < 0)
        return err_set(err, ERR_PARSE, "head is malformed");
    if (signed_text(ret, line, sizeof line, &s) < 0 || !signing_key_verify(key, s, sig))
        return err_set(err, ERR_DENIED, "head is not signed by this key");
    return 1;
}
