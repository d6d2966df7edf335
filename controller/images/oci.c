/* Finds and reads the JSON of either kind of image, opens no path that leads out of its directory,
 * and checks a blob's digest whenever it is opened. */
#define _GNU_SOURCE 1
#include "oci.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "buf.h"

enum { JSON_MAX = 4 << 20, DIGEST_HEX = 64, NESTED_MAX = 3 };

#define BLOBS "blobs/sha256/"

/* Links within are followed, as `docker save` once made them for shared layers. */
static int open_within(int dir, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    struct stat st;
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

static int digest_of(int fd, char hex[DIGEST_HEX + 1])
{
    unsigned char sum[EVP_MAX_MD_SIZE], room[65536];
    unsigned n = 0;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
    ssize_t got = 1;
    while (ok && (got = read(fd, room, sizeof room)) > 0)
        ok = EVP_DigestUpdate(md, room, (size_t)got) == 1;
    ok = ok && got == 0 && EVP_DigestFinal_ex(md, sum, &n) == 1 && n == DIGEST_HEX / 2;
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; ok && i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return ok && lseek(fd, 0, SEEK_SET) == 0 ? 0 : -1;
}

int oci_open(int dir, const char *path, struct err *err)
{
    char hex[DIGEST_HEX + 1];
    int fd = open_within(dir, path);
    if (fd < 0)
        return err_sys(err, "%.200s, which the image's manifest names", path);
    if (strncmp(path, BLOBS, sizeof BLOBS - 1) != 0)
        return fd;
    if (digest_of(fd, hex) == 0 && strcmp(hex, path + sizeof BLOBS - 1) == 0)
        return fd;
    close(fd);
    return err_set(err, ERR_PARSE, "%.200s does not have the digest that it is named after", path);
}

static json_t *read_json(int dir, const char *path, struct err *err)
{
    struct stat st;
    json_error_t why;
    json_t *v = NULL;
    struct buf b;
    buf_init(&b, JSON_MAX + 1);
    int fd = oci_open(dir, path, err);
    if (fd < 0)
        return NULL;
    unsigned char *p = fstat(fd, &st) == 0 && st.st_size <= JSON_MAX
                           ? buf_reserve(&b, (size_t)st.st_size + 1)
                           : NULL;
    ssize_t n = p ? read(fd, p, (size_t)st.st_size) : -1;
    if (n >= 0)
        v = json_loadb((const char *)p, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    if (v == NULL)
        err_set(err, ERR_PARSE, "%.200s is not JSON, or too large", path);
    close(fd);
    buf_free(&b);
    return v;
}

static int add_layer(struct oci_layers *l, const char *path, struct err *err)
{
    if (l->n == OCI_LAYERS_MAX || strlen(path) >= OCI_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the image has more than %d layers", OCI_LAYERS_MAX);
    snprintf(l->path[l->n++], OCI_PATH_MAX, "%s", path);
    return 0;
}

/* "sha256:…" to the blob's path. */
static int blob_path(const json_t *descriptor, char path[OCI_PATH_MAX], struct err *err)
{
    const char *digest = json_string_value(json_object_get(descriptor, "digest"));
    if (digest == NULL || strncmp(digest, "sha256:", 7) != 0 || strlen(digest + 7) != DIGEST_HEX ||
        strspn(digest + 7, "0123456789abcdef") != DIGEST_HEX)
        return err_set(err, ERR_PARSE, "the manifest lacks a sha256 digest");
    snprintf(path, OCI_PATH_MAX, BLOBS "%s", digest + 7);
    return 0;
}

/* ---- docker save ---- */

static int docker_layers(const json_t *v, struct oci_layers *l, struct err *err)
{
    const json_t *layers = json_object_get(json_array_get(v, 0), "Layers");
    if (json_array_size(v) != 1)
        return err_set(err, ERR_PARSE, "it holds %zu images; save one alone", json_array_size(v));
    if (!json_is_array(layers))
        return err_set(err, ERR_PARSE, "manifest.json names no Layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *path = json_string_value(json_array_get(layers, i));
        if (path == NULL || path[0] == '\0')
            return err_set(err, ERR_PARSE, "manifest.json: a layer has no name");
        if (add_layer(l, path, err) < 0)
            return -1;
    }
    return 1;
}

/* ---- OCI ---- */

static const char *architecture(void)
{
    static struct utsname u;
    if (uname(&u) < 0)
        return "";
    return strcmp(u.machine, "x86_64") == 0    ? "amd64"
           : strcmp(u.machine, "aarch64") == 0 ? "arm64"
                                               : u.machine;
}

static bool fits(const json_t *descriptor)
{
    const json_t *p = json_object_get(descriptor, "platform");
    const char *os = json_string_value(json_object_get(p, "os"));
    const char *arch = json_string_value(json_object_get(p, "architecture"));
    return (os == NULL || strcmp(os, "linux") == 0) &&
           (arch == NULL || strcmp(arch, architecture()) == 0);
}

static int manifest_layers(int dir, json_t *v, struct oci_layers *l, unsigned depth,
                           struct err *err);

static int index_layers(int dir, const json_t *list, struct oci_layers *l, unsigned depth,
                        struct err *err)
{
    char path[OCI_PATH_MAX];
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!fits(json_array_get(list, i)))
            continue;
        if (found)
            return err_set(err, ERR_PARSE, "the layout holds more than one image for this machine");
        found = json_array_get(list, i);
    }
    if (found == NULL || depth == NESTED_MAX)
        return err_set(err, ERR_PARSE, "the layout holds no image for linux/%s", architecture());
    if (blob_path(found, path, err) < 0)
        return -1;
    json_t *v = read_json(dir, path, err);
    int r = v ? manifest_layers(dir, v, l, depth + 1, err) : -1;
    json_decref(v);
    return r;
}

static int manifest_layers(int dir, json_t *v, struct oci_layers *l, unsigned depth,
                           struct err *err)
{
    const json_t *list = json_object_get(v, "manifests"), *layers = json_object_get(v, "layers");
    if (json_is_array(list))
        return index_layers(dir, list, l, depth, err);
    if (!json_is_array(layers))
        return err_set(err, ERR_PARSE, "the manifest names no layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        char path[OCI_PATH_MAX];
        if (blob_path(json_array_get(layers, i), path, err) < 0 || add_layer(l, path, err) < 0)
            return -1;
    }
    return 1;
}

static bool there(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int oci_layers(int dir, struct oci_layers *ret, struct err *err)
{
    bool layout = there(dir, "oci-layout") && there(dir, "index.json");
    ret->n = 0;
    if (!layout && !there(dir, "manifest.json"))
        return 0;
    json_t *v = read_json(dir, layout ? "index.json" : "manifest.json", layout ? err : NULL);
    int r;
    if (!layout && (!json_is_array(v) || !json_object_get(json_array_get(v, 0), "Layers")))
        r = 0; /* somebody's own manifest.json */
    else if (v == NULL)
        r = -1;
    else
        r = layout ? manifest_layers(dir, v, ret, 0, err) : docker_layers(v, ret, err);
    json_decref(v);
    return r;
}
