/* Reads each key or makes it: under another name first, then linked, so that two daemons that start
 * at once get the same whole key. */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "paths.h"

static int write_key(int fd, const unsigned char *key, struct err *err)
{
    if (write(fd, key, KEY_BYTES) != KEY_BYTES || fsync(fd) < 0)
        return err_sys(err, "cannot write a key file");
    return 0;
}

/* Under a name of its own first, then linked: whoever comes second finds the whole key of whoever
 * came first, never half of it. */
static int make_key(int dirfd, const char *name, struct err *err)
{
    unsigned char key[KEY_BYTES];
    char temp[64];
    uint64_t salt;
    if (getrandom(key, sizeof key, 0) != sizeof key || getrandom(&salt, sizeof salt, 0) < 0)
        return err_sys(err, "getrandom");
    snprintf(temp, sizeof temp, "%s.%016llx", name, (unsigned long long)salt);
    int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        explicit_bzero(key, sizeof key);
        return err_sys(err, "cannot make %s in the state directory", name);
    }
    int r = write_key(fd, key, err);
    explicit_bzero(key, sizeof key);
    close(fd);
    if (r == 0 && linkat(dirfd, temp, dirfd, name, 0) < 0 && errno != EEXIST)
        r = err_sys(err, "cannot make %s in the state directory", name);
    unlinkat(dirfd, temp, 0);
    if (r == 0 && fsync(dirfd) < 0)
        r = err_sys(err, "the state directory");
    return r;
}

static int read_key(int fd, const char *name, unsigned char *key, struct err *err)
{
    unsigned char more;
    if (paths_check_private_fd(fd, name, err) < 0)
        return err_wrap(err, "state directory");
    if (read(fd, key, KEY_BYTES) != KEY_BYTES || read(fd, &more, 1) != 0)
        return err_set(
            err, ERR_PARSE,
            "%s in the state directory is damaged (it must have %d bytes); remove it and "
            "start again: placeholders and tokens given so far become invalid",
            name, KEY_BYTES);
    return 0;
}

static int load_key(int dirfd, const char *name, unsigned char *key, struct err *err)
{
    enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW };
    int fd = openat(dirfd, name, FLAGS);
    if (fd < 0 && errno == ENOENT) {
        if (make_key(dirfd, name, err) < 0)
            return -1;
        fd = openat(dirfd, name, FLAGS);
    }
    if (fd < 0)
        return err_sys(err, "cannot open %s in the state directory", name);
    int r = read_key(fd, name, key, err);
    close(fd);
    return r;
}

static EVP_PKEY *load_pair(int dirfd, const char *name, unsigned char public[KEY_BYTES],
                           struct err *err)
{
    unsigned char raw[KEY_BYTES];
    size_t n = KEY_BYTES;
    if (load_key(dirfd, name, raw, err) < 0)
        return NULL;
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw, sizeof raw);
    explicit_bzero(raw, sizeof raw);
    if (pair && EVP_PKEY_get_raw_public_key(pair, public, &n) == 1)
        return pair;
    EVP_PKEY_free(pair);
    err_set(err, ERR_INTERNAL, "cannot use %s", name);
    return NULL;
}

int keys_load_fleet(int dirfd, struct keys *ret, struct err *err)
{
    ret->fleet = load_pair(dirfd, "fleet.key", ret->fleet_public, err);
    return ret->fleet ? 0 : -1;
}

int keys_load(int dirfd, struct keys *ret, struct err *err)
{
    *ret = (struct keys){0};
    if (load_key(dirfd, "tag.key", ret->tag, err) < 0)
        return -1;
    ret->token = load_pair(dirfd, "token.key", ret->token_public, err);
    if (ret->token)
        return 0;
    keys_done(ret);
    return -1;
}

void keys_done(struct keys *k)
{
    EVP_PKEY_free(k->token);
    EVP_PKEY_free(k->fleet);
    explicit_bzero(k, sizeof *k);
}
